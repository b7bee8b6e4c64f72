//! Tier 0: the key-value areas.

use crate::boundary::{Caller, Outcome, Status, fail};
use crate::container::p64_container;
use crate::error::p64_error;
use crate::status;
use core::ffi::c_char;
use p64_core::metadata::{Iter, Metadata, Value, ValueKind};
use p64_core::{Code, Error, Place};

/// Which key-value area of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_area {
    /// The source's own, GGUF's keys.
    P64_AREA_SOURCE = 0,
    /// The converter's: where the file comes from.
    P64_AREA_PROVENANCE = 1,
}

/// Type of a value; the numbers are GGUF's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_kind {
    /// Unsigned 8-bit.
    P64_KIND_U8 = 0,
    /// Signed 8-bit.
    P64_KIND_I8 = 1,
    /// Unsigned 16-bit.
    P64_KIND_U16 = 2,
    /// Signed 16-bit.
    P64_KIND_I16 = 3,
    /// Unsigned 32-bit.
    P64_KIND_U32 = 4,
    /// Signed 32-bit.
    P64_KIND_I32 = 5,
    /// 32-bit float.
    P64_KIND_F32 = 6,
    /// 0 or 1.
    P64_KIND_BOOL = 7,
    /// Bytes, not promised to be UTF-8.
    P64_KIND_STRING = 8,
    /// Elements of one kind, which is not an array.
    P64_KIND_ARRAY = 9,
    /// Unsigned 64-bit.
    P64_KIND_U64 = 10,
    /// Signed 64-bit.
    P64_KIND_I64 = 11,
    /// 64-bit float.
    P64_KIND_F64 = 12,
}

/// One value of a key-value area.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_value {
    /// A `p64_kind`.
    pub kind: u32,
    /// Of an array: the elements' `p64_kind`.
    pub element_kind: u32,
    /// Of an array: its elements.
    pub count: u64,
    /// Of a string: its bytes. Of an array: its elements as they stand in the file, little-endian, without padding; of
    /// strings each is a 64-bit length and its bytes.
    pub data: *const u8,
    /// Bytes at `data`.
    pub data_len: usize,
    /// Of a number: an integer extended to 64 bits, a float as the bits of a `double`.
    pub bits: u64,
}

/// A key-value area in memory of the caller's, and how far `p64_metadata_next` has come in it. It refers to the file; it
/// owns nothing and needs no closing. It may be copied with `=`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_metadata {
    /// The library's own.
    pub opaque: [u64; 16],
}

#[derive(Clone)]
#[repr(C)]
struct Opened {
    magic: u64,
    area: Metadata<'static>,
    rest: Iter<'static>,
}

const _: () = assert!(size_of::<Opened>() <= size_of::<p64_metadata>());
const _: () = assert!(align_of::<Opened>() <= align_of::<p64_metadata>());

const MAGIC: u64 = u64::from_le_bytes(*b"p64 keys") ^ (size_of::<Opened>() as u64).rotate_right(16);

fn opened<'c>(c: &Caller<'c>, storage: *const p64_metadata) -> Outcome<&'c Opened> {
    if c.get(storage)?.opaque[0] != MAGIC {
        return fail(status::P64_STATUS_NOT_OPEN);
    }
    // SAFETY: `get` has checked the pointer; the storage is large and aligned enough (asserted above), and begins with the
    // word that is only written with the whole of an `Opened`.
    Ok(unsafe { &*storage.cast::<Opened>() })
}

fn opened_mut<'c>(c: &Caller<'c>, storage: *mut p64_metadata) -> Outcome<&'c mut Opened> {
    opened(c, storage)?;
    // SAFETY: as in `opened`, and by p64.h nobody else uses storage that a function changes.
    Ok(unsafe { &mut *storage.cast::<Opened>() })
}

/// A key-value area of the file, at its beginning.
///
/// Owner: `out` refers to the file. Threads: any; a `p64_metadata` that is read may be used by many, `p64_metadata_next`
/// changes it. Errors: `P64_STATUS_NOT_FOUND` when the file has no such area, the METADATA statuses when it is malformed,
/// `P64_STATUS_TENSOR_CHECKSUM` under `P64_INTEGRITY_LAZY`. Cost: linear in the area.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_metadata(
    container: *const p64_container,
    area: u32,
    out: *mut p64_metadata,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, storage) = (c.container(container)?, c.get_mut(out)?);
        storage.opaque[0] = 0;
        let area = match area {
            0 => container.metadata()?,
            1 => container.provenance()?,
            _ => return fail(status::P64_STATUS_BAD_ARGUMENT),
        };
        let area = area.ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))?;
        // SAFETY: the storage is large and aligned enough, asserted above.
        unsafe {
            core::ptr::from_mut(storage).cast::<Opened>().write(Opened { magic: MAGIC, area, rest: area.iter() })
        };
        Ok(())
    })
}

