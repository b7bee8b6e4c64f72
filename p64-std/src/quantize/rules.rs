//! Which type each tensor is to have: a profile for all of them, and rules for some.

use super::error::WRITTEN;
use super::mix;
use super::profile::Profile;
use super::supports;
use crate::glob::matches;
use p64_core::metadata::Metadata;
use p64_core::{DType, Shape};
use std::str::FromStr;

/// What the choice of types depends on beside the tensors. All zero where a source does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelFacts {
    /// `general.architecture`.
    pub architecture: String,
    /// `block_count`.
    pub layers: u32,
    /// `attention.head_count`, of the first layer where they differ.
    pub heads: u32,
    /// `attention.head_count_kv`; the number of heads where the key is missing.
    pub kv_heads: u32,
    /// `expert_count`.
    pub experts: u32,
}

impl ModelFacts {
    /// The facts that a GGUF's keys tell.
    #[must_use]
    pub fn from_metadata(metadata: &Metadata<'_>) -> Self {
        let architecture = metadata.str("general.architecture").ok().flatten().unwrap_or_default().to_owned();
        let number = |suffix: &str| {
            let value = metadata.get(&format!("{architecture}.{suffix}"))?;
            let first = value.as_array().and_then(|array| array.get(0)).or(Some(value))?;
            first.as_u64().and_then(|number| u32::try_from(number).ok())
        };
        let heads = number("attention.head_count").unwrap_or_default();
        Self {
            layers: number("block_count").unwrap_or_default(),
            heads,
            kv_heads: number("attention.head_count_kv").unwrap_or(heads),
            experts: number("expert_count").unwrap_or_default(),
            architecture,
        }
    }
}

/// A tensor as the choice of types sees it.
#[derive(Clone, Copy, Debug)]
pub struct TensorFacts<'a> {
    /// GGUF name.
    pub name: &'a str,
    /// Shape in GGML order.
    pub shape: Shape,
    /// Type in the source.
    pub dtype: DType,
}

/// What a tensor is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The type.
    pub dtype: DType,
    /// The type that the profile or rule names; another one than `dtype` where the tensor's rows are no whole blocks of it.
    pub wanted: DType,
}

/// One rule: a pattern of names, and the type that tensors of these names get.
///
/// As text, `PATTERN=TYPE`. `*` stands for any characters, `?` for one. A pattern is compared with the GGUF name, with what
/// follows `blk.N.` in it, and with both less `.weight`: `ffn_*=q4_k`, `output=q6_k`, `blk.0.*=f16`. The type `keep` leaves
/// tensors as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pattern: String,
    dtype: Option<DType>,
}

impl Rule {
    /// A rule for names like `pattern`; no type leaves tensors as they are.
    ///
    /// # Errors
    /// A reason, for an empty pattern and for types that nothing writes.
    pub fn new(pattern: &str, dtype: Option<DType>) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("a rule needs a pattern before `=`, as in `ffn_*=q4_k`".to_owned());
        }
        match dtype {
            Some(dtype) if !supports(dtype) => Err(format!("nothing writes {dtype}; the types are {WRITTEN}")),
            _ => Ok(Self { pattern: pattern.to_owned(), dtype }),
        }
    }

    /// Whether the rule is for a tensor of this name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let suffix = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')).map_or(name, |(_, rest)| rest);
        let short = |name: &'_ str| name.strip_suffix(".weight").map(str::to_owned);
        matches(&self.pattern, name)
            || matches(&self.pattern, suffix)
            || short(name).is_some_and(|name| matches(&self.pattern, &name))
            || short(suffix).is_some_and(|name| matches(&self.pattern, &name))
    }

    /// Whether the pattern names tensors one by one.
    fn is_exact(&self) -> bool {
        !self.pattern.contains(['*', '?'])
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (pattern, dtype) = text
            .rsplit_once('=')
            .ok_or_else(|| format!("`{text}` has no `=`; a rule is PATTERN=TYPE, as in `ffn_*=q4_k`"))?;
        let dtype = if dtype.eq_ignore_ascii_case("keep") { None } else { Some(parse_dtype(dtype)?) };
        Self::new(pattern, dtype)
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.dtype.map_or_else(|| "keep".to_owned(), |dtype| dtype.name().to_lowercase());
        write!(f, "{}={name}", self.pattern)
    }
}

