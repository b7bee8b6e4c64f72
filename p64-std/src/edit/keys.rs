//! The new key-value area.

use super::encoded::{Encoded, Kind};
use super::request::{Change, To};
use crate::write::Pairs;
use p64_core::metadata::Metadata;
use std::collections::HashMap;

/// A key whose value is another one now, with values as people read them; long ones are cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyChange {
    /// The key.
    pub key: String,
    /// What it said; `None` for a new key.
    pub before: Option<String>,
    /// What it says; `None` for one that was dropped.
    pub after: Option<String>,
}

/// The area after all changes, and what is different.
pub(super) fn apply(before: &Metadata<'_>, changes: &[Change]) -> Result<(Pairs, Vec<KeyChange>), String> {
    let old: Vec<(&str, Encoded)> = before.iter().map(|(key, value)| (key, Encoded::of(value))).collect();
    let mut new: Vec<(&str, Encoded)> = old.clone();
    for Change { key, to } in changes {
        let at = new.iter().position(|(name, _)| name == key);
        let there = at.and_then(|at| new.get_mut(at));
        let named = |reason: String| format!("{key}: {reason}");
        let value = match (to, &there) {
            (To::Nothing, _) => {
                let at =
                    at.ok_or_else(|| named("there is no such key to drop; p64 inspect --metadata lists them".into()))?;
                new.remove(at);
                continue;
            }
            (To::Text(kind, text), there) => {
                let kind: Option<Kind> = kind.or(there.as_ref().map(|(_, value)| value.kind));
                let kind = kind.ok_or_else(|| {
                    named(format!("there is no such key; to add it, name its type, as in {key}:string=VALUE"))
                })?;
                Encoded::from_text(kind, text)
            }
            (To::Json(json), there) => Encoded::from_json(there.as_ref().map(|(_, value)| value.kind), json),
        };
        let value = value.map_err(named)?;
        match there {
            Some((_, slot)) => *slot = value,
            None => new.push((key, value)),
        }
    }

    let mut pairs = Pairs::new();
    let mut left: HashMap<&str, &Encoded> = old.iter().map(|(key, value)| (*key, value)).collect();
    let mut changed = Vec::new();
    for (key, value) in &new {
        value.push_to(key, &mut pairs);
        let was = left.remove(key);
        if was.is_none_or(|was| (was.kind, &was.bytes) != (value.kind, &value.bytes)) {
            let before = was.map(|was| was.shown.clone());
            changed.push(KeyChange { key: (*key).to_owned(), before, after: Some(value.shown.clone()) });
        }
    }
    for (key, value) in old.iter().filter(|(key, _)| left.contains_key(key)) {
        changed.push(KeyChange { key: (*key).to_owned(), before: Some(value.shown.clone()), after: None });
    }
    Ok((pairs, changed))
}

#[cfg(test)]
mod tests {
    use super::super::Edits;
    use super::*;

    fn area() -> Vec<u8> {
        let mut pairs = Pairs::new();
        pairs.str("a", "x").u32("b", 1).f32("c", 0.5).str_array("d", &["p", "q"]);
        pairs.to_area()
    }

    fn run(edits: &Edits) -> Result<(Vec<u8>, Vec<KeyChange>), String> {
        let area = area();
        let before = Metadata::parse(&area, 0).expect("well-formed");
        apply(&before, &edits.changes).map(|(pairs, changed)| (pairs.to_area(), changed))
    }

    #[test]
    fn types_and_places_stay() {
        let mut edits = Edits::new();
        edits.set("b=7").expect("a form").set("d=[\"r\"]").expect("a form").set("e:bool=true").expect("a form");
        edits.unset("a").set("c:u64=2").expect("a form").set_json("{\"f\": [1], \"e\": false}").expect("JSON");
        let (area, changed) = run(&edits).expect("possible");
        let mut expected = Pairs::new();
        expected.u32("b", 7).u64("c", 2).str_array("d", &["r"]).bool("e", false).u32_array("f", &[1]);
        assert_eq!(area, expected.to_area());
        let changed: Vec<_> = changed
            .iter()
            .map(|change| (change.key.as_str(), change.before.as_deref(), change.after.as_deref()))
            .collect();
        assert_eq!(
            changed,
            [
                ("b", Some("1"), Some("7")),
                ("c", Some("0.5"), Some("2")),
                ("d", Some("[\"p\",\"q\"]"), Some("[\"r\"]")),
                ("e", None, Some("false")),
                ("f", None, Some("[1]")),
                ("a", Some("\"x\""), None),
            ]
        );
    }

    #[test]
    fn the_same_value_is_no_change() {
        let mut edits = Edits::new();
        edits.set("a=y").expect("a form").set("a=x").expect("a form").set("b=1").expect("a form");
        assert_eq!(run(&edits).expect("possible"), (area(), Vec::new()));
    }

    #[test]
    fn what_cannot_be_done() {
        let refused = |edit: &dyn Fn(&mut Edits)| {
            let mut edits = Edits::new();
            edit(&mut edits);
            run(&edits).expect_err("refused")
        };
        let text = refused(&|edits| {
            edits.unset("z");
        });
        assert_eq!(text, "z: there is no such key to drop; p64 inspect --metadata lists them");
        let text = refused(&|edits| {
            edits.set("z=1").expect("a form");
        });
        assert_eq!(text, "z: there is no such key; to add it, name its type, as in z:string=VALUE");
        let text = refused(&|edits| {
            edits.set("b=x").expect("a form");
        });
        assert_eq!(text, "b: \"x\" is no u32");
        let mut edits = Edits::new();
        for bad in ["x", "=1", ":u32=1", "a:u33=1"] {
            assert!(edits.set(bad).is_err(), "{bad}");
        }
        for bad in ["x", "x=", "=x"] {
            assert!(edits.rename(bad).is_err(), "{bad}");
        }
        assert!(edits.set_json("[1]").is_err() && edits.set_json("{").is_err());
        assert!(edits.is_empty());
    }
}
