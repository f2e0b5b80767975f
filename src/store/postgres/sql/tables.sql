
-- One row a report: who may publish, and what is published. It is never deleted, and generation never goes down.
--
-- A renewal changes lease_until and nothing else, so no index may have it, nor any other column that renewals could change:
-- then PostgreSQL updates the row within its page and touches no index at all. The room for that is left by the fillfactor.
CREATE TABLE IF NOT EXISTS leasehold.report_publication
(
    report_id             uuid        NOT NULL PRIMARY KEY,
    generation            bigint      NOT NULL DEFAULT 0,

    lease_owner           uuid        NULL,
    lease_until           timestamptz NULL,

    -- Of the latest acquisition; they stay when it is over.
    lease_holder          text        NULL,
    lease_acquired_at     timestamptz NULL,
    takeover_delay_millis bigint      NOT NULL DEFAULT 0,

    recovery_epoch        bigint      NOT NULL,

    published_generation  bigint      NOT NULL DEFAULT 0,
    published_at          timestamptz NULL,
    source_revision       bigint      NULL,

    source_revision_floor bigint      NULL,
    pruned_up_to          bigint      NOT NULL DEFAULT 0,

    forced_generation     bigint      NULL,
    forced_by             text        NULL,
    forced_at             timestamptz NULL,

    -- An owner has an expiry.
    CHECK (lease_owner IS NULL OR lease_until IS NOT NULL)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- The visible payload, apart from the row above: a payload below the size that PostgreSQL moves out of line would be copied by
-- every renewal.
CREATE TABLE IF NOT EXISTS leasehold.report_payload
(
    report_id uuid NOT NULL PRIMARY KEY,
    payload   text NOT NULL
);

-- One row an acquisition that is over: published (it has an operation) or closed.
CREATE TABLE IF NOT EXISTS leasehold.report_ledger
(
    lease_owner     uuid        NOT NULL PRIMARY KEY,
    report_id       uuid        NOT NULL,
    generation      bigint      NOT NULL,
    recovery_epoch  bigint      NOT NULL,
    operation_id    uuid        NULL,
    source_revision bigint      NULL,
    ended_at        timestamptz NOT NULL
);

CREATE UNIQUE INDEX IF NOT EXISTS report_ledger_operation_id
    ON leasehold.report_ledger (operation_id) WHERE operation_id IS NOT NULL;

INSERT INTO leasehold.leasehold_store (id, schema_version, recovery_epoch) VALUES (1, {version}, 0) ON CONFLICT DO NOTHING;

-- The functions are made anew, with those that take or give an answer.
DROP TYPE IF EXISTS leasehold.answer CASCADE;

-- What an operation found under the row's lock, after an expired lease was ended and before anything else was written. The
-- client finds the answer in it, and checks that the function came to the same conclusion.
CREATE TYPE leasehold.answer AS
(
    -- The clock, read after the lock was had.
    found_at              timestamptz,
    -- Whether the conditional write was done.
    applied               boolean,

    -- The report's row; no report_id: there is none.
    report_id             uuid,
    generation            bigint,
    lease_owner           uuid,
    lease_until           timestamptz,
    lease_holder          text,
    lease_acquired_at     timestamptz,
    takeover_delay_millis bigint,
    recovery_epoch        bigint,
    published_generation  bigint,
    published_at          timestamptz,
    source_revision       bigint,
    source_revision_floor bigint,
    pruned_up_to          bigint,
    forced_generation     bigint,
    forced_by             text,
    forced_at             timestamptz,

    -- What the ledger has under the request's owner.
    ended_report          uuid,
    ended_generation      bigint,
    ended_epoch           bigint,
    ended_operation       uuid,
    ended_revision        bigint,
    ended_at              timestamptz,

    -- What the ledger has under the request's operation.
    used_by               uuid,
    used_report           uuid,
    used_generation       bigint,
    used_epoch            bigint,
    used_revision         bigint,
    used_at               timestamptz,

    -- Whether the ledger knows the next owner of an advance.
    next_ended            boolean
);
