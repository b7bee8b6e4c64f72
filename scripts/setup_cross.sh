#!/usr/bin/env bash
# Prepares builds for targets whose standard library rustup does not ship here (bare metal, other byte orders, wasm):
# Debian's rustc with its library sources, reachable as `cargo +debweb ... -Zbuild-std=core`. Safe to run again.
#
# The host is built with the stable toolchain; this one only builds what the host's cannot. Its version rolls with
# Debian's updates, so it is compared with the workspace's rust-version, never pinned.
set -euo pipefail
cd "$(dirname "$0")/.."

# rust-web-llvm only ships a link named rust-lld to the file of lld-22: both are needed.
scripts/apt.sh rustc-web cargo-web rust-web-src rust-web-llvm lld-22

need=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
version() { /usr/bin/rustc -V | cut -d' ' -f2 | cut -d+ -f1; }
at_least() { [ "$(printf '%s\n' "$need" "$1" | sort -V | head -n1)" = "$need" ]; }
have=$(version)
at_least "$have" || { echo "Debian's rustc-web is $have, rust-version is $need: run apt-get update and upgrade it" >&2; exit 1; }

command -v rustup >/dev/null || { echo "rustup is needed to name the toolchain" >&2; exit 1; }
[ "$(rustup run debweb rustc -V 2>/dev/null)" = "$(/usr/bin/rustc -V)" ] || rustup toolchain link debweb /usr
echo "debweb: $(rustup run debweb rustc -V)"
