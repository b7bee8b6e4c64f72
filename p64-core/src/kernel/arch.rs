//! Kernels for the vector instructions of single architectures: the one place in this crate with unsafe code.

#[cfg(target_arch = "x86_64")]
pub(super) mod x86_64;

use crate::quant::float::from_f16;

/// Vectors of eight numbers.
pub(super) trait Eight: Copy {
    /// Eight numbers.
    type F32: Copy;

    fn zero(self) -> Self::F32;
    fn load(self, from: &[f32; 8]) -> Self::F32;
    fn load_f16(self, from: &[[u8; 2]; 8]) -> Self::F32;
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn store(self, from: Self::F32) -> [f32; 8];
}

/// Vectors as arrays.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Eight for Portable {
    type F32 = [f32; 8];

    #[inline(always)]
    fn zero(self) -> [f32; 8] {
        [0.0; 8]
    }

    #[inline(always)]
    fn load(self, from: &[f32; 8]) -> [f32; 8] {
        *from
    }

    #[inline(always)]
    fn load_f16(self, from: &[[u8; 2]; 8]) -> [f32; 8] {
        from.map(|half| from_f16(&half))
    }

    #[inline(always)]
    fn add(self, mut a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    }

    #[inline(always)]
    fn mul(self, mut a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        a.iter_mut().zip(b).for_each(|(a, b)| *a *= b);
        a
    }

    #[inline(always)]
    fn store(self, from: [f32; 8]) -> [f32; 8] {
        from
    }
}

/// Work that is compiled for every level.
///
/// `run` and what it calls are `#[inline(always)]`, so that they become part of a function with the level's features. The
/// operations and their order stay what they are in the source, and with them the result.
pub(super) trait Task {
    /// What comes of it.
    type Output;

    /// Does the work. What is not left to the compiler goes through `e`.
    fn run<E: Eight>(self, e: E) -> Self::Output;
}

/// Does the work with the best instructions that may be used.
#[inline]
pub(super) fn dispatch<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    return x86_64::dispatch(task);
    #[cfg(not(target_arch = "x86_64"))]
    task.run(Portable)
}
