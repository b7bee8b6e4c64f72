//! What part of a transformer a tensor is, told from its name, for grouping and colour. Names of GGUF and of Hugging Face are
//! known; [`Role`](p64_core::Role) is the exact account of the former, this is the coarse one of both.

/// A large part of the network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Group {
    Embedding,
    Attention,
    FeedForward,
    Experts,
    Norm,
    Output,
    Other,
}

macro_rules! parts {
    ($($(#[$doc:meta])* $variant:ident = $slug:literal, $name:literal, $group:ident;)*) => {
        /// A part of the network.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        pub enum Part { $($(#[$doc])* $variant,)* }

        impl Part {
            /// Every part, in the order of the computation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// A short name without spaces.
            #[must_use]
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            /// The name people read.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The larger part that it belongs to.
            #[must_use]
            pub const fn group(self) -> Group {
                match self { $(Self::$variant => Group::$group,)* }
            }
        }
    };
}

parts! {
    /// Token and position embeddings.
    Embedding = "embd", "embedding", Embedding;
    /// Query projection, or several in one tensor.
    Query = "q", "attention query", Attention;
    /// Key projection.
    Key = "k", "attention key", Attention;
    /// Value projection.
    Value = "v", "attention value", Attention;
    /// Output projection of attention.
    AttentionOut = "o", "attention output", Attention;
    /// What else is in attention.
    AttentionOther = "attn", "attention, other", Attention;
    /// Gate projection of the feed-forward network.
    Gate = "gate", "feed-forward gate", FeedForward;
    /// Up projection.
    Up = "up", "feed-forward up", FeedForward;
    /// Down projection.
    Down = "down", "feed-forward down", FeedForward;
    /// What else is in the feed-forward network.
    FeedForwardOther = "ffn", "feed-forward, other", FeedForward;
    /// The router of experts.
    Router = "router", "expert router", Experts;
    /// Experts' gate projections.
    GateExperts = "gatex", "experts' gate", Experts;
    /// Experts' up projections.
    UpExperts = "upx", "experts' up", Experts;
    /// Experts' down projections.
    DownExperts = "downx", "experts' down", Experts;
    /// Norms and their biases.
    Norm = "norm", "norm", Norm;
    /// The output head.
    Output = "head", "output head", Output;
    /// Anything else.
    Other = "other", "other", Other;
}

/// Where a tensor stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The layer, of tensors that belong to one.
    pub layer: Option<u32>,
    /// The name without the layer; other numbers in it are `*`, so that the experts of a layer are one kind.
    pub kind: String,
    /// The part.
    pub part: Part,
}

impl Place {
    /// The place of a tensor by its name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        const STACKS: [&str; 5] = ["blk", "layers", "h", "blocks", "layer"];
        let parts: Vec<&str> = name.split('.').collect();
        let numbered = parts.windows(2).position(|pair| STACKS.contains(&pair[0]) && number(pair[1]).is_some());
        let layer = numbered.and_then(|at| number(parts.get(at.saturating_add(1))?));
        let rest = match numbered {
            Some(at) if layer.is_some() => parts.get(at.saturating_add(2)..).unwrap_or_default(),
            _ => parts.as_slice(),
        };
        let kind: Vec<&str> = rest.iter().map(|part| if number(part).is_some() { "*" } else { part }).collect();
        let kind = kind.join(".");
        let part = part_of(&kind.to_ascii_lowercase(), layer.is_some());
        Self { layer, kind, part }
    }
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

fn part_of(kind: &str, in_layer: bool) -> Part {
    let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    let word = |words: &[&str]| kind.split(['.', '_']).any(|part| words.contains(&part));
    if has(&["norm", "ln_"]) {
        return Part::Norm;
    }
    if has(&["embd", "embed", "wte", "wpe"]) {
        return Part::Embedding;
    }
    let expert = has(&["exps", "expert", "shexp"]);
    if has(&["gate_inp", "router"]) || kind.ends_with("mlp.gate.weight") {
        return Part::Router;
    }
    let attention = has(&["attn", "attention"]);
    if attention {
        return match () {
            () if has(&["output", "o_proj", "out_proj", "c_proj", "attention.dense", "attn.dense"]) => {
                Part::AttentionOut
            }
            () if word(&["q", "qkv", "query"]) || has(&["c_attn", "q_proj"]) => Part::Query,
            () if word(&["k", "key", "kv"]) => Part::Key,
            () if word(&["v", "value"]) => Part::Value,
            () => Part::AttentionOther,
        };
    }
    let pick = |dense, experts| if expert { experts } else { dense };
    if expert || has(&["ffn", "mlp", "feed_forward"]) {
        return match () {
            () if has(&["down", "w2", "c_proj", "fc_out", "4h_to_h"]) => pick(Part::Down, Part::DownExperts),
            () if has(&["gate", "w1"]) => pick(Part::Gate, Part::GateExperts),
            () if has(&["up", "w3", "c_fc", "fc_in", "h_to_4h"]) => pick(Part::Up, Part::UpExperts),
            () => pick(Part::FeedForwardOther, Part::GateExperts),
        };
    }
    if !in_layer && has(&["output", "lm_head"]) { Part::Output } else { Part::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_worlds() {
        for (name, layer, kind, part) in [
            ("token_embd.weight", None, "token_embd.weight", Part::Embedding),
            ("blk.11.attn_q.weight", Some(11), "attn_q.weight", Part::Query),
            ("blk.0.attn_k_norm.weight", Some(0), "attn_k_norm.weight", Part::Norm),
            ("blk.0.attn_output.weight", Some(0), "attn_output.weight", Part::AttentionOut),
            ("blk.2.attn_v.bias", Some(2), "attn_v.bias", Part::Value),
            ("blk.2.ffn_gate.weight", Some(2), "ffn_gate.weight", Part::Gate),
            ("blk.2.ffn_gate_inp.weight", Some(2), "ffn_gate_inp.weight", Part::Router),
            ("blk.2.ffn_down_exps.weight", Some(2), "ffn_down_exps.weight", Part::DownExperts),
            ("output.weight", None, "output.weight", Part::Output),
            ("output_norm.weight", None, "output_norm.weight", Part::Norm),
            ("model.layers.3.self_attn.o_proj.weight", Some(3), "self_attn.o_proj.weight", Part::AttentionOut),
            ("model.layers.3.self_attn.k_proj.weight", Some(3), "self_attn.k_proj.weight", Part::Key),
            ("model.layers.3.mlp.experts.17.up_proj.weight", Some(3), "mlp.experts.*.up_proj.weight", Part::UpExperts),
            ("model.layers.3.mlp.gate.weight", Some(3), "mlp.gate.weight", Part::Router),
            ("model.layers.3.input_layernorm.weight", Some(3), "input_layernorm.weight", Part::Norm),
            ("model.embed_tokens.weight", None, "model.embed_tokens.weight", Part::Embedding),
            ("lm_head.weight", None, "lm_head.weight", Part::Output),
            ("transformer.h.7.attn.c_attn.weight", Some(7), "attn.c_attn.weight", Part::Query),
            ("transformer.h.7.mlp.c_proj.weight", Some(7), "mlp.c_proj.weight", Part::Down),
            ("rope_freqs.weight", None, "rope_freqs.weight", Part::Other),
            ("blk.99999999999.x", None, "blk.99999999999.x", Part::Other),
            ("", None, "", Part::Other),
        ] {
            assert_eq!(Place::of(name), Place { layer, kind: kind.to_owned(), part }, "{name}");
        }
    }
}
