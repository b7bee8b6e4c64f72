#!/usr/bin/env bash
# SmolLM2 as a Hugging Face folder, converted by llama.cpp's converter and by this workspace: tensors are compared byte for byte,
# logits with those of transformers and of llama.cpp. Takes 2 GB of disk in target/hf and two minutes on two cores; needs what
# make.sh sets up.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=target/hf
[ -x "$out/oracle/oracle" ] || scripts/hf/make.sh llama-f32
scripts/setup_models.sh
"$out/venv/bin/python" scripts/hf/smollm2.py --gguf models/smollm2-135m-q4_1.gguf --llama-source "$out/converter" \
    --oracle "$out/oracle/oracle" --to "$out/smollm2"
cargo run --release -p p64-tests --example hf_folder -- "$out/smollm2/SmolLM2-135M" "$out/smollm2/converted.gguf" \
    "$out/smollm2/prompt.json" "$out/smollm2/transformers.f32" "$out/smollm2/llama.f32"
