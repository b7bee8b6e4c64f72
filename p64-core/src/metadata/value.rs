//! The values of the key-value area.
#![forbid(unsafe_code)]

use crate::bytes::Cursor;
use crate::error::{Code, Result};

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $name:literal, $size:literal;)*) => {
        /// The type code of a value.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        pub enum ValueKind { $($(#[$doc])* $variant,)* }

        impl ValueKind {
            /// The kind of a code; `None` for codes past 12.
            #[must_use]
            pub const fn from_id(id: u32) -> Option<Self> {
                match id { $($id => Some(Self::$variant),)* _ => None }
            }

            /// The code.
            #[must_use]
            pub const fn id(self) -> u32 {
                match self { $(Self::$variant => $id,)* }
            }

            /// GGUF's name of the type.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Bytes of one value; 0 for strings and arrays, whose length varies.
            #[must_use]
            pub const fn size(self) -> u64 {
                match self { $(Self::$variant => $size,)* }
            }
        }
    };
}

kinds! {
    /// Unsigned 8-bit.
    U8 = 0, "u8", 1;
    /// Signed 8-bit.
    I8 = 1, "i8", 1;
    /// Unsigned 16-bit.
    U16 = 2, "u16", 2;
    /// Signed 16-bit.
    I16 = 3, "i16", 2;
    /// Unsigned 32-bit.
    U32 = 4, "u32", 4;
    /// Signed 32-bit.
    I32 = 5, "i32", 4;
    /// 32-bit float.
    F32 = 6, "f32", 4;
    /// One byte, 0 or 1.
    Bool = 7, "bool", 1;
    /// A `u64` length and that many bytes.
    String = 8, "string", 0;
    /// A kind, a `u64` length, the elements.
    Array = 9, "array", 0;
    /// Unsigned 64-bit.
    U64 = 10, "u64", 8;
    /// Signed 64-bit.
    I64 = 11, "i64", 8;
    /// 64-bit float.
    F64 = 12, "f64", 8;
}

/// One value, borrowed from the area.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names are those of ValueKind")]
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    /// The bytes of a string; GGUF does not promise UTF-8 for values.
    String(&'a [u8]),
    Array(Array<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// A homogeneous array: element kind, number of elements, their bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Array<'a> {
    kind: ValueKind,
    len: u64,
    bytes: &'a [u8],
}

impl<'a> Value<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self> {
        let kind = read_kind(cursor)?;
        match kind {
            ValueKind::String => read_string(cursor).map(Self::String),
            ValueKind::Array => Array::read(cursor).map(Self::Array),
            scalar => {
                let bytes = cursor.take(scalar.size())?;
                let found = u64::from(bytes.first().copied().unwrap_or(0));
                Self::scalar(scalar, bytes).ok_or_else(|| cursor.error(Code::MetadataBool).values(1, found))
            }
        }
    }

    /// The same for a value that was read before, whose lengths need no check. `known` gives the bytes of an array of strings
    /// by the offset of its first element, where it knows them.
    pub(super) fn read_known(cursor: &mut Cursor<'a>, known: impl FnOnce(u64) -> Option<u64>) -> Result<Self> {
        let mut ahead = *cursor;
        if read_kind(&mut ahead)? == ValueKind::Array && read_kind(&mut ahead)? == ValueKind::String {
            let len = ahead.u64()?;
            if let Some(size) = known(ahead.offset()) {
                let bytes = ahead.take(size)?;
                *cursor = ahead;
                return Ok(Self::Array(Array { kind: ValueKind::String, len, bytes }));
            }
        }
        Self::read(cursor)
    }

    /// The value of `bytes`, which have the kind's size; `None` for a boolean that is neither 0 nor 1, for too few bytes, and
    /// for strings and arrays.
    #[must_use]
    pub fn scalar(kind: ValueKind, bytes: &[u8]) -> Option<Self> {
        fn le<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
            bytes.first_chunk().copied()
        }
        Some(match kind {
            ValueKind::U8 => Self::U8(u8::from_le_bytes(le(bytes)?)),
            ValueKind::I8 => Self::I8(i8::from_le_bytes(le(bytes)?)),
            ValueKind::U16 => Self::U16(u16::from_le_bytes(le(bytes)?)),
            ValueKind::I16 => Self::I16(i16::from_le_bytes(le(bytes)?)),
            ValueKind::U32 => Self::U32(u32::from_le_bytes(le(bytes)?)),
            ValueKind::I32 => Self::I32(i32::from_le_bytes(le(bytes)?)),
            ValueKind::F32 => Self::F32(f32::from_le_bytes(le(bytes)?)),
            ValueKind::U64 => Self::U64(u64::from_le_bytes(le(bytes)?)),
            ValueKind::I64 => Self::I64(i64::from_le_bytes(le(bytes)?)),
            ValueKind::F64 => Self::F64(f64::from_le_bytes(le(bytes)?)),
            ValueKind::Bool => match bytes.first()? {
                0 => Self::Bool(false),
                1 => Self::Bool(true),
                _ => return None,
            },
            ValueKind::String | ValueKind::Array => return None,
        })
    }

    /// The value's kind.
    #[must_use]
    pub const fn kind(&self) -> ValueKind {
        match self {
            Self::U8(_) => ValueKind::U8,
            Self::I8(_) => ValueKind::I8,
            Self::U16(_) => ValueKind::U16,
            Self::I16(_) => ValueKind::I16,
            Self::U32(_) => ValueKind::U32,
            Self::I32(_) => ValueKind::I32,
            Self::F32(_) => ValueKind::F32,
            Self::Bool(_) => ValueKind::Bool,
            Self::String(_) => ValueKind::String,
            Self::Array(_) => ValueKind::Array,
            Self::U64(_) => ValueKind::U64,
            Self::I64(_) => ValueKind::I64,
            Self::F64(_) => ValueKind::F64,
        }
    }

    /// An integer of any width that is not negative.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Self::U8(v) => Some(v.into()),
            Self::U16(v) => Some(v.into()),
            Self::U32(v) => Some(v.into()),
            Self::U64(v) => Some(v),
            other => other.as_i64().and_then(|v| u64::try_from(v).ok()),
        }
    }

    /// An integer of any width that fits 64 signed bits.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Self::U8(v) => Some(v.into()),
            Self::I8(v) => Some(v.into()),
            Self::U16(v) => Some(v.into()),
            Self::I16(v) => Some(v.into()),
            Self::U32(v) => Some(v.into()),
            Self::I32(v) => Some(v.into()),
            Self::U64(v) => i64::try_from(v).ok(),
            Self::I64(v) => Some(v),
            _ => None,
        }
    }

    /// A float; a 64-bit one is rounded.
    #[must_use]
    pub const fn as_f32(self) -> Option<f32> {
        match self {
            Self::F32(v) => Some(v),
            #[expect(clippy::cast_possible_truncation, reason = "rounding is what the caller asks for")]
            Self::F64(v) => Some(v as f32),
            _ => None,
        }
    }

    /// A boolean.
    #[must_use]
    pub const fn as_bool(self) -> Option<bool> {
        match self {
            Self::Bool(v) => Some(v),
            _ => None,
        }
    }

    /// The bytes of a string.
    #[must_use]
    pub const fn as_bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::String(v) => Some(v),
            _ => None,
        }
    }

    /// A string that is UTF-8.
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        core::str::from_utf8(self.as_bytes()?).ok()
    }

    /// An array.
    #[must_use]
    pub const fn as_array(self) -> Option<Array<'a>> {
        match self {
            Self::Array(v) => Some(v),
            _ => None,
        }
    }
}

