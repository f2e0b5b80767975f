
-- Makes the outcome of an acquisition certain, and ends it: written, not only read, because a late statement may commit after a
-- read. The row's lock is what such a statement waits for.
CREATE OR REPLACE FUNCTION leasehold.close(
    p_report uuid,
    p_owner uuid,
    p_generation bigint,
    p_epoch bigint
) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    a := leasehold.lock_row_of(p_report, p_owner);

    IF a.ended_report IS NOT NULL OR a.report_id IS NULL THEN
        RETURN a;
    END IF;
    IF p_generation IS NOT NULL
        AND (a.pruned_up_to >= p_generation OR a.recovery_epoch <> p_epoch OR a.generation < p_generation) THEN
        RETURN a;
    END IF;

    UPDATE leasehold.report_publication AS r
    SET lease_owner = NULL,
        lease_until = NULL
    WHERE r.report_id = p_report
      AND r.lease_owner = p_owner;

    INSERT INTO leasehold.report_ledger (lease_owner, report_id, generation, recovery_epoch, ended_at)
    VALUES (p_owner, p_report, coalesce(p_generation, a.generation), coalesce(p_epoch, a.recovery_epoch), a.found_at);
    a.applied := true;
    RETURN a;
END
$$;

-- Frees the lease if exactly this fence holds it, and writes the closing.
CREATE OR REPLACE FUNCTION leasehold.release(
    p_report uuid,
    p_owner uuid,
    p_generation bigint,
    p_epoch bigint
) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    a := leasehold.lock_row_of(p_report, p_owner);

    IF a.ended_report IS NOT NULL THEN
        RETURN a;
    END IF;

    UPDATE leasehold.report_publication AS r
    SET lease_owner = NULL,
        lease_until = NULL
    WHERE r.report_id = p_report
      AND r.lease_owner = p_owner
      AND r.generation = p_generation
      AND r.recovery_epoch = p_epoch
      AND r.lease_until > a.found_at;
    a.applied := FOUND;

    IF a.applied THEN
        INSERT INTO leasehold.report_ledger (lease_owner, report_id, generation, recovery_epoch, ended_at)
        VALUES (p_owner, p_report, p_generation, p_epoch, a.found_at);
    END IF;
    RETURN a;
END
$$;
