//! Values as they stand in the area, made from text or JSON.

use crate::write::Pairs;
use p64_core::metadata::{Value, ValueKind};
use serde_json::Value as Json;

/// The type of a value: a scalar's, or an array's by its elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Scalar(ValueKind),
    Array(ValueKind),
}

const SCALARS: [ValueKind; 12] = [
    ValueKind::U8,
    ValueKind::I8,
    ValueKind::U16,
    ValueKind::I16,
    ValueKind::U32,
    ValueKind::I32,
    ValueKind::U64,
    ValueKind::I64,
    ValueKind::F32,
    ValueKind::F64,
    ValueKind::Bool,
    ValueKind::String,
];

impl Kind {
    /// `u32`, `string` (or `str`), `[f32]`.
    pub fn from_name(name: &str) -> Option<Self> {
        let scalar = |name: &str| {
            let name = if name == "str" { "string" } else { name };
            SCALARS.into_iter().find(|kind| kind.name() == name)
        };
        match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(element) => scalar(element).map(Self::Array),
            None => scalar(name).map(Self::Scalar),
        }
    }

    fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Array(array) => Self::Array(array.kind()),
            scalar => Self::Scalar(scalar.kind()),
        }
    }

    pub fn name(self) -> String {
        match self {
            Self::Scalar(kind) => kind.name().to_owned(),
            Self::Array(kind) => format!("[{}]", kind.name()),
        }
    }
}

/// A value's type and its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Encoded {
    pub kind: Kind,
    /// As they follow the type in a pair.
    pub bytes: Vec<u8>,
    /// For people.
    pub shown: String,
}

impl Encoded {
    /// A value of an area.
    pub fn of(value: Value<'_>) -> Self {
        /// The length of an empty key and the type.
        const HEAD: usize = 12;
        let mut pair = Pairs::new();
        pair.value("", value);
        let bytes = pair.pair_bytes().get(HEAD..).unwrap_or_default().to_vec();
        Self { kind: Kind::of(&value), bytes, shown: show(value) }
    }

    /// A value of type `kind` as people write it: a number, `true`, text as it is, an array as JSON.
    pub fn from_text(kind: Kind, text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no {}", kind.name());
        let json = match kind {
            Kind::Scalar(ValueKind::String) => Json::from(text),
            // serde_json refuses a sign in front and digits behind a point that are not there; the numbers' own reader does not.
            Kind::Scalar(ValueKind::F32 | ValueKind::F64) => {
                let number: f64 = text.trim().parse().map_err(|_| wrong())?;
                let mut bytes = Vec::new();
                push_float(kind, number, &mut bytes).ok_or_else(wrong)?;
                return Ok(Self { kind, bytes, shown: format!("{number}") });
            }
            _ => serde_json::from_str(text.trim()).map_err(|_| wrong())?,
        };
        Self::from_json(Some(kind), &json)
    }

    /// A JSON value in the type `kind`, or in the type that fits it: `u32` where a number fits it, then `i32`, `i64`, `u64`, `f32`.
    pub fn from_json(kind: Option<Kind>, json: &Json) -> Result<Self, String> {
        let kind = match kind {
            Some(kind) => kind,
            None => natural(json)?,
        };
        let shown = match json {
            Json::Array(elements) if elements.len() > 8 => format!("[{} x {}]", elements.len(), element_name(kind)),
            json => json.to_string(),
        };
        let wrong = |json: &Json, kind: ValueKind| format!("{} is no {}", cut(&json.to_string()), kind.name());
        let mut bytes = Vec::new();
        match (kind, json) {
            (Kind::Scalar(kind), json) => push(kind, json, &mut bytes).ok_or_else(|| wrong(json, kind))?,
            (Kind::Array(kind), Json::Array(elements)) => {
                bytes.extend_from_slice(&kind.id().to_le_bytes());
                bytes.extend_from_slice(&(elements.len() as u64).to_le_bytes());
                for element in elements {
                    push(kind, element, &mut bytes).ok_or_else(|| wrong(element, kind))?;
                }
            }
            (kind, json) => return Err(format!("{} is no {}", cut(&json.to_string()), kind.name())),
        }
        Ok(Self { kind, bytes, shown: cut(&shown) })
    }