/// The type of a name, in any case: one that is written.
fn parse_dtype(name: &str) -> Result<DType, String> {
    let found = DType::ALL.iter().copied().find(|dtype| dtype.name().eq_ignore_ascii_case(name));
    match found {
        Some(DType::Q4KSoa) => Err("q4_k_soa is a layout of q4_k: ask for q4_k, and for the layout `soa`".to_owned()),
        Some(dtype) if supports(dtype) => Ok(dtype),
        _ => Err(format!("`{name}` is no type that is written; the types are {WRITTEN}, and keep")),
    }
}

/// A profile for all tensors and rules for some: the first rule that matches counts, and the profile where none does.
///
/// A pattern with a wildcard leaves alone what no quantiser touches: tensors of one dimension, norms, biases, routers
/// ([`is_weight`]). A rule that spells out the whole name takes any tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// What tensors without a rule become; `None` leaves them as they are.
    pub profile: Option<Profile>,
    /// Rules in order.
    pub rules: Vec<Rule>,
}

impl Rules {
    /// Whether every tensor stays as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.profile.is_none() && self.rules.is_empty()
    }

    /// What each tensor is to become, in the order given; `None` leaves it as it is. `imatrix` tells whether there is an
    /// importance matrix, on which some mixes depend.
    ///
    /// A type whose blocks are no whole part of a tensor's rows gives way to one with smaller blocks, as in llama.cpp:
    /// Q4_K to Q5_0, Q5_K to Q5_1, Q6_K to Q8_0, Q2_K, Q3_K and TQ* to Q4_0, IQ4_XS to IQ4_NL, all others to F16.
    #[must_use]
    pub fn plan(&self, model: &ModelFacts, tensors: &[TensorFacts<'_>], imatrix: bool) -> Vec<Option<Target>> {
        let profile = match self.profile {
            Some(profile) => mix::plan(profile, model, tensors, imatrix),
            None => vec![None; tensors.len()],
        };
        let choose = |(tensor, profile): (&TensorFacts<'_>, Option<DType>)| {
            let rule = self.rule(tensor.name, &tensor.shape);
            let wanted = rule.map_or(profile, |rule| rule.dtype)?;
            let dtype = mix::fitting(wanted, &tensor.shape);
            // What no decoder reads cannot be encoded again.
            let readable = p64_core::kernel::is_supported(tensor.dtype);
            (readable && dtype != tensor.dtype).then_some(Target { dtype, wanted })
        };
        tensors.iter().zip(profile).map(choose).collect()
    }
}

impl Rules {
    /// Whether a rule leaves the tensor as it is, whatever else is asked for.
    #[must_use]
    pub fn keeps(&self, name: &str, shape: &Shape) -> bool {
        self.rule(name, shape).is_some_and(|rule| rule.dtype.is_none())
    }

    fn rule(&self, name: &str, shape: &Shape) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.matches(name) && (rule.is_exact() || is_weight(name, shape)))
    }
}

