#!/usr/bin/env bash
# P64 on bare metal, under the profile that a firmware would choose: what it costs (a table, against limits), what it must
# not link, that it never loads unaligned, and that the examples in Rust and C tell the host's story. docs/firmware.md
# explains the figures. What is built lies in target/firmware, apart from the host's.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_firmware.sh

out=target/firmware
mkdir -p "$out"
m4=thumbv7em-none-eabihf
m0=thumbv6m-none-eabi
riscv=riscv32imac-unknown-none-elf

fail() { echo "firmware: $*" >&2; exit 1; }
# -Zbuild-std needs the flag; only what the host cannot build is built so.
cross() { RUSTC_BOOTSTRAP=1 cargo +debweb "$@" -Zbuild-std=core --target-dir "$out"; }
# The emulator writes what a program says to stdout or stderr, by the call that it used.
emulate() { timeout 120 qemu-system-arm -M mps2-an386 -cpu cortex-m4 -nographic -semihosting-config enable=on,target=native -kernel "$1" 2>&1 </dev/null; }
# Bytes of an image's sections, the model not among them: section_bytes IMAGE NAME...
section_bytes() {
    llvm-size-22 -A "$1" | awk -v names="${*:2}" 'BEGIN { split(names, n); for (i in n) want[n[i]] = 1 }
        $1 in want { sum += $2 } END { print sum + 0 }'
}
code_bytes() { section_bytes "$1" .vectors .vector_table .text .rodata .data .ARM.exidx; }
symbols() { llvm-nm-22 --demangle "$1"; }

no_allocator() {
    if symbols "$1" | grep -E '__rust_alloc|__rg_alloc|\b(malloc|calloc|realloc|free|_?sbrk)\b|alloc::'; then
        fail "$1 refers to an allocator"
    fi
}
no_panic() { # nor anything that writes text
    if symbols "$1" | grep -E 'panic|core::fmt|unwind'; then
        fail "$1 can panic, or formats text"
    fi
}

echo "--- p64-core without its default features, on the host: what a firmware has left out it refuses"
cargo clippy --quiet -p p64-core --all-targets --no-default-features -- -D warnings
tests=$(cargo test --quiet -p p64-core --no-default-features --lib -- --format pretty)
grep '^test result:' <<<"$tests"
grep -q '::a_small_build_refuses_what_it_left_out ... ok$' <<<"$tests" || fail "the small build's own test did not run"

echo "--- the model, converted for firmware"
cargo build --quiet --release -p p64-cli --bin p64
p64="$(realpath "${CARGO_TARGET_DIR:-target}")/release/p64"
export P64_MODEL="$PWD/$out/story.p64"
"$p64" convert --quiet --for firmware tests/data/tiny/tiny-stories-q8_0.gguf "$P64_MODEL"
echo "$(wc -c <"$P64_MODEL") bytes"

echo "--- sizes: .text + .rodata in bytes; stack in bytes, the 256-byte buffer of the stream in it"
# Most bytes of code and of stack for each image. A limit is what was measured and some hundred bytes: growth is a decision.
# The stack is measured where the image runs; that of decoding stands with the stories below.
limits="stream $m0 22400 2500
stream $m4 19300 2250
stream $riscv 24750 -
slice $m0 17850 1150
slice $m4 15400 950
slice $riscv 20050 -
decode $m0 95200 -
decode $m4 88200 -
decode $riscv 112900 -"
for target in "$m0" "$m4" "$riscv"; do
    cross build --quiet --release --manifest-path tests/firmware-check/Cargo.toml --target "$target"
