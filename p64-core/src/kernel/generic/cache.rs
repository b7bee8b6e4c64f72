//! Rows of keys and values as a cache keeps them: written once, read by every later position.
//!
//! ```text
//! F32    4 bytes an element     as computed
//! F16    2 bytes an element     rounded to 11 bits
//! Q8_0   34 bytes for 32        8-bit integers with an f16 step, as GGML's type of that name
//! ```
//!
//! What is computed with a row is what its `f32` values would give, bit for bit.
//!
//! Rows know their type as a table of functions: a program that makes rows of one type links no other's.
#![forbid(unsafe_code)]

use super::attention::Attention;
use super::grouped::{PART, Steps, VECTORS};
use crate::error::{Code, Error, Place, Result};
use crate::kernel::arch::{Eight, Task, dispatch};
use crate::kernel::exact::total;
use crate::quant::float::{from_f16, to_f16};
use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use zerocopy::{FromBytes, IntoBytes};

/// Elements of a Q8_0 block.
pub const BLOCK: usize = 32;

/// Bytes of a Q8_0 block.
pub const BLOCK_BYTES: usize = 34;

/// Rows of keys or values, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    codec: &'static dyn Codec,
}

impl<'a> Rows<'a> {
    /// Values.
    #[must_use]
    pub fn f32(rows: &'a [f32]) -> Self {
        Self { bytes: rows.as_bytes(), codec: F32 }
    }

    /// Little-endian halves.
    #[must_use]
    pub fn f16(rows: &'a [[u8; 2]]) -> Self {
        Self { bytes: rows.as_flattened(), codec: F16 }
    }

    /// Blocks of Q8_0.
    #[must_use]
    pub fn q8_0(rows: &'a [[u8; BLOCK_BYTES]]) -> Self {
        Self { bytes: rows.as_flattened(), codec: Q8_0 }
    }

    /// As they lie in memory.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// [`Attention::score`] for keys of this type.
    pub(super) fn score(
        &self,
        attention: &Attention,
        kv_head: usize,
        q: &[f32],
        visible: &Range<usize>,
        scores: &mut [f32],
        steps: Steps,
    ) -> Result<()> {
        self.codec.score(attention, kv_head, q, self.bytes, visible, scores, steps)
    }

    /// [`Attention::mix`] for values of this type.
    pub(super) fn mix(
        &self,
        attention: &Attention,
        kv_head: usize,
        shares: &[f32],
        visible: &Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        self.codec.mix(attention, kv_head, shares, self.bytes, visible, out)
    }

    /// [`Attention::mix_part`] for values of this type.
    pub(super) fn mix_part(
        &self,
        attention: &Attention,
        kv_head: usize,
        part: usize,
        shares: &[f32],
        visible: &Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        self.codec.mix_part(attention, kv_head, part, shares, self.bytes, visible, out)
    }
}

/// [`Codec`] of values as they are.
pub(crate) const F32: &dyn Codec = &Of::<f32>(PhantomData);
/// [`Codec`] of halves.
pub(crate) const F16: &dyn Codec = &Of::<[u8; 2]>(PhantomData);
/// [`Codec`] of blocks.
pub(crate) const Q8_0: &dyn Codec = &Of::<[u8; BLOCK_BYTES]>(PhantomData);

/// What is done with the elements of a type.
pub(crate) trait Codec: Sync {
    /// Writes elements from number `first` on; nothing where they do not fit.
    fn write(&self, bytes: &mut [u8], first: usize, elements: &[f32]);

    /// `len` elements from number `first` on; none where there are not so many.
    fn read<'a>(&self, bytes: &'a [u8], first: usize, len: usize) -> Rows<'a>;

    /// [`Attention::score`].
    #[allow(clippy::too_many_arguments, reason = "two inputs, a place in them, an output and its order")]
    fn score(
        &self,
        attention: &Attention,
        kv_head: usize,
        q: &[f32],
        keys: &[u8],
        visible: &Range<usize>,
        scores: &mut [f32],
        steps: Steps,
    ) -> Result<()>;

    /// [`Attention::mix`].
    fn mix(
        &self,
        attention: &Attention,
        kv_head: usize,
        shares: &[f32],
        values: &[u8],
        visible: &Range<usize>,
        out: &mut [f32],
    ) -> Result<()>;

    /// [`Attention::mix_part`].
    #[allow(clippy::too_many_arguments, reason = "three inputs, a place in them, an output")]
    fn mix_part(
        &self,
        attention: &Attention,
        kv_head: usize,
        part: usize,
        shares: &[f32],
        values: &[u8],
        visible: &Range<usize>,
        out: &mut [f32],
    ) -> Result<()>;
}

