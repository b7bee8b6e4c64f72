//! Which vector instructions the processor has.

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
        #[cfg(target_arch = "x86_64")]
        return super::arch::x86_64::found();
        #[cfg(not(target_arch = "x86_64"))]
        Self::Scalar
    }

    /// The level that products use: the best, unless [`Level::cap`] asked for less.
    #[must_use]
    pub fn current() -> Self {
        #[cfg(target_arch = "x86_64")]
        return super::arch::x86_64::allowed();
        #[cfg(not(target_arch = "x86_64"))]
        Self::Scalar
    }

    /// Makes all products of this process that begin from now on use at most this level: for comparisons.
    pub fn cap(self) {
        #[cfg(target_arch = "x86_64")]
        super::arch::x86_64::cap(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
