#!/usr/bin/env bash
# Other engines on P64: llama.cpp's model built from containers gives the ids that llama.cpp gives on the GGUFs, ggml computes
# on the mapping, Python reads it without a copy. Prints what was compared, and how long loading takes.
#
# Not in any of it: the time of loading depends on the machine; nothing is asserted about it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_build.sh
scripts/apt.sh pkg-config
scripts/setup_models.sh
scripts/setup_llama.sh

out=$PWD/target/llama-adapter
mkdir -p "$out"
PREFIX=$out/p64 scripts/install_c.sh
export PKG_CONFIG_PATH=$out/p64/lib/pkgconfig LD_LIBRARY_PATH=$out/p64/lib
cargo build --release -p p64-cli

for example in llama-cpp ggml; do
    cmake -S "examples/$example" -B "$out/$example" -DLLAMA_SOURCE="$PWD/target/llama/source" -DLLAMA_BUILD="$PWD/target/llama/build" \
        >"$out/$example.log" || { cat "$out/$example.log" >&2; exit 1; }
    cmake --build "$out/$example" >"$out/$example.log" || { cat "$out/$example.log" >&2; exit 1; }
done

# Any Python with numpy; one of our own where the machine's has none.
python=python3
if ! "$python" -c 'import numpy' 2>/dev/null; then
    python=$out/venv/bin/python
    [ -x "$python" ] || python3 -m venv "$out/venv" 2>/dev/null || { scripts/apt.sh python3-venv; python3 -m venv "$out/venv"; }
    "$python" -c 'import numpy' 2>/dev/null || "$python" -m pip install --quiet --disable-pip-version-check numpy
fi

for model in smollm2-135m-q4_1 gemma3-270m-q4_k_m; do
    echo "== $model"
    "${CARGO_TARGET_DIR:-target}/release/p64" convert --quiet "models/$model.gguf" "$out/$model.p64"
    python3 scripts/check_llama_ids.py "$out/llama-cpp/p64-llama" "$out/$model.p64" "models/$model.gguf" \
        "tests/data/llama/gen_$model.repack0.json"
    "$out/ggml/p64-ggml" "$out/$model.p64"
    P64_LIBRARY=$out/p64/lib/libp64.so PYTHONPATH=examples/python "$python" examples/python/check.py "$out/$model.p64"
    rm "$out/$model.p64"
done
