//! The types that a profile gives to the tensors of a model: the mixes of llama.cpp, by facts of each tensor.
//!
//! A mix spends more bits where an error costs more: on the output matrix, on attention values (they are shared by all
//! heads of a group), on the down projections of the first, the last and every third layer. The choices are those that
//! llama.cpp's quantiser makes for its file types, so that a profile means the same here as there; tests compare them
//! tensor by tensor.

use super::profile::Profile;
use super::rules::{ModelFacts, TensorFacts, is_weight};
use p64_core::layout::role::Role;
use p64_core::{DType, Shape};

/// What a tensor does, as far as mixes tell tensors apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Embedding,
    Output,
    Query,
    Key,
    Value,
    /// Query, key and value in one matrix.
    Joint,
    /// Keys and values from one compressed vector.
    KeyValue,
    AttnOutput,
    Down,
    Other,
}

impl Part {
    fn of(name: &str) -> Self {
        match name {
            "output.weight" => return Self::Output,
            "token_embd.weight" | "per_layer_token_embd.weight" => return Self::Embedding,
            _ => {}
        }
        let parts = [
            ("attn_qkv.weight", Self::Joint),
            ("attn_kv_b.weight", Self::KeyValue),
            ("attn_v.weight", Self::Value),
            ("attn_k.weight", Self::Key),
            ("attn_q.weight", Self::Query),
            ("attn_output.weight", Self::AttnOutput),
            ("ffn_down", Self::Down),
        ];
        parts.into_iter().find(|(part, _)| name.contains(part)).map_or(Self::Other, |(_, part)| part)
    }

    const fn is_value(self) -> bool {
        matches!(self, Self::Value | Self::Joint | Self::KeyValue)
    }
}

/// The type of each tensor, before it is fitted to its rows; `None` leaves it as it is.
pub(super) fn plan(
    profile: Profile,
    model: &ModelFacts,
    tensors: &[TensorFacts<'_>],
    imatrix: bool,
) -> Vec<Option<DType>> {
    match profile {
        Profile::FfnQ40 | Profile::FfnTernary => {
            tensors.iter().map(|tensor| is_projection(profile, tensor).then_some(profile.dtype())).collect()
        }
        Profile::F32 | Profile::F16 | Profile::Bf16 => {
            let float = |tensor: &TensorFacts<'_>| is_weight(tensor.name, &tensor.shape).then_some(profile.dtype());
            tensors.iter().map(float).collect()
        }
        _ => Mix::new(profile, model, tensors, imatrix).plan(tensors),
    }
}

/// Whether a profile of §13.2 changes a tensor: gate, up and down projections of the feed-forward network. Ternary has one
/// scale for a tensor, so that experts, which lie stacked in one, are left as they are.
fn is_projection(profile: Profile, tensor: &TensorFacts<'_>) -> bool {
    let role = Role::from_gguf_name(tensor.name).map(|(role, _)| role);
    let stacked = profile == Profile::FfnQ40
        && [".ffn_gate_exps.weight", ".ffn_up_exps.weight", ".ffn_down_exps.weight"]
            .iter()
            .any(|suffix| tensor.name.ends_with(suffix));
    matches!(role, Some(Role::FfnGate | Role::FfnUp | Role::FfnDown)) || stacked
}

/// The type, or the one with smaller blocks that takes its place where rows are no whole blocks of it.
pub(super) fn fitting(wanted: DType, shape: &Shape) -> DType {
    let fits =
        |dtype: DType| dtype.block().is_none_or(|block| shape.row_len().is_multiple_of(u64::from(block.elements)));
    let smaller = match wanted {
        DType::Q2_K | DType::Q3_K | DType::TQ1_0 | DType::TQ2_0 => DType::Q4_0,
        DType::Q4_K => DType::Q5_0,
        DType::Q5_K => DType::Q5_1,
        DType::Q6_K => DType::Q8_0,
        DType::IQ4_XS => DType::IQ4_NL,
        _ => wanted,
    };
    [wanted, smaller].into_iter().find(|dtype| fits(*dtype)).unwrap_or(DType::F16)
}

/// The state of a mix: what is known of the model, and how many tensors of a kind have come by.
struct Mix<'a> {
    profile: Profile,
    model: &'a ModelFacts,
    imatrix: bool,
    /// No output matrix of its own: the embedding is one too.
    tied: bool,
    /// Matrices of attention values in the model, and those seen.
    values: (u32, u32),
    /// Down projections seen.
    downs: u32,
}

