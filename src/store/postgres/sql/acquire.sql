
CREATE OR REPLACE FUNCTION leasehold.acquire(
    p_report uuid,
    p_owner uuid,
    p_ttl_millis bigint,
    p_holder text,
    p_min_epoch bigint,
    p_takeover_delay_millis bigint,
    p_wanted bigint
) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    a := leasehold.lock_row_of(p_report, p_owner);

    IF a.report_id IS NULL OR a.recovery_epoch < p_min_epoch OR a.ended_report IS NOT NULL
        OR a.generation = 9223372036854775807 THEN
        RETURN a;
    END IF;
    IF a.published_generation > 0 AND p_wanted IS NOT NULL AND a.source_revision IS NOT NULL
        AND a.source_revision >= GREATEST(p_wanted, a.source_revision_floor) THEN
        RETURN a;
    END IF;

    UPDATE leasehold.report_publication AS r
    SET generation            = r.generation + 1,
        lease_owner           = p_owner,
        lease_until           = a.found_at + p_ttl_millis * interval '1 millisecond',
        lease_holder          = p_holder,
        lease_acquired_at     = a.found_at,
        takeover_delay_millis = p_takeover_delay_millis
    WHERE r.report_id = p_report
      AND r.generation = a.generation
      AND r.recovery_epoch >= p_min_epoch
      AND (r.lease_until IS NULL
        OR r.lease_until + r.takeover_delay_millis * interval '1 millisecond' <= a.found_at);
    a.applied := FOUND;
    RETURN a;
END
$$;