impl fmt::Debug for dyn Codec {
    /// The same for all: a type's name would be text in every firmware.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codec")
    }
}

/// The [`Codec`] of rows of `T`.
struct Of<T>(PhantomData<T>);

impl<T: Kept> Codec for Of<T> {
    fn write(&self, bytes: &mut [u8], first: usize, elements: &[f32]) {
        let range = first / T::ELEMENTS..first.saturating_add(elements.len()) / T::ELEMENTS;
        T::write(elements, T::of_mut(bytes).get_mut(range).unwrap_or_default());
    }

    fn read<'a>(&self, bytes: &'a [u8], first: usize, len: usize) -> Rows<'a> {
        let range = first / T::ELEMENTS..first.saturating_add(len) / T::ELEMENTS;
        let rows = T::of(bytes).get(range).unwrap_or_default();
        Rows { bytes: rows.as_bytes(), codec: T::CODEC }
    }

    fn score(
        &self,
        attention: &Attention,
        kv_head: usize,
        q: &[f32],
        keys: &[u8],
        visible: &Range<usize>,
        scores: &mut [f32],
        steps: Steps,
    ) -> Result<()> {
        dispatch(Score { attention, kv_head, q, keys: T::of(keys), visible, scores, steps })
    }

    fn mix(
        &self,
        attention: &Attention,
        kv_head: usize,
        shares: &[f32],
        values: &[u8],
        visible: &Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        dispatch(Mix { attention, kv_head, part: None, shares, values: T::of(values), visible, out })
    }

    fn mix_part(
        &self,
        attention: &Attention,
        kv_head: usize,
        part: usize,
        shares: &[f32],
        values: &[u8],
        visible: &Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        // Where nothing is done by parts, the rest is not linked.
        if !attention.by_parts() {
            return Err(Error::new(Code::PartialBlock, Place::File).values(PART as u64, attention.head_dim as u64));
        }
        dispatch(Mix { attention, kv_head, part: Some(part), shares, values: T::of(values), visible, out })
    }
}

/// [`Attention::score`] to come.
struct Score<'a, T> {
    attention: &'a Attention,
    kv_head: usize,
    q: &'a [f32],
    keys: &'a [T],
    visible: &'a Range<usize>,
    scores: &'a mut [f32],
    steps: Steps,
}

impl<T: Kept> Task for Score<'_, T> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<E: Eight>(self, e: E) -> Result<()> {
        self.attention.score(e, self.kv_head, self.q, self.keys, self.visible, self.scores, self.steps)
    }
}

/// [`Attention::mix`] or [`Attention::mix_part`] to come.
struct Mix<'a, T> {
    attention: &'a Attention,
    kv_head: usize,
    part: Option<usize>,
    shares: &'a [f32],
    values: &'a [T],
    visible: &'a Range<usize>,
    out: &'a mut [f32],
}

impl<T: Kept> Task for Mix<'_, T> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<E: Eight>(self, e: E) -> Result<()> {
        let Self { attention, kv_head, part, shares, values, visible, out } = self;
        match part {
            Some(part) => attention.mix_part(e, kv_head, part, shares, values, visible, out),
            None => attention.mix(e, kv_head, shares, values, visible, out),
        }
    }
}

