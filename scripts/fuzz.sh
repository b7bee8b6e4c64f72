#!/usr/bin/env bash
# Fuzzes each target for SECONDS_EACH, or only the named ones: scripts/fuzz.sh SECONDS_EACH [TARGET...]
#
# The committed seeds (fuzz/corpus, the malformed files of tests/data) are read and never changed: what libFuzzer adds goes
# to fuzz/corpus-grown. A finding is written to fuzz/artifacts and ends the script with libFuzzer's status.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=$1
shift
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
# cargo-fuzz needs sanitizer flags that are nightly's; this lets the stable compiler take them, in a target folder apart.
export RUSTC_BOOTSTRAP=1

mapfile -t targets < <(cargo fuzz list)
[ $# -eq 0 ] || targets=("$@")
[ ${#targets[@]} -gt 0 ] || { echo "fuzz/Cargo.toml names no target" >&2; exit 1; }

cargo fuzz build --target-dir fuzz/target
for target in "${targets[@]}"; do
    grown=fuzz/corpus-grown/$target
    mkdir -p "$grown"
    seeds=("fuzz/corpus/$target")
    case $target in
        gguf_reader | convert_and_back) seeds+=(tests/data/malformed/gguf) ;;
        safetensors) seeds+=(tests/data/malformed/safetensors) ;;
    esac
    echo "== fuzz $target for $seconds s"
    # 5 s and 64 MiB for one allocation: input of at most 64 KiB asks for far less.
    cargo fuzz run --target-dir fuzz/target "$target" "$grown" "${seeds[@]}" -- \
        -max_total_time="$seconds" -max_len=65536 -timeout=5 -malloc_limit_mb=64 -rss_limit_mb=2048 \
        -print_final_stats=1 -verbosity=0 2>&1 |
        sed '/ Recommended dictionary/,/ End of recommended/d'
done
