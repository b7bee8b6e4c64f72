//! What the processor says it has and the operating system saves.

use super::super::super::level::Level;
use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use core::sync::atomic::{AtomicU8, Ordering};

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

/// The code of the level that was found; 0 before.
static FOUND: AtomicU8 = AtomicU8::new(0);
/// The code of the level that is allowed; 0 for any.
static CAP: AtomicU8 = AtomicU8::new(0);

/// The best level, asked for once.
pub fn found() -> Level {
    level(FOUND.load(Ordering::Relaxed)).unwrap_or_else(|| {
        let found = detect();
        FOUND.store(code(found), Ordering::Relaxed);
        found
    })
}

/// The best level that is allowed.
pub fn allowed() -> Level {
    let found = found();
    level(CAP.load(Ordering::Relaxed)).map_or(found, |cap| cap.min(found))
}

/// Allows no better level.
pub fn cap(level: Level) {
    CAP.store(code(level), Ordering::Relaxed);
}

const fn code(level: Level) -> u8 {
    match level {
        Level::Scalar => 1,
        Level::Avx2 => 2,
        Level::Avx512 => 3,
    }
}

fn level(of: u8) -> Option<Level> {
    Level::ALL.into_iter().find(|level| code(*level) == of)
}

/// The best level (Intel's manual, volume 1, "Detection of AVX instructions").
fn detect() -> Level {
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