/// How a type keeps its elements, and what attention does with them.
pub(super) trait Kept: Sized + IntoBytes + FromBytes + zerocopy::Immutable + Sync + 'static {
    /// Elements of one `Self`.
    const ELEMENTS: usize;

    /// Its functions.
    const CODEC: &'static dyn Codec;

    /// As many as make 32 elements.
    type Part;

    /// A row by parts; what is left over is left out.
    fn parts(row: &[Self]) -> &[Self::Part];

    /// The elements of a part.
    fn vectors<E: Eight>(e: E, part: &Self::Part) -> [E::F32; VECTORS];

    /// The whole ones at the front of `bytes`; none where they are not aligned.
    fn of(bytes: &[u8]) -> &[Self] {
        let len = bytes.len() / size_of::<Self>();
        <[Self]>::ref_from_prefix_with_elems(bytes, len).map(|(rows, _)| rows).unwrap_or_default()
    }

    /// [`Kept::of`], to be written to.
    fn of_mut(bytes: &mut [u8]) -> &mut [Self] {
        let len = bytes.len() / size_of::<Self>();
        <[Self]>::mut_from_prefix_with_elems(bytes, len).map(|(rows, _)| rows).unwrap_or_default()
    }

    /// Rounds values. Of the two, the shorter bounds how many are written.
    fn write(values: &[f32], out: &mut [Self]);

    /// The products of a head with a row of as many elements, summed in eight lanes.
    fn dot<E: Eight>(e: E, q: &[f32], row: &[Self]) -> [f32; LANES];

    /// `out += share * row`.
    fn add(share: f32, row: &[Self], out: &mut [f32]);
}

/// Partial sums of a dot product.
pub(super) const LANES: usize = 8;

impl Kept for f32 {
    const ELEMENTS: usize = 1;
    const CODEC: &'static dyn Codec = F32;
    type Part = [f32; PART];

    #[inline(always)]
    fn parts(row: &[f32]) -> &[[f32; PART]] {
        row.as_chunks().0
    }

    #[inline(always)]
    fn vectors<E: Eight>(e: E, part: &[f32; PART]) -> [E::F32; VECTORS] {
        let mut vectors = [e.zero(); VECTORS];
        for (vector, part) in vectors.iter_mut().zip(part.as_chunks().0) {
            *vector = e.load(part);
        }
        vectors
    }

    fn write(values: &[f32], out: &mut [f32]) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = *value;
        }
    }

    #[inline(always)]
    fn dot<E: Eight>(e: E, q: &[f32], row: &[f32]) -> [f32; LANES] {
        let mut sum = e.zero();
        let ((q, q_rest), (row, row_rest)) = (q.as_chunks::<LANES>(), row.as_chunks::<LANES>());
        for (q, row) in q.iter().zip(row) {
            sum = e.add(sum, e.mul(e.load(q), e.load(row)));
        }
        let mut sums = e.store(sum);
        for ((sum, q), value) in sums.iter_mut().zip(q_rest).zip(row_rest) {
            *sum += q * value;
        }
        sums
    }

    #[inline(always)]
    fn add(share: f32, row: &[f32], out: &mut [f32]) {
        for (out, value) in out.iter_mut().zip(row) {
            *out += share * value;
        }
    }
}

impl Kept for [u8; 2] {
    const ELEMENTS: usize = 1;
    const CODEC: &'static dyn Codec = F16;
    type Part = [[u8; 2]; PART];

    #[inline(always)]
    fn parts(row: &[[u8; 2]]) -> &[[[u8; 2]; PART]] {
        row.as_chunks().0
    }

    #[inline(always)]
    fn vectors<E: Eight>(e: E, part: &[[u8; 2]; PART]) -> [E::F32; VECTORS] {
        let mut vectors = [e.zero(); VECTORS];
        for (vector, part) in vectors.iter_mut().zip(part.as_chunks().0) {
            *vector = e.load_f16(part);
        }
        vectors
    }

    fn write(values: &[f32], out: &mut [[u8; 2]]) {
        write_f16(values, out);
    }

    #[inline(always)]
    fn dot<E: Eight>(e: E, q: &[f32], row: &[[u8; 2]]) -> [f32; LANES] {
        let mut sum = e.zero();
        let ((q, q_rest), (row, row_rest)) = (q.as_chunks::<LANES>(), row.as_chunks::<LANES>());
        for (q, row) in q.iter().zip(row) {
            sum = e.add(sum, e.mul(e.load(q), e.load_f16(row)));
        }
        let mut sums = e.store(sum);
        for ((sum, q), half) in sums.iter_mut().zip(q_rest).zip(row_rest) {
            *sum += q * from_f16(half);
        }
        sums
    }

