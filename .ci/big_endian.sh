#!/usr/bin/env bash
# Runs the tests of p64-core on a big-endian machine (s390x under qemu-user), so that nothing depends on the host's byte
# order, and those of the container and the fixtures in p64-tests, which write files byte by byte and read them back.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_cross.sh
scripts/apt.sh qemu-user gcc-s390x-linux-gnu libc6-dev-s390x-cross

target=s390x-unknown-linux-gnu
export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc
export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="qemu-s390x -L /usr/s390x-linux-gnu"
export RUSTC_BOOTSTRAP=1 # -Zbuild-std on a stable compiler; the target folder is used for nothing else

log=$(mktemp)
status=0
trap 'rm -f "$log"' EXIT
run() { # arguments of cargo test
    cargo +debweb test -Zbuild-std --target "$target" --target-dir target/big-endian --no-fail-fast "$@" 2>&1 | tee -a "$log" || status=1
}
run --package p64-core --lib
# What needs neither a real model nor hours of emulation.
run --package p64-tests --test container --test invalid --test stream

# A run that tested nothing proves nothing: each of the four binaries must have.
awk '/^test result:/ { binaries++; passed += $4; failed += $6; skipped += $8; if ($4 == 0) empty++ }
    END { printf "%s: %d passed, %d failed, %d skipped\n", target, passed, failed, skipped
          exit !(binaries == 4 && empty == 0 && failed + skipped == 0) }' target="$target" "$log" || status=1
exit "$status"