/// Number of pairs.
///
/// Threads: any. Errors: `P64_STATUS_NOT_OPEN`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_metadata_count(
    metadata: *const p64_metadata,
    out: *mut u32,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (opened, out) = (opened(c, metadata)?, c.out(out)?);
        out.set(opened.area.len());
        Ok(())
    })
}

/// The pair at a position, in the order of the file.
///
/// Owner: key and value point into the file. Threads: any. Errors: `P64_STATUS_NOT_FOUND` past the last. Cost: linear in
/// what stands before it; `p64_metadata_next` takes all of them in one pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_metadata_at(
    metadata: *const p64_metadata,
    index: u32,
    key: *mut *const c_char,
    key_len: *mut usize,
    value: *mut p64_value,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let opened = opened(c, metadata)?;
        let pair = usize::try_from(index).ok().and_then(|index| opened.area.iter().nth(index));
        give(c, pair, key, key_len, value)
    })
}

/// The next pair in the order of the file.
///
/// Owner: key and value point into the file. Threads: one at a time. Errors: `P64_STATUS_NOT_FOUND` after the last. Cost:
/// linear in the pair.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_metadata_next(
    metadata: *mut p64_metadata,
    key: *mut *const c_char,
    key_len: *mut usize,
    value: *mut p64_value,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let opened = opened_mut(c, metadata)?;
        let mut rest = opened.rest.clone();
        give(c, rest.next(), key, key_len, value)?;
        opened.rest = rest;
        Ok(())
    })
}

fn give(
    c: &Caller<'_>,
    pair: Option<(&'static str, Value<'static>)>,
    key: *mut *const c_char,
    key_len: *mut usize,
    value: *mut p64_value,
) -> Outcome {
    let (key, key_len, value) = (c.out(key)?, c.out(key_len)?, c.out(value)?);
    let (name, found) = pair.ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))?;
    key.set(name.as_ptr().cast());
    key_len.set(name.len());
    value.set(found.into());
    Ok(())
}

/// The value of a key; of several pairs with it the first one's.
///
/// Owner: the value points into the file. Threads: any. Errors: `P64_STATUS_NOT_FOUND`. Cost: linear in the area up to the
/// key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_metadata_get(
    metadata: *const p64_metadata,
    key: *const c_char,
    key_len: usize,
    value: *mut p64_value,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (opened, value) = (opened(c, metadata)?, c.out(value)?);
        let found = opened.area.get(c.str(key, key_len)?).ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))?;
        value.set(found.into());
        Ok(())
    })
}

impl From<Value<'_>> for p64_value {
    fn from(value: Value<'_>) -> Self {
        let mut out =
            Self { kind: value.kind().id(), element_kind: 0, count: 0, data: core::ptr::null(), data_len: 0, bits: 0 };
        match value {
            Value::String(bytes) => (out.data, out.data_len) = (bytes.as_ptr(), bytes.len()),
            Value::Array(array) => {
                (out.data, out.data_len) = (array.bytes().as_ptr(), array.bytes().len());
                (out.element_kind, out.count) = (array.kind().id(), array.len());
            }
            Value::F32(value) => out.bits = f64::from(value).to_bits(),
            Value::F64(value) => out.bits = value.to_bits(),
            Value::Bool(value) => out.bits = u64::from(value),
            integer => out.bits = integer.as_i64().map_or_else(|| integer.as_u64().unwrap_or(0), i64::cast_unsigned),
        }
        out
    }
}

/// What a value made of its numbers alone is; strings and arrays are none.
fn number(value: &p64_value) -> Option<Value<'static>> {
    let (bits, signed) = (value.bits, value.bits.cast_signed());
    Some(match ValueKind::from_id(value.kind)? {
        ValueKind::F32 | ValueKind::F64 => Value::F64(f64::from_bits(bits)),
        ValueKind::Bool => Value::Bool(bits != 0),
        ValueKind::I8 | ValueKind::I16 | ValueKind::I32 | ValueKind::I64 => Value::I64(signed),
        ValueKind::String | ValueKind::Array => return None,
        ValueKind::U8 | ValueKind::U16 | ValueKind::U32 | ValueKind::U64 => Value::U64(bits),
    })
}

