//! The transformer once more, in f64, from the formulas, without a cache: all positions from the first layer on.

use super::tiny::Tiny;
use std::format;
use std::vec::Vec;

/// What the two tiny models differ in, written down a second time.
pub struct Facts {
    pub n_layer: usize,
    pub n_head: usize,
    pub n_head_kv: usize,
    pub head_dim: usize,
    pub epsilon: f64,
    pub rope_dims: usize,
    /// Pairs of neighbours rather than of halves.
    pub adjacent: bool,
    pub gelu: bool,
    pub embedding_scale: f64,
    /// Base and position factor of a layer's rotary embedding, and its window.
    pub layer: fn(usize) -> (f64, f64, usize),
}

pub const LLAMA: Facts = Facts {
    n_layer: 2,
    n_head: 4,
    n_head_kv: 2,
    head_dim: 4,
    epsilon: 1e-5,
    rope_dims: 2,
    adjacent: true,
    gelu: false,
    embedding_scale: 1.0,
    layer: |_| (100.0, 0.5, usize::MAX),
};

pub const GEMMA3: Facts = Facts {
    n_layer: 3,
    n_head: 4,
    n_head_kv: 1,
    head_dim: 6,
    epsilon: 1e-6,
    rope_dims: 6,
    adjacent: false,
    gelu: true,
    embedding_scale: 4.0,
    layer: |layer| if layer == 1 { (1000.0, 1.0, usize::MAX) } else { (10.0, 1.0, 3) },
};

type Rows = Vec<Vec<f64>>;

/// The logits of every position.
pub fn logits(tiny: &Tiny, facts: &Facts, tokens: &[u32]) -> Rows {
    let embd = tiny.values("token_embd.weight").expect("there");
    let mut x: Rows = tokens
        .iter()
        .map(|token| embd[*token as usize * 16..][..16].iter().map(|x| x * facts.embedding_scale).collect())
        .collect();
    for layer in 0..facts.n_layer {
        let weight = |name: &str| tiny.values(&format!("blk.{layer}.{name}.weight"));
        let product = |name, x: &Rows| product(&weight(name).expect("there"), x);
        let norm = |name, x: &Rows, len| weight(name).map_or(x.clone(), |w| norm(&w, x, facts.epsilon, len));

        let h = norm("attn_norm", &x, 16);
        let q = norm("attn_q_norm", &product("attn_q", &h), facts.head_dim);
        let k = norm("attn_k_norm", &product("attn_k", &h), facts.head_dim);
        let v = product("attn_v", &h);
        let freqs = tiny.values("rope_freqs.weight");
        let (q, k) = (rotate(facts, layer, &freqs, &q), rotate(facts, layer, &freqs, &k));
        let out = product("attn_output", &attend(facts, (facts.layer)(layer).2, &q, &k, &v));
        x = add(&x, &norm("post_attention_norm", &out, 16));

        let h = norm("ffn_norm", &x, 16);
        let (gate, up) = (product("ffn_gate", &h), product("ffn_up", &h));
        let gated = |gate: f64, up: f64| if facts.gelu { gelu(gate) * up } else { gate / (1.0 + (-gate).exp()) * up };
        let inner = gate.iter().zip(&up).map(|(gate, up)| gate.iter().zip(up).map(|(g, u)| gated(*g, *u)).collect());
        let out = product("ffn_down", &inner.collect());
        x = add(&x, &norm("post_ffw_norm", &out, 16));
    }
    let x = norm(&tiny.values("output_norm.weight").expect("there"), &x, facts.epsilon, 16);
    product(&tiny.values("output.weight").unwrap_or(embd), &x)
}

fn product(w: &[f64], x: &Rows) -> Rows {
    let row = |x: &Vec<f64>| w.chunks(x.len()).map(|w| w.iter().zip(x).map(|(w, x)| w * x).sum()).collect();
    x.iter().map(row).collect()
}

fn norm(w: &[f64], x: &Rows, epsilon: f64, len: usize) -> Rows {
    let part = |x: &[f64]| -> Vec<f64> {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / len as f64;
        x.iter().zip(w).map(|(x, w)| x / (mean + epsilon).sqrt() * w).collect()
    };
    x.iter().map(|x| x.chunks(len).flat_map(part).collect()).collect()
}

fn add(a: &Rows, b: &Rows) -> Rows {
    a.iter().zip(b).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a + b).collect()).collect()
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / core::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)).tanh())
}

fn rotate(facts: &Facts, layer: usize, freqs: &Option<Vec<f64>>, x: &Rows) -> Rows {
    let (base, scale, _) = (facts.layer)(layer);
    let half = facts.rope_dims / 2;
    let turn = |(position, x): (usize, &Vec<f64>)| {
        let mut x = x.clone();
        for head in x.chunks_mut(facts.head_dim) {
            for i in 0..half {
                let divisor = freqs.as_ref().map_or(1.0, |freqs| freqs[i]);
                let angle = position as f64 * scale * base.powf(-2.0 * i as f64 / facts.rope_dims as f64) / divisor;
                let (a, b) = if facts.adjacent { (2 * i, 2 * i + 1) } else { (i, i + half) };
                let (first, second) = (head[a], head[b]);
                head[a] = first * angle.cos() - second * angle.sin();
                head[b] = first * angle.sin() + second * angle.cos();
            }
        }
        x
    };
    x.iter().enumerate().map(turn).collect()
}

fn attend(facts: &Facts, window: usize, q: &Rows, k: &Rows, v: &Rows) -> Rows {
    let len = facts.head_dim;
    let mut out = Vec::new();
    for (position, q) in q.iter().enumerate() {
        let mut row = Vec::new();
        for head in 0..facts.n_head {
            let kv = head / (facts.n_head / facts.n_head_kv);
            let visible: Vec<usize> = (0..=position).filter(|seen| position - seen < window).collect();
            let score = |seen: &usize| {
                let pairs = q[head * len..][..len].iter().zip(&k[*seen][kv * len..][..len]);
                (pairs.map(|(q, k)| q * k).sum::<f64>() / (len as f64).sqrt()).exp()
            };
            let scores: Vec<f64> = visible.iter().map(score).collect();
            let total: f64 = scores.iter().sum();
            for i in 0..len {
                let weighted = visible.iter().zip(&scores).map(|(seen, score)| v[*seen][kv * len + i] * score);
                row.push(weighted.sum::<f64>() / total);
            }
        }
        out.push(row);
    }
    out
}
