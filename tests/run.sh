#!/usr/bin/env bash
# Every check of the project, in one command: bash tests/run.sh
#
# Needs a Rust toolchain with rustfmt and clippy, and a C compiler for the bundled SQLite and for the TLS of server stores.
# cargo-deny is installed from crates.io if it is missing; cargo-nextest is used if it is there. The embedded store's tests make
# their own files, in the target folder and, for the memory-backed ones, in /dev/shm. For the PostgreSQL store's a private cluster
# is started, from the programs that are installed here, or from Debian's package, which is installed where this runs as root.
# Tests that need a SQL Server run on the one that tests/servers/ finds or starts, and are left out LOUDLY where there is none;
# LEASEHOLD_TEST_REQUIRE=sqlserver makes that a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }
loudly() { printf '\n!! %s\n' "$*"; }

scratch=$(mktemp -d)
. tests/postgres/cluster.sh
end() {
    stop_postgres
    tests/servers/sqlserver.sh stop "$scratch" || true
    rm -rf "$scratch"
}
trap end EXIT

step "format"
cargo fmt --all --check

step "lints, warnings denied, over the features that matter"
for features in "" sqlserver postgres sqlite serde test-util conformance; do
    cargo clippy --quiet --no-default-features --features "$features" -- -D warnings
done
for store in sqlserver sqlite postgres; do
    cargo clippy --quiet --no-default-features --features "$store" --examples -- -D warnings
done
cargo clippy --quiet --all-targets --all-features -- -D warnings

step "documentation, warnings denied"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --all-features

step "dependencies: licences, bans, sources, advisories"
if ! cargo deny --version >/dev/null 2>&1; then
    echo "cargo-deny is not here: installing it (a few minutes)"
    cargo install --quiet --locked cargo-deny --version 0.20.2
fi
cargo deny --log-level error --all-features check bans licenses sources
if ! cargo deny --log-level error --all-features check advisories 2>/dev/null; then
    # Either there is an advisory, or the database of advisories cannot be had here.
    if ! said=$(cargo deny --log-level error --offline --all-features check advisories 2>&1); then
        case "$said" in
        *advisory-db*) loudly "ADVISORIES WERE NOT CHECKED: the advisory database cannot be fetched from here" ;;
        *) printf '%s\n' "$said"; exit 1 ;;
        esac
    else
        echo "advisories ok (by the copy of the database that is here)"
    fi
fi

step "documentation examples"
cargo test --quiet --doc --all-features

step "the main job, as the README has it"
database="$scratch/reports.db"
cargo run --quiet --example rebuild_report --features sqlite -- --database "$database"
# Not piped: a reader that stops early would be a failure of the writer here.
cargo run --quiet --example rebuild_report --features sqlite -- --database "$database" --read >"$scratch/report.txt"
grep -q "eneration 1" "$scratch/report.txt"
head -n 12 "$scratch/report.txt"

step "tests"
# Builds the examples too, which some tests run as processes of their own.
cargo build --quiet --examples --all-features
leave_out="none()"
skip=()
features=(--all-features)
if ! start_postgres; then
    loudly "THE POSTGRESQL TESTS DID NOT RUN: there is no server here to run them on"
    leave_out="$leave_out or binary(postgres) or binary(postgres_wire) or binary(conformance_postgres) or test(/(^|::)on_postgres::/)"
    features=(--features "sqlite,serde,conformance,sqlserver")
elif [ -z "${LEASEHOLD_TEST_PGBOUNCER:-}" ]; then
    loudly "THE TEST BEHIND A POOLER DID NOT RUN: there is no pgbouncer here"
    leave_out="$leave_out or test(behind_a_pooler)"
    skip+=(--skip behind_a_pooler)
fi
if ! unshare --user --map-root-user --mount true 2>/dev/null; then
    loudly "THE TEST OF A FULL DISK DID NOT RUN: no file system can be mounted here (it needs unshare and user namespaces)"
    leave_out="$leave_out or test(a_full_disk)"
    skip+=(--skip a_full_disk)
fi
has_nextest() { cargo nextest --version >/dev/null 2>&1; }
if has_nextest; then
    cargo nextest run --all-features --no-fail-fast -E "not ($leave_out)"
else
    cargo test "${features[@]}" --no-fail-fast -- "${skip[@]}"
fi

# Tests that need a server are ignored unless they are asked for. They are those of the binaries that have the server's name in
# theirs, and elsewhere those in modules named on_<server>.
binaries_of() { printf '%s\n' --test "*$1*"; }
others=(--test rebuild_report --test handover)

# How many there are, whose names have this in them.
count() {
    local server=$1 part=${2:-}
    mapfile -t own < <(binaries_of "$server")
    {
        cargo test --quiet --all-features "${own[@]}" -- --ignored --list 2>/dev/null
        cargo test --quiet --all-features "${others[@]}" -- --ignored --list "on_$server" 2>/dev/null
    } | grep ': test$' | grep -c "$part" || true
}

# Runs them, but for those whose names have this in them.
run_on() {
    local server=$1 except=${2:-}
    if has_nextest; then
        local which="(binary(/$server/) or test(/(^|::)on_$server::/))"
        cargo nextest run --all-features --no-fail-fast --run-ignored only \
            -E "$which${except:+ and not test(/(^|::)$except::/)}"
    else
        mapfile -t own < <(binaries_of "$server")
        local skipped=(${except:+--skip "$except::"})
        cargo test --all-features --no-fail-fast "${own[@]}" -- --ignored "${skipped[@]}"
        cargo test --all-features --no-fail-fast "${others[@]}" -- --ignored "on_$server" "${skipped[@]}"
    fi
}

# Says so, and fails if the server was required.
without() {
    local server=$1 why=$2 tests=$3
    loudly "THE ${server^^} TESTS DID NOT RUN: $tests ARE LEFT OUT. $why"
    case " ${LEASEHOLD_TEST_REQUIRE:-} " in *" $server "*) exit 1 ;; esac
}

step "tests on a SQL Server"
if LEASEHOLD_TEST_SQLSERVER=$(tests/servers/sqlserver.sh start "$scratch" 2>"$scratch/why"); then
    export LEASEHOLD_TEST_SQLSERVER
    # Also says whether it can be reached.
    answer=$(cargo test --quiet --all-features --test servers -- --ignored --nocapture --exact version::of_sqlserver 2>&1) || {
        printf '%s\n' "$answer"
        exit 1
    }
    engine=$(grep -o 'engine: .*' <<<"$answer")
    echo "$engine"
    case "$engine" in
    "engine: sqlserver"*) run_on sqlserver ;;
    *)
        loudly "THIS IS NOT MICROSOFT'S SQL SERVER: $(count sqlserver only_sql_server::) TESTS THAT ONLY IT CAN PASS ARE LEFT OUT"
        run_on sqlserver only_sql_server
        ;;
    esac
else
    without sqlserver "$(cat "$scratch/why")" "$(count sqlserver)"
fi

step "all passed"
