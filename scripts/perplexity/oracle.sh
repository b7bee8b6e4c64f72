#!/usr/bin/env bash
# Builds llama.cpp's own perplexity tool and records what it gives: tests/data/perplexity/golden.json.
#
#   scripts/perplexity/oracle.sh [PYTHON]     PYTHON has the packages gguf and numpy; python3 unless named
#
# The tool and the code that it shares with llama.cpp's other tools come from the source distribution that
# setup_llama.sh uses, and are linked with the libraries built there. They only read options and print, so they are
# compiled without optimisation, which takes a few minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-python3}

scripts/setup_llama.sh
scripts/setup_models.sh
version=$(sed -n 's/^version=//p' scripts/setup_llama.sh)
sha256=$(sed -n 's/^sha256=//p' scripts/setup_llama.sh)
source=target/llama/tool-source
python3 scripts/fetch_source.py --sha256 "$sha256" --member vendor/llama.cpp --keep common,tools,vendor,include,ggml,src \
    --to "$source" llama-cpp-python "$version"

objects=target/llama/tool
mkdir -p "$objects"
sed 's/@[A-Za-z_]*NUMBER@/0/; s/@[A-Za-z_]*@/unknown/g' "$source/common/build-info.cpp.in" >"$objects/build-info.cpp"
include=(-I"$source/common" -I"$source/include" -I"$source/ggml/include" -I"$source/vendor" -I"$source/src"
    -I"$source/vendor/cpp-httplib" -I"$source/vendor/sheredom")
sources=("$objects/build-info.cpp" "$source"/common/*.cpp "$source"/common/jinja/*.cpp "$source"/common/parsers/*.cpp
    "$source/vendor/cpp-httplib/httplib.cpp" "$source"/tools/perplexity/{perplexity,main}.cpp)
for file in "${sources[@]}"; do
    object=$objects/$(tr / _ <<<"${file#"$source"/}").o
    [ "$object" -nt "$file" ] || c++ -std=c++17 -O0 -w "${include[@]}" -c "$file" -o "$object"
done
libraries=target/llama/build
c++ -o "$objects/llama-perplexity" "$objects"/*.o "$libraries/src/libllama.a" "$libraries"/ggml/src/libggml{,-cpu,-base}.a \
    -lpthread -ldl -lm

"$python" scripts/perplexity/oracle.py "$objects/llama-perplexity" tests/data/perplexity/golden.json
