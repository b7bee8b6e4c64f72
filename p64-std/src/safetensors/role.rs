//! Roles of the names that Hugging Face checkpoints give their tensors (spec §13.3).

use p64_core::Role;

/// Role and layer of a name, matched exactly; the layer is `None` for global tensors. `has_feedforward_norm` says whether
/// the model has a `pre_feedforward_layernorm` (Gemma 2 and 3): that is the norm before the feed-forward network then,
/// and `post_attention_layernorm` has no role.
#[must_use]
pub fn role_of(name: &str, has_feedforward_norm: bool) -> Option<(Role, Option<u32>)> {
    let global = match name {
        "model.embed_tokens.weight" => Some(Role::TokenEmbd),
        "model.norm.weight" => Some(Role::OutputNorm),
        "lm_head.weight" => Some(Role::Output),
        _ => None,
    };
    if let Some(role) = global {
        return Some((role, None));
    }
    let (number, suffix) = name.strip_prefix("model.layers.")?.split_once('.')?;
    let is_canonical = number == "0" || !number.starts_with(['0', '+']);
    let layer = number.parse::<u32>().ok().filter(|_| is_canonical)?;
    let role = match suffix {
        "self_attn.q_proj.weight" => Role::AttnQ,
        "self_attn.k_proj.weight" => Role::AttnK,
        "self_attn.v_proj.weight" => Role::AttnV,
        "self_attn.o_proj.weight" => Role::AttnOutput,
        "mlp.gate_proj.weight" => Role::FfnGate,
        "mlp.up_proj.weight" => Role::FfnUp,
        "mlp.down_proj.weight" => Role::FfnDown,
        "input_layernorm.weight" => Role::AttnNorm,
        "post_attention_layernorm.weight" if !has_feedforward_norm => Role::FfnNorm,
        "pre_feedforward_layernorm.weight" if has_feedforward_norm => Role::FfnNorm,
        _ => return None,
    };
    Some((role, Some(layer)))
}

/// Whether a model with these names has a norm before the feed-forward network beside the one after attention.
pub(crate) fn has_feedforward_norm<'n>(mut names: impl Iterator<Item = &'n str>) -> bool {
    names.any(|name| {
        let layer = name.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.'));
        layer.is_some_and(|(_, suffix)| suffix == "pre_feedforward_layernorm.weight")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_exactly() {
        let role = |name| role_of(name, false);
        assert_eq!(role("model.layers.3.self_attn.q_proj.weight"), Some((Role::AttnQ, Some(3))));
        assert_eq!(role("model.embed_tokens.weight"), Some((Role::TokenEmbd, None)));
        assert_eq!(role("lm_head.weight"), Some((Role::Output, None)));
        for name in [
            "model.layers.3.self_attn.q_proj.bias",
            "model.layers.03.self_attn.q_proj.weight",
            "model.layers.+3.self_attn.q_proj.weight",
            "model.layers..self_attn.q_proj.weight",
            "model.layers.4294967296.self_attn.q_proj.weight",
            "x.model.layers.3.self_attn.q_proj.weight",
            "model.layers.3.self_attn.q_proj.weight.x",
            "model.layers.3.self_attn.q_norm.weight",
            "model.layers.3.pre_feedforward_layernorm.weight",
            "blk.3.attn_q.weight",
            "",
        ] {
            assert_eq!(role(name), None, "{name}");
        }
    }

    /// In Gemma 2 and 3 the norm of that name follows attention; the one before the feed-forward network has its own.
    #[test]
    fn the_norm_after_attention_is_the_one_before_the_network_only_where_no_other_is() {
        let (after, before) =
            ("model.layers.0.post_attention_layernorm.weight", "model.layers.0.pre_feedforward_layernorm.weight");
        assert_eq!(role_of(after, false), Some((Role::FfnNorm, Some(0))));
        assert!(has_feedforward_norm([after, before].into_iter()));
        assert!(!has_feedforward_norm([after, "model.layers.0.x.pre_feedforward_layernorm.weight"].into_iter()));
        assert_eq!((role_of(after, true), role_of(before, true)), (None, Some((Role::FfnNorm, Some(0)))));
    }
}
