#!/usr/bin/env bash
# The kernels under AddressSanitizer: their own tests, and those on buffers that lie beside pages which nobody may touch
# (p64-core/tests/guard_pages.rs). The sanitizer sees what lies between two buffers, the pages what a sanitizer does not see.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_build.sh
triple=$(rustc -vV | sed -n 's/^host: //p')
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A folder of its own: the sanitizer's flag is not stable, and some build scripts look at RUSTC_BOOTSTRAP. Build scripts and
# procedural macros are not instrumented, because the target is named.
export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address
asan() {
    cargo test -p p64-core --target "$triple" --target-dir "${CARGO_TARGET_DIR:-target}/asan" "$@" 2>&1 | tee -a "$log"
}
asan --test guard_pages
asan --lib -- kernel quant

# A run that tested nothing proves nothing.
awk '/^test result:/ { binaries++; passed += $4; failed += $6; skipped += $8; if ($4 == 0) empty++ }
    END { printf "AddressSanitizer: %d passed, %d failed, %d skipped\n", passed, failed, skipped
          exit !(binaries == 2 && empty == 0 && failed + skipped == 0) }' "$log"
