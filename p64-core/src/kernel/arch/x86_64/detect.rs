//! What the processor says it has and the operating system saves.

use super::super::super::level::Level;
use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

/// Bits of leaf 1, register ECX.
const OSXSAVE: u32 = 1 << 27;
const AVX: u32 = 1 << 28;
const F16C: u32 = 1 << 29;
/// Bits of leaf 7, register EBX.
const AVX2: u32 = 1 << 5;
const AVX512: u32 = 1 << 16 | 1 << 30 | 1 << 31;
/// Bits of leaf 7, register ECX.
const VNNI: u32 = 1 << 11;
/// Bits of XCR0: registers XMM and YMM; those, the masks and the two halves of ZMM.
const YMM: u64 = 0b110;
const ZMM: u64 = 0b1110_0110;

/// The best level (Intel's manual, volume 1, "Detection of AVX instructions").
pub fn detect() -> Level {
    if __cpuid(0).eax < 7 {
        return Level::Scalar;
    }
    let (basic, extended) = (__cpuid(1).ecx, __cpuid_count(7, 0));
    if basic & OSXSAVE == 0 {
        return Level::Scalar;
    }
    // SAFETY: the processor has just said that the operating system enabled XGETBV (OSXSAVE).
    let saved = unsafe { saved_registers() };
    if basic & (AVX | F16C) != AVX | F16C || extended.ebx & AVX2 == 0 || saved & YMM != YMM {
        return Level::Scalar;
    }
    if extended.ebx & AVX512 != AVX512 || extended.ecx & VNNI == 0 || saved & ZMM != ZMM {
        return Level::Avx2;
    }
    Level::Avx512
}

/// XCR0.
#[target_feature(enable = "xsave")]
fn saved_registers() -> u64 {
    // SAFETY: register 0 is there wherever the instruction is, which this function's feature says.
    unsafe { _xgetbv(0) }
}
