#!/usr/bin/env bash
# Every check of the project, in one command: bash tests/run.sh
#
# Needs a Rust toolchain with rustfmt and clippy, and a C compiler for the bundled SQLite. cargo-deny is installed from
# crates.io if it is missing; cargo-nextest is used if it is there. The embedded store's tests make their own files, in the
# target folder and, for the memory-backed ones, in /dev/shm. For the PostgreSQL store's a private cluster is started, from the
# programs that are installed here, or from Debian's package, which is installed where this runs as root.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }
loudly() { printf '\n!! %s\n' "$*"; }

step "format"
cargo fmt --all --check

step "lints, warnings denied, over the features that matter"
for features in "" sqlite postgres serde test-util conformance; do
    cargo clippy --quiet --no-default-features --features "$features" -- -D warnings
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
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
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
. tests/postgres/cluster.sh
trap 'stop_postgres; rm -rf "$scratch"' EXIT
if ! start_postgres; then
    loudly "THE POSTGRESQL TESTS DID NOT RUN: there is no server here to run them on"
    leave_out="$leave_out or binary(postgres) or binary(conformance_postgres)"
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
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --all-features --no-fail-fast -E "not ($leave_out)"
else
    cargo test "${features[@]}" --no-fail-fast -- "${skip[@]}"
fi

step "all passed"
