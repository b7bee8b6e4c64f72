#!/usr/bin/env bash
# Prepares the firmware examples and their size checks: the cross compiler for Rust (setup_cross.sh), one for C, and a
# machine to run the images on. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_cross.sh
# The last two read images: sizes and symbols.
scripts/apt.sh qemu-system-arm gcc-arm-none-eabi binutils-arm-none-eabi llvm-22
