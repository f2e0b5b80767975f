# A private PostgreSQL cluster for one run of the tests. To be sourced by bash:
#
#   . tests/postgres/cluster.sh
#   start_postgres && trap stop_postgres EXIT
#
# start_postgres exports LEASEHOLD_TEST_POSTGRES, the URL of a superuser; LEASEHOLD_TEST_POSTGRES_BIN, the folder of the server's
# programs, with which tests start further clusters; and LEASEHOLD_TEST_PGBOUNCER, if that program is here. It keeps a
# LEASEHOLD_TEST_POSTGRES that is set already. It fails, with a reason on standard error, where there is no PostgreSQL and none
# can be installed.

# PostgreSQL refuses to run as root.
as_postgres_user() {
    if [ "$(id -u)" -ne 0 ]; then
        "$@"
        return
    fi
    local user=nobody
    if id postgres >/dev/null 2>&1; then user=postgres; fi
    setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups "$@"
}

# The folder of the newest server's programs.
find_postgres() {
    local found
    for found in ${LEASEHOLD_TEST_POSTGRES_BIN:-} $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV) \
        "$(pg_config --bindir 2>/dev/null)"; do
        if [ -x "$found/initdb" ] && [ -x "$found/postgres" ]; then
            echo "$found"
            return
        fi
    done
    return 1
}

start_postgres() {
    local port
    if { ! LEASEHOLD_TEST_POSTGRES_BIN=$(find_postgres) || ! PATH="$PATH:/usr/sbin" command -v pgbouncer >/dev/null; } \
        && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        echo "PostgreSQL or PgBouncer is not here: installing both" >&2
        # Without a cluster and services of Debian's own.
        mkdir -p /etc/postgresql-common/createcluster.d
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/leasehold.conf
        {
            apt-get update
            DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y --no-install-recommends postgresql pgbouncer
        } >/dev/null 2>&1
        LEASEHOLD_TEST_POSTGRES_BIN=$(find_postgres) || true
    fi
    if [ -z "$LEASEHOLD_TEST_POSTGRES_BIN" ]; then
        echo "no PostgreSQL server is installed, and none could be installed here" >&2
        return 1
    fi
    export LEASEHOLD_TEST_POSTGRES_BIN
    # Not in every PATH: Debian has it beside the programs of administrators.
    if LEASEHOLD_TEST_PGBOUNCER=$(PATH="$PATH:/usr/sbin" command -v pgbouncer); then export LEASEHOLD_TEST_PGBOUNCER; fi
    if [ -n "${LEASEHOLD_TEST_POSTGRES:-}" ]; then
        return
    fi
    # In memory where the machine has a folder for it: durable settings, without waiting for a disk.
    if [ -d /dev/shm ] && [ -w /dev/shm ]; then
        postgres_folder=$(mktemp -d /dev/shm/leasehold-postgres.XXXXXX)
    else
        postgres_folder=$(mktemp -d)
    fi
    chmod 755 "$postgres_folder"
    mkdir "$postgres_folder/data"
    if [ "$(id -u)" -eq 0 ]; then
        if id postgres >/dev/null 2>&1; then chown -R postgres "$postgres_folder"; else chown -R nobody "$postgres_folder"; fi
    fi
    as_postgres_user "$LEASEHOLD_TEST_POSTGRES_BIN/initdb" --pgdata="$postgres_folder/data" --username=postgres \
        --auth=trust --encoding=UTF8 --locale=C >"$postgres_folder/initdb.log" 2>&1 || {
        cat "$postgres_folder/initdb.log" >&2
        return 1
    }
    # A port that somebody takes first is tried again.
    for _ in 1 2 3 4 5; do
        port=$((20000 + RANDOM))
        if as_postgres_user "$LEASEHOLD_TEST_POSTGRES_BIN/pg_ctl" --pgdata="$postgres_folder/data" --wait --timeout=60 \
            --log="$postgres_folder/log" start --options="-c listen_addresses=127.0.0.1 -c port=$port \
            -c unix_socket_directories='' -c max_connections=300" >"$postgres_folder/start.log" 2>&1; then
            export LEASEHOLD_TEST_POSTGRES="postgresql://postgres@127.0.0.1:$port/postgres?sslmode=disable"
            return
        fi
    done
    cat "$postgres_folder/start.log" "$postgres_folder/log" >&2
    return 1
}

# Stops and deletes what start_postgres started.
stop_postgres() {
    if [ -n "${postgres_folder:-}" ]; then
        as_postgres_user "$LEASEHOLD_TEST_POSTGRES_BIN/pg_ctl" --pgdata="$postgres_folder/data" --mode=immediate --wait stop \
            >/dev/null 2>&1 || true
        rm -rf "$postgres_folder"
        postgres_folder=
    fi
}
