//! The steps between the products.

use super::naive::{self, assert_close};
use super::seeds::Rng;
use crate::error::Code;
use crate::kernel::generic::activation::{gelu, gelu_f16, gelu_f16_gate, gelu_gate, silu, silu_gate, softcap};
use crate::kernel::generic::attention::Attention;
use crate::kernel::generic::cache::Rows;
use crate::kernel::generic::layernorm::layernorm_in_place;
use crate::kernel::generic::rmsnorm::{rmsnorm, rmsnorm_heads, rmsnorm_in_place};
use crate::kernel::generic::rope::{Pairing, Rope, Yarn};
use crate::kernel::generic::softmax::softmax;
use std::vec::Vec;

#[test]
fn rmsnorm_is_the_definition() {
    for len in [1, 3, 64, 577] {
        let mut rng = Rng::new(len as u64);
        let (x, weight) = (rng.activations(len), rng.activations(len));
        let mean = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / len as f64;
        let scale = 1.0 / (mean + f64::from(1e-5f32)).sqrt();
        let exact: Vec<f64> = x.iter().zip(&weight).map(|(x, w)| f64::from(*x) * scale * f64::from(*w)).collect();
        let mut out = std::vec![f32::NAN; len];
        rmsnorm(&x, &weight, 1e-5, &mut out);
        assert_close(&out, &exact, 5e-7);
        let mut in_place = x.clone();
        rmsnorm_in_place(&mut in_place, &weight, 1e-5);
        assert_eq!(in_place, out);
    }
    let mut zero = [0.0; 4];
    rmsnorm_in_place(&mut zero, &[1.0; 4], 1e-6);
    assert_eq!(zero, [0.0; 4]);
}

#[test]
fn each_head_is_normalised_by_itself() {
    let mut rng = Rng::new(1);
    let (mut x, weight) = (rng.activations(5 * 16), rng.activations(16));
    let mut heads = x.clone();
    rmsnorm_heads(&mut heads, &weight, 1e-6);
    for head in x.chunks_exact_mut(16) {
        rmsnorm_in_place(head, &weight, 1e-6);
    }
    assert_eq!(heads, x);
}

#[test]
fn layernorm_is_the_definition() {
    for len in [1, 3, 64, 577] {
        let mut rng = Rng::new(len as u64);
        // Far from zero, so that a mean of the squares would not do.
        let x: Vec<f32> = rng.activations(len).iter().map(|x| x + 3.0).collect();
        let weight = rng.activations(len);
        let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / len as f64;
        let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / len as f64;
        let scale = 1.0 / (variance + f64::from(1e-5f32)).sqrt();
        let normed = x.iter().map(|x| (f64::from(*x) - mean) * scale);
        let exact: Vec<f64> = normed.zip(&weight).map(|(x, w)| x * f64::from(*w)).collect();
        let mut out = x;
        layernorm_in_place(&mut out, &weight, 1e-5);
        assert_close(&out, &exact, 2e-6);
    }
}

/// Pairs up to the low one turn as trained, those from the high one on at the scale, pair 16 at `6 / 13` of the way.
#[test]
fn yarn_slows_down_the_slow_pairs() {
    let yarn = Some(Yarn { low: 10.0, high: 23.0 });
    let pairing = Pairing::Adjacent;
    let rope = Rope {
        head_dim: 64,
        rope_dim: 64,
        pairing,
        freq_base: 1e4,
        freq_scale: 0.25,
        freq_factors: None,
        yarn,
        magnitude: 1.5,
    };
    let mut x = [0.0f32; 64];
    x.iter_mut().step_by(2).for_each(|x| *x = 1.0);
    rope.apply(&mut x, 3);
    for (pair, turned) in x.chunks_exact(2).enumerate() {
        let way = ((pair as f64 - 10.0) / 13.0).clamp(0.0, 1.0);
        let angle = 3.0 * 1e4f64.powf(-2.0 * pair as f64 / 64.0) * (1.0 - way * 0.75);
        assert_close(turned, &[1.5 * angle.cos(), 1.5 * angle.sin()], 2e-6);
    }
}

#[test]
fn a_soft_cap_bends_towards_its_bound() {
    let mut x = [-1e9f32, -3.0, 0.0, 0.01, 30.0, 1e9];
    let exact = x.map(|x| 30.0 * (f64::from(x) / 30.0).tanh());
    softcap(&mut x, 30.0);
    assert_close(&x, &exact, 1e-6);
    assert_eq!((x[0], x[2], x[5]), (-30.0, 0.0, 30.0));
}

