//! The places in which families differ.
#![forbid(unsafe_code)]

use crate::kernel::generic::activation::{gelu, gelu_f16, gelu_f16_gate, gelu_gate, silu, silu_gate};
use crate::kernel::generic::rope::Pairing;

/// What a family does in each place where families differ.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Family {
    /// How a position gets into the computation.
    pub positions: Positions,
    /// What every norm is.
    pub norm: NormKind,
    /// Whether the norms of the stream have a bias.
    pub norm_biases: bool,
    /// How attention and feed-forward network read the stream.
    pub block: Block,
    /// Whether what attention and feed-forward add to the stream is normed first (`post_attention_norm`,
    /// `post_ffw_norm`).
    pub post_norms: bool,
    /// Whether what attention's output projection and the feed-forward network's down projection read is normed first
    /// (`attn_sub_norm`, `ffn_sub_norm`).
    pub sub_norms: bool,
    /// The norms of queries and keys before the rotary embedding (`attn_q_norm`, `attn_k_norm`).
    pub head_norms: HeadNorms,
    /// Biases of the projections.
    pub biases: Biases,
    /// Whether a projection may have one factor for all it gives (`attn_q.scale`, ...).
    pub scales: bool,
    /// What the feed-forward network is made of.
    pub feed_forward: FeedForwardKind,
    /// The function inside the feed-forward network.
    pub gate: Gate,
    /// How experts are chosen and weighed, in families that may have them.
    pub experts: Option<Routing>,
    /// Layers that differ from the last of every period; `None` when all layers see all positions and turn their heads.
    pub local: Option<LocalLayers>,
    /// Whether a sliding window in the file is passed over. Without [`Family::local`] it is refused otherwise.
    pub ignores_window: bool,
    /// Whether there are two sets of divisors of the rotary embedding's frequencies, by the length of the context.
    pub long_rope: LongRope,
    /// Whether `rope.scaling.finetuned` = false means that nothing is turned at all.
    pub rope_switch: bool,
    /// Factor of the token embedding.
    pub embedding_scale: EmbeddingScale,
    /// Factor of the attention scores.
    pub attention_scale: AttentionScale,
    /// Factor of what attention and feed-forward network add to the stream: whether the file may set one.
    pub residual_scale: bool,
    /// Soft-cap of the attention scores.
    pub attention_softcap: Softcap,
    /// Factor of the logits.
    pub logit_scale: LogitScale,
    /// Soft-cap of the logits.
    pub final_softcap: Softcap,
    /// Name of the stream between attention and feed-forward in ggml's graph; probes only.
    pub attention_node: &'static str,
    /// Name of what the function inside the feed-forward network gives in ggml's graph; probes only.
    pub gate_node: &'static str,
}

/// Whether a family's files have a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// They have not; one that has is refused.
    Never,
    /// Some have.
    Maybe,
    /// All have; one that has not is refused.
    Always,
}

/// How a position gets into the computation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Positions {
    /// By turning queries and keys: which elements of a head turn together.
    Rotary(Pairing),
    /// By an embedding of its own that is added to the token's (`position_embd`).
    Learned,
}

/// What a norm is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NormKind {
    /// `x / root of the mean square`.
    Rms,
    /// `(x - mean) / standard deviation`.
    Layer,
}

/// How attention (`A`) and feed-forward network (`F`) read the stream `x`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Block {
    /// `x += A(norm(x)); x += F(norm(x))`.
    Sequential,
    /// `x += A(x); x += F(x)`: only what is added is normed.
    PostNormOnly,
    /// `h = norm(x); x += A(h) + F(h)`.
    Parallel,
    /// [`Block::Sequential`], and in a layer without `ffn_norm` [`Block::Parallel`].
    ParallelWithoutNorm,
}

/// The norms of queries and keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HeadNorms {
    /// None.
    None,
    /// Every head by itself, all with the same weights.
    Shared,
    /// Where the file has them: every head by itself, with weights of its own.
    OwnIfThere,
    /// All heads of a position as one.
    Whole,
}

/// Biases of the projections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Biases {
    /// Of queries, keys and values.
    pub qkv: Presence,
    /// Of attention's output.
    pub attention: Presence,
    /// Of the feed-forward network's projections.
    pub feed_forward: Presence,
    /// Of the logits.
    pub output: Presence,
}

