#!/usr/bin/env bash
# Installs the C library: headers, libp64.a, libp64.so and p64.pc, which tells pkg-config about them.
#
#   PREFIX    where it is to be used from (/usr/local)
#   LIBDIR    where libraries go ($PREFIX/lib)
#   DESTDIR   put in front of every path, for packages that are made in a folder of their own (nothing)
set -euo pipefail
cd "$(dirname "$0")/.."

PREFIX=${PREFIX:-/usr/local}
LIBDIR=${LIBDIR:-$PREFIX/lib}
DESTDIR=${DESTDIR:-}
built=${CARGO_TARGET_DIR:-target}/release
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)
soname=libp64.so.${version%.*} # below 1.0 each minor version may change the binary interface
include=$DESTDIR$PREFIX/include
lib=$DESTDIR$LIBDIR

cargo build --release -p p64-ffi

install -d "$include" "$lib/pkgconfig"
install -m 644 include/p64.h include/p64.hpp "$include"
install -m 644 "$built/libp64.a" "$lib/libp64.a"
install -m 755 "$built/libp64.so" "$lib/libp64.so.$version"
# The compiled standard library comes with its debug information, which nobody debugs C with.
strip --strip-debug "$lib/libp64.a" "$lib/libp64.so.$version"
ln -sf "libp64.so.$version" "$lib/$soname"
ln -sf "$soname" "$lib/libp64.so"

# What Rust's standard library needs when it is linked statically; ours adds nothing.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
private=$(rustc --crate-type staticlib --print native-static-libs -o "$scratch/none.a" - </dev/null 2>&1 |
    sed -n 's/.*native-static-libs: //p')
[ -n "$private" ] || { echo "rustc does not say what a static library needs" >&2; exit 1; }
cat >"$lib/pkgconfig/p64.pc" <<EOF
prefix=$PREFIX
includedir=\${prefix}/include
libdir=$LIBDIR

Name: p64
Description: P64 weight containers and the models in them
Version: $version
Cflags: -I\${includedir} -DP64_STD
Libs: -L\${libdir} -lp64
Libs.private: $private
EOF
echo "installed libp64 $version in $lib, p64.h and p64.hpp in $include"