done
row() { printf '%-8s %-30s %8s %8s %8s %8s\n' "$@"; }
row image target code limit stack limit
while read -r image target code_limit stack_limit; do
    elf=$out/$target/release/$image
    code=$(code_bytes "$elf")
    stack=-
    if [ "$target" != "$riscv" ]; then
        report=$(emulate "$elf") || fail "$image for $target: $report"
        stack=$(sed -n 's/^stack 0x//p' <<<"$report")
        stack=$((16#${stack:?"$image said nothing: $report"}))
    fi
    [ "$stack_limit" != - ] || stack=-
    row "$image" "$target" "$code" "$code_limit" "$stack" "$stack_limit"
    [ "$code" -le "$code_limit" ] || fail "the code of $image for $target has grown"
    [ "$stack_limit" = - ] || [ "$stack" -le "$stack_limit" ] || fail "the stack of $image for $target has grown"
    [ "$(section_bytes "$elf" .data .bss)" -eq 0 ] || fail "$image for $target has static memory"
    no_allocator "$elf"
    [ "$image" = decode ] || no_panic "$elf"
done <<<"$limits"
grep -q 'p64_core::forward' <<<"$(symbols "$out/$m4/release/decode")" || fail "the image holds no decode step: it proves nothing"
grep -q 'p64_core::stream' <<<"$(symbols "$out/$m4/release/stream")" || fail "the image holds no validator: it proves nothing"

echo "--- alignment: a load that must fault, so that those that did not were aligned"
report=$(emulate "$out/$m0/release/unaligned") && fail "an unaligned load went unnoticed"
[ "$report" = fault ] || fail "the control ended otherwise: $report"
echo "the thumbv6m images above ran where an unaligned load faults"

echo "--- the story: host"
# The host builds into its own folder: its build scripts see no difference, its flags do.
story=$(cargo run --quiet --release --manifest-path examples/firmware/Cargo.toml -p story --bin host --target-dir "$out/host")
echo "$story"
ids=$("$p64" run "$P64_MODEL" --quiet --ids --ignore-eos --temp 0 -n 32 -p "Once upon a time" | tr -s ' \n' '  ' | sed 's/ *$//')
[ "$(sed -n 's/^ids //p' <<<"$story")" = "$ids" ] || fail "the p64 command tells: $ids"

check_story() { # NAME IMAGE LINES: each of these lines as the host has it
    local report line
    report=$(emulate "$2") || fail "$1: $report"
    grep -vE '^(ids|text|logits) ' <<<"$report"
    for line in $3; do
        [ "$(grep "^$line " <<<"$report")" = "$(grep "^$line " <<<"$story")" ] || fail "$1 tells another story: $report"
    done
    no_allocator "$2"
    echo "code $(code_bytes "$2")"
    echo "static_ram $(section_bytes "$2" .data .bss .uninit)"
    echo "$1: the host's story, to the bits of its logits"
}

echo "--- the story: Rust on a Cortex-M4F"
cross build --quiet --release --manifest-path examples/firmware/Cargo.toml -p story --bin firmware --target "$m4"
check_story Rust "$out/$m4/release/firmware" "ids text logits"

echo "--- the log: defmt on a Cortex-M4F"
DEFMT_LOG=info cross build --quiet --release --manifest-path examples/firmware/Cargo.toml -p story --bin log --features defmt --target "$m4"
cargo build --quiet --release --manifest-path examples/firmware/Cargo.toml -p log-print --target-dir "$out/host"
timeout 120 qemu-system-arm -M mps2-an386 -cpu cortex-m4 -nographic -semihosting-config enable=on,target=native \
    -kernel "$out/$m4/release/log" </dev/null >"$out/log.bin" || fail "the logging image ended with $?"
log=$("$out/host/release/log-print" "$out/$m4/release/log" <"$out/log.bin")
echo "$log"
bytes=$(wc -c <"$P64_MODEL")
grep -q "^info validated $bytes bytes, 40 tensors$" <<<"$log" || fail "the validation is not in the log"
grep -q "^warn Error { code: BlobBounds, place: Tensor(39)" <<<"$log" || fail "the torn file's error is not in the log"

echo "--- the story: C on a Cortex-M4F"
cross rustc --quiet -p p64-ffi --no-default-features --features firmware --crate-type staticlib --profile firmware --target "$m4"
make --silent -C examples/firmware/c OUT="$PWD/$out/c" LIB="$PWD/$out/$m4/firmware/libp64.a" MODEL="$P64_MODEL"
# The C program gives the prompt as ids and prints no text.
check_story C "$out/c/story.elf" "ids text logits"
