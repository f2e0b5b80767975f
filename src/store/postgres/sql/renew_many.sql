
-- One statement for many fences, each of them once. A fence that was renewed is answered by its new expiry, all others by what
-- was found.
--
-- Planning for a thousand values would cost as much as renewing them. A plan for arrays of a size that is not known looks every
-- row up by its key, which is right for any size.
CREATE OR REPLACE FUNCTION leasehold.renew_many(
    p_reports uuid[],
    p_owners uuid[],
    p_generations bigint[],
    p_epochs bigint[],
    p_ttl_millis bigint
)
    RETURNS TABLE
            (
                -- The fence's place in the arrays, from 1.
                place         bigint,
                -- The clock, read after all locks were had.
                renewed_at    timestamptz,
                -- Of a lease that was renewed.
                renewed_until timestamptz,
                -- Whether somebody else had the row's lock.
                skipped       boolean,
                -- Of a lease that was not renewed.
                found         leasehold.answer
            )
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
AS
$$
DECLARE
    -- The fences whose rows' locks were had.
    v_places      bigint[];
    v_reports     uuid[];
    v_owners      uuid[];
    v_generations bigint[];
    v_epochs      bigint[];
    v_first       timestamptz;
    v_now         timestamptz;
    v_until       timestamptz;
    v_renewed     bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'leasehold needs READ COMMITTED, and this transaction is %',
            current_setting('transaction_isolation') USING ERRCODE = 'LH001';
    END IF;

    -- The locks that can be had at once. It waits for none, so no order of theirs can be a deadlock.
    SELECT array_agg(l.place), array_agg(l.report_id), array_agg(l.owner), array_agg(l.generation),
           array_agg(l.recovery_epoch), min(l.lease_until) FILTER (WHERE l.lease_owner IS NOT NULL)
    INTO v_places, v_reports, v_owners, v_generations, v_epochs, v_first
    FROM (SELECT f.place, f.report_id, f.owner, f.generation, f.recovery_epoch, r.lease_owner, r.lease_until
          FROM unnest(p_reports, p_owners, p_generations, p_epochs) WITH ORDINALITY
                   AS f(report_id, owner, generation, recovery_epoch, place)
                   JOIN leasehold.report_publication AS r ON r.report_id = f.report_id
          FOR NO KEY UPDATE OF r SKIP LOCKED) AS l;

    v_now := clock_timestamp();
    v_until := v_now + p_ttl_millis * interval '1 millisecond';

    -- As in lock_row; seldom anything to do.
    IF v_first <= v_now THEN
        UPDATE leasehold.report_publication AS r
        SET lease_owner = NULL
        WHERE r.report_id = ANY (v_reports)
          AND r.lease_owner IS NOT NULL
          AND r.lease_until <= v_now;
    END IF;

    RETURN QUERY
        UPDATE leasehold.report_publication AS r
            SET lease_until = GREATEST(r.lease_until, v_until)
            FROM unnest(v_places, v_reports, v_owners, v_generations, v_epochs)
                AS f(place, report_id, owner, generation, recovery_epoch)
            WHERE r.report_id = f.report_id
                AND r.lease_owner = f.owner
                AND r.generation = f.generation
                AND r.recovery_epoch = f.recovery_epoch
                AND r.lease_until > v_now
            RETURNING f.place, v_now, r.lease_until, false, NULL::leasehold.answer;
    GET DIAGNOSTICS v_renewed = ROW_COUNT;
    IF v_renewed = cardinality(p_reports) THEN
        RETURN;
    END IF;

    -- The rest: every fence that does not hold its row now. The ledger is read only now, under the locks.
    RETURN QUERY
        SELECT f.place,
               v_now,
               NULL::timestamptz,
               r.report_id IS NOT NULL AND k.place IS NULL,
               ROW (v_now, false,
                   r.report_id, r.generation, r.lease_owner, r.lease_until, r.lease_holder, r.lease_acquired_at,
                   r.takeover_delay_millis, r.recovery_epoch, r.published_generation, r.published_at, r.source_revision,
                   r.source_revision_floor, r.pruned_up_to, r.forced_generation, r.forced_by, r.forced_at,
                   l.report_id, l.generation, l.recovery_epoch, l.operation_id, l.source_revision, l.ended_at,
                   NULL, NULL, NULL, NULL, NULL, NULL, NULL)::leasehold.answer
        FROM unnest(p_reports, p_owners, p_generations, p_epochs) WITH ORDINALITY
                 AS f(report_id, lease_owner, generation, recovery_epoch, place)
                 LEFT JOIN leasehold.report_publication AS r ON r.report_id = f.report_id
                 LEFT JOIN unnest(v_places) AS k(place) ON k.place = f.place
                 LEFT JOIN leasehold.report_ledger AS l ON l.lease_owner = f.lease_owner
        WHERE k.place IS NULL
           OR r.lease_owner IS DISTINCT FROM f.lease_owner
           OR r.generation <> f.generation
           OR r.recovery_epoch <> f.recovery_epoch
           OR r.lease_until <= v_now;
END
$$;