    #[inline(always)]
    fn add(share: f32, row: &[[u8; 2]], out: &mut [f32]) {
        for (out, half) in out.iter_mut().zip(row) {
            *out += share * from_f16(half);
        }
    }
}

impl Kept for [u8; BLOCK_BYTES] {
    const ELEMENTS: usize = BLOCK;
    const CODEC: &'static dyn Codec = Q8_0;
    type Part = Self;

    #[inline(always)]
    fn parts(row: &[Self]) -> &[Self] {
        row
    }

    #[inline(always)]
    fn vectors<E: Eight>(e: E, part: &Self) -> [E::F32; VECTORS] {
        f32::vectors(e, &values(part))
    }

    fn write(values: &[f32], out: &mut [[u8; BLOCK_BYTES]]) {
        write_q8_0(values, out);
    }

    #[inline(always)]
    fn dot<E: Eight>(e: E, q: &[f32], row: &[[u8; BLOCK_BYTES]]) -> [f32; LANES] {
        let mut sum = e.zero();
        for (q, block) in q.as_chunks::<BLOCK>().0.iter().zip(row) {
            for (q, values) in q.as_chunks::<LANES>().0.iter().zip(values(block).as_chunks::<LANES>().0) {
                sum = e.add(sum, e.mul(e.load(q), e.load(values)));
            }
        }
        e.store(sum)
    }

    #[inline(always)]
    fn add(share: f32, row: &[[u8; BLOCK_BYTES]], out: &mut [f32]) {
        for (out, block) in out.as_chunks_mut::<BLOCK>().0.iter_mut().zip(row) {
            for (out, value) in out.iter_mut().zip(values(block)) {
                *out += share * value;
            }
        }
    }
}

/// The sum of the lanes of each of `N` products.
#[inline(always)]
pub(super) fn totals<const N: usize>(sums: &[[f32; LANES]; N]) -> [f32; N] {
    let mut totals = [0.0; N];
    for (sum, lanes) in totals.iter_mut().zip(sums) {
        *sum = total(*lanes);
    }
    totals
}

/// The values of a block.
#[inline(always)]
fn values(block: &[u8; BLOCK_BYTES]) -> [f32; BLOCK] {
    let [low, high, quants @ ..] = block;
    let step = from_f16(&[*low, *high]);
    quants.map(|quant| step * f32::from(quant.cast_signed()))
}

/// Rounds values to halves. Of the two, the shorter bounds how many are written.
pub fn write_f16(values: &[f32], out: &mut [[u8; 2]]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = to_f16(*value);
    }
}

/// Rounds values to blocks of 32: the step is a 127th of the block's largest magnitude. Of the two, the shorter bounds how
/// many are written. A value that is not finite makes its block's step NaN.
pub fn write_q8_0(values: &[f32], out: &mut [[u8; BLOCK_BYTES]]) {
    for (out, values) in out.iter_mut().zip(values.as_chunks::<BLOCK>().0) {
        *out = block(values);
    }
}

fn block(values: &[f32; BLOCK]) -> [u8; BLOCK_BYTES] {
    // `max` passes NaN over; a sum of products with zero does not.
    let poison = values.iter().fold(0.0f32, |sum, value| sum + value * 0.0);
    let largest = values.iter().fold(poison, |largest, value| largest.max(value.abs()));
    let step = largest / 127.0 + poison;
    let inverse = 127.0 / largest;
    let inverse = if inverse.is_finite() { inverse } else { 0.0 };
    let mut out = [0; BLOCK_BYTES];
    let (scale, quants) = out.split_at_mut(2);
    scale.copy_from_slice(&to_f16(step));
    for (quant, value) in quants.iter_mut().zip(values) {
        *quant = nearest(value * inverse).cast_unsigned();
    }
    out
}

/// The nearest integer of a value within +-127, ties to even; 0 for NaN.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::as_conversions,
    reason = "the magnitude was limited; the cast saturates"
)]
fn nearest(value: f32) -> i8 {
    // Adding 1.5 * 2^23 leaves no fraction bits, so the addition itself rounds.
    const SHIFT: f32 = 12_582_912.0;
    ((value + SHIFT) - SHIFT) as i8
}
