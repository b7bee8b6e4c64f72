#!/usr/bin/env bash
# Measures everything that docs/plots shows and draws it anew: bench/plots.sh [ROUNDS] (3). Options of compare.sh follow the rounds.
# Three quarters of an hour; the samples stay in target/bench.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1-3}
[ $# -eq 0 ] || shift
bench/kernels.sh --rounds "$rounds" --json target/bench/kernels.json
bench/compare.sh --rounds "$rounds" --json target/bench/compare.json "$@"
python3 bench/plots.py --kernels target/bench/kernels.json --models target/bench/compare.json
