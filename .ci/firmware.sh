#!/usr/bin/env bash
# Builds p64-core for a Cortex-M4F and links it into a bare image (tests/firmware-check): no std, no allocator. The image is
# a workspace of its own, so one profile and one built `core` serve both.
set -euo pipefail
cd "$(dirname "$0")/.."

target=thumbv7em-none-eabihf
export RUSTC_BOOTSTRAP=1 # -Zbuild-std on a stable compiler; the target folder is used for nothing else
cargo +debweb build --release -Zbuild-std=core --target "$target" --target-dir target/firmware \
    --manifest-path tests/firmware-check/Cargo.toml

image=target/firmware/$target/release/firmware-check
symbols=$(llvm-nm-22 --demangle "$image")
grep -q 'p64_core::forward::forward' <<<"$symbols" || { echo "the image holds no decode step: it proves nothing" >&2; exit 1; }
if grep -E '__rust_alloc|__rg_alloc|malloc|calloc|realloc|sbrk|alloc::' <<<"$symbols"; then
    echo "the image refers to an allocator" >&2
    exit 1
fi
llvm-size-22 "$image"