/// What a feed-forward network is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FeedForwardKind {
    /// `down(act(gate(x)) * up(x))`.
    Gated,
    /// The same, `ffn_up` holding the rows of the gate and after them those of the up projection.
    GatedInUp,
    /// `down(act(up(x)))`.
    Plain,
}

/// The function inside a feed-forward network, with its product with the up projection where there is a gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Gate {
    /// `silu(gate) * up`.
    Silu,
    /// `gelu(gate) * up`, the tanh form.
    Gelu,
    /// The same with argument and result of gelu rounded to f16, as GGML's CPU code does through a table.
    GeluF16,
}

impl Gate {
    /// `gate[i] = f(gate[i]) * up[i]`.
    pub(in crate::forward) fn apply(self, gate: &mut [f32], up: &[f32]) {
        match self {
            Self::Silu => silu_gate(gate, up),
            Self::Gelu => gelu_gate(gate, up),
            Self::GeluF16 => gelu_f16_gate(gate, up),
        }
    }

    /// `x[i] = f(x[i])`.
    pub(in crate::forward) fn apply_alone(self, x: &mut [f32]) {
        let function = match self {
            Self::Silu => silu,
            Self::Gelu => gelu,
            Self::GeluF16 => gelu_f16,
        };
        x.iter_mut().for_each(|x| *x = function(*x));
    }
}

/// How experts are chosen and weighed: by softmax over all of them, the best `expert_used_count`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Routing {
    /// Whether the chosen ones' weights are made to sum to 1.
    pub normalise: bool,
    /// Whether `feed_forward_length`, where the experts' own length is not said, is that of all those used together.
    pub divides_length: bool,
    /// Experts that every position passes through.
    pub shared: SharedExperts,
}

/// Experts that every position passes through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedExperts {
    /// None.
    None,
    /// Where `expert_shared_feed_forward_length` says how wide they are.
    IfThere,
    /// Always, weighed by the sigmoid of a product with `ffn_gate_inp_shexp`; `feed_forward_length` wide where nothing
    /// else is said.
    Gated,
}

/// Layers that differ from the last of every period, which is "global".
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct LocalLayers {
    /// Of so many layers the last is global, unless the file says otherwise.
    pub period: u32,
    /// How many positions the local layers see.
    pub window: Window,
    /// How the local layers turn their heads.
    pub rope: LocalRope,
    /// Whether the global layers turn their heads.
    pub global_rope: bool,
}

/// How many of the most recent positions local layers see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Window {
    /// As many as the file says; where it does not, all layers are global.
    IfThere,
    /// As many as the file says, or else so many.
    Or(u32),
    /// As many as the file says, which must.
    Needed,
    /// All.
    All,
}

/// How local layers turn their heads.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum LocalRope {
    /// As the global layers' keys say.
    Same,
    /// With the same base, but without anything that stretches positions.
    Unscaled,
    /// With the same stretching of positions, and a base of their own where the file gives one.
    OwnBase,
    /// With a base of their own, by default this one, and without anything that stretches positions.
    OwnBaseUnscaled(f32),
}

/// Whether there are two sets of divisors of the rotary embedding's frequencies (`rope_factors_short`,
/// `rope_factors_long`), the second for contexts longer than `rope.scaling.original_context_length`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LongRope {
    /// There are not.
    Never,
    /// Where `rope.scaling.type` is `longrope`.
    ByType,
    /// Wherever the file has the tensors.
    Always,
}

/// Factor of the token embedding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EmbeddingScale {
    /// 1.
    One,
    /// The square root of the embedding's length.
    RootOfLength,
    /// What the file says, else 1.
    FromFile,
}

/// Factor of the attention scores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AttentionScale {
    /// One over the root of a head's length.
    HeadLength,
    /// One over the root of a head's length, but of `n_embd / n_head` in models with so many layers (Gemma 3 27B has 62,
    /// and its heads are shorter than `n_embd / n_head`).
    HeadLengthExceptAtLayers(u32),
    /// What the file says, else one over the root of a head's length.
    FromFile,
}

/// Factor of the logits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LogitScale {
    /// 1.
    One,
    /// What the file says, else 1.
    FromFile,
    /// What the file says, which must.
    Needed,
    /// One over what the file says, which must.
    OneOver,
}

/// A bound that values approach through `cap * tanh(x / cap)`.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Softcap {
    /// None.
    Never,
    /// What the file says, else none.
    FromFile,
    /// What the file says, else this.
    Or(f32),
}
