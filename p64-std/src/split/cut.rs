//! Where a model is cut: between layers, and among the tensors that belong to none.

use super::size::parse_size;
use crate::write::Model;
use p64_core::Role;
use p64_core::limits::MAX_FILE_V4;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// How a model is cut into files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// As many layers to a file as leave it a container of version 4, below 4 GiB.
    Auto,
    /// That many layers to a file; what belongs to no layer follows in a file of its own.
    Layers(NonZeroU32),
    /// As many layers to a file as its length in bytes permits.
    Size(u64),
}

impl Cut {
    /// The length that no file should pass.
    pub(super) const fn limit(self) -> Option<u64> {
        match self {
            Self::Auto => Some(MAX_FILE_V4 - 1),
            Self::Size(size) => Some(size),
            Self::Layers(_) => None,
        }
    }
}

impl FromStr for Cut {
    type Err = String;

    /// `auto`, `layers=4`, `size=2G`.
    fn from_str(text: &str) -> Result<Self, String> {
        let cut = match text.split_once('=') {
            None if text == "auto" => Some(Self::Auto),
            Some(("layers", count)) => count.parse().ok().map(Self::Layers),
            Some(("size", size)) => parse_size(size).map(Self::Size),
            _ => None,
        };
        cut.ok_or_else(|| {
            format!("{text:?} is no way to cut a model; there are auto, layers=N and size=S, as in size=2G")
        })
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Layers(count) => write!(f, "layers={count}"),
            Self::Size(size) => write!(f, "size={size}"),
        }
    }
}

/// Tensors that stay in one file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Unit {
    /// The layer; `None` for a tensor that belongs to none.
    pub layer: Option<u32>,
    /// Places in the table of the whole model, rising.
    pub places: Vec<u32>,
}

/// The units of a model in the order in which they fill files: each layer that has tensors, then every other tensor by
/// itself. `order` has the position in the model's tensors of each place of its table.
pub(super) fn units(model: &Model, order: &[usize]) -> Vec<Unit> {
    let n_layer = model.hparams.n_layer.get();
    let mut layers: Vec<Unit> = (0..n_layer).map(|layer| Unit { layer: Some(layer), places: Vec::new() }).collect();
    let mut others = Vec::new();
    for (place, &index) in (0u32..).zip(order) {
        let Some(tensor) = model.tensors.get(index) else { continue };
        let layer = tensor.layer.or_else(|| match tensor.role {
            Role::Unknown(_) => layer_of_name(&tensor.name),
            _ => None,
        });
        match layer.and_then(|layer| layers.get_mut(usize::try_from(layer).ok()?)) {
            Some(unit) => unit.places.push(place),
            None => others.push(Unit { layer: None, places: vec![place] }),
        }
    }
    layers.retain(|unit| !unit.places.is_empty());
    layers.append(&mut others);
    layers
}

/// The layer that a tensor without a role has in its name: `blk.3.attn_q.bias`, `model.layers.3.self_attn.q_proj.bias`.
fn layer_of_name(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("blk.").or_else(|| name.strip_prefix("model.layers."))?;
    let (number, _) = rest.split_once('.')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok()).flatten()
}

/// The files of a cut by layers.
pub(super) fn by_layers(units: Vec<Unit>, count: NonZeroU32) -> Vec<Vec<Unit>> {
    let (layers, others): (Vec<_>, Vec<_>) = units.into_iter().partition(|unit| unit.layer.is_some());
    let count = usize::try_from(count.get()).unwrap_or(usize::MAX);
    let mut files: Vec<Vec<Unit>> = layers.chunks(count).map(<[Unit]>::to_vec).collect();
    if !others.is_empty() || files.is_empty() {
        files.push(others);
    }
    files
}

/// What a cut by size needs to know of lengths.
pub(super) trait Lengths {
    /// The length of a file of these units.
    fn exact(&self, is_first: bool, units: &[Unit]) -> Option<u64>;

    /// At most what a file without tensors has.
    fn base(&self, is_first: bool) -> u64;

    /// At most what a file grows by when it takes the unit.
    fn growth(&self, unit: &Unit) -> u64;
}

