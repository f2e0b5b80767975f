
-- What a publication finds, without publishing: for itself, and for a fenced transaction that was refused and rolled back.
CREATE OR REPLACE FUNCTION leasehold.judge_publication(
    p_report uuid,
    p_owner uuid,
    p_operation uuid,
    p_next_owner uuid
) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    a := leasehold.lock_row_of(p_report, p_owner);

    SELECT l.lease_owner, l.report_id, l.generation, l.recovery_epoch, l.source_revision, l.ended_at
    INTO a.used_by, a.used_report, a.used_generation, a.used_epoch, a.used_revision, a.used_at
    FROM leasehold.report_ledger AS l
    WHERE l.operation_id = p_operation;

    a.next_ended := p_next_owner IS NOT NULL
        AND EXISTS (SELECT FROM leasehold.report_ledger AS l WHERE l.lease_owner = p_next_owner);
    RETURN a;
END
$$;

-- Publishes and ends the lease; with a next owner, the lease goes on under it and the next generation, unless that owner is
-- over already or there is no further generation.
CREATE OR REPLACE FUNCTION leasehold.publish(
    p_report uuid,
    p_owner uuid,
    p_generation bigint,
    p_epoch bigint,
    p_operation uuid,
    p_payload text,
    p_revision bigint,
    p_next_owner uuid,
    p_ttl_millis bigint
) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    a := leasehold.judge_publication(p_report, p_owner, p_operation, p_next_owner);

    IF a.ended_report IS NOT NULL OR a.used_report IS NOT NULL
        OR a.pruned_up_to >= p_generation OR a.forced_generation = p_generation THEN
        RETURN a;
    END IF;

    UPDATE leasehold.report_publication AS r
    SET published_generation = p_generation,
        published_at         = a.found_at,
        source_revision      = p_revision,
        lease_owner          = NULL,
        lease_until          = NULL
    WHERE r.report_id = p_report
      AND r.generation = p_generation
      AND r.lease_owner = p_owner
      AND r.recovery_epoch = p_epoch
      AND r.lease_until > a.found_at
      AND r.published_generation < p_generation
      AND (r.source_revision IS NULL OR r.source_revision <= p_revision)
      AND (r.source_revision_floor IS NULL OR r.source_revision_floor <= p_revision);
    IF NOT FOUND THEN
        RETURN a;
    END IF;
    a.applied := true;

    INSERT INTO leasehold.report_payload AS p (report_id, payload)
    VALUES (p_report, p_payload)
    ON CONFLICT (report_id) DO UPDATE SET payload = excluded.payload;

    -- A duplicate key, of an operation that another report publishes at this moment, is an error: all is rolled back.
    INSERT INTO leasehold.report_ledger (lease_owner, report_id, generation, recovery_epoch, operation_id, source_revision,
                                         ended_at)
    VALUES (p_owner, p_report, p_generation, p_epoch, p_operation, p_revision, a.found_at);

    IF p_next_owner IS NOT NULL AND NOT a.next_ended AND p_generation < 9223372036854775807 THEN
        UPDATE leasehold.report_publication AS r
        SET generation        = r.generation + 1,
            lease_owner       = p_next_owner,
            lease_until       = a.found_at + p_ttl_millis * interval '1 millisecond',
            lease_acquired_at = a.found_at
        WHERE r.report_id = p_report
          AND r.generation = p_generation
          AND r.lease_until IS NULL;
    END IF;
    RETURN a;
END
$$;

-- The last statement of a fenced transaction. COMMIT is on its way behind it: unless the publication is accepted this raises an
-- error, and the COMMIT becomes a rollback of all.
CREATE OR REPLACE FUNCTION leasehold.publish_in_transaction(
    p_mark text,
    p_report uuid,
    p_owner uuid,
    p_generation bigint,
    p_epoch bigint,
    p_operation uuid,
    p_payload text,
    p_revision bigint
) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    -- Set for this one transaction when it began: a statement that ended it took the mark away.
    IF current_setting('leasehold_transaction.mark', true) IS DISTINCT FROM p_mark THEN
        RAISE EXCEPTION 'the transaction was ended by one of its own statements' USING ERRCODE = 'LH004';
    END IF;

    a := leasehold.publish(p_report, p_owner, p_generation, p_epoch, p_operation, p_payload, p_revision, NULL, NULL);
    IF NOT a.applied THEN
        RAISE EXCEPTION 'the publication is not accepted' USING ERRCODE = 'LH002';
    END IF;
    RETURN a;
END
$$;
