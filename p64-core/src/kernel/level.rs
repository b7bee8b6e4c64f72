//! Which vector instructions the processor has.

use core::sync::atomic::{AtomicU8, Ordering};

/// Sets of instructions that there are kernels for, the slowest first. All give the same results.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[non_exhaustive]
pub enum Level {
    /// What the compiler makes of portable code for the target.
    Scalar,
    /// x86-64 with AVX2 and F16C: vectors of 256 bits.
    Avx2,
    /// x86-64 with AVX-512 F, BW, VL and VNNI: vectors of 256 and 512 bits, products added in one instruction.
    Avx512,
}

impl Level {
    /// Every level, the slowest first.
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Avx2, Self::Avx512];

    /// What people call the level.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// The best level of this processor and operating system. The first call asks them, which takes some microseconds on a
    /// virtual machine; later ones remember.
    #[must_use]
    pub fn detect() -> Self {
        match FOUND.load(Ordering::Relaxed) {
            0 => {
                let found = detect();
                FOUND.store(found.code(), Ordering::Relaxed);
                found
            }
            code => Self::ALL.into_iter().find(|level| level.code() == code).unwrap_or(Self::Scalar),
        }
    }

    /// The level that products use: the best, unless [`Level::cap`] asked for less.
    #[must_use]
    pub fn current() -> Self {
        let code = CAP.load(Ordering::Relaxed);
        let cap = Self::ALL.into_iter().find(|level| level.code() == code);
        cap.map_or_else(Self::detect, |cap| cap.min(Self::detect()))
    }

    /// Makes all products of this process that begin from now on use at most this level: for comparisons.
    pub fn cap(self) {
        CAP.store(self.code(), Ordering::Relaxed);
    }

    const fn code(self) -> u8 {
        match self {
            Self::Scalar => 1,
            Self::Avx2 => 2,
            Self::Avx512 => 3,
        }
    }
}

/// The code of the level that was found; 0 before.
static FOUND: AtomicU8 = AtomicU8::new(0);
/// The code of the level that is allowed; 0 for any.
static CAP: AtomicU8 = AtomicU8::new(0);

#[cfg(not(target_arch = "x86_64"))]
const fn detect() -> Level {
    Level::Scalar
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    super::arch::x86_64::detect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_tell_levels_apart_and_none_is_zero() {
        for (index, level) in Level::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(level.code()), index + 1);
        }
        assert!(Level::Scalar < Level::Avx2 && Level::Avx2 < Level::Avx512);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_standard_library_finds_the_same() {
        let avx2 = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("f16c");
        let avx512 = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("avx512vnni");
        let expected = match (avx2, avx512) {
            (true, true) => Level::Avx512,
            (true, false) => Level::Avx2,
            _ => Level::Scalar,
        };
        assert_eq!(Level::detect(), expected);
        assert_eq!(Level::detect(), expected);
    }
}
