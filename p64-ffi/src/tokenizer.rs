//! Tier 0: the tokenizer section's strings.

use crate::boundary::{Caller, Outcome, Status, fail};
use crate::container::p64_container;
use crate::error::p64_error;
use crate::status;
use core::ffi::c_char;
use p64_core::tokenizer::{MAX_STOPS, NO_TOKEN, Tokenizer};

/// Stands for a beginning or an end of sequence that a vocabulary does not have.
pub const P64_NO_TOKEN: u32 = 0xffff_ffff;

const _: () = assert!(P64_NO_TOKEN == NO_TOKEN);

/// Strings one after the other in the file, which `p64_strings_next` takes off the front.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_strings {
    /// A 32-bit little-endian length and UTF-8, again and again.
    pub data: *const u8,
    /// Bytes at `data`.
    pub len: usize,
}

/// A tokenizer section.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_tokenizer {
    /// Name of the pre-tokenizer, UTF-8 of `pre_len` bytes; empty when the source names none.
    pub pre: *const c_char,
    /// Bytes of the name.
    pub pre_len: usize,
    /// The vocabulary in the order of the ids.
    pub tokens: p64_strings,
    /// The merge pairs, most important first: left, right, left, right.
    pub merges: p64_strings,
    /// Vocabulary entries.
    pub token_count: u32,
    /// Merge pairs.
    pub merge_count: u32,
    /// Beginning-of-sequence token, or `P64_NO_TOKEN`.
    pub bos: u32,
    /// End-of-sequence token, or `P64_NO_TOKEN`.
    pub eos: u32,
    /// 1 when a prompt begins with `bos`, else 0.
    pub add_bos: u32,
    /// Version of the section.
    pub version: u32,
    /// Ids in `stops`.
    pub stop_count: u32,
    /// Zero.
    pub reserved: u32,
    /// Ids that end a generation besides `eos`.
    pub stops: [u32; 8],
}

/// The section of a container, for those that need it.
pub(crate) fn section<'c>(c: &Caller<'_>, container: *const p64_container) -> Outcome<Tokenizer<'c>> {
    c.container(container)?.tokenizer().ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))
}

/// The tokenizer section.
///
/// Owner: strings point into the file. Threads: any. Errors: `P64_STATUS_NOT_FOUND` when the file has none. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_tokenizer(
    container: *const p64_container,
    out: *mut p64_tokenizer,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (section, out) = (section(c, container)?, c.out(out)?);
        let mut stops = [0; MAX_STOPS];
        for (to, from) in stops.iter_mut().zip(section.stops()) {
            *to = *from;
        }
        let strings = |bytes: &[u8]| p64_strings { data: bytes.as_ptr(), len: bytes.len() };
        out.set(p64_tokenizer {
            pre: section.pre().as_ptr().cast(),
            pre_len: section.pre().len(),
            tokens: strings(section.token_bytes()),
            merges: strings(section.merge_bytes()),
            token_count: section.token_count(),
            merge_count: section.merge_count(),
            bos: section.bos().unwrap_or(NO_TOKEN),
            eos: section.eos().unwrap_or(NO_TOKEN),
            add_bos: u32::from(section.add_bos()),
            version: u32::from(section.version()),
            stop_count: section.stops().len() as u32,
            reserved: 0,
            stops,
        });
        Ok(())
    })
}

/// The string of a token, as the vocabulary spells it (`p64_tokenizer_decode` gives the text it stands for).
///
/// Owner: points into the file. Threads: any. Errors: `P64_STATUS_NOT_FOUND` past the vocabulary or without one. Cost:
/// linear in the id; `p64_strings_next` takes all of them in one pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_tokenizer_token(
    container: *const p64_container,
    id: u32,
    text: *mut *const c_char,
    text_len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let token = nth(section(c, container)?.tokens(), id)?;
        give(c, token, text, text_len)
    })
}

/// The two strings of a merge pair.
///
/// Owner: they point into the file. Threads: any. Errors: `P64_STATUS_NOT_FOUND` past the last pair or without a tokenizer.
/// Cost: linear in the index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_tokenizer_merge(
    container: *const p64_container,
    index: u32,
    left: *mut *const c_char,
    left_len: *mut usize,
    right: *mut *const c_char,
    right_len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let pair = nth(section(c, container)?.merges(), index)?;
        // All four are checked before one is written.
        let (left, left_len) = (c.out(left)?, c.out(left_len)?);
        give(c, pair.1, right, right_len)?;
        left.set(pair.0.as_ptr().cast());
        left_len.set(pair.0.len());
        Ok(())
    })
}

/// Takes the first string off, which is a way through all of them in one pass. Work on a copy to keep the whole.
///
/// Owner: `text` points into the file. Threads: one at a time for the same `strings`. Errors: `P64_STATUS_NOT_FOUND` after
/// the last. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_strings_next(
    strings: *mut p64_strings,
    text: *mut *const c_char,
    text_len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let strings = c.get_mut(strings)?;
        let bytes = c.slice(strings.data, strings.len)?;
        let split = bytes
            .split_first_chunk()
            .and_then(|(len, rest)| rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?));
        let Some((found, rest)) = split else { return fail(status::P64_STATUS_NOT_FOUND) };
        let (text, text_len) = (c.out(text)?, c.out(text_len)?);
        text.set(found.as_ptr().cast());
        text_len.set(found.len());
        *strings = p64_strings { data: rest.as_ptr(), len: rest.len() };
        Ok(())
    })
}

fn nth<T>(mut items: impl Iterator<Item = T>, index: u32) -> Outcome<T> {
    let item = usize::try_from(index).ok().and_then(|index| items.nth(index));
    item.ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))
}

fn give(c: &Caller<'_>, found: &str, text: *mut *const c_char, text_len: *mut usize) -> Outcome {
    let (text, text_len) = (c.out(text)?, c.out(text_len)?);
    text.set(found.as_ptr().cast());
    text_len.set(found.len());
    Ok(())
}
