//! Kernels for x86-64.
//!
//! ```text
//! detect    which instructions there are: CPUID and XGETBV
//! lanes     instructions as safe methods of values that prove the processor has them
//! formats   blocks of each element type as vectors of integers and factors
//! gemv      one position: eight rows side by side
//! wide      vectors with a position in each lane
//! gemm      many positions
//! floats    weights that are no blocks
//! tall      vectors with a row in each lane
//! tiles     one position, weights with sixteen rows side by side
//! ```
//!
//! Sums and products are rounded in the order of the portable kernels, without fused multiplications, so that every level gives
//! the same bits.

mod detect;
mod floats;
mod formats;
mod gemm;
mod gemv;
mod lanes;
mod tall;
mod tiles;
mod wide;

pub(in super::super) use detect::{allowed, cap, found};

use super::super::{ExactRows, Level, Matrix, QuantizedRows, Rows, quantized};
use super::{Portable, Task};
use crate::layout::dtype::DType;
use crate::quant::ActivationBlock;
use crate::quant::{iq4_nl, iq4_xs, q2_k, q3_k, q4_0, q4_1, q4_k, q4_k_soa, q5_0, q5_1, q5_k, q6_k, q8_0};
use floats::{BF16, F16, F32, Float};
use formats::Vectors;
use lanes::{Avx2, Avx512};
use tiles::{Column, Tiles};

/// Does portable work with the best instructions that may be used.
pub(in super::super) fn dispatch<T: Task>(task: T) -> T::Output {
    match Level::current() {
        Level::Scalar => task.run(Portable),
        // SAFETY: the current level is never above the one that was found.
        Level::Avx2 => unsafe { avx2(task) },
        // SAFETY: as above.
        Level::Avx512 => unsafe { avx512(task) },
    }
}

#[target_feature(enable = "avx2,f16c")]
fn avx2<T: Task>(task: T) -> T::Output {
    // SAFETY: this function's features are those.
    task.run(unsafe { Avx2::assume() })
}

#[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn avx512<T: Task>(task: T) -> T::Output {
    // SAFETY: this function's features are those.
    task.run(unsafe { Avx512::assume() })
}

/// Positions from which on [`gemm`] is faster than [`gemv`] for each.
const GEMM: usize = 12;

