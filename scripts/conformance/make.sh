#!/usr/bin/env bash
# Makes the conformance models and llama.cpp's logits for them anew, and fails where what is committed differs: recipes and
# digests in anything, logits beyond the noise of another CPU (make.py says how much). With P64_BLESS=1 it writes them.
#
#   scripts/conformance/make.sh            recipes and logits: builds llama.cpp first, under two minutes on two cores, once
#   scripts/conformance/make.sh recipes    recipes and digests alone
set -euo pipefail
cd "$(dirname "$0")/../.."
what=${1:-goldens}

out=target/conformance
mkdir -p "$out"
command -v python3 >/dev/null || scripts/apt.sh python3
[ -x "$out/venv/bin/pip" ] || python3 -m venv "$out/venv" 2>/dev/null || { scripts/apt.sh python3-venv; python3 -m venv --clear "$out/venv"; }
"$out/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r scripts/conformance/requirements.txt
python=$out/venv/bin/python

if [ "$what" = recipes ]; then
    exec "$python" scripts/conformance/make.py --check recipes
fi

scripts/conformance/oracle.sh "$out"

check=(--check goldens)
[ "${P64_BLESS:-0}" != 1 ] || check=()
"$python" scripts/conformance/make.py --oracle "$out/oracle/oracle" "${check[@]}"
"$python" scripts/conformance/kv.py --oracle "$out/oracle/oracle" "${check[@]}"
"$python" scripts/conformance/sensitivity.py --oracle "$out/oracle/oracle"
