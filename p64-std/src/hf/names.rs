//! From the names of transformers to those of GGUF.

use super::json;

/// What becomes of a tensor on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Its bytes are the same.
    Same,
    /// Queries or keys of all heads, whose rows may change places.
    Queries,
    Keys,
    /// A norm's weight, to which a number may be added.
    Norm,
    /// Rows and columns change places.
    Transposed,
    /// One expert of those that are stacked.
    Expert,
    /// One head's vector of those that are stacked.
    Head,
    /// The first and the second half of its rows are two tensors, `to` and `second`.
    Halves(&'static str),
    /// The same for each expert, the names being whole.
    ExpertHalves(&'static str),
}

/// A rule: names that fit `from` become `to`. `{}` is the layer, `{e}` an expert or a head. `from` has no `.weight` or `.bias` at
/// the end: both fit, and stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    pub(super) step: Step,
}

/// A rule that leaves the bytes as they are.
pub(super) const fn same(from: &'static str, to: &'static str) -> Rule {
    Rule { from, to, step: Step::Same }
}

/// A rule with a step.
pub(super) const fn rule(from: &'static str, to: &'static str, step: Step) -> Rule {
    Rule { from, to, step }
}

/// A name that fits a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub(super) to: String,
    pub(super) step: Step,
    pub(super) layer: Option<u32>,
    pub(super) expert: Option<u32>,
    /// `.weight` or `.bias`.
    pub(super) suffix: &'static str,
}

impl Found {
    /// The name of another tensor of the same layer.
    pub(super) fn name_of(&self, to: &str) -> String {
        place(to, self.layer, self.suffix)
    }
}

fn place(to: &str, layer: Option<u32>, suffix: &str) -> String {
    let name = match layer {
        Some(layer) => to.replace("{}", &layer.to_string()),
        None => to.to_owned(),
    };
    format!("{name}{suffix}")
}

/// Looks a name up.
pub(super) fn find(rules: &[&[Rule]], name: &str) -> Option<Found> {
    let (stem, suffix) = match (name.strip_suffix(".weight"), name.strip_suffix(".bias")) {
        (Some(stem), _) => (stem, ".weight"),
        (_, Some(stem)) => (stem, ".bias"),
        _ => (name, ""),
    };
    rules.iter().flat_map(|rules| rules.iter()).find_map(|rule| {
        let (layer, expert) = fit(rule.from, stem)?;
        // Only stacked experts come without a suffix.
        let suffix = if suffix.is_empty() && name.contains(".experts.") { ".weight" } else { suffix };
        (!suffix.is_empty()).then(|| Found {
            to: place(rule.to, layer, suffix),
            step: rule.step,
            layer,
            expert,
            suffix,
        })
    })
}

/// The numbers in a name that fits a pattern.
pub(super) fn fit(pattern: &str, name: &str) -> Option<(Option<u32>, Option<u32>)> {
    let (mut layer, mut expert) = (None, None);
    let (mut patterns, mut parts) = (pattern.split('.'), name.split('.'));
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) => return Some((layer, expert)),
            (Some("{}"), Some(part)) => layer = Some(number(part)?),
            (Some("{e}"), Some(part)) => expert = Some(number(part)?),
            (Some(pattern), Some(part)) if pattern == part => {}
            _ => return None,
        }
    }
}

/// A number as it is written in names: no sign, no leading zero.
fn number(text: &str) -> Option<u32> {
    let plain = text == "0" || !text.starts_with('0');
    (plain && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Whether a tensor is one that transformers computes anew, or that it kept by mistake: nothing is lost without it.
pub(super) fn is_derived(name: &str) -> bool {
    [".rotary_emb.inv_freq", ".attention.masked_bias", ".attn.masked_bias", ".attn.bias", ".attention.bias"]
        .iter()
        .any(|end| name.ends_with(end))
        || name.ends_with("embeddings.position_ids")
}

/// The name of a tensor without what models with eyes put around their text part; `None` for one of the other parts.
pub(super) fn text_part(name: &str) -> Option<String> {
    const OTHER: [&str; 6] = [
        "vision_tower.",
        "vision_model.",
        "multi_modal_projector.",
        "model.vision_tower.",
        "model.multi_modal_projector.",
        "audio_tower.",
    ];
    if OTHER.iter().any(|part| name.starts_with(part)) {
        return None;
    }
    let name = match name.strip_prefix("language_model.").or_else(|| name.strip_prefix("model.language_model.")) {
        Some(rest) if rest.starts_with("model.") || rest.starts_with("lm_head.") => rest.to_owned(),
        Some(rest) => format!("model.{rest}"),
        None => name.to_owned(),
    };
    Some(name)
}

/// The message about a tensor that no rule fits.
pub(super) fn unknown(name: &str, arch: &str) -> String {
    format!(
        "{}: models of the family {arch} have no such tensor. --raw takes the tensors as they are",
        json::quoted(name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &[Rule] = &[
        same("model.layers.{}.a", "blk.{}.b"),
        rule("model.layers.{}.mlp.experts.{e}.up", "blk.{}.up_exps", Step::Expert),
    ];

    #[test]
    fn names_fit_whole_and_numbers_are_plain() {
        let found = |name: &str| find(&[RULES], name).map(|found| (found.to, found.layer, found.expert));
        assert_eq!(found("model.layers.12.a.weight"), Some(("blk.12.b.weight".to_owned(), Some(12), None)));
        assert_eq!(found("model.layers.0.a.bias"), Some(("blk.0.b.bias".to_owned(), Some(0), None)));
        let expert = Some(("blk.3.up_exps.weight".to_owned(), Some(3), Some(7)));
        assert_eq!(found("model.layers.3.mlp.experts.7.up.weight"), expert);
        for name in [
            "model.layers.01.a.weight",
            "model.layers.+1.a.weight",
            "model.layers.1.a",
            "model.layers.1.a.weight.weight",
            "model.layers.4294967296.a.weight",
            "xmodel.layers.1.a.weight",
            "model.layers.1.a.b.weight",
            "",
        ] {
            assert_eq!(found(name), None, "{name}");
        }
    }

    #[test]
    fn text_parts() {
        let cases = [
            ("model.layers.0.a", Some("model.layers.0.a")),
            ("language_model.model.norm.weight", Some("model.norm.weight")),
            ("model.language_model.norm.weight", Some("model.norm.weight")),
            ("language_model.lm_head.weight", Some("lm_head.weight")),
            ("vision_tower.x", None),
        ];
        for (name, expected) in cases {
            assert_eq!(text_part(name).as_deref(), expected, "{name}");
        }
    }
}
