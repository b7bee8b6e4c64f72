#!/usr/bin/env bash
# Puts llama.cpp's vocabularies, GGUFs without weights, and the texts and ids that it tests them with into
# models/vocabularies/ (75 MB, from an archive of 77 MB whose digest is checked). Already there: nothing to do.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/llama_source.sh
. scripts/llama_source.sh

python3 -m pip --version >/dev/null 2>&1 || scripts/apt.sh python3 python3-pip
python3 scripts/fetch_source.py --sha256 "$llama_sha256" --member vendor/llama.cpp/models --keep 'ggml-vocab-*' \
    --to models/vocabularies llama-cpp-python "$llama_version"
