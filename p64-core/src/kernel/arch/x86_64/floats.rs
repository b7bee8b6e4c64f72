//! Products with weights that are floating-point numbers, on eight lanes as the portable kernel sums them.

use super::super::Eight;
use super::lanes::Lanes;
use crate::kernel::Matrix;
use crate::kernel::exact::total;
use crate::quant::float::{from_bf16, from_f16, from_f32};
use core::arch::x86_64::__m256;

/// Rows that are computed together.
const ROWS: usize = 4;

/// Lanes, and elements that are loaded at once.
const LANES: usize = 8;

/// Weights of `BYTES` bytes each.
pub(super) trait Float<const BYTES: usize> {
    /// Eight numbers.
    fn load<L: Lanes>(l: L, bytes: &[[u8; BYTES]; LANES]) -> __m256;

    /// One number.
    fn decode(bytes: &[u8; BYTES]) -> f32;
}

pub(super) struct F32;
pub(super) struct F16;
pub(super) struct BF16;

impl Float<4> for F32 {
    #[inline(always)]
    fn load<L: Lanes>(l: L, bytes: &[[u8; 4]; LANES]) -> __m256 {
        l.load_f32(&bytes.map(f32::from_le_bytes))
    }

    #[inline(always)]
    fn decode(bytes: &[u8; 4]) -> f32 {
        from_f32(bytes)
    }
}

impl Float<2> for F16 {
    #[inline(always)]
    fn load<L: Lanes>(l: L, bytes: &[[u8; 2]; LANES]) -> __m256 {
        l.load_f16(bytes)
    }

    #[inline(always)]
    fn decode(bytes: &[u8; 2]) -> f32 {
        from_f16(bytes)
    }
}

impl Float<2> for BF16 {
    #[inline(always)]
    fn load<L: Lanes>(l: L, bytes: &[[u8; 2]; LANES]) -> __m256 {
        l.upper_halves_to_f32(l.load_128(bytes.as_flattened().first_chunk().unwrap_or(&[0; 16])))
    }

    #[inline(always)]
    fn decode(bytes: &[u8; 2]) -> f32 {
        from_bf16(bytes)
    }
}

/// `out[r][p] = sum over c of W[first + r][c] * x[p][c]` for `n` positions.
#[inline(always)]
pub(super) fn product<L: Lanes, F: Float<BYTES>, const BYTES: usize>(
    l: L,
    w: &Matrix<'_>,
    first: usize,
    x: &[f32],
    n: usize,
    out: &mut [f32],
) {
    if w.cols() == 0 || n == 0 {
        return out.fill(0.0);
    }
    for (out, first) in out.chunks_mut(n * ROWS).zip((first..).step_by(ROWS)) {
        let mut rows = [&[[0; BYTES]][..0]; ROWS];
        for (r, row) in rows.iter_mut().enumerate() {
            // Where there are fewer rows, the last one stands for those that are missing.
            let bytes = w.row(first + r.min(out.len() / n - 1)).as_chunks::<BYTES>().0;
            *row = &bytes[..w.cols()];
        }
        let mut p = 0;
        while p < n {
            if n - p >= 4 {
                tile::<_, F, BYTES, 4>(l, &rows, x, p, n, out);
                p += 4;
            } else {
                tile::<_, F, BYTES, 1>(l, &rows, x, p, n, out);
                p += 1;
            }
        }
    }
}

/// Four rows and `P` positions.
#[inline(always)]
fn tile<L: Lanes, F: Float<BYTES>, const BYTES: usize, const P: usize>(
    l: L,
    rows: &[&[[u8; BYTES]]; ROWS],
    x: &[f32],
    p: usize,
    n: usize,
    out: &mut [f32],
) {
    let cols = rows[0].len();
    let mut positions = [&x[..0]; P];
    for (i, position) in positions.iter_mut().enumerate() {
        *position = &x[(p + i) * cols..][..cols];
    }
    let mut sums = [[l.zero_f32(); P]; ROWS];
    let whole = cols / LANES;
    for i in 0..whole {
        let mut loaded = [l.zero_f32(); P];
        for (loaded, position) in loaded.iter_mut().zip(&positions) {
            if let Some(x) = position[i * LANES..].first_chunk::<LANES>() {
                *loaded = l.load_f32(x);
            }
        }
        for (sums, row) in sums.iter_mut().zip(rows) {
            if let Some(weights) = row[i * LANES..].first_chunk::<LANES>() {
                let weights = F::load(l, weights);
                for (sum, x) in sums.iter_mut().zip(&loaded) {
                    *sum = l.add_f32(*sum, l.mul_f32(weights, *x));
                }
            }
        }
    }
    for ((sums, row), out) in sums.iter().zip(rows).zip(out.chunks_exact_mut(n)) {
        for ((sum, x), out) in sums.iter().zip(&positions).zip(&mut out[p..]) {
            let mut lanes = l.store_f32(*sum);
            for ((lane, weight), x) in lanes.iter_mut().zip(&row[whole * LANES..]).zip(&x[whole * LANES..]) {
                *lane += F::decode(weight) * x;
            }
            *out = total(lanes);
        }
    }
}
