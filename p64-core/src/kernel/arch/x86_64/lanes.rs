//! Vectors of 256 bits as safe functions.
//!
//! A value of a type that implements [`Lanes`] is proof that the processor has the instructions, so that what is written over
//! it is safe code. It must be compiled for them too: functions are `#[inline(always)]`, down from one with
//! `#[target_feature]`. A closure is not, unless the compiler happens to inline it: vectors go through loops.

use super::super::Eight;
use core::arch::x86_64::*;

/// Methods that are one instruction.
macro_rules! op {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty = $intrinsic:ident;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($arg: $type),*) -> $result {
                // SAFETY: the instruction is one of AVX2 or F16C, and a value of this trait's types proves that they are there.
                unsafe { $intrinsic($($arg),*) }
            }
        )*
    };
}

/// Methods that are one instruction with a constant in it.
macro_rules! const_op {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty = $intrinsic:ident;)*) => {
        $(
            #[inline(always)]
            fn $name<const N: i32>(self, $($arg: $type),*) -> $result {
                // SAFETY: as for the methods without a constant.
                unsafe { $intrinsic::<N>($($arg),*) }
            }
        )*
    };
}

/// Instructions of AVX2 and F16C. The types that implement it differ in those that have better ones.
pub(super) trait Lanes: Copy {
    /// `sum + a[2i] * b[2i] + a[2i + 1] * b[2i + 1]` in each of eight lanes.
    fn dot_add(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i;

    /// `value` in each of 16 lanes whose bit is set, else 0.
    fn spread(self, bits: u16, value: i16) -> __m256i;

    op! {
        zero_i32() -> __m256i = _mm256_setzero_si256;
        zero_f32() -> __m256 = _mm256_setzero_ps;
        splat_i16(value: i16) -> __m256i = _mm256_set1_epi16;
        splat_i32(value: i32) -> __m256i = _mm256_set1_epi32;
        splat_f32(value: f32) -> __m256 = _mm256_set1_ps;
        and(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256;
        or(a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256;
        xor(a: __m256i, b: __m256i) -> __m256i = _mm256_xor_si256;
        equal_i8(a: __m256i, b: __m256i) -> __m256i = _mm256_cmpeq_epi8;
        repeat_128(a: __m128i) -> __m256i = _mm256_broadcastsi128_si256;
        count(count: i32) -> __m128i = _mm_cvtsi32_si128;
        equal_i16(a: __m256i, b: __m256i) -> __m256i = _mm256_cmpeq_epi16;
        add_i32(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi32;
        sub_i32(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi32;
        add_pairs_i32(a: __m256i, b: __m256i) -> __m256i = _mm256_hadd_epi32;
        multiply_pairs(a: __m256i, b: __m256i) -> __m256i = _mm256_madd_epi16;
        shuffle_bytes(a: __m256i, order: __m256i) -> __m256i = _mm256_shuffle_epi8;
        shuffle_bytes_128(a: __m128i, order: __m128i) -> __m128i = _mm_shuffle_epi8;
        widen_unsigned(bytes: __m128i) -> __m256i = _mm256_cvtepu8_epi16;
        widen_signed(bytes: __m128i) -> __m256i = _mm256_cvtepi8_epi16;
        widen_unsigned_i32(bytes: __m128i) -> __m256i = _mm256_cvtepu8_epi32;
        widen_signed_i32(bytes: __m128i) -> __m256i = _mm256_cvtepi8_epi32;
        to_f32(a: __m256i) -> __m256 = _mm256_cvtepi32_ps;
        halves_to_f32(a: __m128i) -> __m256 = _mm256_cvtph_ps;
        add_f32(a: __m256, b: __m256) -> __m256 = _mm256_add_ps;
        sub_f32(a: __m256, b: __m256) -> __m256 = _mm256_sub_ps;
        mul_f32(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps;
        xor_f32(a: __m256, b: __m256) -> __m256 = _mm256_xor_ps;
        interleave_low(a: __m256, b: __m256) -> __m256 = _mm256_unpacklo_ps;
        interleave_high(a: __m256, b: __m256) -> __m256 = _mm256_unpackhi_ps;
        low_half(a: __m256i) -> __m128i = _mm256_castsi256_si128;
        shift_right_by(a: __m256i, count: __m128i) -> __m256i = _mm256_srl_epi16;
        widen_u16(a: __m128i) -> __m256i = _mm256_cvtepu16_epi32;
        as_f32(a: __m256i) -> __m256 = _mm256_castsi256_ps;
        and_128(a: __m128i, b: __m128i) -> __m128i = _mm_and_si128;
        splat_i64(value: i64) -> __m256i = _mm256_set1_epi64x;
    }

    const_op! {
        shift_right_i16(a: __m256i) -> __m256i = _mm256_srli_epi16;
        shift_left_i16(a: __m256i) -> __m256i = _mm256_slli_epi16;
        shift_left_i32(a: __m256i) -> __m256i = _mm256_slli_epi32;
        shift_right_i16_128(a: __m128i) -> __m128i = _mm_srli_epi16;
        shift_right_bytes_128(a: __m128i) -> __m128i = _mm_srli_si128;
        upper_half(a: __m256i) -> __m128i = _mm256_extracti128_si256;
        order_quarters(a: __m256i) -> __m256i = _mm256_permute4x64_epi64;
        join_halves(a: __m256i, b: __m256i) -> __m256i = _mm256_permute2x128_si256;
        join_halves_f32(a: __m256, b: __m256) -> __m256 = _mm256_permute2f128_ps;
        shuffle_f32(a: __m256, b: __m256) -> __m256 = _mm256_shuffle_ps;
    }

    /// 16 bytes.
    #[inline(always)]
    fn load_128(self, from: &[u8; 16]) -> __m128i {
        // SAFETY: a reference to 16 bytes is readable for as many, and this load needs no alignment.
        unsafe { _mm_loadu_si128(core::ptr::from_ref(from).cast()) }
    }

    /// 32 bytes.
    #[inline(always)]
    fn load_256(self, from: &[u8; 32]) -> __m256i {
        // SAFETY: as for `load_i16`.
        unsafe { _mm256_loadu_si256(core::ptr::from_ref(from).cast()) }
    }

    /// 16 integers.
    #[inline(always)]
    fn load_i16(self, from: &[i16; 16]) -> __m256i {
        // SAFETY: a reference to 32 bytes is readable for as many, and this load needs no alignment; AVX by the trait.
        unsafe { _mm256_loadu_si256(core::ptr::from_ref(from).cast()) }
    }

    /// 8 integers.
    #[inline(always)]
    fn load_i32(self, from: &[i32; 8]) -> __m256i {
        // SAFETY: as for `load_i16`.
        unsafe { _mm256_loadu_si256(core::ptr::from_ref(from).cast()) }
    }

    /// 8 numbers.
    #[inline(always)]
    fn load_f32(self, from: &[f32; 8]) -> __m256 {
        // SAFETY: as for `load_i16`.
        unsafe { _mm256_loadu_ps(from.as_ptr()) }
    }

    /// 8 numbers of which the upper 16 bits are given.
    #[inline(always)]
    fn upper_halves_to_f32(self, upper: __m128i) -> __m256 {
        self.as_f32(self.shift_left_i32::<16>(self.widen_u16(upper)))
    }

    /// 8 numbers.
    #[inline(always)]
    fn store_f32(self, from: __m256) -> [f32; 8] {
        let mut to = [0.0; 8];
        // SAFETY: an array of 32 bytes is writable for as many, and this store needs no alignment; AVX by the trait.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), from) }
        to
    }

    /// Asks for the cache line at `at` of `bytes`, or behind them, to be there soon: in the second level, for it is not next.
    #[inline(always)]
    fn prefetch(self, bytes: &[u8], at: usize) {
        // SAFETY: a prefetch reads nothing and fails nowhere, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(bytes.as_ptr().wrapping_add(at).cast()) }
    }

    /// The sum of the lanes of each of eight vectors.
    #[inline(always)]
    fn sums(self, of: [__m256i; 8]) -> __m256i {
        let [a, b, c, d, e, f, g, h] = of;
        let low = self.add_pairs_i32(self.add_pairs_i32(a, b), self.add_pairs_i32(c, d));
        let high = self.add_pairs_i32(self.add_pairs_i32(e, f), self.add_pairs_i32(g, h));
        self.add_i32(self.join_halves::<0x20>(low, high), self.join_halves::<0x31>(low, high))
    }

    /// Eight vectors of eight lanes, rows and columns exchanged.
    #[inline(always)]
    fn transpose(self, rows: [__m256; 8]) -> [__m256; 8] {
        let [a, b, c, d, e, f, g, h] = rows;
        let (ab0, ab1) = (self.interleave_low(a, b), self.interleave_high(a, b));
        let (cd0, cd1) = (self.interleave_low(c, d), self.interleave_high(c, d));
        let (ef0, ef1) = (self.interleave_low(e, f), self.interleave_high(e, f));
        let (gh0, gh1) = (self.interleave_low(g, h), self.interleave_high(g, h));
        let (abcd0, abcd1) = (self.shuffle_f32::<0x44>(ab0, cd0), self.shuffle_f32::<0xee>(ab0, cd0));
        let (abcd2, abcd3) = (self.shuffle_f32::<0x44>(ab1, cd1), self.shuffle_f32::<0xee>(ab1, cd1));
        let (efgh0, efgh1) = (self.shuffle_f32::<0x44>(ef0, gh0), self.shuffle_f32::<0xee>(ef0, gh0));
        let (efgh2, efgh3) = (self.shuffle_f32::<0x44>(ef1, gh1), self.shuffle_f32::<0xee>(ef1, gh1));
        [
            self.join_halves_f32::<0x20>(abcd0, efgh0),
            self.join_halves_f32::<0x20>(abcd1, efgh1),
            self.join_halves_f32::<0x20>(abcd2, efgh2),
            self.join_halves_f32::<0x20>(abcd3, efgh3),
            self.join_halves_f32::<0x31>(abcd0, efgh0),
            self.join_halves_f32::<0x31>(abcd1, efgh1),
            self.join_halves_f32::<0x31>(abcd2, efgh2),
            self.join_halves_f32::<0x31>(abcd3, efgh3),
        ]
    }
}

/// A processor with AVX2 and F16C.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// # Safety
    /// The processor has AVX2 and F16C.
    pub(super) const unsafe fn assume() -> Self {
        Self(())
    }
}

impl Lanes for Avx2 {
    #[inline(always)]
    fn dot_add(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        self.add_i32(sum, self.multiply_pairs(a, b))
    }

    #[inline(always)]
    fn spread(self, bits: u16, value: i16) -> __m256i {
        const BITS: [i16; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, i16::MIN];
        let each = self.load_i16(&BITS);
        let set = self.equal_i16(self.and(self.splat_i16(bits.cast_signed()), each), each);
        self.and(set, self.splat_i16(value))
    }
}

/// A processor with AVX-512 F, BW, VL and VNNI besides.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// # Safety
    /// The processor has AVX2, F16C and AVX-512 F, BW, VL and VNNI.
    pub(super) const unsafe fn assume() -> Self {
        Self(())
    }
}

impl Lanes for Avx512 {
    #[inline(always)]
    fn dot_add(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: an instruction of AVX-512 VNNI and VL, which a value of this type proves to be there.
        unsafe { _mm256_dpwssd_epi32(sum, a, b) }
    }

    #[inline(always)]
    fn spread(self, bits: u16, value: i16) -> __m256i {
        // SAFETY: an instruction of AVX-512 BW and VL, which a value of this type proves to be there.
        unsafe { _mm256_maskz_set1_epi16(bits, value) }
    }
}

impl<L: Lanes> Eight for L {
    type F32 = __m256;

    #[inline(always)]
    fn zero(self) -> __m256 {
        self.zero_f32()
    }

    #[inline(always)]
    fn load(self, from: &[f32; 8]) -> __m256 {
        self.load_f32(from)
    }

    #[inline(always)]
    fn load_f16(self, from: &[[u8; 2]; 8]) -> __m256 {
        self.halves_to_f32(self.load_128(from.as_flattened().first_chunk().unwrap_or(&[0; 16])))
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        self.add_f32(a, b)
    }

    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        self.mul_f32(a, b)
    }

    #[inline(always)]
    fn store(self, from: __m256) -> [f32; 8] {
        self.store_f32(from)
    }
}
