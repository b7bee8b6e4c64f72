//! Vectors with a row in each of sixteen lanes, as long as a level has them: one of 512 bits, two of 256.
//!
//! A lane of integers holds a quad: four bytes without sign, the weights of four neighbouring columns of its row.

use super::lanes::{Avx2, Avx512, Lanes};
use core::arch::x86_64::*;

/// Sixteen lanes of 32 bits. A value is proof of the instructions, as for [`Lanes`].
pub(super) trait Tall: Copy {
    /// Sixteen 32-bit integers, or a quad in each lane.
    type Ints: Copy;
    /// Sixteen numbers.
    type Floats: Copy;

    fn zeros(self) -> Self::Ints;
    fn splat_int(self, value: i32) -> Self::Ints;
    fn splat_float(self, value: f32) -> Self::Floats;
    /// A word of each row.
    fn words(self, from: &[u8; 64]) -> Self::Ints;
    /// A 16-bit word of each row.
    fn short_words(self, from: &[u8; 32]) -> Self::Ints;
    /// An f16 number of each row.
    fn halves(self, from: &[u8; 32]) -> Self::Floats;
    /// A bf16 number of each row.
    fn upper_halves(self, from: &[u8; 32]) -> Self::Floats;
    /// A number of each row.
    fn floats(self, from: &[u8; 64]) -> Self::Floats;
    fn load_floats(self, from: &[f32; 16]) -> Self::Floats;
    fn store_floats(self, from: Self::Floats) -> [f32; 16];
    fn and_bits(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    fn or_bits(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    fn xor_bits(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// 32-bit lanes to the right, zeros entering.
    fn right(self, a: Self::Ints, count: i32) -> Self::Ints;
    /// 32-bit lanes to the left.
    fn left(self, a: Self::Ints, count: i32) -> Self::Ints;
    /// 32-bit lanes to the right, the sign entering.
    fn signed_right(self, a: Self::Ints, count: i32) -> Self::Ints;
    /// Halves of lanes to the right, zeros entering.
    fn halves_right(self, a: Self::Ints, count: i32) -> Self::Ints;
    /// Halves of lanes to the left.
    fn halves_left(self, a: Self::Ints, count: i32) -> Self::Ints;
    /// `table[index]` for every byte of `index`, which is below 16.
    fn look_up(self, table: &[u8; 16], index: Self::Ints) -> Self::Ints;
    /// The bytes of every lane: those of its own that `order` names.
    fn order_bytes(self, a: Self::Ints, order: [u8; 4]) -> Self::Ints;
    /// The bytes of `a`, `value` added to those where `bits` has the one bit that `mask` has. They have no bit of `value` yet.
    fn raise(self, a: Self::Ints, bits: Self::Ints, mask: Self::Ints, value: Self::Ints) -> Self::Ints;
    fn add_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    fn sub_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// Activations of four columns, no farther from zero than 32639, as [`Tall::dot_quads`] takes them.
    fn quad(self, x: [i16; 4]) -> [i32; 2];
    /// Adds the products of four columns to two sums that [`Tall::total`] puts together. `low` and `high` are what
    /// [`Tall::quad`] made of the activations, in its order.
    fn dot_quads(self, sums: [Self::Ints; 2], w: Self::Ints, low: i32, high: i32) -> [Self::Ints; 2];
    /// The sum of all products.
    fn total(self, sums: [Self::Ints; 2]) -> Self::Ints;
    fn to_floats(self, a: Self::Ints) -> Self::Floats;
    fn add_floats(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn sub_floats(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn mul_floats(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
}

/// An order of bytes within each of four lanes.
#[inline(always)]
const fn in_each_lane([a, b, c, d]: [u8; 4]) -> [u8; 16] {
    [a, b, c, d, a + 4, b + 4, c + 4, d + 4, a + 8, b + 8, c + 8, d + 8, a + 12, b + 12, c + 12, d + 12]
}

/// Methods of [`Avx512`] that are one instruction.
macro_rules! op {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty = $intrinsic:ident;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($arg: $type),*) -> $result {
                // SAFETY: an instruction of AVX-512 F, BW or VNNI, which a value of this type proves to be there.
                unsafe { $intrinsic($($arg),*) }
            }
        )*
    };
}

/// Methods of [`Avx512`] that shift all lanes by as much; of a count that is known, the compiler makes an immediate.
macro_rules! shift {
    ($($name:ident = $intrinsic:ident;)*) => {
        $(
            #[inline(always)]
            fn $name(self, a: __m512i, count: i32) -> __m512i {
                // SAFETY: an instruction of AVX-512 F or BW, which a value of this type proves to be there.
                unsafe { $intrinsic(a, Lanes::count(self, count)) }
            }
        )*
    };
}

impl Tall for Avx512 {
    type Ints = __m512i;
    type Floats = __m512;

    op! {
        zeros() -> __m512i = _mm512_setzero_si512;
        splat_int(value: i32) -> __m512i = _mm512_set1_epi32;
        splat_float(value: f32) -> __m512 = _mm512_set1_ps;
        and_bits(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512;
        or_bits(a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512;
        xor_bits(a: __m512i, b: __m512i) -> __m512i = _mm512_xor_si512;
        add_ints(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32;
        sub_ints(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi32;
        to_floats(a: __m512i) -> __m512 = _mm512_cvtepi32_ps;
        add_floats(a: __m512, b: __m512) -> __m512 = _mm512_add_ps;
        sub_floats(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps;
        mul_floats(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps;
    }

    shift! {
        right = _mm512_srl_epi32;
        left = _mm512_sll_epi32;
        signed_right = _mm512_sra_epi32;
        halves_right = _mm512_srl_epi16;
        halves_left = _mm512_sll_epi16;
    }

    /// The lower bytes, from -128 to 127, and what is left for the upper ones, in words: the products of bytes with each are
    /// summed apart.
    #[inline(always)]
    fn quad(self, x: [i16; 4]) -> [i32; 2] {
        let [a, b, c, d] = x;
        let low = |x: i16| x.to_le_bytes()[0];
        let high = |x: i16| x.wrapping_add(128).to_le_bytes()[1];
        [i32::from_le_bytes([low(a), low(b), low(c), low(d)]), i32::from_le_bytes([high(a), high(b), high(c), high(d)])]
    }

    #[inline(always)]
    fn dot_quads(self, sums: [__m512i; 2], w: __m512i, low: i32, high: i32) -> [__m512i; 2] {
        [self.dot_bytes(sums[0], w, self.splat_int(low)), self.dot_bytes(sums[1], w, self.splat_int(high))]
    }

    #[inline(always)]
    fn total(self, [low, high]: [__m512i; 2]) -> __m512i {
        self.add_ints(low, self.left(high, 8))
    }

    #[inline(always)]
    fn order_bytes(self, a: __m512i, order: [u8; 4]) -> __m512i {
        self.shuffle(a, self.repeat(self.load_128(&in_each_lane(order))))
    }

    #[inline(always)]
    fn raise(self, a: __m512i, bits: __m512i, mask: __m512i, value: __m512i) -> __m512i {
        self.add_where(a, self.have_bits(bits, mask), a, value)
    }

    #[inline(always)]
    fn words(self, from: &[u8; 64]) -> __m512i {
        // SAFETY: a reference to 64 bytes is readable for as many, and this load needs no alignment; AVX-512 by the type.
        unsafe { _mm512_loadu_si512(core::ptr::from_ref(from).cast()) }
    }

    #[inline(always)]
    fn short_words(self, from: &[u8; 32]) -> __m512i {
        self.widen(self.load_256(from))
    }

    #[inline(always)]
    fn halves(self, from: &[u8; 32]) -> __m512 {
        self.halves_to_floats(self.load_256(from))
    }

    #[inline(always)]
    fn upper_halves(self, from: &[u8; 32]) -> __m512 {
        let words = self.left(self.short_words(from), 16);
        // SAFETY: no instruction at all.
        unsafe { _mm512_castsi512_ps(words) }
    }

    #[inline(always)]
    fn floats(self, from: &[u8; 64]) -> __m512 {
        // SAFETY: as for `words`.
        unsafe { _mm512_loadu_ps(core::ptr::from_ref(from).cast()) }
    }

    #[inline(always)]
    fn load_floats(self, from: &[f32; 16]) -> __m512 {
        // SAFETY: as for `words`.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn store_floats(self, from: __m512) -> [f32; 16] {
        let mut to = [0.0; 16];
        // SAFETY: an array of 64 bytes is writable for as many, and this store needs no alignment; AVX-512 by the type.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), from) }
        to
    }

    #[inline(always)]
    fn look_up(self, table: &[u8; 16], index: __m512i) -> __m512i {
        self.shuffle(self.repeat(self.load_128(table)), index)
    }
}

impl Avx512 {
    op! {
        dot_bytes(sum: __m512i, a: __m512i, b: __m512i) -> __m512i = _mm512_dpbusd_epi32;
        shuffle(a: __m512i, order: __m512i) -> __m512i = _mm512_shuffle_epi8;
        repeat(a: __m128i) -> __m512i = _mm512_broadcast_i32x4;
        have_bits(a: __m512i, bits: __m512i) -> __mmask64 = _mm512_test_epi8_mask;
        add_where(other: __m512i, mask: __mmask64, a: __m512i, b: __m512i) -> __m512i = _mm512_mask_add_epi8;
        widen(a: __m256i) -> __m512i = _mm512_cvtepu16_epi32;
        halves_to_floats(a: __m256i) -> __m512 = _mm512_cvtph_ps;
    }
}

/// Methods of [`Avx2`] that are one instruction for each half.
macro_rules! both {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty = $method:ident;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($arg: [$type; 2]),*) -> [$result; 2] {
                [self.$method($($arg[0]),*), self.$method($($arg[1]),*)]
            }
        )*
    };
}

/// Methods of [`Avx2`] that shift all lanes of both halves by as much.
macro_rules! shift_both {
    ($($name:ident = $intrinsic:ident;)*) => {
        $(
            #[inline(always)]
            fn $name(self, a: [__m256i; 2], count: i32) -> [__m256i; 2] {
                // SAFETY: an instruction of AVX2, which a value of this type proves to be there.
                [unsafe { $intrinsic(a[0], Lanes::count(self, count)) }, unsafe { $intrinsic(a[1], Lanes::count(self, count)) }]
            }
        )*
    };
}

impl Tall for Avx2 {
    type Ints = [__m256i; 2];
    type Floats = [__m256; 2];

    both! {
        and_bits(a: __m256i, b: __m256i) -> __m256i = and;
        or_bits(a: __m256i, b: __m256i) -> __m256i = or;
        xor_bits(a: __m256i, b: __m256i) -> __m256i = xor;
        add_ints(a: __m256i, b: __m256i) -> __m256i = add_i32;
        sub_ints(a: __m256i, b: __m256i) -> __m256i = sub_i32;
        to_floats(a: __m256i) -> __m256 = to_f32;
        add_floats(a: __m256, b: __m256) -> __m256 = add_f32;
        sub_floats(a: __m256, b: __m256) -> __m256 = sub_f32;
        mul_floats(a: __m256, b: __m256) -> __m256 = mul_f32;
    }

    shift_both! {
        right = _mm256_srl_epi32;
        left = _mm256_sll_epi32;
        signed_right = _mm256_sra_epi32;
        halves_right = _mm256_srl_epi16;
        halves_left = _mm256_sll_epi16;
    }

    #[inline(always)]
    fn zeros(self) -> [__m256i; 2] {
        [self.zero_i32(); 2]
    }

    #[inline(always)]
    fn splat_int(self, value: i32) -> [__m256i; 2] {
        [self.splat_i32(value); 2]
    }

    #[inline(always)]
    fn splat_float(self, value: f32) -> [__m256; 2] {
        [self.splat_f32(value); 2]
    }

    #[inline(always)]
    fn words(self, from: &[u8; 64]) -> [__m256i; 2] {
        let ([low, high], _) = from.as_chunks::<32>() else { return [self.zero_i32(); 2] };
        [self.load_256(low), self.load_256(high)]
    }

    #[inline(always)]
    fn short_words(self, from: &[u8; 32]) -> [__m256i; 2] {
        let [low, high] = self.two(from);
        [self.widen_u16(low), self.widen_u16(high)]
    }

    #[inline(always)]
    fn halves(self, from: &[u8; 32]) -> [__m256; 2] {
        let [low, high] = self.two(from);
        [self.halves_to_f32(low), self.halves_to_f32(high)]
    }

    #[inline(always)]
    fn upper_halves(self, from: &[u8; 32]) -> [__m256; 2] {
        let [low, high] = self.two(from);
        [self.upper_halves_to_f32(low), self.upper_halves_to_f32(high)]
    }

    #[inline(always)]
    fn floats(self, from: &[u8; 64]) -> [__m256; 2] {
        let [low, high] = self.words(from);
        [self.as_f32(low), self.as_f32(high)]
    }

    #[inline(always)]
    fn load_floats(self, from: &[f32; 16]) -> [__m256; 2] {
        let ([low, high], _) = from.as_chunks::<8>() else { return [self.zero_f32(); 2] };
        [self.load_f32(low), self.load_f32(high)]
    }

    #[inline(always)]
    fn store_floats(self, [low, high]: [__m256; 2]) -> [f32; 16] {
        let mut to = [0.0; 16];
        let (first, last) = to.split_at_mut(8);
        first.copy_from_slice(&self.store_f32(low));
        last.copy_from_slice(&self.store_f32(high));
        to
    }

    /// The even ones and the odd ones, in pairs.
    #[inline(always)]
    fn quad(self, [a, b, c, d]: [i16; 4]) -> [i32; 2] {
        let join = |low: i16, high: i16| i32::from(low.cast_unsigned()) | i32::from(high) << 16;
        [join(a, c), join(b, d)]
    }

    #[inline(always)]
    fn dot_quads(self, [even, odd]: [[__m256i; 2]; 2], w: [__m256i; 2], first: i32, second: i32) -> [[__m256i; 2]; 2] {
        let (low_bytes, pairs) = (self.splat_i16(0xff), [self.splat_i32(first), self.splat_i32(second)]);
        [
            [
                self.dot_add(even[0], self.and(w[0], low_bytes), pairs[0]),
                self.dot_add(even[1], self.and(w[1], low_bytes), pairs[0]),
            ],
            [
                self.dot_add(odd[0], self.shift_right_i16::<8>(w[0]), pairs[1]),
                self.dot_add(odd[1], self.shift_right_i16::<8>(w[1]), pairs[1]),
            ],
        ]
    }

    #[inline(always)]
    fn total(self, [even, odd]: [[__m256i; 2]; 2]) -> [__m256i; 2] {
        self.add_ints(even, odd)
    }

    #[inline(always)]
    fn order_bytes(self, [low, high]: [__m256i; 2], order: [u8; 4]) -> [__m256i; 2] {
        let order = self.repeat_128(self.load_128(&in_each_lane(order)));
        [self.shuffle_bytes(low, order), self.shuffle_bytes(high, order)]
    }

    #[inline(always)]
    fn raise(self, a: [__m256i; 2], bits: [__m256i; 2], mask: [__m256i; 2], value: [__m256i; 2]) -> [__m256i; 2] {
        // Each byte of `mask` has one bit.
        let common = self.and_bits(bits, mask);
        let set = [self.equal_i8(common[0], mask[0]), self.equal_i8(common[1], mask[1])];
        self.or_bits(a, self.and_bits(set, value))
    }

    #[inline(always)]
    fn look_up(self, table: &[u8; 16], [low, high]: [__m256i; 2]) -> [__m256i; 2] {
        let table = self.repeat_128(self.load_128(table));
        [self.shuffle_bytes(table, low), self.shuffle_bytes(table, high)]
    }
}

impl Avx2 {
    /// The halves of 32 bytes.
    #[inline(always)]
    fn two(self, from: &[u8; 32]) -> [__m128i; 2] {
        let ([low, high], _) = from.as_chunks::<16>() else { return [self.low_half(self.zero_i32()); 2] };
        [self.load_128(low), self.load_128(high)]
    }
}
