#!/usr/bin/env bash
# Makes tests/data/tokenizers anew with llama.cpp: the small vocabularies, then the results of every vocabulary and
# pre-tokenizer. About four minutes on two cores, and the building of llama.cpp before. git shows what has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_llama.sh
scripts/setup_vocabularies.sh

llama=target/llama
c++ -O1 -std=c++17 -I"$llama/source/include" -I"$llama/source/ggml/include" scripts/vocabularies/tokenize.cpp \
    -o target/llama/tokenize -L"$llama/build/src" -L"$llama/build/ggml/src" -lllama -lggml -lggml-cpu -lggml-base \
    -lpthread -ldl -lm
python3 scripts/vocabularies/make_synthetic.py
python3 scripts/vocabularies/make_goldens.py target/llama/tokenize models/vocabularies
