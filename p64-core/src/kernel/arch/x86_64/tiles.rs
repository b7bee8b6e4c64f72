//! The product with rows that are side by side in memory: a row in each lane, from the load to the result.
//!
//! Columns stand in quads: a word of a block has the integers of four, or bits of theirs, and a lane of a vector has them as bytes.
//! The activations are put in the order that their products need first.

mod floats;
mod many;
mod quads;
mod super_blocks;

pub(super) use floats::{Column, product};
pub(super) use many::gemm;

use super::tall::Tall;
use crate::kernel::Matrix;
use crate::quant::tile::ROWS;
use crate::quant::{ActivationBlock, Packed};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// Groups of 32 columns whose activations are put in order at once: 11 KiB on the stack, which are made zero in each call.
const SHORT: usize = 128;

/// The same for longer rows, 43 KiB. A tile that is read in one go is followed in memory by the next; in parts, each of them begins a
/// stream of its own, which made rows of 14,336 columns a quarter slower than such of 4,096.
const LONG: usize = 512;

/// A block format whose tiles vectors can read.
pub(super) trait Tiles<const BYTES: usize, const GROUPS: usize, const S: usize>:
    Packed<BYTES, GROUPS, S>
{
    /// The halves of sixteen rows' blocks.
    type Halves: FromBytes + Immutable + KnownLayout + Unaligned;

    /// Their words.
    type Words: FromBytes + Immutable + KnownLayout + Unaligned;

    /// What the integers of [`Tiles::quads`] are above those of `unpack`.
    const OFFSET: i32;

    /// What becomes of the format's minima.
    const MINS: Mins;

    /// The integers of a group, four columns to a lane.
    fn quads<T: Tall>(t: T, words: &Self::Words, group: usize) -> [T::Ints; 8];

    /// The factors of all groups.
    fn factors<T: Tall>(t: T, halves: &Self::Halves, words: &Self::Words) -> Factors<T::Floats, GROUPS, S>;
}

/// Minima of a format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mins {
    /// There are none.
    None,
    /// They are subtracted.
    Subtracted,
    /// They are stored with their sign turned, and added.
    Added,
}

/// What the integers of sixteen rows are multiplied with, and their minima, by group and half.
pub(super) struct Factors<F, const GROUPS: usize, const S: usize> {
    pub scales: [[F; S]; GROUPS],
    /// Of a format without minima: anything.
    pub mins: [[F; S]; GROUPS],
}

/// The activations of 32 columns, as [`Tall::dot_quads`] takes them. What is multiplied with a vector lies by itself, so that
/// the vector is loaded from here: through a register it would take two instructions more.
#[derive(Clone, Copy)]
struct Ordered {
    /// Both parts of the quads.
    quads: [[i32; 8]; 2],
    scale: f32,
    /// Sums of the halves, times the format's offset; the first is that of the whole where there is one scale.
    offsets: [i32; 2],
    /// The same sums by themselves.
    totals: [f32; 2],
}

impl Ordered {
    const ZERO: Self = Self { quads: [[0; 8]; 2], scale: 0.0, offsets: [0; 2], totals: [0.0; 2] };

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "one rounding, that of the portable kernel")]
    fn of<T: Tall, const S: usize>(t: T, x: &ActivationBlock, offset: i32) -> Self {
        let mut ordered = Self { scale: x.scale, ..Self::ZERO };
        for (q, x) in x.quants.as_chunks::<4>().0.iter().enumerate() {
            [ordered.quads[0][q], ordered.quads[1][q]] = t.quad(*x);
        }
        let [first, last] = x.sums;
        let totals = if S == 1 { [first + last, 0] } else { [first, last] };
        ordered.offsets = totals.map(|total| offset * total);
        ordered.totals = totals.map(|total| total as f32);
        ordered
    }
}

/// `out[r] = sum over c of W[first + r][c] * x[c]`: one position.
#[inline(always)]
pub(super) fn gemv<T, F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    t: T,
    w: &Matrix<'_>,
    first: usize,
    x: &[ActivationBlock],
    out: &mut [f32],
) where
    T: Tall,
    F: Tiles<BYTES, GROUPS, S>,
{
    if x.len() <= SHORT {
        by_panels::<_, F, BYTES, GROUPS, S, SHORT>(t, w, first, x, out);
    } else {
        by_panels::<_, F, BYTES, GROUPS, S, LONG>(t, w, first, x, out);
    }
}

/// [`gemv`] with the activations of so many groups in order at once.
#[inline(always)]
fn by_panels<T, F, const BYTES: usize, const GROUPS: usize, const S: usize, const PANEL: usize>(
    t: T,
    w: &Matrix<'_>,
    first: usize,
    x: &[ActivationBlock],
    out: &mut [f32],
) where
    T: Tall,
    F: Tiles<BYTES, GROUPS, S>,
{
    let blocks = x.len() / GROUPS;
    out.fill(0.0);
    let mut panel = [Ordered::ZERO; PANEL];
    for (start, x) in (0..).step_by(PANEL / GROUPS).zip(x.chunks(PANEL)) {
        for (ordered, x) in panel.iter_mut().zip(x) {
            *ordered = Ordered::of::<_, S>(t, x, F::OFFSET);
        }
        let panel = panel[..x.len()].as_chunks::<GROUPS>().0;
        // The first and the last tile may be there in part only.
        let (mut row, mut rest) = (first, &mut *out);
        while !rest.is_empty() {
            let (tile, lane) = (row / ROWS, row % ROWS);
            let (now, later) = rest.split_at_mut((ROWS - lane).min(rest.len()));
            let Ok((pairs, last)) =
                <[Blocks<F::Halves, F::Words, 2>]>::ref_from_prefix_with_elems(w.tile(tile), blocks / 2)
            else {
                return;
            };
            let mut sums = [0.0; ROWS];
            sums[lane..][..now.len()].copy_from_slice(now);
            // A panel begins with a pair.
            let sums = sum::<_, F, BYTES, GROUPS, S>(t, &pairs[start / 2..], last, panel, sums);
            now.copy_from_slice(&sums[lane..][..now.len()]);
            (row, rest) = (row + now.len(), later);
        }
    }
}