/// Makes the table of a level, for a type of [`lanes`], the lanes of its longest vectors and its features.
macro_rules! level {
    ($name:ident, $level:ident, $lanes:literal, $features:literal) => {
        pub(in super::super) mod $name {
            use super::*;

            /// The kernels of a type. Types without vectors of their own have the portable ones, and so have all on a processor
            /// without the level.
            pub fn rows(dtype: DType) -> Option<Rows> {
                if Level::detect() < Level::$level {
                    return quantized::rows(dtype);
                }
                let rows: QuantizedRows = match dtype {
                    DType::F32 => return Some(Rows::Exact(exact::<F32, 4> as ExactRows)),
                    DType::F16 => return Some(Rows::Exact(exact::<F16, 2> as ExactRows)),
                    DType::BF16 => return Some(Rows::Exact(exact::<BF16, 2> as ExactRows)),
                    DType::Q4_0 => vectors::<q4_0::Format, _, _, _>,
                    DType::Q4_1 => vectors::<q4_1::Format, _, _, _>,
                    DType::Q5_0 => vectors::<q5_0::Format, _, _, _>,
                    DType::Q5_1 => vectors::<q5_1::Format, _, _, _>,
                    DType::Q8_0 => vectors::<q8_0::Format, _, _, _>,
                    DType::Q4_K => vectors::<q4_k::Format, _, _, _>,
                    DType::Q5_K => vectors::<q5_k::Format, _, _, _>,
                    DType::Q6_K => vectors::<q6_k::Format, _, _, _>,
                    DType::Q4KSoa => vectors::<q4_k_soa::Format, _, _, _>,
                    DType::IQ4_NL => vectors::<iq4_nl::Format, _, _, _>,
                    DType::Q2_K => vectors::<q2_k::Format, _, _, _>,
                    DType::Q3_K => vectors::<q3_k::Format, _, _, _>,
                    DType::IQ4_XS => vectors::<iq4_xs::Format, _, _, _>,
                    DType::F32_R16 => return Some(Rows::Exact(exact_tiles::<F32, 64> as ExactRows)),
                    DType::F16_R16 => return Some(Rows::Exact(exact_tiles::<F16, 32> as ExactRows)),
                    DType::BF16_R16 => return Some(Rows::Exact(exact_tiles::<BF16, 32> as ExactRows)),
                    DType::Q4_0_R16 => tiles::<q4_0::Format, _, _, _>,
                    DType::Q4_1_R16 => tiles::<q4_1::Format, _, _, _>,
                    DType::Q5_0_R16 => tiles::<q5_0::Format, _, _, _>,
                    DType::Q5_1_R16 => tiles::<q5_1::Format, _, _, _>,
                    DType::Q8_0_R16 => tiles::<q8_0::Format, _, _, _>,
                    DType::Q4_K_R16 => tiles::<q4_k::Format, _, _, _>,
                    DType::Q5_K_R16 => tiles::<q5_k::Format, _, _, _>,
                    DType::Q6_K_R16 => tiles::<q6_k::Format, _, _, _>,
                    DType::IQ4_NL_R16 => tiles::<iq4_nl::Format, _, _, _>,
                    DType::Q2_K_R16 => tiles::<q2_k::Format, _, _, _>,
                    DType::Q3_K_R16 => tiles::<q3_k::Format, _, _, _>,
                    DType::IQ4_XS_R16 => tiles::<iq4_xs::Format, _, _, _>,
                    other => return quantized::rows(other),
                };
                Some(Rows::Quantized(rows))
            }

            fn vectors<F, const BYTES: usize, const GROUPS: usize, const S: usize>(
                w: &Matrix<'_>,
                first: usize,
                x: &[ActivationBlock],
                n: usize,
                out: &mut [f32],
            ) where
                F: Vectors<BYTES, GROUPS, S>,
            {
                // SAFETY: this function is private, and `rows` hands it out where the level was found.
                unsafe { compiled_vectors::<F, BYTES, GROUPS, S>(w, first, x, n, out) }
            }

            #[target_feature(enable = $features)]
            fn compiled_vectors<F, const BYTES: usize, const GROUPS: usize, const S: usize>(
                w: &Matrix<'_>,
                first: usize,
                x: &[ActivationBlock],
                n: usize,
                out: &mut [f32],
            ) where
                F: Vectors<BYTES, GROUPS, S>,
            {
                if w.cols() < 32 || n == 0 {
                    return out.fill(0.0);
                }
                // SAFETY: this function's features are those.
                let level = unsafe { $level::assume() };
                if n < GEMM {
                    for (p, x) in x.chunks_exact(w.cols() / 32).enumerate() {
                        gemv::gemv::<_, F, BYTES, GROUPS, S>(level, w, first, x, &mut out[p..], n);
                    }
                } else if F::MINS {
                    gemm::gemm::<_, F, $lanes, BYTES, GROUPS, S, true>(level, w, first, x, n, out);
                } else {
                    gemm::gemm::<_, F, $lanes, BYTES, GROUPS, S, false>(level, w, first, x, n, out);
                }
            }

            fn tiles<F, const BYTES: usize, const GROUPS: usize, const S: usize>(
                w: &Matrix<'_>,
                first: usize,
                x: &[ActivationBlock],
                n: usize,
                out: &mut [f32],
            ) where
                F: Tiles<BYTES, GROUPS, S>,
            {
                // SAFETY: this function is private, and `rows` hands it out where the level was found.
                unsafe { compiled_tiles::<F, BYTES, GROUPS, S>(w, first, x, n, out) }
            }

            #[target_feature(enable = $features)]
            fn compiled_tiles<F, const BYTES: usize, const GROUPS: usize, const S: usize>(
                w: &Matrix<'_>,
                first: usize,
                x: &[ActivationBlock],
                n: usize,
                out: &mut [f32],
            ) where
                F: Tiles<BYTES, GROUPS, S>,
            {
                // SAFETY: this function's features are those.
                let level = unsafe { $level::assume() };
                if n == 1 {
                    tiles::gemv::<_, F, BYTES, GROUPS, S>(level, w, first, x, out);
                } else {
                    tiles::gemm::<_, F, BYTES, GROUPS, S>(level, w, first, x, n, out);
                }
            }

            fn exact_tiles<F: Column<BYTES>, const BYTES: usize>(
                w: &Matrix<'_>,
                first: usize,
                x: &[f32],
                n: usize,
                out: &mut [f32],
            ) {
                // SAFETY: this function is private, and `rows` hands it out where the level was found.
                unsafe { compiled_exact_tiles::<F, BYTES>(w, first, x, n, out) }
            }

            #[target_feature(enable = $features)]
            fn compiled_exact_tiles<F: Column<BYTES>, const BYTES: usize>(
                w: &Matrix<'_>,
                first: usize,
                x: &[f32],
                n: usize,
                out: &mut [f32],
            ) {
                // SAFETY: this function's features are those.
                let level = unsafe { $level::assume() };
                tiles::product::<_, F, BYTES>(level, w, first, x, n, out);
            }

            fn exact<F: Float<BYTES>, const BYTES: usize>(
                w: &Matrix<'_>,
                first: usize,
                x: &[f32],
                n: usize,
                out: &mut [f32],
            ) {
                // SAFETY: this function is private, and `rows` hands it out where the level was found.
                unsafe { compiled_exact::<F, BYTES>(w, first, x, n, out) }
            }

            #[target_feature(enable = $features)]
            fn compiled_exact<F: Float<BYTES>, const BYTES: usize>(
                w: &Matrix<'_>,
                first: usize,
                x: &[f32],
                n: usize,
                out: &mut [f32],
            ) {
                // SAFETY: this function's features are those.
                let level = unsafe { $level::assume() };
                floats::product::<_, F, BYTES>(level, w, first, x, n, out);
            }
        }
    };
}

level!(avx2, Avx2, 8, "avx2,f16c");
level!(avx512, Avx512, 16, "avx2,f16c,avx512f,avx512bw,avx512vl,avx512vnni");