    /// Adds the pair to an area.
    pub fn push_to(&self, key: &str, pairs: &mut Pairs) {
        let kind = match self.kind {
            Kind::Scalar(kind) => kind,
            Kind::Array(_) => ValueKind::Array,
        };
        pairs.encoded(key, kind, &self.bytes);
    }
}

fn element_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Scalar(kind) | Kind::Array(kind) => kind.name(),
    }
}

/// The type of a key that is new.
fn natural(json: &Json) -> Result<Kind, String> {
    let scalar = |json: &Json| match json {
        Json::Bool(_) => Ok(ValueKind::Bool),
        Json::String(_) => Ok(ValueKind::String),
        Json::Number(_) => {
            let fits = |kind: &ValueKind| push(*kind, json, &mut Vec::new()).is_some();
            [ValueKind::U32, ValueKind::I32, ValueKind::I64, ValueKind::U64, ValueKind::F32]
                .into_iter()
                .find(fits)
                .ok_or(())
        }
        _ => Err(()),
    };
    let unknown = |()| format!("{} has no type in the metadata", cut(&json.to_string()));
    let Json::Array(elements) = json else { return scalar(json).map(Kind::Scalar).map_err(unknown) };
    // One type for all: the widest that an element needs.
    let mut kinds = elements.iter().map(scalar).collect::<Result<Vec<_>, ()>>().map_err(unknown)?;
    kinds.sort_by_key(|kind| kind.id());
    kinds.dedup();
    let Some(last) = kinds.last().copied() else {
        return Err("an empty array does not tell the type of its elements: give it, as in KEY:[u32]=[]".to_owned());
    };
    let candidates = [ValueKind::I32, ValueKind::I64, ValueKind::U64, ValueKind::F32];
    let fits = |kind: &ValueKind| elements.iter().all(|element| push(*kind, element, &mut Vec::new()).is_some());
    if kinds.len() == 1 { Some(last) } else { candidates.into_iter().find(fits) }
        .map(Kind::Array)
        .ok_or_else(|| unknown(()))
}

