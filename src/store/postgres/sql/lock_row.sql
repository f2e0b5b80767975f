
-- Rules 1 to 3, for every operation that locks the row: the lock, then the clock, then the end of an expired lease.
--
-- Each statement of a VOLATILE function takes a snapshot of its own, so what follows a wait sees what was committed meanwhile.
-- That holds at READ COMMITTED only, so nothing else is accepted.
CREATE OR REPLACE FUNCTION leasehold.lock_row(p_report uuid) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    IF pg_catalog.current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'leasehold needs READ COMMITTED, and this transaction is %',
            pg_catalog.current_setting('transaction_isolation') USING ERRCODE = 'LH001';
    END IF;

    SELECT r.report_id, r.generation, r.lease_owner, r.lease_until, r.lease_holder, r.lease_acquired_at,
           r.takeover_delay_millis, r.recovery_epoch, r.published_generation, r.published_at, r.source_revision,
           r.source_revision_floor, r.pruned_up_to, r.forced_generation, r.forced_by, r.forced_at
    INTO a.report_id, a.generation, a.lease_owner, a.lease_until, a.lease_holder, a.lease_acquired_at,
        a.takeover_delay_millis, a.recovery_epoch, a.published_generation, a.published_at, a.source_revision,
        a.source_revision_floor, a.pruned_up_to, a.forced_generation, a.forced_by, a.forced_at
    FROM leasehold.report_publication AS r
    WHERE r.report_id = p_report
    FOR NO KEY UPDATE;

    a.found_at := pg_catalog.clock_timestamp();
    a.applied := false;

    -- Whoever sees a lease expired ends it, so that a clock that steps back cannot revive it. The expiry stays: the takeover
    -- delay counts from it.
    IF a.lease_owner IS NOT NULL AND a.lease_until <= a.found_at THEN
        UPDATE leasehold.report_publication AS r
        SET lease_owner = NULL
        WHERE r.report_id = p_report
          AND r.lease_owner = a.lease_owner
          AND r.lease_until <= a.found_at;
        a.lease_owner := NULL;
    END IF;
    RETURN a;
END
$$;

-- The same, and then what the ledger has under this owner: read only now, for the same reason as the clock.
CREATE OR REPLACE FUNCTION leasehold.lock_row_of(p_report uuid, p_owner uuid) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    a := leasehold.lock_row(p_report);

    SELECT l.report_id, l.generation, l.recovery_epoch, l.operation_id, l.source_revision, l.ended_at
    INTO a.ended_report, a.ended_generation, a.ended_epoch, a.ended_operation, a.ended_revision, a.ended_at
    FROM leasehold.report_ledger AS l
    WHERE l.lease_owner = p_owner;
    RETURN a;
END
$$;
