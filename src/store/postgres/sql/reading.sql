
-- Reads take no lock and change nothing. Each is one statement, so one snapshot.

CREATE OR REPLACE FUNCTION leasehold.look(p_report uuid) RETURNS SETOF leasehold.answer
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
SELECT clock_timestamp(), false,
       r.report_id, r.generation, r.lease_owner, r.lease_until, r.lease_holder, r.lease_acquired_at,
       r.takeover_delay_millis, r.recovery_epoch, r.published_generation, r.published_at, r.source_revision,
       r.source_revision_floor, r.pruned_up_to, r.forced_generation, r.forced_by, r.forced_at,
       NULL::uuid, NULL::bigint, NULL::bigint, NULL::uuid, NULL::bigint, NULL::timestamptz,
       NULL::uuid, NULL::uuid, NULL::bigint, NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::boolean
FROM leasehold.report_publication AS r
WHERE r.report_id = p_report
$$;

-- A page of reports in the order of their ids; with p_leased_only, those that somebody holds or a takeover delay still keeps.
CREATE OR REPLACE FUNCTION leasehold.list(p_after uuid, p_limit bigint, p_leased_only boolean)
    RETURNS SETOF leasehold.answer
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
SELECT clock_timestamp(), false,
       r.report_id, r.generation, r.lease_owner, r.lease_until, r.lease_holder, r.lease_acquired_at,
       r.takeover_delay_millis, r.recovery_epoch, r.published_generation, r.published_at, r.source_revision,
       r.source_revision_floor, r.pruned_up_to, r.forced_generation, r.forced_by, r.forced_at,
       NULL::uuid, NULL::bigint, NULL::bigint, NULL::uuid, NULL::bigint, NULL::timestamptz,
       NULL::uuid, NULL::uuid, NULL::bigint, NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::boolean
FROM leasehold.report_publication AS r
WHERE (p_after IS NULL OR r.report_id > p_after)
  AND (NOT p_leased_only
    OR r.lease_until + r.takeover_delay_millis * interval '1 millisecond' > clock_timestamp())
ORDER BY r.report_id
LIMIT p_limit
$$;

-- The row and its payload; without the payload unless what is visible is above the version that the caller knows.
CREATE OR REPLACE FUNCTION leasehold.read(p_report uuid, p_known_epoch bigint, p_known_generation bigint)
    RETURNS TABLE (found leasehold.answer, payload text)
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
SELECT ROW (clock_timestamp(), false,
           r.report_id, r.generation, r.lease_owner, r.lease_until, r.lease_holder, r.lease_acquired_at,
           r.takeover_delay_millis, r.recovery_epoch, r.published_generation, r.published_at, r.source_revision,
           r.source_revision_floor, r.pruned_up_to, r.forced_generation, r.forced_by, r.forced_at,
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::leasehold.answer,
       p.payload
FROM leasehold.report_publication AS r
         LEFT JOIN leasehold.report_payload AS p
                   ON p.report_id = r.report_id
                       AND r.published_generation > 0
                       AND (p_known_epoch IS NULL
                           OR (r.recovery_epoch, r.published_generation) > (p_known_epoch, p_known_generation))
WHERE r.report_id = p_report
$$;

CREATE OR REPLACE FUNCTION leasehold.store_state(
    OUT schema_version integer, OUT recovery_epoch bigint, OUT now timestamptz
) RETURNS record
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
SELECT s.schema_version, s.recovery_epoch, clock_timestamp()
FROM leasehold.leasehold_store AS s
$$;
