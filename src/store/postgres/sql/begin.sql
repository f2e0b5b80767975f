-- leasehold on PostgreSQL 13 or later: everything it needs, in one transaction. Running it again changes nothing, and an
-- older version is brought up to date with its rows kept. Run it as the role that is to own the tables.

BEGIN ISOLATION LEVEL READ COMMITTED;

-- One installation at a time in this database.
SELECT pg_catalog.pg_advisory_xact_lock(7809644627822093669);

SET LOCAL client_min_messages = warning;

CREATE SCHEMA IF NOT EXISTS {schema};

-- What holds for the whole store: one row.
CREATE TABLE IF NOT EXISTS leasehold.leasehold_store
(
    id             integer NOT NULL PRIMARY KEY CHECK (id = 1),
    schema_version integer NOT NULL,
    recovery_epoch bigint  NOT NULL,
    -- Of the text that was installed last, so that an installation that finds its own text does nothing.
    script         uuid    NULL
);

DO
$$
    DECLARE
        v_installed integer := (SELECT schema_version FROM leasehold.leasehold_store);
    BEGIN
        IF v_installed > {version} THEN
            RAISE EXCEPTION 'schema version % is newer than {version}, the version of this script', v_installed
                USING ERRCODE = 'LH003';
        END IF;
    END
$$;
