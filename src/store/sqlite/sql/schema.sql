-- The schema of leasehold, version 1.
--
-- Times that end in Utc are for people; a step of the wall clock moves no lease. What decides is LeaseUntilNanos, counted
-- since the boot that LeaseBootId names: a lease of another boot is over.

-- What holds for the whole file: one row.
CREATE TABLE LeaseholdStore
(
    Id            INTEGER NOT NULL PRIMARY KEY CHECK (Id = 1),
    SchemaVersion INTEGER NOT NULL,
    RecoveryEpoch INTEGER NOT NULL
) STRICT;

INSERT INTO LeaseholdStore (Id, SchemaVersion, RecoveryEpoch) VALUES (1, 1, 0);

-- One row a report: who may publish, and what is published. It is never deleted, and Generation never goes down.
-- It is small and in one b-tree, because SQLite rewrites the whole row at every renewal.
CREATE TABLE ReportPublication
(
    ReportId            TEXT    NOT NULL PRIMARY KEY,
    Generation          INTEGER NOT NULL DEFAULT 0,

    LeaseOwner          TEXT    NULL,
    LeaseUntilUtc       TEXT    NULL,
    LeaseBootId         TEXT    NULL,
    LeaseUntilNanos     INTEGER NULL,

    -- Of the latest acquisition; they stay when it is over.
    LeaseHolder         TEXT    NULL,
    LeaseAcquiredAtUtc  TEXT    NULL,
    TakeoverDelayMillis INTEGER NOT NULL DEFAULT 0,

    RecoveryEpoch       INTEGER NOT NULL,

    PublishedGeneration INTEGER NOT NULL DEFAULT 0,
    PublishedAtUtc      TEXT    NULL,
    SourceRevision      INTEGER NULL,

    SourceRevisionFloor INTEGER NULL,
    PrunedUpTo          INTEGER NOT NULL DEFAULT 0,

    ForcedGeneration    INTEGER NULL,
    ForcedBy            TEXT    NULL,
    ForcedAtUtc         TEXT    NULL,

    -- An owner has an expiry; an expiry has a boot to count from.
    CHECK (LeaseOwner IS NULL OR LeaseUntilNanos IS NOT NULL),
    CHECK ((LeaseUntilNanos IS NULL) = (LeaseBootId IS NULL))
) STRICT, WITHOUT ROWID;

-- The visible payload, apart from the row above so that no renewal touches it.
CREATE TABLE ReportPayload
(
    ReportId TEXT NOT NULL PRIMARY KEY,
    Payload  TEXT NOT NULL
) STRICT;

-- One row an acquisition that is over: published (it has an operation) or closed.
CREATE TABLE ReportLedger
(
    LeaseOwner     TEXT    NOT NULL PRIMARY KEY,
    ReportId       TEXT    NOT NULL,
    Generation     INTEGER NOT NULL,
    RecoveryEpoch  INTEGER NOT NULL,
    OperationId    TEXT    NULL,
    SourceRevision INTEGER NULL,
    EndedAtUtc     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX ReportLedger_OperationId ON ReportLedger (OperationId) WHERE OperationId IS NOT NULL;
