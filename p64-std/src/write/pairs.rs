//! Writes a key-value area (spec §17.1): the converter's own keys, and what a source without keys is given.

use p64_core::metadata::{Metadata, Value, ValueKind};

/// Pairs in the order in which they are pushed. Keys are not compared: the caller pushes each once.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    count: u64,
    bytes: Vec<u8>,
}

impl Pairs {
    /// No pair yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn begin(&mut self, key: &str, kind: ValueKind) {
        self.count = self.count.saturating_add(1);
        self.string_bytes(key);
        self.bytes.extend_from_slice(&kind.id().to_le_bytes());
    }

    fn string_bytes(&mut self, text: &str) {
        self.bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn begin_array(&mut self, key: &str, kind: ValueKind, len: usize) {
        self.begin(key, ValueKind::Array);
        self.bytes.extend_from_slice(&kind.id().to_le_bytes());
        self.bytes.extend_from_slice(&(len as u64).to_le_bytes());
    }

    /// A string.
    pub fn str(&mut self, key: &str, value: &str) -> &mut Self {
        self.begin(key, ValueKind::String);
        self.string_bytes(value);
        self
    }

    /// A 16-bit number.
    pub fn u16(&mut self, key: &str, value: u16) -> &mut Self {
        self.begin(key, ValueKind::U16);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A 32-bit number.
    pub fn u32(&mut self, key: &str, value: u32) -> &mut Self {
        self.begin(key, ValueKind::U32);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A 64-bit number.
    pub fn u64(&mut self, key: &str, value: u64) -> &mut Self {
        self.begin(key, ValueKind::U64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A 32-bit float.
    pub fn f32(&mut self, key: &str, value: f32) -> &mut Self {
        self.begin(key, ValueKind::F32);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A boolean.
    pub fn bool(&mut self, key: &str, value: bool) -> &mut Self {
        self.begin(key, ValueKind::Bool);
        self.bytes.push(u8::from(value));
        self
    }

    /// A signed 32-bit number.
    pub fn i32(&mut self, key: &str, value: i32) -> &mut Self {
        self.begin(key, ValueKind::I32);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// An array of bytes.
    pub fn u8_array(&mut self, key: &str, values: &[u8]) -> &mut Self {
        self.begin_array(key, ValueKind::U8, values.len());
        self.bytes.extend_from_slice(values);
        self
    }

    /// An array of 32-bit numbers.
    pub fn u32_array(&mut self, key: &str, values: &[u32]) -> &mut Self {
        self.begin_array(key, ValueKind::U32, values.len());
        self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    /// An array of signed 32-bit numbers.
    pub fn i32_array(&mut self, key: &str, values: &[i32]) -> &mut Self {
        self.begin_array(key, ValueKind::I32, values.len());
        self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    /// An array of 32-bit floats.
    pub fn f32_array(&mut self, key: &str, values: &[f32]) -> &mut Self {
        self.begin_array(key, ValueKind::F32, values.len());
        self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    /// An array of booleans.
    pub fn bool_array(&mut self, key: &str, values: &[bool]) -> &mut Self {
        self.begin_array(key, ValueKind::Bool, values.len());
        self.bytes.extend(values.iter().map(|&value| u8::from(value)));
        self
    }

    /// An array of 64-bit numbers.
    pub fn u64_array(&mut self, key: &str, values: &[u64]) -> &mut Self {
        self.begin_array(key, ValueKind::U64, values.len());
        self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    /// An array of strings.
    pub fn str_array<S: AsRef<str>>(&mut self, key: &str, values: &[S]) -> &mut Self {
        self.begin_array(key, ValueKind::String, values.len());
        for value in values {
            self.string_bytes(value.as_ref());
        }
        self
    }

    /// A value that was read from another area, byte for byte.
    pub fn value(&mut self, key: &str, value: Value<'_>) -> &mut Self {
        self.begin(key, value.kind());
        match value {
            Value::U8(v) => self.bytes.push(v),
            Value::I8(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
            Value::U16(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
            Value::I16(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
            Value::U32(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
            Value::I32(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
            Value::F32(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
            Value::Bool(v) => self.bytes.push(u8::from(v)),
            Value::String(v) => {
                self.bytes.extend_from_slice(&(v.len() as u64).to_le_bytes());
                self.bytes.extend_from_slice(v);
            }
            Value::Array(v) => {
                self.bytes.extend_from_slice(&v.kind().id().to_le_bytes());
                self.bytes.extend_from_slice(&v.len().to_le_bytes());
                self.bytes.extend_from_slice(v.bytes());
            }
            Value::U64(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
            Value::I64(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
            Value::F64(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
        }
        self
    }

    /// A value whose bytes, as they follow its type, are there already.
    pub(crate) fn encoded(&mut self, key: &str, kind: ValueKind, bytes: &[u8]) -> &mut Self {
        self.begin(key, kind);
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Number of pairs.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// Whether there is no pair.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The pairs without their count, as a GGUF has them.
    #[must_use]
    pub fn pair_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The whole area: the count, then the pairs.
    #[must_use]
    pub fn to_area(&self) -> Vec<u8> {
        area(self.count, &self.bytes)
    }
}

impl From<&Metadata<'_>> for Pairs {
    /// The same pairs, byte for byte.
    fn from(metadata: &Metadata<'_>) -> Self {
        Self { count: u64::from(metadata.len()), bytes: metadata.pair_bytes().to_vec() }
    }
}

/// A whole area of pairs that are in bytes already.
#[must_use]
pub fn area(count: u64, pairs: &[u8]) -> Vec<u8> {
    let mut out = count.to_le_bytes().to_vec();
    out.extend_from_slice(pairs);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec §17.1, worked example.
    #[test]
    fn the_worked_example() {
        let mut pairs = Pairs::new();
        pairs.str("general.architecture", "llama").u32("llama.block_count", 2);
        let mut expected = Vec::from(*b"\x02\0\0\0\0\0\0\0\x14\0\0\0\0\0\0\0general.architecture\x08\0\0\0");
        expected.extend_from_slice(b"\x05\0\0\0\0\0\0\0llama\x11\0\0\0\0\0\0\0llama.block_count\x04\0\0\0\x02\0\0\0");
        assert_eq!(pairs.to_area(), expected);
    }

    #[test]
    fn core_reads_every_kind_back() {
        let mut pairs = Pairs::new();
        pairs.u16("a", 1).u64("b", 2).f32("c", 0.5).bool("d", true);
        pairs.u8_array("e", &[1, 2]).u32_array("f", &[3]).u64_array("g", &[]).str_array("h", &["x", ""]);
        let area = pairs.to_area();
        let read = Metadata::parse(&area, 0).expect("well-formed");
        assert_eq!(read.len(), 8);
        assert_eq!((read.u32("a"), read.u32("b"), read.f32("c")), (Ok(Some(1)), Ok(Some(2)), Ok(Some(0.5))));
        assert_eq!(read.bool("d"), Ok(Some(true)));
        let array = |key| read.array(key).expect("an array").expect("there");
        assert_eq!(array("e").bytes(), [1, 2]);
        assert_eq!(array("f").bytes(), [3, 0, 0, 0]);
        assert!(array("g").is_empty());
        let mut copy = Pairs::new();
        for (key, value) in read.iter() {
            copy.value(key, value);
        }
        assert_eq!(copy.to_area(), area);
        assert_eq!(array("h").strings().collect::<Vec<_>>(), [&b"x"[..], b""]);
    }
}
