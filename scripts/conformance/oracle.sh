#!/usr/bin/env bash
# Builds the oracle, a program over llama.cpp that answers with logits: oracle.sh [FOLDER], `target/conformance` by default.
# Under two minutes on two cores, once.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-target/conformance}

mkdir -p "$out"
command -v c++ >/dev/null || scripts/apt.sh g++
scripts/apt.sh cmake ninja-build
scripts/setup_llama.sh
cmake -S scripts/conformance -B "$out/oracle" -G Ninja -DLLAMA_SOURCE="$PWD/target/llama/source" -DLLAMA_BUILD="$PWD/target/llama/build" \
    >"$out/oracle.log" || { cat "$out/oracle.log" >&2; exit 1; }
cmake --build "$out/oracle" >"$out/oracle.log" || { cat "$out/oracle.log" >&2; exit 1; }
