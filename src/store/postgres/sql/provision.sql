
-- Reads the store-wide epoch under a lock that advance_recovery_epoch waits for, so that no row is left in an old epoch.
CREATE OR REPLACE FUNCTION leasehold.provision(p_report uuid, OUT created boolean) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS
$$
DECLARE
    v_epoch bigint;
BEGIN
    created := false;
    IF NOT EXISTS (SELECT FROM leasehold.report_publication AS r WHERE r.report_id = p_report) THEN
        SELECT s.recovery_epoch INTO STRICT v_epoch FROM leasehold.leasehold_store AS s FOR SHARE;

        INSERT INTO leasehold.report_publication (report_id, recovery_epoch)
        VALUES (p_report, v_epoch)
        ON CONFLICT DO NOTHING;
        created := FOUND;
    END IF;
END
$$;
