#!/usr/bin/env bash
# The tokenizers on llama.cpp's vocabularies: the texts and ids that come with them, our strings on each, from the GGUF and from
# the container made of it, and every pre-tokenizer's name. Prints a line for each vocabulary and for each group of names.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_build.sh
scripts/setup_vocabularies.sh
cargo test -p p64-tests --test vocabularies -- --nocapture --test-threads 1
