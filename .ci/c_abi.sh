#!/usr/bin/env bash
# The C interface as C and C++ programs see it: every test in tests/c with gcc and clang, against the static and the shared
# library, under AddressSanitizer and UndefinedBehaviorSanitizer, under valgrind; then an installation in an empty folder and
# the examples built with nothing but pkg-config. Prints what it counted.
#
# A test program is called as: PROGRAM MODEL.p64 MODEL.gguf FOLDER-OF-INVALID-FIXTURES SCRATCH-FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/apt.sh gcc g++ libc6-dev clang valgrind pkg-config binutils make
clang_major=$(clang -dumpversion | cut -d. -f1)
scripts/apt.sh "libclang-rt-$clang_major-dev"

target=${CARGO_TARGET_DIR:-target}
out=$PWD/target/c-abi
rm -rf "$out"
mkdir -p "$out"
export TMPDIR=$out

cargo build --release -p p64-ffi -p p64-cli
built=$target/release
gguf=tests/data/tiny/tiny-stories-q8_0.gguf
model=$out/tiny.p64
"$built/p64" convert --quiet "$gguf" "$model"

private=$(rustc --crate-type staticlib --print native-static-libs -o "$out/none.a" - </dev/null 2>&1 | sed -n 's/.*native-static-libs: //p')
warnings=(-Wall -Wextra -Wpedantic -Werror)
common=("${warnings[@]}" -g -O1 -pthread -Iinclude -DP64_STD)

echo "== functions"
# What p64.h declares, what the tests call, what the shared library exports.
declared=$(gcc -E -P -std=c11 -DP64_STD -Iinclude - <<<'#include "p64.h"' | tr -d '\n' | grep -oE '\bp64_[a-z0-9_]+\(' | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$built/libp64.so" | awk '{ print $3 }' | sort -u)
called=$(cat tests/c/*.c tests/c/*.cpp include/p64.hpp | grep -oE '\bp64_[a-z0-9_]+\b' | sort -u)
difference=$(comm -3 <(echo "$declared") <(echo "$exported"))
[ -z "$difference" ] || { printf 'declared (left) and exported (right) differ:\n%s\n' "$difference" >&2; exit 1; }
uncalled=$(comm -23 <(echo "$declared") <(echo "$called"))
[ -z "$uncalled" ] || { printf 'no test calls:\n%s\n' "$uncalled" >&2; exit 1; }
echo "$(wc -l <<<"$declared") functions declared, as many exported, all of them called by tests; nothing else exported"
readelf -d "$built/libp64.so" | grep -o 'soname: .*'
size -t "$built/libp64.so" | tail -n1 | awk '{ print "libp64.so: " $1 " B code and constants, " $2 " B data" }'

run() { # PROGRAM [COMMAND-IN-FRONT...]
    local program=$1
    shift
    mkdir -p "$out/scratch"
    "$@" "$program" "$model" "$gguf" tests/data/invalid "$out/scratch"
}

# compile NAME SUFFIX COMPILER... : tests/c/NAME.{c,cpp} with what follows, as a program named NAME-SUFFIX
programs=()
build() { # SUFFIX, LIBRARY..., with cc, cxx and flags set
    local suffix=$1 source name
    shift
    programs=()
    for source in tests/c/*.c tests/c/*.cpp; do
        name=$(basename "$source" | sed 's/\.[a-z]*$//')
        case $source in
            *.c) "$cc" -std=c11 "${common[@]}" "${flags[@]}" "$source" "$@" -lm -o "$out/$name-$suffix" ;;
            *) "$cxx" -std=c++17 "${common[@]}" "${flags[@]}" "$source" "$@" -lm -o "$out/$name-$suffix" ;;
        esac
        programs+=("$out/$name-$suffix")
    done
    # The pinned interface is the same for C++.
    "$cxx" -std=c++17 -x c++ "${warnings[@]}" -Iinclude -DP64_STD -fsyntax-only tests/c/abi.c
}

ln -sf "$(realpath "$built/libp64.so")" "$out/$(readelf -d "$built/libp64.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')"
# shellcheck disable=SC2086 # a list of flags
for compiler in gcc clang; do
    case $compiler in gcc) cc=gcc cxx=g++ ;; *) cc=clang cxx=clang++ ;; esac
    flags=()
    echo "== $compiler, static"
    build "$compiler-static" "$built/libp64.a" $private
    for program in "${programs[@]}"; do run "$program"; done
    echo "== $compiler, shared"
    build "$compiler-shared" "$built/libp64.so" -Wl,-rpath,"$out"
    for program in "${programs[@]}"; do run "$program"; done
    # Without tier 1, and in other dialects, the header is still a header.
    for dialect in c11 c17; do "$cc" -std=$dialect "${warnings[@]}" -Iinclude -fsyntax-only -x c include/p64.h; done
    for dialect in c++17 c++20; do "$cxx" -std=$dialect "${warnings[@]}" -Iinclude -fsyntax-only -x c++ include/p64.hpp; done
done 2> >(grep -v '#pragma once' >&2)

echo "== gcc, AddressSanitizer and UndefinedBehaviorSanitizer"
cc=gcc cxx=g++ flags=("-fsanitize=address,undefined" -fno-sanitize-recover=all)
# shellcheck disable=SC2086
build gcc-sanitized "$built/libp64.a" $private
for program in "${programs[@]}"; do run "$program"; done

echo "== clang, the same, with the library instrumented too"
triple=$(rustc -vV | sed -n 's/^host: //p')
# A build of its own in a folder of its own: the sanitizer flag is not stable, and some build scripts look at RUSTC_BOOTSTRAP.
RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo build -p p64-ffi --target "$triple" --target-dir "$target/c-abi-asan"
cc=clang cxx=clang++
# shellcheck disable=SC2086
build clang-sanitized "$target/c-abi-asan/$triple/debug/libp64.a" $private
for program in "${programs[@]}"; do run "$program"; done

echo "== valgrind"
# Rust's hash tables are held by a pointer into their middle, which valgrind calls "possibly lost" for those that live to the
# end (the regex engine's caches); LeakSanitizer, above, follows such pointers and has found nothing.
for program in "$out"/*-gcc-static; do
    run "$program" valgrind -q --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite --error-exitcode=9
done

echo "== an installation, and the examples with pkg-config alone"
stage=$out/stage
DESTDIR=$stage PREFIX=/opt/p64 scripts/install_c.sh
export PKG_CONFIG_PATH=$stage/opt/p64/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$stage
for source in examples/c/*.c; do
    name=$(basename "$source" .c)
    # shellcheck disable=SC2046 # pkg-config answers with a list of flags
    {
        cc -std=c11 "${warnings[@]}" "$source" $(pkg-config --cflags --libs p64) -o "$out/$name"
        cc -std=c11 "${warnings[@]}" "$source" $(pkg-config --cflags p64) -Wl,-Bstatic $(pkg-config --libs p64) -Wl,-Bdynamic \
            $(pkg-config --static --libs p64 | sed 's/.*-lp64//') -o "$out/$name-static"
    }
    LD_LIBRARY_PATH=$stage/opt/p64/lib "$out/$name" "$model" >"$out/$name.txt"
    "$out/$name-static" "$model" >"$out/$name-static.txt"
    cmp "$out/$name.txt" "$out/$name-static.txt"
    echo "$name: $(wc -l <"$out/$name.txt") lines, shared and static alike"
done
if LD_LIBRARY_PATH=$stage/opt/p64/lib "$out/validate" tests/data/invalid/090-blob-alignment.p64 2>/dev/null; then
    echo "validate accepts a file that is invalid" >&2
    exit 1
fi
