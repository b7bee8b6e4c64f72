#!/usr/bin/env bash
# Installs cargo-fuzz (and the C++ compiler that libFuzzer is built with) unless they are there. Half a minute on two
# idle cores; it goes to cargo's own bin folder.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_build.sh
command -v c++ >/dev/null || scripts/apt.sh g++
version=0.13.2
[ "$(cargo fuzz --version 2>/dev/null)" = "cargo-fuzz $version" ] || cargo install --quiet --locked cargo-fuzz --version "$version"
cargo fuzz --version
