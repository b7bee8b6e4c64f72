//! Numbers for what an error is about: metadata keys and tensors that a `Copy` error cannot name in words.
//!
//! `MissingKey` and `UnsupportedFeature` carry a [`Parameter`] in `found`, `MissingTensor` a role or, for tensors without
//! one, a [`Parameter`] raised by [`Parameter::TENSOR`]. [`subject`] turns either back into the name.
#![forbid(unsafe_code)]

use crate::error::{Code, Error, Place};
use crate::layout::role::Role;

macro_rules! parameters {
    ($($variant:ident = $number:literal, $name:literal;)*) => {
        /// A metadata key (without the `<architecture>.` in front) or the name of a tensor without a role (without the
        /// `blk.N.` in front). The numbers are frozen.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum Parameter { $($variant = $number,)* }

        impl Parameter {
            /// Every parameter, in the order of the numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The frozen number.
            #[must_use]
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// The name in GGUF.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

parameters! {
    // Keys. `general.architecture` has no prefix.
    Architecture = 0, "general.architecture";
    BlockCount = 1, "block_count";
    ContextLength = 2, "context_length";
    EmbeddingLength = 3, "embedding_length";
    FeedForwardLength = 4, "feed_forward_length";
    HeadCount = 5, "attention.head_count";
    HeadCountKv = 6, "attention.head_count_kv";
    KeyLength = 7, "attention.key_length";
    ValueLength = 8, "attention.value_length";
    RmsEpsilon = 9, "attention.layer_norm_rms_epsilon";
    SlidingWindow = 10, "attention.sliding_window";
    SlidingWindowPattern = 11, "attention.sliding_window_pattern";
    RopeDimensionCount = 12, "rope.dimension_count";
    RopeBase = 13, "rope.freq_base";
    RopeBaseLocal = 14, "rope.freq_base_swa";
    RopeScalingType = 15, "rope.scaling.type";
    RopeScalingFactor = 16, "rope.scaling.factor";
    RopeScaleLinear = 17, "rope.scale_linear";
    // Keys that only some families follow; in the others they must change nothing.
    RopeScalingAttention = 18, "rope.scaling.attn_factor";
    RopeSections = 19, "rope.dimension_sections";
    ExpertCount = 20, "expert_count";
    AttentionCausal = 21, "attention.causal";
    AttentionScale = 22, "attention.scale";
    AttentionSoftcap = 23, "attn_logit_softcapping";
    FinalSoftcap = 24, "final_logit_softcapping";
    LogitScale = 25, "logit_scale";
    ResidualScale = 26, "residual_scale";
    EmbeddingScale = 27, "embedding_scale";
    ClampKqv = 28, "attention.clamp_kqv";
    AlibiBias = 29, "attention.max_alibi_bias";
    ParallelResidual = 30, "use_parallel_residual";
    SharedKvLayers = 31, "attention.shared_kv_layers";
    KeyLengthLocal = 32, "attention.key_length_swa";
    ValueLengthLocal = 33, "attention.value_length_swa";
    LayerEpsilon = 34, "attention.layer_norm_epsilon";
    RopeOriginalContext = 35, "rope.scaling.original_context_length";
    RopeFinetuned = 36, "rope.scaling.finetuned";
    RopeDimensionCountLocal = 37, "rope.dimension_count_swa";
    ExpertUsedCount = 38, "expert_used_count";
    ExpertFeedForwardLength = 39, "expert_feed_forward_length";
    ExpertSharedFeedForwardLength = 40, "expert_shared_feed_forward_length";
    ExpertWeightsScale = 41, "expert_weights_scale";
    DeepstackMapping = 42, "deepstack_mapping";
    ExpertGatingFunction = 43, "expert_gating_func";
    ExpertGroupCount = 44, "expert_group_count";
    ExpertWeightsNorm = 45, "expert_weights_norm";
    // Keys of the tokenizer; they have no prefix either.
    TokenizerModel = 48, "tokenizer.ggml.model";
    TokenizerPre = 49, "tokenizer.ggml.pre";
    TokenizerTokens = 50, "tokenizer.ggml.tokens";
    TokenizerMerges = 51, "tokenizer.ggml.merges";
    TokenizerScores = 52, "tokenizer.ggml.scores";
    TokenizerTypes = 53, "tokenizer.ggml.token_type";
    TokenizerBos = 54, "tokenizer.ggml.bos_token_id";
    TokenizerEos = 55, "tokenizer.ggml.eos_token_id";
    TokenizerEot = 56, "tokenizer.ggml.eot_token_id";
    TokenizerEom = 57, "tokenizer.ggml.eom_token_id";
    TokenizerUnknown = 58, "tokenizer.ggml.unknown_token_id";
    TokenizerAddBos = 59, "tokenizer.ggml.add_bos_token";
    TokenizerAddEos = 60, "tokenizer.ggml.add_eos_token";
    TokenizerAddSpacePrefix = 61, "tokenizer.ggml.add_space_prefix";
    // Tensors without a role.
    RopeFreqs = 64, "rope_freqs.weight";
    QueryNorm = 65, "attn_q_norm.weight";
    KeyNorm = 66, "attn_k_norm.weight";
    PostAttentionNorm = 67, "post_attention_norm.weight";
    PostFfnNorm = 68, "post_ffw_norm.weight";
    QueryKeyValue = 69, "attn_qkv.weight";
    QueryKeyValueBias = 70, "attn_qkv.bias";
    QueryBias = 71, "attn_q.bias";
    KeyBias = 72, "attn_k.bias";
    ValueBias = 73, "attn_v.bias";
    AttentionOutputBias = 74, "attn_output.bias";
    AttentionNormBias = 75, "attn_norm.bias";
    FfnNormBias = 76, "ffn_norm.bias";
    FfnGateBias = 77, "ffn_gate.bias";
    FfnUpBias = 78, "ffn_up.bias";
    FfnDownBias = 79, "ffn_down.bias";
    QueryScale = 80, "attn_q.scale";
    KeyScale = 81, "attn_k.scale";
    ValueScale = 82, "attn_v.scale";
    AttentionOutputScale = 83, "attn_output.scale";
    FfnGateScale = 84, "ffn_gate.scale";
    FfnUpScale = 85, "ffn_up.scale";
    FfnDownScale = 86, "ffn_down.scale";
    OutputNormBias = 87, "output_norm.bias";
    OutputBias = 88, "output.bias";
    PositionEmbedding = 89, "position_embd.weight";
    RopeFactorsLong = 90, "rope_factors_long.weight";
    RopeFactorsShort = 91, "rope_factors_short.weight";
    SharedExpertGate = 92, "ffn_gate_inp_shexp.weight";
    // Any other tensor; the error's place says which.
    OtherTensor = 127, "a tensor that has no place in this family";
}

impl Parameter {
    /// Raises the number of a tensor without a role above every role code, for `MissingTensor`.
    pub const TENSOR: u64 = 1 << 16;

    /// What `MissingTensor` carries for the tensor of this name.
    pub(crate) fn tensor(self) -> u64 {
        Self::TENSOR.saturating_add(u64::from(self.number()))
    }

    /// The parameter of a number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.iter().copied().find(|parameter| u64::from(parameter.number()) == number)
    }

    pub(crate) fn unsupported(self, place: Place) -> Error {
        Error::new(Code::UnsupportedFeature, place).values(0, u64::from(self.number()))
    }
}

/// The name of the metadata key or tensor that an error of [`forward`](super) is about. A key's name lacks the
/// `<architecture>.` in front, a tensor's name the `blk.N.` (the layer is the error's place).
#[must_use]
pub fn subject(error: &Error) -> Option<&'static str> {
    let parameter = |number| Parameter::from_number(number).map(Parameter::name);
    match error.code {
        Code::MissingKey | Code::UnsupportedFeature => parameter(error.found),
        Code::MissingTensor => match error.found.checked_sub(Parameter::TENSOR) {
            Some(number) => parameter(number),
            None => u16::try_from(error.found).ok().map(|id| Role::from_id(id).gguf_name()),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_and_names_are_unique() {
        let numbers: BTreeSet<_> = Parameter::ALL.iter().map(|p| p.number()).collect();
        let names: BTreeSet<_> = Parameter::ALL.iter().map(|p| p.name()).collect();
        assert_eq!((numbers.len(), names.len()), (Parameter::ALL.len(), Parameter::ALL.len()));
    }

    #[test]
    fn an_error_finds_its_subject() {
        let error = Error::new(Code::MissingKey, Place::File).values(0, 9);
        assert_eq!(subject(&error), Some("attention.layer_norm_rms_epsilon"));
        let error = Error::new(Code::MissingTensor, Place::Layer(3)).values(0, u64::from(Role::FfnUp.id()));
        assert_eq!(subject(&error), Some("ffn_up.weight"));
        let error = Error::new(Code::MissingTensor, Place::Layer(3)).values(0, Parameter::TENSOR + 65);
        assert_eq!(subject(&error), Some("attn_q_norm.weight"));
        assert_eq!(subject(&Error::buffer_too_small(9, 3)), None);
    }
}