fn wrong_type<T>(value: &p64_value, wanted: ValueKind) -> Outcome<T> {
    let error = Error::new(Code::MetadataWrongType, Place::File);
    Err(error.values(u64::from(wanted.id()), u64::from(value.kind)).into())
}

/// A value as an unsigned integer: any integer that is not negative, and a boolean as 0 or 1.
///
/// Threads: any. Errors: `P64_STATUS_METADATA_WRONG_TYPE`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_value_u64(value: *const p64_value, out: *mut u64, error: *mut p64_error) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (value, out) = (c.get(value)?, c.out(out)?);
        let read = |number: Value<'_>| number.as_u64().or(number.as_bool().map(u64::from));
        out.set(number(value).and_then(read).map_or_else(|| wrong_type(value, ValueKind::U64), Ok)?);
        Ok(())
    })
}

/// A value as a signed integer: any integer that fits.
///
/// Threads: any. Errors: `P64_STATUS_METADATA_WRONG_TYPE`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_value_i64(value: *const p64_value, out: *mut i64, error: *mut p64_error) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (value, out) = (c.get(value)?, c.out(out)?);
        out.set(number(value).and_then(Value::as_i64).map_or_else(|| wrong_type(value, ValueKind::I64), Ok)?);
        Ok(())
    })
}

/// A value as a float: of either width; integers are not converted.
///
/// Threads: any. Errors: `P64_STATUS_METADATA_WRONG_TYPE`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_value_f64(value: *const p64_value, out: *mut f64, error: *mut p64_error) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (value, out) = (c.get(value)?, c.out(out)?);
        match number(value) {
            Some(Value::F64(float)) => out.set(float),
            _ => return wrong_type(value, ValueKind::F64),
        }
        Ok(())
    })
}

/// The element of an array at an index.
///
/// Owner: a string points into the file. Threads: any. Errors: `P64_STATUS_METADATA_WRONG_TYPE` for what is no array,
/// `P64_STATUS_NOT_FOUND` past the last. Cost: constant; among strings linear in what stands before it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_value_at(
    array: *const p64_value,
    index: u64,
    out: *mut p64_value,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (array, out) = (c.get(array)?, c.out(out)?);
        let mut rest = Elements::of(c, array)?;
        out.set(rest.skip(index).and_then(|()| rest.next()).ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))?.into());
        Ok(())
    })
}

/// Takes the first element off an array, which is left with the others: a way through all of them in one pass. Work on a
/// copy of the value to keep it.
///
/// Owner: a string points into the file. Threads: one at a time for the same value. Errors: as `p64_value_at`. Cost:
/// constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_value_next(array: *mut p64_value, out: *mut p64_value, error: *mut p64_error) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (array, out) = (c.get_mut(array)?, c.out(out)?);
        let mut rest = Elements::of(c, array)?;
        let element = rest.next().ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))?;
        (array.data, array.data_len, array.count) = (rest.bytes.as_ptr(), rest.bytes.len(), rest.count);
        out.set(element.into());
        Ok(())
    })
}

/// What is left of an array. Its bytes come back from C, so every length is checked again.
struct Elements<'c> {
    kind: ValueKind,
    count: u64,
    bytes: &'c [u8],
}

impl<'c> Elements<'c> {
    fn of(c: &Caller<'c>, array: &p64_value) -> Outcome<Self> {
        let kind = ValueKind::from_id(array.element_kind).filter(|kind| *kind != ValueKind::Array);
        match kind {
            Some(kind) if array.kind == ValueKind::Array.id() => {
                Ok(Self { kind, count: array.count, bytes: c.slice(array.data, array.data_len)? })
            }
            _ => wrong_type(array, ValueKind::Array),
        }
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.count.checked_sub(count).filter(|left| *left > 0)?;
        if self.kind == ValueKind::String {
            return (0..count).try_for_each(|_| self.next().map(|_| ()));
        }
        let bytes = usize::try_from(count.checked_mul(self.kind.size())?).ok()?;
        (self.bytes, self.count) = (self.bytes.get(bytes..)?, self.count - count);
        Some(())
    }

    fn next(&mut self) -> Option<Value<'c>> {
        let count = self.count.checked_sub(1)?;
        let (value, rest) = if self.kind == ValueKind::String {
            let (len, rest) = self.bytes.split_first_chunk()?;
            let (string, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
            (Value::String(string), rest)
        } else {
            let (scalar, rest) = self.bytes.split_at_checked(usize::try_from(self.kind.size()).ok()?)?;
            (Value::scalar(self.kind, scalar)?, rest)
        };
        (self.count, self.bytes) = (count, rest);
        Some(value)
    }
}
