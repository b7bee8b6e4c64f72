//! Tensor roles: what a tensor is for in a transformer (spec §7.1), and the GGUF names that carry them.
#![forbid(unsafe_code)]

use core::fmt;

macro_rules! roles {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $name:literal, $gguf:literal, $order:literal;)*) => {
        /// A role code. Names are matched exactly, never by substring.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[non_exhaustive]
        pub enum Role {
            $($(#[$doc])* $variant,)*
            /// No engine role: 0xfffe, or an id this draft does not know, kept as it is.
            Unknown(u16),
        }

        impl Role {
            /// Every role with a meaning, in the order of the codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The role of a code; any code is accepted.
            #[must_use]
            pub const fn from_id(id: u16) -> Self {
                match id {
                    $($id => Self::$variant,)*
                    other => Self::Unknown(other),
                }
            }

            /// The code.
            #[must_use]
            pub const fn id(self) -> u16 {
                match self {
                    $(Self::$variant => $id,)*
                    Self::Unknown(id) => id,
                }
            }

            /// The name people read.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Unknown(_) => "unknown",
                }
            }

            /// The GGUF name: the part after `blk.N.` for a layer's tensor, the whole name for a global one, and the
            /// empty string where GGUF has none.
            #[must_use]
            pub const fn gguf_name(self) -> &'static str {
                match self {
                    $(Self::$variant => $gguf,)*
                    Self::Unknown(_) => "",
                }
            }

            /// Place within the layer (0..100), among the globals (100..200) or after them (200), of §7.3's order.
            #[must_use]
            pub const fn order(self) -> u16 {
                match self {
                    $(Self::$variant => $order,)*
                    Self::Unknown(_) => 200,
                }
            }
        }
    };
}

roles! {
    /// Attention key projection.
    AttnK = 0, "attn_k", "attn_k.weight", 2;
    /// Attention value projection.
    AttnV = 1, "attn_v", "attn_v.weight", 3;
    /// Attention query projection.
    AttnQ = 2, "attn_q", "attn_q.weight", 1;
    /// Attention output projection.
    AttnOutput = 3, "attn_output", "attn_output.weight", 4;
    /// Feed-forward gate projection.
    FfnGate = 4, "ffn_gate", "ffn_gate.weight", 6;
    /// Feed-forward up projection.
    FfnUp = 5, "ffn_up", "ffn_up.weight", 7;
    /// Feed-forward down projection.
    FfnDown = 6, "ffn_down", "ffn_down.weight", 8;
    /// Norm before attention.
    AttnNorm = 7, "attn_norm", "attn_norm.weight", 0;
    /// Norm before the feed-forward network.
    FfnNorm = 8, "ffn_norm", "ffn_norm.weight", 5;
    /// Token embedding (global).
    TokenEmbd = 9, "token_embd", "token_embd.weight", 100;
    /// Output head (global).
    Output = 10, "output", "output.weight", 101;
    /// Final norm (global).
    OutputNorm = 11, "output_norm", "output_norm.weight", 102;
    /// Norm inside attention (BitNet).
    AttnSubNorm = 12, "attn_sub_norm", "attn_sub_norm.weight", 9;
    /// Norm inside the feed-forward network (BitNet).
    FfnSubNorm = 13, "ffn_sub_norm", "ffn_sub_norm.weight", 10;
    /// Expert router.
    Router = 0x20, "router", "ffn_gate_inp.weight", 11;
    /// Experts' gate projections, stacked.
    GateExperts = 0x21, "gate_experts", "ffn_gate_exps.weight", 12;
    /// Experts' up projections, stacked.
    UpExperts = 0x22, "up_experts", "ffn_up_exps.weight", 13;
    /// Experts' down projections, stacked.
    DownExperts = 0x23, "down_experts", "ffn_down_exps.weight", 14;
    /// Shared experts' gate projection.
    SharedGate = 0x24, "shared_gate", "ffn_gate_shexp.weight", 15;
    /// Shared experts' up projection.
    SharedUp = 0x25, "shared_up", "ffn_up_shexp.weight", 16;
    /// Shared experts' down projection.
    SharedDown = 0x26, "shared_down", "ffn_down_shexp.weight", 17;
    /// Vision convolution.
    VisionConv = 0x80, "vision_conv", "", 110;
    /// Vision batch norm.
    VisionBn = 0x81, "vision_bn", "", 111;
    /// Vision fully connected.
    VisionFc = 0x82, "vision_fc", "", 112;
}

impl Role {
    /// The code of a tensor without an engine role, 0xfffe.
    pub const UNKNOWN: Self = Self::Unknown(0xfffe);

    /// Whether the tensor belongs to one layer.
    #[must_use]
    pub const fn is_layer(self) -> bool {
        self.order() < 100
    }

    /// Role and layer of a GGUF tensor name; the layer is `None` for global tensors. `None` when no role has the name:
    /// `blk.0.attn_q.bias` is not [`Role::AttnQ`], and neither is `blk.00.attn_q.weight`.
    #[must_use]
    pub fn from_gguf_name(name: &str) -> Option<(Self, Option<u32>)> {
        if let Some(rest) = name.strip_prefix("blk.") {
            let (number, suffix) = rest.split_once('.')?;
            let canonical = number == "0" || !number.starts_with(['0', '+']);
            let layer = number.parse::<u32>().ok().filter(|_| canonical)?;
            let role = Self::ALL.iter().find(|role| role.is_layer() && role.gguf_name() == suffix)?;
            return Some((*role, Some(layer)));
        }
        let role = Self::ALL.iter().find(|r| !r.is_layer() && !r.gguf_name().is_empty() && r.gguf_name() == name)?;
        Some((*role, None))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(0xfffe) => f.pad("-"),
            Self::Unknown(id) => write!(f, "role {id:#06x}"),
            known => f.pad(known.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_a_round_trip() {
        for id in 0..=u16::MAX {
            assert_eq!(Role::from_id(id).id(), id);
        }
    }

    #[test]
    fn names_are_matched_exactly() {
        assert_eq!(Role::from_gguf_name("blk.3.attn_q.weight"), Some((Role::AttnQ, Some(3))));
        assert_eq!(Role::from_gguf_name("output_norm.weight"), Some((Role::OutputNorm, None)));
        for name in [
            "blk.3.attn_q.bias",
            "blk.03.attn_q.weight",
            "blk.+3.attn_q.weight",
            "blk..attn_q.weight",
            "blk.4294967296.attn_q.weight",
            "attn_q.weight",
            "blk.1.output.weight",
            "x.blk.1.attn_q.weight",
            "",
        ] {
            assert_eq!(Role::from_gguf_name(name), None, "{name}");
        }
    }

    /// Spec §7.3 prints this order.
    #[test]
    fn layer_major_order() {
        let mut roles = [
            Role::FfnDown,
            Role::FfnUp,
            Role::FfnGate,
            Role::FfnNorm,
            Role::AttnOutput,
            Role::AttnV,
            Role::AttnK,
            Role::AttnQ,
            Role::AttnNorm,
        ];
        roles.sort_by_key(|role| role.order());
        assert_eq!(
            roles.map(Role::name),
            ["attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"]
        );
    }
}
