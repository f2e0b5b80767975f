
-- Takes the lease away. The generation is raised, so that the old holder is fenced out and not only ended.
CREATE OR REPLACE FUNCTION leasehold.force_release(p_report uuid, p_by text) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    a := leasehold.lock_row(p_report);

    UPDATE leasehold.report_publication AS r
    SET forced_generation = r.generation,
        forced_by         = p_by,
        forced_at         = a.found_at,
        generation        = r.generation + 1,
        lease_owner       = NULL,
        lease_until       = NULL
    WHERE r.report_id = p_report
      AND r.generation < 9223372036854775807;
    a.applied := FOUND;
    RETURN a;
END
$$;

-- Raises the floor of source revisions, and leaves a lease alone.
CREATE OR REPLACE FUNCTION leasehold.require_source_revision(p_report uuid, p_revision bigint) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    a := leasehold.lock_row(p_report);

    UPDATE leasehold.report_publication AS r
    SET source_revision_floor = GREATEST(r.source_revision_floor, p_revision)
    WHERE r.report_id = p_report;
    a.applied := FOUND;
    RETURN a;
END
$$;

-- The only way down. Ends the lease and raises the generation, so that a late duplicate of a publication that was refused as
-- stale stays refused.
CREATE OR REPLACE FUNCTION leasehold.reset_source_revision(p_report uuid, p_revision bigint) RETURNS leasehold.answer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    a leasehold.answer;
BEGIN
    a := leasehold.lock_row(p_report);

    UPDATE leasehold.report_publication AS r
    SET source_revision_floor = p_revision,
        source_revision       = NULL,
        generation            = r.generation + 1,
        lease_owner           = NULL,
        lease_until           = NULL
    WHERE r.report_id = p_report
      AND r.generation < 9223372036854775807;
    a.applied := FOUND;
    RETURN a;
END
$$;

-- Puts the store and every row into a new epoch and ends all leases. Rows are locked in the order of their ids, as in
-- prune_ledger; nothing else locks more than one and waits.
CREATE OR REPLACE FUNCTION leasehold.advance_recovery_epoch(p_to bigint, OUT previous bigint, OUT ended_leases bigint)
    RETURNS record
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    v_now timestamptz;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'leasehold needs READ COMMITTED, and this transaction is %',
            current_setting('transaction_isolation') USING ERRCODE = 'LH001';
    END IF;

    SELECT s.recovery_epoch INTO STRICT previous FROM leasehold.leasehold_store AS s FOR UPDATE;
    IF p_to <= previous THEN
        RETURN;
    END IF;

    PERFORM FROM leasehold.report_publication AS r ORDER BY r.report_id FOR NO KEY UPDATE;
    v_now := clock_timestamp();

    SELECT count(*)
    INTO ended_leases
    FROM leasehold.report_publication AS r
    WHERE r.lease_owner IS NOT NULL
      AND r.lease_until > v_now;

    UPDATE leasehold.report_publication AS r
    SET recovery_epoch = p_to,
        lease_owner    = NULL,
        lease_until    = NULL;
    UPDATE leasehold.leasehold_store SET recovery_epoch = p_to;
END
$$;

-- Deletes what is older than this, of generations below their row's current one. First every row remembers up to where its
-- evidence goes, then the evidence goes.
CREATE OR REPLACE FUNCTION leasehold.prune_ledger(p_older_than_millis bigint, OUT pruned bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    v_cutoff timestamptz := clock_timestamp() - p_older_than_millis * interval '1 millisecond';
    v_locked uuid[];
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'leasehold needs READ COMMITTED, and this transaction is %',
            current_setting('transaction_isolation') USING ERRCODE = 'LH001';
    END IF;

    SELECT array_agg(k.report_id)
    INTO v_locked
    FROM (SELECT r.report_id
          FROM leasehold.report_publication AS r
          WHERE EXISTS (SELECT
                        FROM leasehold.report_ledger AS l
                        WHERE l.report_id = r.report_id
                          AND l.ended_at <= v_cutoff
                          AND l.generation < r.generation)
          ORDER BY r.report_id
          FOR NO KEY UPDATE) AS k;

    UPDATE leasehold.report_publication AS r
    SET pruned_up_to = GREATEST(r.pruned_up_to, gone.up_to)
    FROM (SELECT l.report_id, max(l.generation) AS up_to
          FROM leasehold.report_ledger AS l
                   JOIN leasehold.report_publication AS c ON c.report_id = l.report_id
          WHERE l.report_id = ANY (v_locked)
            AND l.ended_at <= v_cutoff
            AND l.generation < c.generation
          GROUP BY l.report_id) AS gone
    WHERE r.report_id = gone.report_id;

    -- Up to the mark and no further: what was written to the ledger since may not go unmarked.
    DELETE
    FROM leasehold.report_ledger AS l
        USING leasehold.report_publication AS r
    WHERE r.report_id = l.report_id
      AND l.report_id = ANY (v_locked)
      AND l.ended_at <= v_cutoff
      AND l.generation < r.generation
      AND l.generation <= r.pruned_up_to;
    GET DIAGNOSTICS pruned = ROW_COUNT;
END
$$;
