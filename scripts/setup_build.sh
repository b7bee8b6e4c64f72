#!/usr/bin/env bash
# Checks that the workspace can be built here: a Rust toolchain new enough and a C linker. Installs the linker where
# apt-get can; says what is missing otherwise. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."

need=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
command -v cargo >/dev/null || { echo "cargo is not on PATH: install Rust $need or newer (rustup does it), then run this again" >&2; exit 1; }
have=$(rustc -V | cut -d' ' -f2)
[ "$(printf '%s\n' "$need" "$have" | sort -V | head -n1)" = "$need" ] || { echo "rustc is $have, this needs $need or newer: rustup update" >&2; exit 1; }
command -v cc >/dev/null || scripts/apt.sh gcc libc6-dev
