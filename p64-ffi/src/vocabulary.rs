//! Tier 0: text to token ids and back, without a heap.

use crate::boundary::{Caller, Outcome, Status, apart, fail};
use crate::container::p64_container;
use crate::error::p64_error;
use crate::status;
use crate::tier1::p64_text_flags;
use core::ffi::c_char;
use p64_core::tokenizer::Vocabulary;
use p64_core::tokenizer::decode::decode;
use p64_core::tokenizer::encode::{Options, Slot, encode, required_len};

/// A vocabulary in memory of the caller's. It refers to the file and to the index it was given, which must outlive it; it
/// owns nothing and needs no closing. It may be copied with `=`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_vocabulary {
    /// The library's own.
    pub opaque: [u64; 64],
}

/// What lies in a [`p64_vocabulary`]. `'static` stands for "as long as the caller keeps what it lent".
#[derive(Clone, Copy)]
#[repr(C)]
struct Opened {
    magic: u64,
    vocabulary: Vocabulary<'static>,
}

const _: () = assert!(size_of::<Opened>() <= size_of::<p64_vocabulary>());
const _: () = assert!(align_of::<Opened>() <= align_of::<p64_vocabulary>());

const MAGIC: u64 = u64::from_le_bytes(*b"p64 text") ^ (size_of::<Opened>() as u64).rotate_right(16);

/// Room for one byte of a text that is being encoded. What it holds does not matter.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_slot {
    /// The library's own.
    pub opaque: [u32; 4],
}

const _: () = assert!(size_of::<p64_slot>() == size_of::<Slot>());
const _: () = assert!(align_of::<p64_slot>() == align_of::<Slot>());

const ADD_SPECIAL: u32 = p64_text_flags::P64_TEXT_ADD_SPECIAL as u32;
const SPECIAL: u32 = p64_text_flags::P64_TEXT_SPECIAL as u32;

fn read(c: &Caller<'_>, container: *const p64_container) -> Outcome<Vocabulary<'static>> {
    let metadata = c.container(container)?.metadata()?.ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))?;
    Ok(Vocabulary::read(&metadata)?)
}

fn opened(c: &Caller<'_>, storage: *const p64_vocabulary) -> Outcome<Vocabulary<'static>> {
    let storage = c.get(storage)?;
    if storage.opaque[0] != MAGIC {
        return fail(status::P64_STATUS_NOT_OPEN);
    }
    // SAFETY: the storage is large and aligned enough (asserted above), and begins with the word that is only written with
    // the whole of an `Opened`; a copy made with `=` is as good.
    Ok(unsafe { core::ptr::from_ref(storage).cast::<Opened>().read() }.vocabulary)
}

/// Words of an index for `p64_vocabulary_init`: twice the tokens, once the merges, once the special tokens.
///
/// Threads: any. Errors: as `p64_vocabulary_init`. Cost: linear in the vocabulary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_vocabulary_index_len(
    container: *const p64_container,
    out: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (vocabulary, out) = (read(c, container)?, c.out(out)?);
        out.set(vocabulary.index_len());
        Ok(())
    })
}

/// Reads a container's vocabulary from its metadata. `index` is memory for a sorted index of `p64_vocabulary_index_len`
/// words or more, or NULL with a length of 0: then every look-up walks the vocabulary.
///
/// Owner: the vocabulary refers to the file and to `index`, which stay the caller's; nobody may write them while it is used.
/// The container's own storage is not needed afterwards. Threads: any; a vocabulary may be used by any number at once.
/// Errors: `P64_STATUS_NOT_FOUND` without metadata, `P64_STATUS_BUFFER_TOO_SMALL`, `P64_STATUS_MISSING_KEY`;
/// `P64_STATUS_UNSUPPORTED_FEATURE` for a kind of tokenizer that this function would not match exactly (tier 1 knows more);
/// the METADATA and TOKENIZER statuses for what contradicts itself. After an error the storage counts as not opened. Cost:
/// linear in the vocabulary, and sorting it with an index; no allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_vocabulary_init(
    vocabulary: *mut p64_vocabulary,
    container: *const p64_container,
    index: *mut u32,
    index_len: usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let storage = c.get_mut(vocabulary)?;
        storage.opaque[0] = 0;
        let mut vocabulary = read(c, container)?;
        if index_len > 0 {
            let index = vocabulary.build_index(c.slice_mut(index, index_len)?)?;
            vocabulary = vocabulary.with_index(index)?;
        }
        // SAFETY: the storage is large and aligned enough, asserted above.
        unsafe { core::ptr::from_mut(storage).cast::<Opened>().write(Opened { magic: MAGIC, vocabulary }) };
        Ok(())
    })
}

