
-- Nobody but these two roles, and they nothing but the functions. Roles belong to the whole cluster: another database's
-- installation may make them at this moment.
DO
$$
    BEGIN
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '{worker_name}') THEN
            CREATE ROLE {worker} NOLOGIN;
        END IF;
    EXCEPTION
        WHEN duplicate_object OR unique_violation THEN NULL;
    END
$$;

DO
$$
    BEGIN
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '{operator_name}') THEN
            CREATE ROLE {operator} NOLOGIN;
        END IF;
    EXCEPTION
        WHEN duplicate_object OR unique_violation THEN NULL;
    END
$$;

REVOKE ALL ON SCHEMA {schema} FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC, {worker}, {operator};
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC, {worker}, {operator};

GRANT USAGE ON SCHEMA {schema} TO {worker}, {operator};

GRANT EXECUTE ON FUNCTION
    leasehold.provision(uuid),
    leasehold.acquire(uuid, uuid, bigint, text, bigint, bigint, bigint),
    leasehold.renew(uuid, uuid, bigint, bigint, bigint),
    leasehold.renew_many(uuid[], uuid[], bigint[], bigint[], bigint),
    leasehold.judge_publication(uuid, uuid, uuid, uuid),
    leasehold.publish(uuid, uuid, bigint, bigint, uuid, text, bigint, uuid, bigint),
    leasehold.publish_in_transaction(text, uuid, uuid, bigint, bigint, uuid, text, bigint),
    leasehold.close(uuid, uuid, bigint, bigint),
    leasehold.release(uuid, uuid, bigint, bigint),
    leasehold.look(uuid),
    leasehold.list(uuid, bigint, boolean),
    leasehold.read(uuid, bigint, bigint),
    leasehold.store_state()
    TO {worker}, {operator};

GRANT EXECUTE ON FUNCTION
    leasehold.force_release(uuid, text),
    leasehold.require_source_revision(uuid, bigint),
    leasehold.reset_source_revision(uuid, bigint),
    leasehold.advance_recovery_epoch(bigint),
    leasehold.prune_ledger(bigint)
    TO {operator};

UPDATE leasehold.leasehold_store SET schema_version = {version}, script = '{script}';

COMMIT;
