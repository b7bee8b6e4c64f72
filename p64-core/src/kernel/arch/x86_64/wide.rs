//! Vectors with a position in each lane, as long as a level has them.

use super::lanes::{Avx2, Avx512, Lanes};
use core::arch::x86_64::*;

/// Vectors of `N` lanes of 32 bits. A value is proof of the instructions, as for [`Lanes`].
pub(super) trait Wide<const N: usize>: Copy {
    type I32: Copy;
    type F32: Copy;

    fn zero_i32(self) -> Self::I32;
    fn splat_i32(self, value: i32) -> Self::I32;
    fn load_i32(self, from: &[i32; N]) -> Self::I32;
    /// `sum + a[2i] * b[2i] + a[2i + 1] * b[2i + 1]`, 16-bit numbers in pairs.
    fn dot_add_pairs(self, sum: Self::I32, a: Self::I32, b: Self::I32) -> Self::I32;
    fn to_float(self, a: Self::I32) -> Self::F32;
    fn splat(self, value: f32) -> Self::F32;
    fn load(self, from: &[f32; N]) -> Self::F32;
    fn store(self, from: Self::F32, to: &mut [f32; N]);
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
}

impl Wide<8> for Avx2 {
    type I32 = __m256i;
    type F32 = __m256;

    #[inline(always)]
    fn zero_i32(self) -> __m256i {
        Lanes::zero_i32(self)
    }

    #[inline(always)]
    fn splat_i32(self, value: i32) -> __m256i {
        Lanes::splat_i32(self, value)
    }

    #[inline(always)]
    fn load_i32(self, from: &[i32; 8]) -> __m256i {
        Lanes::load_i32(self, from)
    }

    #[inline(always)]
    fn dot_add_pairs(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        self.dot_add(sum, a, b)
    }

    #[inline(always)]
    fn to_float(self, a: __m256i) -> __m256 {
        self.to_f32(a)
    }

    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        self.splat_f32(value)
    }

    #[inline(always)]
    fn load(self, from: &[f32; 8]) -> __m256 {
        self.load_f32(from)
    }

    #[inline(always)]
    fn store(self, from: __m256, to: &mut [f32; 8]) {
        *to = self.store_f32(from);
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        self.add_f32(a, b)
    }

    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        self.sub_f32(a, b)
    }

    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        self.mul_f32(a, b)
    }
}

/// Methods of [`Avx512`] that are one instruction.
macro_rules! op {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty = $intrinsic:ident;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($arg: $type),*) -> $result {
                // SAFETY: an instruction of AVX-512 F or VNNI, which a value of this type proves to be there.
                unsafe { $intrinsic($($arg),*) }
            }
        )*
    };
}

impl Wide<16> for Avx512 {
    type I32 = __m512i;
    type F32 = __m512;

    op! {
        zero_i32() -> __m512i = _mm512_setzero_si512;
        splat_i32(value: i32) -> __m512i = _mm512_set1_epi32;
        dot_add_pairs(sum: __m512i, a: __m512i, b: __m512i) -> __m512i = _mm512_dpwssd_epi32;
        to_float(a: __m512i) -> __m512 = _mm512_cvtepi32_ps;
        splat(value: f32) -> __m512 = _mm512_set1_ps;
        add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps;
        sub(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps;
        mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps;
    }

    #[inline(always)]
    fn load_i32(self, from: &[i32; 16]) -> __m512i {
        // SAFETY: a reference to 64 bytes is readable for as many, and this load needs no alignment; AVX-512 by the type.
        unsafe { _mm512_loadu_si512(core::ptr::from_ref(from).cast()) }
    }

    #[inline(always)]
    fn load(self, from: &[f32; 16]) -> __m512 {
        // SAFETY: as for `load_i32`.
        unsafe { _mm512_loadu_ps(core::ptr::from_ref(from).cast()) }
    }

    #[inline(always)]
    fn store(self, from: __m512, to: &mut [f32; 16]) {
        // SAFETY: a unique reference to 64 bytes is writable for as many, and this store needs no alignment; AVX-512 by the type.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), from) }
    }
}
