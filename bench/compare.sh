#!/usr/bin/env bash
# Our prompt and generation speed beside llama.cpp's: builds both, makes the models from those that `make model` fetched, runs them
# in turns and prints the ratios. Options go to compare.py: --rounds 7, --threads 1,2, --only TEXT, --depth 4096, --kv f16,
# --json FILE.
# --layout tuned compares containers in the form that our kernels like best (`p64 convert --layout`); the GGUF stays the same.
# Half an hour; 1 GB below target/.
set -euo pipefail
cd "$(dirname "$0")/.."

layout=verbatim
arguments=("$@")
for ((i = 0; i < $#; i++)); do
    if [ "${arguments[i]}" = --layout ]; then layout=${arguments[i + 1]-}; fi
done

scripts/setup_models.sh
scripts/setup_llama.sh
cargo build --release -p p64-cli
p64=${CARGO_TARGET_DIR:-target}/release/p64
out=target/bench
mkdir -p "$out"
libraries=target/llama/build
c++ -std=c++17 -O2 -Wall -Wextra -Werror -isystem target/llama/source/include -isystem target/llama/source/ggml/include \
    bench/llama_bench.cpp -o "$out/llama_bench" "$libraries/src/libllama.a" "$libraries"/ggml/src/libggml{,-cpu,-base}.a \
    -lpthread -ldl -lm

# The same content for both: a container, and the GGUF that it exports.
model() { # NAME SOURCE [OPTION...]
    local name=$1 source=$2
    shift 2
    [ -f "$out/$name.gguf" ] && return
    "$p64" convert --quiet "$@" "$source" "$out/$name.p64"
    "$p64" export --quiet "$out/$name.p64" "$out/$name.gguf"
}
model smollm2-q4_1 models/smollm2-135m-q4_1.gguf
model smollm2-f16 models/smollm2-135m-q4_1.gguf --layout f16
for profile in q8_0 q4_0 q4_k_m; do model "smollm2-$profile" "$out/smollm2-f16.gguf" --profile "$profile"; done
model gemma3-q4_k_m models/gemma3-270m-q4_k_m.gguf
if [ "$layout" != verbatim ]; then
    for gguf in "$out"/{smollm2,gemma3}-*.gguf; do
        made=${gguf%.gguf}.$layout.p64
        [ "$made" -nt "$p64" ] || "$p64" convert --quiet --layout "$layout" "$gguf" "$made"
    done
fi
exec python3 bench/compare.py --p64 "$p64" --llama "$out/llama_bench" "$@"
