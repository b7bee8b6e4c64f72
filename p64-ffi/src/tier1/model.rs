//! Tier 1: a model ready to run, with its tokenizer.

use super::file::{lend, p64_map_options};
use super::message::{Failure, Result};
use super::p64_text_flags;
use crate::boundary::{Caller, Outcome, Status};
use crate::container::p64_container;
use crate::error::p64_error;
use crate::status;
use core::ffi::c_char;
use p64_core::Error;
use p64_std::chat::{ChatTemplate, Message};
use p64_std::model::{Format, LoadedModel};
use std::sync::{Arc, OnceLock};

/// A `.p64` or a GGUF, mapped, its tensors bound to their places in the architecture, with its tokenizer.
#[derive(Debug)]
pub struct p64_model {
    /// Refers to what `model` owns, and goes with it. `None` for a GGUF.
    container: Option<p64_container>,
    pub(super) model: Arc<LoadedModel>,
    /// Compiled when it is first asked for.
    template: OnceLock<ChatTemplate>,
}

/// What a model is.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_model_info {
    /// Positions the model was trained for.
    pub context: usize,
    /// Entries of the vocabulary: the number of logits.
    pub vocabulary: usize,
    /// Transformer layers.
    pub layers: usize,
    /// Numbers in all tensors.
    pub parameters: u64,
    /// Bytes of the file.
    pub file_size: u64,
    /// Bytes of weights that one generated token reads.
    pub weight_bytes_per_token: u64,
    /// 1 for a `.p64`, 0 for a GGUF.
    pub is_p64: u32,
    /// Zero.
    pub reserved: u32,
}

/// A text of `len` bytes of UTF-8, lent to a function.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_text {
    /// Its first byte.
    pub data: *const c_char,
    /// Bytes.
    pub len: usize,
}

impl p64_text {
    pub(super) fn read<'c>(&self, c: &Caller<'c>) -> Result<&'c str> {
        let bytes = c.slice(self.data.cast::<u8>(), self.len)?;
        str::from_utf8(bytes).map_err(|error| {
            Failure::new(
                status::P64_STATUS_BAD_ARGUMENT,
                format!("a text is not UTF-8 from byte {} on", error.valid_up_to()),
            )
        })
    }
}

/// One turn of a conversation.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_message {
    /// Whose turn: `system`, `user` or `assistant`.
    pub role: p64_text,
    /// What was said.
    pub content: p64_text,
}

fn flags(flags: u32) -> Outcome<(bool, bool)> {
    let add = p64_text_flags::P64_TEXT_ADD_SPECIAL as u32;
    let special = p64_text_flags::P64_TEXT_SPECIAL as u32;
    if flags & !(add | special) != 0 {
        return crate::boundary::fail(status::P64_STATUS_BAD_ARGUMENT);
    }
    Ok((flags & add != 0, flags & special != 0))
}

/// Hands a list over in the caller's memory, where there is room for the whole.
pub(super) fn hand_over<T: Copy>(c: &Caller<'_>, values: &[T], to: (*mut T, usize), len: *mut usize) -> Result {
    let (place, len) = (c.slice_mut(to.0, to.1)?, c.out(len)?);
    match place.get_mut(..values.len()) {
        Some(place) => place.copy_from_slice(values),
        None => return Err(p64_error::from(Error::buffer_too_small(values.len(), to.1)).into()),
    }
    len.set(values.len());
    Ok(())
}

/// Maps a `.p64` or a GGUF, validates it and binds it to run. `options` may be NULL; a GGUF has no checksums.
///
/// Owner: the caller's, until `p64_model_free`. Threads: any. Errors: as `p64_file_open`; `P64_STATUS_REFUSED` with the
/// reason in `p64_error_message` for models that this library cannot run. Cost: as `p64_file_open`, and the tokenizer's
/// tables, linear in the vocabulary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_model_open(
    path: *const c_char,
    options: *const p64_map_options,
    out: *mut *mut p64_model,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let out = c.out(out)?;
        let model = LoadedModel::open(&c.path(path)?, &p64_map_options::read(c, options)?)?;
        p64_map_options::warn(c, options, model.warnings())?;
        let model = Arc::new(model);
        // SAFETY: the two are kept, and dropped, together; what the container borrows from does not move with the model.
        let container = model.container().map(|container| unsafe { lend(container) });
        out.give(p64_model { container, model, template: OnceLock::new() });
        Ok(())
    })
}

/// Gives a model back. Its container must not be used any more; sessions go on, they hold on to what they need.
///
/// Threads: any, once no other uses `model`. Errors: none; NULL is fine. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_model_free(model: *mut p64_model) {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(core::ptr::null_mut()) };
    caller.run(|c| c.take_back(model).map(drop));
}