/// Slots that `p64_vocabulary_encode` needs for a text at most. BPE gives no more ids than these and two;
/// SPM may, where special tokens stand in the text: `P64_STATUS_BUFFER_TOO_SMALL` of `p64_vocabulary_encode` says how many.
///
/// Threads: any. Errors: `P64_STATUS_NOT_OPEN`. Cost: linear in the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_vocabulary_slots(
    vocabulary: *const p64_vocabulary,
    text: *const c_char,
    text_len: usize,
    out: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (vocabulary, out) = (opened(c, vocabulary)?, c.out(out)?);
        out.set(required_len(&vocabulary, c.slice(text.cast::<u8>(), text_len)?));
        Ok(())
    })
}

/// The ids of a text, as llama.cpp gives them; their number goes to `len`. `flags` are those of `p64_text_flags`. The text
/// need not be UTF-8.
///
/// Owner: all buffers are the caller's and do not overlap. Threads: any, each with buffers of its own. Errors:
/// `P64_STATUS_BUFFER_TOO_SMALL` with the slots or ids needed (ids that fit have been written); `P64_STATUS_MISSING_KEY` for a
/// character that an SPM vocabulary has no token for; `P64_STATUS_BAD_ARGUMENT` for unknown flags and buffers that overlap.
/// Cost: for each word (BPE) or text between special tokens (SPM) of `n` bytes `3 n` look-ups and `n^2 / 2` steps: bound the
/// length of what comes from outside.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_vocabulary_encode(
    vocabulary: *const p64_vocabulary,
    text: *const c_char,
    text_len: usize,
    flags: u32,
    slots: *mut p64_slot,
    slots_len: usize,
    ids: *mut u32,
    ids_len: usize,
    len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (vocabulary, len) = (opened(c, vocabulary)?, c.out(len)?);
        if flags & !(ADD_SPECIAL | SPECIAL) != 0 {
            return fail(status::P64_STATUS_BAD_ARGUMENT);
        }
        let text = c.slice(text.cast::<u8>(), text_len)?;
        apart(text, (slots, slots_len))?;
        apart(text, (ids, ids_len))?;
        let slots = c.slice_mut(slots.cast::<Slot>(), slots_len)?;
        apart(slots, (ids, ids_len))?;
        let ids = c.slice_mut(ids, ids_len)?;
        let options = Options { add_special: flags & ADD_SPECIAL != 0, parse_special: flags & SPECIAL != 0 };
        len.set(encode(&vocabulary, text, options, slots, ids)?);
        Ok(())
    })
}

/// The bytes that a token adds to a text, its leading space included; their number goes to `len`. A token may end inside a
/// character. `flags` are 0 or `P64_TEXT_SPECIAL`, which writes control tokens as their text.
///
/// Owner: the caller's buffer. Threads: any. Errors: `P64_STATUS_TOKEN_RANGE`, `P64_STATUS_BUFFER_TOO_SMALL` with the length
/// needed, `P64_STATUS_BAD_ARGUMENT` for other flags. Cost: linear in the token; without an index, in the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_vocabulary_decode(
    vocabulary: *const p64_vocabulary,
    id: u32,
    flags: u32,
    buffer: *mut c_char,
    buffer_len: usize,
    len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (vocabulary, len) = (opened(c, vocabulary)?, c.out(len)?);
        if flags & !SPECIAL != 0 {
            return fail(status::P64_STATUS_BAD_ARGUMENT);
        }
        let buffer = c.slice_mut(buffer.cast::<u8>(), buffer_len)?;
        len.set(decode(&vocabulary, id, flags & SPECIAL != 0, buffer)?);
        Ok(())
    })
}

/// Whether a generation ends at a token: `out` is 1 when it does, else 0.
///
/// Threads: any. Errors: `P64_STATUS_NOT_OPEN`; an id past the vocabulary ends nothing. Cost: constant; without an index
/// linear in the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_vocabulary_is_end(
    vocabulary: *const p64_vocabulary,
    id: u32,
    out: *mut i32,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (vocabulary, out) = (opened(c, vocabulary)?, c.out(out)?);
        out.set(i32::from(vocabulary.is_end_of_generation(id)));
        Ok(())
    })
}
