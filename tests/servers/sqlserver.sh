#!/usr/bin/env bash
# Finds or starts a T-SQL server to test against.
#
#   tests/servers/sqlserver.sh start FOLDER   prints the connection string; fails, and says why, if there is no server
#   tests/servers/sqlserver.sh stop FOLDER    removes what start has started
#
# In this order: LEASEHOLD_TEST_SQLSERVER, which is a connection string; an executable that starts a server and prints its
# connection string, ~/.config/leasehold/test-sqlserver; a container of Microsoft's image, if Docker runs and the image can be had
# within a few minutes. The login must be able to create schemas and roles. FOLDER keeps what stop needs.
#
#   LEASEHOLD_TEST_SQLSERVER_IMAGE      another image than SQL Server 2022's
#   LEASEHOLD_TEST_SQLSERVER_SNAPSHOT   on: the container's database has READ_COMMITTED_SNAPSHOT on, as Azure SQL has
#
# Connection strings hold passwords: nothing but the answer of start has one.
set -euo pipefail

image=${LEASEHOLD_TEST_SQLSERVER_IMAGE:-mcr.microsoft.com/mssql/server:2022-latest}
own=${XDG_CONFIG_HOME:-$HOME/.config}/leasehold/test-sqlserver

missing() { printf '%s\n' "$*" >&2; exit 1; }

# T-SQL in the container; the password never is an argument of a process.
inside() {
    docker exec "$1" bash -c '
        tools=$(ls -d /opt/mssql-tools18/bin /opt/mssql-tools/bin 2>/dev/null | head -n 1)
        trust=; case $tools in *18*) trust=-C ;; esac
        SQLCMDPASSWORD=$MSSQL_SA_PASSWORD exec "$tools/sqlcmd" $trust -b -S localhost -U sa -Q "$0"' "$2"
}

start_container() {
    local folder=$1 password container port
    docker info >/dev/null 2>&1 || missing "no server was named, $own is not there, and Docker does not run"
    docker image inspect "$image" >/dev/null 2>&1 || timeout 300 docker pull --quiet "$image" >/dev/null 2>&1 ||
        missing "no server was named, $own is not there, and the image $image was not had within five minutes"
    # Of every kind of character that SQL Server asks for.
    password="Aa1-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
    (umask 077; printf 'ACCEPT_EULA=Y\nMSSQL_PID=Developer\nMSSQL_SA_PASSWORD=%s\n' "$password" >"$folder/sqlserver.env")
    container=$(docker run --detach --rm --env-file "$folder/sqlserver.env" --publish 127.0.0.1::1433 "$image")
    printf '%s\n' "$container" >"$folder/sqlserver.container"
    rm -f "$folder/sqlserver.env"
    for _ in $(seq 120); do
        if inside "$container" "SELECT 1" >/dev/null 2>&1; then break; fi
        sleep 1
    done
    inside "$container" "CREATE DATABASE leasehold_tests" >/dev/null 2>&1 ||
        missing "SQL Server did not answer in its container within two minutes"
    if [ "${LEASEHOLD_TEST_SQLSERVER_SNAPSHOT:-off}" = on ]; then
        inside "$container" "ALTER DATABASE leasehold_tests SET READ_COMMITTED_SNAPSHOT ON" >/dev/null
    fi
    port=$(docker port "$container" 1433/tcp | head -n 1)
    printf 'Server=tcp:127.0.0.1,%s;User Id=sa;Password=%s;Database=leasehold_tests;TrustServerCertificate=true\n' \
        "${port##*:}" "$password"
}

case "${1:-}" in
start)
    if [ -n "${LEASEHOLD_TEST_SQLSERVER:-}" ]; then
        printf '%s\n' "$LEASEHOLD_TEST_SQLSERVER"
    elif [ -x "$own" ]; then
        "$own" || missing "$own failed"
    else
        start_container "$2"
    fi
    ;;
stop)
    if [ -s "$2/sqlserver.container" ]; then
        docker rm --force "$(cat "$2/sqlserver.container")" >/dev/null
    fi
    ;;
*)
    missing "usage: tests/servers/sqlserver.sh start|stop FOLDER"
    ;;
esac