/// The files of a cut by size: each takes units while it stays within `limit`. A unit that passes it alone has a file to
/// itself.
pub(super) fn by_size(units: Vec<Unit>, limit: u64, lengths: &impl Lengths) -> Vec<Vec<Unit>> {
    let (mut files, mut current) = (Vec::new(), Vec::new());
    // At most the length of the current file. Where that is too much, the exact length is worked out, which takes time
    // in proportion to the file's tensors.
    let mut bound = lengths.base(true);
    for unit in units {
        bound = bound.saturating_add(lengths.growth(&unit));
        current.push(unit);
        if bound <= limit || current.len() == 1 {
            continue;
        }
        match lengths.exact(files.is_empty(), &current) {
            Some(exact) if exact <= limit => bound = exact,
            _ => {
                let last = current.split_off(current.len().saturating_sub(1));
                files.push(std::mem::replace(&mut current, last));
                let growth = current.iter().map(|unit| lengths.growth(unit)).fold(0, u64::saturating_add);
                bound = lengths.base(false).saturating_add(growth);
            }
        }
    }
    files.push(current);
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_as_text() {
        for (text, cut) in [
            ("auto", Cut::Auto),
            ("layers=4", Cut::Layers(NonZeroU32::new(4).expect("4"))),
            ("size=2000000000", Cut::Size(2_000_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(cut));
            assert_eq!(cut.to_string(), text);
        }
        assert_eq!("size=1k".parse(), Ok(Cut::Size(1000)));
        for text in ["", "layers", "layers=0", "layers=x", "size=", "size=0", "auto=1", "4"] {
            let error = text.parse::<Cut>().expect_err("refused");
            assert!(error.contains("layers=N"), "{error}");
        }
    }

    #[test]
    fn layers_in_names() {
        assert_eq!(layer_of_name("blk.12.attn_q.bias"), Some(12));
        assert_eq!(layer_of_name("model.layers.0.mlp.act.beta"), Some(0));
        for name in ["blk.x.a", "blk.1", "blk.+1.a", "a.blk.1.b", "blk..a", "blk.99999999999.a"] {
            assert_eq!(layer_of_name(name), None, "{name}");
        }
    }

    /// Units of 100 bytes each, over 10 bytes of front; estimates are half as large again.
    struct Toy;

    impl Lengths for Toy {
        fn exact(&self, _: bool, units: &[Unit]) -> Option<u64> {
            Some(10 + 100 * units.len() as u64)
        }

        fn base(&self, _: bool) -> u64 {
            15
        }

        fn growth(&self, _: &Unit) -> u64 {
            150
        }
    }

    fn sizes(limit: u64, count: u32) -> Vec<usize> {
        let units = (0..count).map(|place| Unit { layer: None, places: vec![place] }).collect();
        by_size(units, limit, &Toy).iter().map(Vec::len).collect()
    }

    #[test]
    fn a_file_is_filled_to_the_last_byte() {
        assert_eq!(sizes(310, 7), [3, 3, 1]);
        assert_eq!(sizes(309, 7), [2, 2, 2, 1]);
        assert_eq!(sizes(1, 3), [1, 1, 1], "what passes the limit alone has a file to itself");
        assert_eq!(sizes(u64::MAX, 3), [3]);
        assert_eq!(sizes(100, 0), [0], "a model without tensors has one file");
    }

    #[test]
    fn layers_and_then_the_rest() {
        let unit = |layer| Unit { layer, places: vec![] };
        let count = |n| NonZeroU32::new(n).expect("not 0");
        let units = vec![unit(Some(0)), unit(Some(1)), unit(Some(2)), unit(None), unit(None)];
        let lens = |files: Vec<Vec<Unit>>| files.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lens(by_layers(units.clone(), count(2))), [2, 1, 2]);
        assert_eq!(lens(by_layers(units.clone(), count(9))), [3, 2]);
        assert_eq!(lens(by_layers(units[3..].to_vec(), count(1))), [2]);
        assert_eq!(lens(by_layers(units[..3].to_vec(), count(1))), [1, 1, 1]);
        assert_eq!(lens(by_layers(vec![], count(1))), [0]);
    }
}