/// Whether a quantiser takes a tensor: a matrix of weights that is neither norm nor bias nor router, nor one of the small
/// special tensors of some architectures (the list is llama.cpp's).
#[must_use]
pub fn is_weight(name: &str, shape: &Shape) -> bool {
    const SPECIAL: [&str; 37] = [
        "_norm.weight",
        "ffn_gate_inp.weight",
        "ffn_gate_tid2eid.weight",
        "altup",
        "laurel",
        "per_layer_model_proj",
        "ssm_conv1d",
        "shortconv.conv.weight",
        "indexer.k_proj.weight",
        "indexer.q_proj.weight",
        "time_mix_first.weight",
        "time_mix_w0.weight",
        "time_mix_w1.weight",
        "time_mix_w2.weight",
        "time_mix_v0.weight",
        "time_mix_v1.weight",
        "time_mix_v2.weight",
        "time_mix_a0.weight",
        "time_mix_a1.weight",
        "time_mix_a2.weight",
        "time_mix_g1.weight",
        "time_mix_g2.weight",
        "time_mix_decay_w1.weight",
        "time_mix_decay_w2.weight",
        "time_mix_lerp_fused.weight",
        "attn_rel_b.weight",
        ".position_embd",
        "sam.pos_embd",
        "sam.neck.",
        "sam.net_",
        ".rel_pos",
        ".patch_embd",
        ".patch_merger",
        "a.rvq.codebook",
        "mm.a.code_embd",
        "position_embd.weight",
        "token_types.weight",
    ];
    let matrix = shape.dims().iter().skip(1).any(|dim| *dim > 1);
    matrix && name.ends_with("weight") && !SPECIAL.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn patterns_match_names_with_and_without_layer_and_weight() {
        for (text, name, expected) in [
            ("ffn_*=q4_k", "blk.3.ffn_gate.weight", true),
            ("ffn_*=q4_k", "blk.3.attn_q.weight", false),
            ("output=q6_k", "output.weight", true),
            ("output=q6_k", "output_norm.weight", false),
            ("output=q6_k", "blk.3.attn_output.weight", false),
            ("blk.0.*=f16", "blk.0.attn_q.weight", true),
            ("blk.0.*=f16", "blk.10.attn_q.weight", false),
            ("blk.?.*=f16", "blk.7.attn_q.weight", true),
            ("*=q8_0", "token_embd.weight", true),
            ("a*b*c=q8_0", "aXbbXXc", true),
            ("a*b*c=q8_0", "aXbbXXcd", false),
            ("attn_[qk]=q8_0", "blk.0.attn_q.weight", false),
        ] {
            assert_eq!(rule(text).matches(name), expected, "{text} {name}");
        }
    }

    #[test]
    fn rules_are_read_and_written() {
        assert_eq!(rule("ffn_*=Q4_K").to_string(), "ffn_*=q4_k");
        assert_eq!(rule("a=b=keep").to_string(), "a=b=keep");
        for (text, part) in [
            ("ffn_*", "has no `=`"),
            ("=q4_k", "needs a pattern"),
            ("x=q4_k_soa", "layout"),
            ("x=q7_z", "the types are f32, f16"),
            ("x=iq2_xxs", "the types are f32, f16"),
        ] {
            let error = text.parse::<Rule>().expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_first_rule_counts_and_wildcards_spare_norms() {
        let shape = |dims: &[u32]| Shape::new(dims).expect("a rank");
        let tensors = [
            ("token_embd.weight", shape(&[512, 9]), DType::F16),
            ("blk.0.attn_norm.weight", shape(&[512]), DType::F32),
            ("blk.0.ffn_up.weight", shape(&[512, 64]), DType::F16),
            ("blk.0.ffn_down.weight", shape(&[96, 512]), DType::BF16),
            ("blk.0.attn_k.weight", shape(&[48, 512]), DType::F32),
            ("blk.0.attn_q.weight", shape(&[512, 512]), DType::Q8_0),
            ("blk.0.attn_v.weight", shape(&[512, 512]), DType::I32),
        ];
        let tensors = tensors.map(|(name, shape, dtype)| TensorFacts { name, shape, dtype });
        let rules = ["ffn_up=keep", "ffn_*=q4_k", "attn_k=q6_k", "blk.0.*=q8_0"].map(rule).to_vec();
        let plan = Rules { profile: None, rules }.plan(&ModelFacts::default(), &tensors, false);
        let target = |dtype, wanted| Some(Target { dtype, wanted });
        let down = target(DType::Q5_0, DType::Q4_K);
        let key = target(DType::F16, DType::Q6_K);
        assert_eq!(plan, [None, None, None, down, key, None, None]);
        let rules = vec![rule("attn_norm=f16"), rule("token_embd.weight=bf16")];
        let plan = Rules { profile: None, rules }.plan(&ModelFacts::default(), &tensors[..2], false);
        assert_eq!(plan, [target(DType::BF16, DType::BF16), target(DType::F16, DType::F16)]);
    }
}