/// Neighbouring blocks of sixteen rows.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Blocks<H, W, const N: usize> {
    halves: [H; N],
    words: [W; N],
}

/// The sums of a tile's rows over the columns of a panel, added to `sums`. `last` is what stands behind all pairs: a block where
/// there is an odd one.
#[inline(always)]
fn sum<T, F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    t: T,
    pairs: &[Blocks<F::Halves, F::Words, 2>],
    last: &[u8],
    panel: &[[Ordered; GROUPS]],
    sums: [f32; ROWS],
) -> [f32; ROWS]
where
    T: Tall,
    F: Tiles<BYTES, GROUPS, S>,
{
    let mut sum = t.load_floats(&sums);
    let (panels, rest) = panel.as_chunks::<2>();
    for (pair, x) in pairs.iter().zip(panels) {
        for (i, x) in x.iter().enumerate() {
            sum = block::<_, F, BYTES, GROUPS, S>(t, &pair.halves[i], &pair.words[i], x, sum);
        }
    }
    if let ([x], Ok(last)) = (rest, Blocks::<F::Halves, F::Words, 1>::ref_from_bytes(last)) {
        sum = block::<_, F, BYTES, GROUPS, S>(t, &last.halves[0], &last.words[0], x, sum);
    }
    t.store_floats(sum)
}

/// Adds the products of a block of each row.
#[inline(always)]
fn block<T, F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    t: T,
    halves: &F::Halves,
    words: &F::Words,
    x: &[Ordered; GROUPS],
    mut sum: T::Floats,
) -> T::Floats
where
    T: Tall,
    F: Tiles<BYTES, GROUPS, S>,
{
    let factors = F::factors(t, halves, words);
    for (g, x) in x.iter().enumerate() {
        let quads = F::quads(t, words, g);
        sum = group::<_, F, BYTES, GROUPS, S>(t, &factors, &quads, g, x, sum);
    }
    sum
}

/// Adds the products of a group of each row.
#[inline(always)]
fn group<T, F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    t: T,
    factors: &Factors<T::Floats, GROUPS, S>,
    quads: &[T::Ints; 8],
    g: usize,
    x: &Ordered,
    sum: T::Floats,
) -> T::Floats
where
    T: Tall,
    F: Tiles<BYTES, GROUPS, S>,
{
    let zeros = [t.zeros(); 2];
    let term = if S == 1 {
        let dots = four::<_, 4>(t, four::<_, 0>(t, zeros, quads, x), quads, x);
        part::<_, F, BYTES, GROUPS, S>(t, factors, g, 0, dots, x)
    } else {
        let dots = [four::<_, 0>(t, zeros, quads, x), four::<_, 4>(t, zeros, quads, x)];
        let first = part::<_, F, BYTES, GROUPS, S>(t, factors, g, 0, dots[0], x);
        t.add_floats(first, part::<_, F, BYTES, GROUPS, S>(t, factors, g, S - 1, dots[1], x))
    };
    t.add_floats(sum, t.mul_floats(t.splat_float(x.scale), term))
}

/// The products of four quads, the first of them `FIRST`. Written out: of a loop the compiler keeps the quads in memory.
#[inline(always)]
fn four<T: Tall, const FIRST: usize>(t: T, sums: [T::Ints; 2], w: &[T::Ints; 8], x: &Ordered) -> [T::Ints; 2] {
    let [low, high] = &x.quads;
    let sums = t.dot_quads(sums, w[FIRST], low[FIRST], high[FIRST]);
    let sums = t.dot_quads(sums, w[FIRST + 1], low[FIRST + 1], high[FIRST + 1]);
    let sums = t.dot_quads(sums, w[FIRST + 2], low[FIRST + 2], high[FIRST + 2]);
    t.dot_quads(sums, w[FIRST + 3], low[FIRST + 3], high[FIRST + 3])
}

/// `scale * (sum of products) - min * total` of a group, or of half of one.
#[inline(always)]
fn part<T, F, const BYTES: usize, const GROUPS: usize, const S: usize>(
    t: T,
    factors: &Factors<T::Floats, GROUPS, S>,
    g: usize,
    h: usize,
    sums: [T::Ints; 2],
    x: &Ordered,
) -> T::Floats
where
    T: Tall,
    F: Tiles<BYTES, GROUPS, S>,
{
    let mut dots = t.total(sums);
    if F::OFFSET != 0 {
        dots = t.sub_ints(dots, t.splat_int(x.offsets[h]));
    }
    let product = t.mul_floats(factors.scales[g][h], t.to_floats(dots));
    let min = t.mul_floats(factors.mins[g][h], t.splat_float(x.totals[h]));
    match F::MINS {
        Mins::None => product,
        Mins::Subtracted => t.sub_floats(product, min),
        Mins::Added => t.add_floats(product, min),
    }
}