impl<'a> Array<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self> {
        let kind = read_kind(cursor)?;
        if kind == ValueKind::Array {
            return Err(cursor.error(Code::MetadataNested));
        }
        let len = cursor.u64()?;
        let room = cursor.rest().len() as u64;
        let least = if kind == ValueKind::String { 8 } else { kind.size() };
        let Some(size) = len.checked_mul(least).filter(|&size| size <= room) else {
            return Err(cursor.error(Code::MetadataCount).values(room, len));
        };
        if kind != ValueKind::String {
            let bytes = cursor.take(size)?;
            if kind == ValueKind::Bool
                && let Some(bad) = bytes.iter().find(|&&b| b > 1)
            {
                return Err(cursor.error(Code::MetadataBool).values(1, u64::from(*bad)));
            }
            return Ok(Self { kind, len, bytes });
        }
        let before = cursor.rest();
        for _ in 0..len {
            read_string(cursor)?;
        }
        let used = before.len().saturating_sub(cursor.rest().len());
        Ok(Self { kind, len, bytes: before.get(..used).unwrap_or_default() })
    }

    /// The elements' kind; never [`ValueKind::Array`].
    #[must_use]
    pub const fn kind(&self) -> ValueKind {
        self.kind
    }

    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no element.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements' bytes as they stand in the file.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements, one value each.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let (kind, bytes) = (self.kind, self.bytes);
        let width = usize::try_from(kind.size()).unwrap_or(0).max(1);
        let scalars = if kind == ValueKind::String { &[][..] } else { bytes };
        let strings = Strings { rest: if kind == ValueKind::String { bytes } else { &[] } };
        let scalars = scalars.chunks_exact(width).filter_map(move |chunk| Value::scalar(kind, chunk));
        scalars.chain(strings.map(Value::String))
    }

    /// The element at `index`, without a walk; `None` past the end and for strings.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<Value<'a>> {
        let width = usize::try_from(self.kind.size()).ok().filter(|&width| width > 0)?;
        let start = crate::num::index(index).checked_mul(width)?;
        Value::scalar(self.kind, self.bytes.get(start..start.checked_add(width)?)?)
    }

    /// The elements of an array of strings; empty for other kinds.
    #[must_use]
    pub fn strings(&self) -> Strings<'a> {
        Strings { rest: if self.kind == ValueKind::String { self.bytes } else { &[] } }
    }
}

/// The strings of an array, in order.
#[derive(Clone, Debug)]
pub struct Strings<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.rest.split_first_chunk()?;
        let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
        let (string, rest) = rest.split_at_checked(len)?;
        self.rest = rest;
        Some(string)
    }
}

fn read_kind(cursor: &mut Cursor<'_>) -> Result<ValueKind> {
    let at = *cursor;
    let id = cursor.u32()?;
    ValueKind::from_id(id)
        .ok_or_else(|| at.error(Code::MetadataType).values(u64::from(ValueKind::F64.id()), u64::from(id)))
}

fn read_string<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let len = cursor.u64()?;
    cursor.take(len)
}
