#!/usr/bin/env bash
# Builds llama.cpp's llama-quantize in target/quantize/, from the source distribution that setup_llama.sh uses and linked with
# the libraries built there. The tool and what it shares with others only read options and print, so they are compiled
# without optimisation; what quantises is in the libraries.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/setup_llama.sh
# shellcheck source=scripts/llama_source.sh
. scripts/llama_source.sh
out=target/quantize
source=$out/source
python3 scripts/fetch_source.py --sha256 "$llama_sha256" --member vendor/llama.cpp --keep common,tools,vendor,include,ggml,src \
    --to "$source" llama-cpp-python "$llama_version"

mkdir -p "$out/objects"
sed 's/@[A-Za-z_]*NUMBER@/0/; s/@[A-Za-z_]*@/unknown/g' "$source/common/build-info.cpp.in" >"$out/objects/build-info.cpp"
include=(-I"$source/common" -I"$source/include" -I"$source/ggml/include" -I"$source/vendor" -I"$source/src")
objects=()
for file in "$out/objects/build-info.cpp" "$source"/common/{common,imatrix-loader,json,log,unicode}.cpp \
    "$source"/tools/quantize/{quantize,main}.cpp; do
    object=$out/objects/$(basename "$file").o
    objects+=("$object")
    [ "$object" -nt "$file" ] || c++ -std=c++17 -O0 -w -ffunction-sections "${include[@]}" -c "$file" -o "$object"
done
libraries=target/llama/build
c++ -Wl,--gc-sections -o "$out/llama-quantize" "${objects[@]}" "$libraries/src/libllama.a" \
    "$libraries"/ggml/src/libggml{,-cpu,-base}.a -lpthread -ldl -lm
echo "$out/llama-quantize"