fn naive_rope(rope: &Rope<'_>, x: &[f32], position: usize) -> Vec<f64> {
    let mut out: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    let half = rope.rope_dim / 2;
    for head in out.chunks_exact_mut(rope.head_dim) {
        for i in 0..half {
            let factor = rope.freq_factors.map_or(1.0, |factors| f64::from(factors[i]));
            let power = f64::from(rope.freq_base).powf(-2.0 * i as f64 / rope.rope_dim as f64);
            let theta = position as f64 * f64::from(rope.freq_scale) * power / factor;
            let (a, b) = match rope.pairing {
                Pairing::Adjacent => (2 * i, 2 * i + 1),
                Pairing::Split => (i, i + half),
            };
            (head[a], head[b]) =
                (head[a] * theta.cos() - head[b] * theta.sin(), head[a] * theta.sin() + head[b] * theta.cos());
        }
    }
    out
}

#[test]
fn rope_turns_pairs() {
    let factors: Vec<f32> = (0..32u8).map(|i| 1.0 + f32::from(i) / 8.0).collect();
    for pairing in [Pairing::Adjacent, Pairing::Split] {
        for (rope_dim, freq_scale, freq_factors) in [(64, 1.0, None), (48, 0.125, None), (64, 1.0, Some(&factors[..]))]
        {
            let rope = Rope {
                head_dim: 64,
                rope_dim,
                pairing,
                freq_base: 1e5,
                freq_scale,
                freq_factors,
                yarn: None,
                magnitude: 1.0,
            };
            for position in [0, 1, 17, 511] {
                let x = Rng::new(position as u64).activations(3 * 64);
                let mut ours = x.clone();
                rope.apply(&mut ours, position);
                // An angle's error grows with the position: powers and angle are f32.
                assert_close(&ours, &naive_rope(&rope, &x, position), 2e-6 + 1e-6 * position as f64);
                if position == 0 {
                    assert_eq!(ours, x);
                }
                for head in 0..3 {
                    let tail = head * 64 + rope_dim..(head + 1) * 64;
                    assert_eq!(ours[tail.clone()], x[tail], "elements past rope_dim stay");
                }
            }
        }
    }
}

#[test]
fn softmax_is_a_distribution() {
    for len in [1, 2, 63, 1000] {
        let x: Vec<f32> = Rng::new(len as u64).activations(len).iter().map(|x| x * 4.0 + 100.0).collect();
        let mut ours = x.clone();
        softmax(&mut ours);
        assert_close(&ours, &naive::softmax(&x), 3e-7);
        let sum: f64 = ours.iter().map(|x| f64::from(*x)).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    }
    softmax(&mut []);
    let mut masked = [f32::NEG_INFINITY, 3.0, f32::NEG_INFINITY];
    softmax(&mut masked);
    assert_eq!(masked, [0.0, 1.0, 0.0]);
    let mut nothing = [f32::NEG_INFINITY; 2];
    softmax(&mut nothing);
    assert!(nothing.iter().all(|x| x.is_nan()));
}

#[test]
fn silu_and_gelu_are_their_formulas() {
    for i in -4000..=4000i16 {
        let x = f32::from(i) / 200.0;
        let wide = f64::from(x);
        assert_close(&[silu(x)], &[wide / (1.0 + (-wide).exp())], 5e-7);
        let inner = (2.0 / core::f64::consts::PI).sqrt() * (wide + 0.044_715 * wide * wide * wide);
        let exact = 0.5 * wide * (1.0 + inner.tanh());
        assert_close(&[gelu(x)], &[exact], 1e-6);
        // Argument and result are rounded to 11 bits each.
        assert!((f64::from(gelu_f16(x)) - exact).abs() <= 1.1e-3 * exact.abs().max(1.0), "{x}");
        assert_eq!(half::f16::from_f32(gelu_f16(x)).to_f32(), gelu_f16(x), "{x}");
    }
    assert_eq!((silu(-200.0), silu(200.0), gelu(-50.0), gelu(50.0)), (-0.0, 200.0, -0.0, 50.0));
    assert_eq!((gelu_f16(-10.0), gelu_f16(10.000_1), gelu_f16(1e6)), (0.0, 10.0, 1e6));
}