/// The container of a model that was opened from one `.p64`: every function of tier 0 takes it. NULL for a model in several
/// files, for a GGUF and for NULL.
///
/// Owner: the model's, until `p64_model_free`. Threads: any. Errors: none. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_model_container(model: *const p64_model) -> *const p64_container {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(core::ptr::null_mut()) };
    let container = caller.get(model).ok().and_then(|model| model.container.as_ref());
    container.map_or(core::ptr::null(), core::ptr::from_ref)
}

/// What a model is, in numbers.
///
/// Threads: any. Errors: `P64_STATUS_NULL_POINTER`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_model_describe(
    model: *const p64_model,
    out: *mut p64_model_info,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let (model, out) = (&c.get(model)?.model, c.out(out)?);
        out.set(p64_model_info {
            context: model.config().context(),
            vocabulary: model.model().n_vocab(),
            layers: model.config().n_layer(),
            parameters: model.parameters(),
            file_size: model.file_size(),
            weight_bytes_per_token: model.weight_bytes_per_token(),
            is_p64: u32::from(model.format() == Format::P64),
            reserved: 0,
        });
        Ok(())
    })
}

/// What a model is, in one line: `llama, 30 layers, 134.5 M parameters, mostly Q4_1`. Writes `len` bytes without a NUL.
///
/// Owner: the caller's buffer. Threads: any. Errors: `P64_STATUS_BUFFER_TOO_SMALL`, whose `expected` is the length. Cost:
/// constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_model_description(
    model: *const p64_model,
    buffer: *mut c_char,
    buffer_len: usize,
    len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let line = c.get(model)?.model.description();
        hand_over(c, line.as_bytes(), (buffer.cast(), buffer_len), len)
    })
}

/// The tokens of a text. Bytes that are no UTF-8 are read as the model's own tokenizer does.
///
/// Owner: the caller's buffer. Threads: any. Errors: `P64_STATUS_BUFFER_TOO_SMALL`, whose `expected` is the number of
/// tokens: a first call without a buffer asks for it. Cost: about linear in the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_model_encode(
    model: *const p64_model,
    text: *const c_char,
    text_len: usize,
    flags: u32,
    ids: *mut u32,
    ids_len: usize,
    len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let (add_special, parse_special) = self::flags(flags)?;
        let tokenizer = c.get(model)?.model.tokenizer();
        let encoded = tokenizer.encode(c.slice(text.cast::<u8>(), text_len)?, add_special, parse_special);
        hand_over(c, &encoded, (ids, ids_len), len)
    })
}

/// The text of tokens, `len` bytes without a NUL. A sequence may end inside a character.
///
/// Owner: the caller's buffer. Threads: any. Errors: `P64_STATUS_BUFFER_TOO_SMALL`, whose `expected` is the length. Cost:
/// linear.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_model_decode(
    model: *const p64_model,
    ids: *const u32,
    ids_len: usize,
    flags: u32,
    text: *mut c_char,
    text_len: usize,
    len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let (_, special) = self::flags(flags)?;
        let (tokenizer, ids) = (c.get(model)?.model.tokenizer(), c.slice(ids, ids_len)?);
        let bytes = if special { tokenizer.decode_special(ids) } else { tokenizer.decode(ids) };
        hand_over(c, &bytes, (text.cast(), text_len), len)
    })
}

/// Whether a token ends a generation: `out` is set to 1, else 0.
///
/// Threads: any. Errors: `P64_STATUS_NULL_POINTER`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_model_is_end(
    model: *const p64_model,
    id: u32,
    out: *mut u32,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let (model, out) = (&c.get(model)?.model, c.out(out)?);
        out.set(u32::from(model.tokenizer().is_end_of_generation(id)));
        Ok(())
    })
}

/// The tokens of a conversation, by the model's chat template, up to where the assistant begins to speak.
///
/// Owner: the caller's buffer. Threads: any. Errors: `P64_STATUS_REFUSED` for a model without a template and for what the
/// template refuses; `P64_STATUS_BAD_ARGUMENT` for texts that are no UTF-8; `P64_STATUS_BUFFER_TOO_SMALL`, whose `expected`
/// is the number of tokens. Cost: the template's, which is bounded, and that of encoding; the first call of a model also
/// compiles the template.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_model_chat(
    model: *const p64_model,
    messages: *const p64_message,
    messages_len: usize,
    ids: *mut u32,
    ids_len: usize,
    len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let model = c.get(model)?;
        let tokenizer = model.model.tokenizer();
        let turn = |turn: &p64_message| Ok(Message::new(turn.role.read(c)?, turn.content.read(c)?));
        let turns = c.slice(messages, messages_len)?.iter().map(turn).collect::<Result<Vec<_>>>()?;
        let refused = |error| Failure::new(status::P64_STATUS_REFUSED, error);
        let template = match model.template.get() {
            Some(template) => template,
            None => {
                let template = ChatTemplate::of(tokenizer).map_err(refused)?;
                model.template.get_or_init(|| template)
            }
        };
        let encoded = template.encode(&turns, tokenizer).map_err(refused)?;
        hand_over(c, &encoded, (ids, ids_len), len)
    })
}