impl<'a> Mix<'a> {
    fn new(profile: Profile, model: &'a ModelFacts, tensors: &[TensorFacts<'_>], imatrix: bool) -> Self {
        let values = tensors.iter().filter(|tensor| Part::of(tensor.name).is_value()).count();
        let tied = !tensors.iter().any(|tensor| Part::of(tensor.name) == Part::Output);
        Self { profile, model, imatrix, tied, values: (u32::try_from(values).unwrap_or(u32::MAX), 0), downs: 0 }
    }

    fn plan(mut self, tensors: &[TensorFacts<'_>]) -> Vec<Option<DType>> {
        // Tensors are counted in the order of layers, and of names within one, whatever the file's order.
        let mut order: Vec<_> = (0..tensors.len()).collect();
        order.sort_by_key(|&index| tensors.get(index).map(|tensor| (layer(tensor.name), tensor.name)));
        let mut plan = vec![None; tensors.len()];
        for index in order {
            if let (Some(slot), Some(tensor)) = (plan.get_mut(index), tensors.get(index)) {
                *slot = is_weight(tensor.name, &tensor.shape).then(|| self.choose(tensor));
            }
        }
        plan
    }

    fn choose(&mut self, tensor: &TensorFacts<'_>) -> DType {
        use Profile::{Q2K, Q3KL, Q3KM};
        let dtype = self.profile.dtype();
        let part = Part::of(tensor.name);
        let falcon = self.model.architecture == "falcon";
        let eight = self.model.experts == 8;
        match part {
            Part::Output => self.output(tensor),
            Part::Embedding if self.tied => self.output(tensor),
            Part::Embedding => match dtype {
                DType::TQ1_0 | DType::TQ2_0 => DType::Q4_K,
                _ => dtype,
            },
            Part::Value | Part::Joint | Part::KeyValue => self.value(),
            Part::Key if eight => DType::Q8_0,
            Part::Down => self.down(tensor, falcon),
            Part::AttnOutput if falcon => {
                if self.profile == Q3KL {
                    DType::Q4_K
                } else {
                    dtype
                }
            }
            Part::AttnOutput if eight => match dtype {
                DType::Q2_K | DType::Q4_K | DType::IQ4_NL | DType::IQ4_XS => DType::Q5_K,
                DType::Q3_K if self.profile != Q3KL => DType::Q5_K,
                _ => dtype,
            },
            Part::AttnOutput => match self.profile {
                Q2K => DType::Q3_K,
                Q3KM => DType::Q4_K,
                Q3KL => DType::Q5_K,
                _ => dtype,
            },
            Part::Query | Part::Key | Part::Other => dtype,
        }
    }

    /// The output matrix, or the embedding that stands for it.
    fn output(&self, tensor: &TensorFacts<'_>) -> DType {
        let dtype = self.profile.dtype();
        if self.model.architecture == "falcon" || fitting(dtype, &tensor.shape) != dtype || dtype == DType::Q8_0 {
            return DType::Q8_0;
        }
        DType::Q6_K
    }

    fn value(&mut self) -> DType {
        use Profile::{Iq4Nl, Iq4Xs, Q2K, Q3KL, Q3KM, Q4KM, Q4KS, Q5KM};
        let (all, seen) = self.values;
        self.values.1 = seen.saturating_add(1);
        let grouped = self.model.heads.checked_div(self.model.kv_heads).unwrap_or(0) >= 4;
        let mut dtype = match self.profile {
            Q2K if grouped => DType::Q4_K,
            Q2K => DType::Q3_K,
            Q3KM if seen < 2 => DType::Q5_K,
            Q3KM => DType::Q4_K,
            Q3KL => DType::Q5_K,
            Iq4Nl | Iq4Xs if grouped => DType::Q5_K,
            Q4KM | Q5KM if more_bits(seen, all) => DType::Q6_K,
            Q4KS if seen < 4 => DType::Q5_K,
            profile => profile.dtype(),
        };
        // Llama's 70B: eight heads share each value matrix.
        let seventy =
            self.model.architecture == "llama" && self.model.layers == 80 && self.model.heads != self.model.kv_heads;
        if seventy && matches!(dtype, DType::Q3_K | DType::Q4_K) {
            dtype = DType::Q5_K;
        }
        if self.model.experts == 8 { DType::Q8_0 } else { dtype }
    }

    fn down(&mut self, tensor: &TensorFacts<'_>, falcon: bool) -> DType {
        use Profile::{Iq4Nl, Iq4Xs, Q2K, Q3KL, Q3KM, Q4KM, Q4KS, Q5KM, Q40, Q50};
        let seen = self.downs;
        self.downs = seen.saturating_add(1);
        let layers = self.model.layers;
        // Experts of a layer may be tensors of their own: then the name tells the layer.
        let at = if self.model.experts > 1 { layer(tensor.name).unwrap_or(seen) } else { seen };
        let more = more_bits(at, layers);
        let (first, very_first) = (at < layers / 8, at < layers / 16);
        match self.profile {
            Q2K => DType::Q3_K,
            Q3KM if very_first => DType::Q5_K,
            Q3KM if !falcon || more => DType::Q4_K,
            Q3KL if falcon => DType::Q4_K,
            Q3KL => DType::Q5_K,
            Q4KM if falcon && very_first => DType::Q6_K,
            Q4KM if falcon && more => DType::Q5_K,
            Q4KM if !falcon && more => DType::Q6_K,
            Q5KM if more => DType::Q6_K,
            Q4KS if !falcon && first => DType::Q5_K,
            Iq4Nl | Iq4Xs if first && !self.imatrix => DType::Q5_K,
            Q40 if self.imatrix && first => DType::Q4_1,
            Q50 if self.imatrix && first => DType::Q5_1,
            profile => profile.dtype(),
        }
    }
}

/// Whether a layer is among the first or last eighth, or every third between.
const fn more_bits(layer: u32, layers: u32) -> bool {
    let eighth = layers / 8;
    let last = match layers.checked_mul(7) {
        Some(sevenfold) => layer >= sevenfold / 8,
        None => false,
    };
    layer < eighth || last || (layer - eighth) % 3 == 2
}

fn layer(name: &str) -> Option<u32> {
    name.strip_prefix("blk.")?.split_once('.')?.0.parse().ok()
}