#[test]
fn gates_multiply() {
    let (gate, up) = ([-1.5f32, 0.0, 2.0, 30.0], [4.0f32, 5.0, -6.0, 0.5]);
    let (mut s, mut g) = (gate, gate);
    silu_gate(&mut s, &up);
    gelu_gate(&mut g, &up);
    for i in 0..4 {
        assert_eq!((s[i], g[i]), (silu(gate[i]) * up[i], gelu(gate[i]) * up[i]));
    }
}

/// Gate, up and their product at the first layer of Gemma 3 270M (weights dequantised), as llama.cpp 0c1e57098 computes
/// them for the last token of a prompt: its GELU goes through f16, and so must ours to give the same bits.
#[test]
fn gelu_f16_is_llama_cpps() {
    let mut gate: [f32; 8] =
        [-0.7363248, 0.4993456, 1.3656032, -1.124849, -0.9545321, -0.9926778, -1.12702, -0.37419367];
    let up: [f32; 8] = [0.84553874, -0.4390437, 0.32946795, 0.28509802, -1.212601, -0.044934213, 0.3490901, -0.8596466];
    let product: [f32; 8] =
        [-0.14377874, -0.15145722, 0.4108697, -0.041832007, 0.19687003, 0.007163584, -0.051178858, 0.11396194];
    gelu_f16_gate(&mut gate, &up);
    assert_eq!(gate, product);
}

#[test]
fn attention_is_the_definition() {
    for (n_head, n_kv_head, head_dim) in [(4, 4, 8), (9, 3, 64), (4, 1, 20)] {
        for visible in [0..1, 0..37, 30..41] {
            let shape = Attention { n_head, n_kv_head, head_dim, scale: 0.3, softcap: None };
            let mut rng = Rng::new((n_head * 100 + visible.len()) as u64);
            let (q, stride) = (rng.activations(n_head * head_dim), n_kv_head * head_dim);
            let (keys, values) = (rng.activations(48 * stride), rng.activations(48 * stride));
            let (mut scores, mut out) = (std::vec![0.0; visible.len()], std::vec![f32::NAN; q.len()]);
            shape
                .attend(&q, Rows::f32(&keys), Rows::f32(&values), visible.clone(), &mut scores, &mut out)
                .expect("lengths fit");
            for head in 0..n_head {
                let at = |t: usize| (head / (n_head / n_kv_head) * 48 + t) * head_dim;
                let q = &q[head * head_dim..][..head_dim];
                let score = |t: usize| 0.3 * naive::dot(q, &keys[at(t)..][..head_dim]).0;
                let largest = visible.clone().map(score).fold(f64::NEG_INFINITY, f64::max);
                let powers: Vec<f64> = visible.clone().map(|t| (score(t) - largest).exp()).collect();
                let sum: f64 = powers.iter().sum();
                let exact: Vec<f64> = (0..head_dim)
                    .map(|d| {
                        let terms = visible.clone().zip(&powers);
                        terms.map(|(t, power)| power / sum * f64::from(values[at(t) + d])).sum()
                    })
                    .collect();
                // Scores reach hundreds, so their own rounding shows in the powers.
                assert_close(&out[head * head_dim..][..head_dim], &exact, 1e-4);
            }
        }
    }
}

#[test]
fn attention_refuses_what_does_not_fit() {
    let shape = Attention { n_head: 4, n_kv_head: 2, head_dim: 8, scale: 1.0, softcap: None };
    let run = |shape: Attention, q: usize, cache: usize, visible, scores: usize| {
        let (mut scores, mut out, cache) = (std::vec![0.0; scores], std::vec![0.0; q], std::vec![0.0; cache]);
        let rows = Rows::f32(&cache);
        shape.attend(&std::vec![0.0; q], rows, rows, visible, &mut scores, &mut out).map_err(|error| error.code)
    };
    assert_eq!(run(shape, 32, 48, 0..3, 3), Ok(()));
    assert_eq!(run(shape, 31, 48, 0..3, 3), Err(Code::LengthMismatch));
    assert_eq!(run(shape, 32, 47, 0..3, 3), Err(Code::BufferTooSmall));
    assert_eq!(run(shape, 32, 48, 0..3, 2), Err(Code::BufferTooSmall));
    assert_eq!(run(Attention { n_kv_head: 3, ..shape }, 32, 96, 0..3, 3), Err(Code::LengthMismatch));
    assert_eq!(run(Attention { n_kv_head: 0, ..shape }, 32, 48, 0..3, 3), Err(Code::LengthMismatch));
}