fn push(kind: ValueKind, json: &Json, out: &mut Vec<u8>) -> Option<()> {
    macro_rules! integer {
        ($type:ty) => {
            match json.as_i64() {
                Some(number) => out.extend_from_slice(&<$type>::try_from(number).ok()?.to_le_bytes()),
                None => out.extend_from_slice(&<$type>::try_from(json.as_u64()?).ok()?.to_le_bytes()),
            }
        };
    }
    match kind {
        ValueKind::U8 => integer!(u8),
        ValueKind::I8 => integer!(i8),
        ValueKind::U16 => integer!(u16),
        ValueKind::I16 => integer!(i16),
        ValueKind::U32 => integer!(u32),
        ValueKind::I32 => integer!(i32),
        ValueKind::U64 => integer!(u64),
        ValueKind::I64 => integer!(i64),
        ValueKind::F32 | ValueKind::F64 => push_float(Kind::Scalar(kind), json.as_f64()?, out)?,
        ValueKind::Bool => out.push(u8::from(json.as_bool()?)),
        ValueKind::String => {
            let text = json.as_str()?;
            out.extend_from_slice(&(text.len() as u64).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        ValueKind::Array => return None,
    }
    Some(())
}

/// A number that is finite in its own width.
fn push_float(kind: Kind, number: f64, out: &mut Vec<u8>) -> Option<()> {
    if kind == Kind::Scalar(ValueKind::F64) {
        out.extend_from_slice(&number.to_le_bytes());
        return number.is_finite().then_some(());
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounding to the type that was asked for")]
    let narrow = number as f32;
    out.extend_from_slice(&narrow.to_le_bytes());
    narrow.is_finite().then_some(())
}

/// A value for people; of a long one, what it is.
fn show(value: Value<'_>) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::String(bytes) => cut(&Json::from(String::from_utf8_lossy(bytes)).to_string()),
        Value::Array(array) if array.len() > 8 => format!("[{} x {}]", array.len(), array.kind().name()),
        Value::Array(array) => cut(&format!("[{}]", array.iter().map(show).collect::<Vec<_>>().join(","))),
        integer => integer
            .as_i64()
            .map_or_else(|| integer.as_u64().unwrap_or(u64::MAX).to_string(), |integer| integer.to_string()),
    }
}

fn cut(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p64_core::metadata::Metadata;

    /// The value, read back by core.
    fn shown(encoded: &Encoded) -> String {
        let mut pairs = Pairs::new();
        encoded.push_to("k", &mut pairs);
        let area = pairs.to_area();
        let metadata = Metadata::parse(&area, 0).expect("well-formed");
        let value = metadata.get("k").expect("the key");
        assert_eq!(Encoded::of(value).bytes, encoded.bytes);
        assert_eq!(Encoded::of(value).kind, encoded.kind);
        format!("{value:?}")
    }

    fn text(kind: &str, text: &str) -> Result<String, String> {
        Encoded::from_text(Kind::from_name(kind).expect("a type"), text).map(|encoded| shown(&encoded))
    }

    #[test]
    fn text_in_every_type() {
        for (kind, value, expected) in [
            ("u8", "255", "U8(255)"),
            ("i8", "-128", "I8(-128)"),
            ("u16", "65535", "U16(65535)"),
            ("i16", "-1", "I16(-1)"),
            ("u32", " 4096 ", "U32(4096)"),
            ("i32", "-5", "I32(-5)"),
            ("u64", "18446744073709551615", "U64(18446744073709551615)"),
            ("i64", "-9223372036854775808", "I64(-9223372036854775808)"),
            ("f32", "1e-5", "F32(1e-5)"),
            ("f64", ".1", "F64(0.1)"),
            ("bool", "true", "Bool(true)"),
            ("str", "true", "String([116, 114, 117, 101])"),
            ("string", "", "String([])"),
        ] {
            assert_eq!(text(kind, value).as_deref(), Ok(expected), "{kind} {value}");
        }
        assert!(text("[u32]", "[1, 2]").expect("an array").starts_with("Array("));
        assert_eq!(Kind::from_name("[str]"), Some(Kind::Array(ValueKind::String)));
        assert_eq!(Kind::from_name("[[u8]]"), None);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        assert_eq!(text("u8", "256"), Err("256 is no u8".into()));
        assert_eq!(text("u32", "-1"), Err("-1 is no u32".into()));
        assert_eq!(text("u32", "1.5"), Err("1.5 is no u32".into()));
        assert_eq!(text("f32", "1e39"), Err("\"1e39\" is no f32".into()));
        assert_eq!(text("f32", "nan"), Err("\"nan\" is no f32".into()));
        assert_eq!(text("bool", "yes"), Err("\"yes\" is no bool".into()));
        assert_eq!(text("[u8]", "[1, 300]"), Err("300 is no u8".into()));
        assert_eq!(text("[u8]", "1"), Err("1 is no [u8]".into()));
    }

    #[test]
    fn json_finds_its_type() {
        let of = |json: &str| {
            let encoded = Encoded::from_json(None, &serde_json::from_str(json).expect("JSON"))?;
            shown(&encoded);
            Ok::<_, String>(encoded.kind.name())
        };
        for (json, kind) in [
            ("1", "u32"),
            ("-1", "i32"),
            ("4294967296", "i64"),
            ("18446744073709551615", "u64"),
            ("0.5", "f32"),
            ("true", "bool"),
            ("\"x\"", "string"),
            ("[1, 2]", "[u32]"),
            ("[1, -2]", "[i32]"),
            ("[1, 0.5]", "[f32]"),
            ("[\"a\"]", "[string]"),
        ] {
            assert_eq!(of(json).as_deref(), Ok(kind), "{json}");
        }
        assert_eq!(of("{}"), Err("{} has no type in the metadata".into()));
        assert!(of("[1, \"a\"]").is_err());
        assert!(of("[]").expect_err("no type").contains("KEY:[u32]=[]"));
    }
}
