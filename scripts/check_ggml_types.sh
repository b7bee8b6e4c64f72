#!/usr/bin/env bash
# Compares the golden values in tests/data/quant with those of ggml's decoders, bit for bit.
#
# ggml's decoders are compiled here once more, without the fused multiply-add that the compiler would use for formats with
# a minimum: GGML rounds such a value once or twice as the machine it was built for has it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_llama.sh

llama=target/llama
out=target/llama/check_types
mkdir -p "$out"
include=(-I"$llama/source/ggml/include" -I"$llama/source/ggml/src")
cc -O2 -ffp-contract=off "${include[@]}" -c "$llama/source/ggml/src/ggml-quants.c" -o "$out/ggml-quants.o"
cc -O2 -std=c11 -Wall -Wextra -Werror "${include[@]}" -c scripts/check_ggml_types.c -o "$out/check.o"
# The object comes before the archive that holds the same functions, and so is the one that is taken.
c++ "$out/check.o" "$out/ggml-quants.o" "$llama/build/ggml/src/libggml-base.a" -lpthread -lm -o "$out/check_ggml_types"
"$out/check_ggml_types" tests/data/quant
