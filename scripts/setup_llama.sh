#!/usr/bin/env bash
# Builds llama.cpp as static libraries for this machine's CPU, from the source distribution of llama-cpp-python, into
# target/llama/: under two minutes on two cores, once. The examples against llama.cpp and ggml are built with it.
#
# The commit in it is the one whose results lie in tests/data/llama. Only libllama and ggml are built, with ggml's own
# thread pool: that needs no OpenMP, and the examples run on one thread, as the recorded results did.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/llama_source.sh
. scripts/llama_source.sh

command -v c++ >/dev/null || scripts/apt.sh g++
scripts/apt.sh cmake ninja-build
python3 -m pip --version >/dev/null 2>&1 || scripts/apt.sh python3 python3-pip

source=target/llama/source
python3 scripts/fetch_source.py --sha256 "$llama_sha256" --member vendor/llama.cpp \
    --keep CMakeLists.txt,LICENSE,cmake,ggml,include,licenses,src,vendor --to "$source" llama-cpp-python "$llama_version"

# The commit is told, or CMake would take this repository's for llama.cpp's and build everything again after each of ours.
began=$SECONDS
cmake -S "$source" -B target/llama/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" \
    -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON -DGGML_OPENMP=OFF -DGGML_BLAS=OFF -DGGML_CCACHE=OFF -DLLAMA_OPENSSL=OFF \
    -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_COMMIT=0c1e57098 >target/llama/configure.log
cmake --build target/llama/build --target llama >target/llama/build.log || { tail -n 30 target/llama/build.log >&2; exit 1; }
echo "llama.cpp of llama-cpp-python $llama_version: built in $((SECONDS - began)) s"
