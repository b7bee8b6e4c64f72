#!/usr/bin/env bash
# Makes tests/data/hf anew: tiny folders as transformers saves them, with what transformers, `tokenizers` and llama.cpp make of
# them.
#
#   scripts/hf/make.sh [CASE ...]
#
# torch's wheel of the package index is one for CUDA: it is installed without the 4 GB of libraries that it needs on a GPU, and
# cuda_stand_ins.py puts empty ones in their place. Takes 2 GB of disk, and half a minute a case on two cores.
set -euo pipefail
cd "$(dirname "$0")/../.."

# shellcheck source=scripts/llama_source.sh
. scripts/llama_source.sh
out=target/hf
mkdir -p "$out"
command -v gcc >/dev/null || scripts/apt.sh gcc
command -v readelf >/dev/null || scripts/apt.sh binutils
if [ ! -x "$out/venv/bin/pip" ]; then
    python3 -m venv "$out/venv" 2>/dev/null || { scripts/apt.sh python3-venv; python3 -m venv --clear "$out/venv"; }
fi
pip=("$out/venv/bin/python" -m pip install --quiet --disable-pip-version-check)
"${pip[@]}" -r scripts/hf/requirements.txt
"${pip[@]}" --no-deps torch==2.15.0
"$out/venv/bin/python" scripts/hf/cuda_stand_ins.py "$("$out/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

# The converter, and an oracle for logits.
python3 scripts/fetch_source.py --sha256 "$llama_sha256" --member vendor/llama.cpp --keep conversion,gguf-py,convert_hf_to_gguf.py \
    --to "$out/converter" llama-cpp-python "$llama_version"
scripts/conformance/oracle.sh "$out"

"$out/venv/bin/python" scripts/hf/make.py --llama-source "$out/converter" --oracle "$out/oracle/oracle" "$@"
