
-- The later of the old and the new expiry, and nothing else.
CREATE OR REPLACE FUNCTION leasehold.renew(
    p_report uuid,
    p_owner uuid,
    p_generation bigint,
    p_epoch bigint,
    p_ttl_millis bigint
) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    a := leasehold.lock_row(p_report);

    UPDATE leasehold.report_publication AS r
    SET lease_until = GREATEST(r.lease_until, a.found_at + p_ttl_millis * interval '1 millisecond')
    WHERE r.report_id = p_report
      AND r.lease_owner = p_owner
      AND r.generation = p_generation
      AND r.recovery_epoch = p_epoch
      AND r.lease_until > a.found_at;
    a.applied := FOUND;

    IF NOT a.applied THEN
        SELECT l.report_id, l.generation, l.recovery_epoch, l.operation_id, l.source_revision, l.ended_at
        INTO a.ended_report, a.ended_generation, a.ended_epoch, a.ended_operation, a.ended_revision, a.ended_at
        FROM leasehold.report_ledger AS l
        WHERE l.lease_owner = p_owner;
    END IF;
    RETURN a;
END
$$;
