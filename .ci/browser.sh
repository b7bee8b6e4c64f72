#!/usr/bin/env bash
# The pages of `p64 stats --html` in a real browser: the bundled model, both real ones, and one whose names attack the page.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_browser.sh
scripts/setup_models.sh
# P64 names a program that is built already.
[ -n "${P64:-}" ] || cargo build -q -p p64-cli
p64="${P64:-${CARGO_TARGET_DIR:-target}/debug/p64}"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

python3 scripts/browser/hostile.py "$out/hostile.gguf"
"$p64" -q convert models/smollm2-135m-q4_1.gguf "$out/smollm2.p64"
"$p64" -q stats --html "$out/tiny.html" tests/data/tiny/tiny-stories-q8_0.gguf
"$p64" -q stats --html "$out/smollm2.html" "$out/smollm2.p64"
"$p64" -q stats --html "$out/gemma3.html" models/gemma3-270m-q4_k_m.gguf
"$p64" -q stats --html "$out/hostile.html" "$out/hostile.gguf"
python3 scripts/browser/check.py ${SCREENSHOTS:+--screenshots "$SCREENSHOTS"} \
    "$out/tiny.html" "$out/smollm2.html" "$out/gemma3.html" "$out/hostile.html"
