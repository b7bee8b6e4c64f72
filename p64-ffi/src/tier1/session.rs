//! Tier 1: one sequence over a model.

use super::message::{Failure, Result};
use super::model::{hand_over, p64_model, p64_text};
use super::p64_stop;
use crate::boundary::{Caller, Outcome, Status, fail, struct_size};
use crate::error::p64_error;
use crate::kernel::p64_activations;
use crate::status;
use core::ffi::{c_char, c_void};
use core::ops::ControlFlow;
use p64_core::forward::KvType;
use p64_core::{Code, Error, Place};
use p64_std::model::LoadedModel;
use p64_std::sample::{Sampler, SamplerParams};
use p64_std::session::{GenerateOptions, Session, SessionOptions, StopReason};
use std::sync::Arc;

/// How a session runs and draws. Zero in every field but `struct_size` means the defaults, which take the highest logit.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_session_options {
    /// `sizeof(p64_session_options)`.
    pub struct_size: u32,
    /// Threads; 0 for one per core.
    pub threads: u32,
    /// Positions there is room for; 0 for what the model was trained for, at most 4096.
    pub context: usize,
    /// Most prompt tokens passed through the model at once; 0 for 512.
    pub batch: usize,
    /// A `p64_activations`.
    pub activations: u32,
    /// Divides the logits before the draw; 0 takes the highest logit.
    pub temperature: f32,
    /// Keeps the `top_k` highest logits; 0 keeps all.
    pub top_k: u32,
    /// Keeps the fewest tokens whose probabilities sum to at least `top_p`; 0 and 1 keep all.
    pub top_p: f32,
    /// Drops tokens less probable than `min_p` times the most probable; 0 keeps all.
    pub min_p: f32,
    /// Makes tokens seen lately less likely; 0 and 1 change nothing.
    pub repeat_penalty: f32,
    /// How many of the last tokens count as lately; 0 for 64.
    pub repeat_last_n: u32,
    /// A `p64_kv_type`: how keys and values are kept.
    pub kv_type: u32,
    /// Seed of the random numbers: the same seed draws the same tokens on every machine.
    pub seed: u64,
}

/// When a generation ends, besides the model's own ends. Zero in every field but `struct_size` means the defaults.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_generate_options {
    /// `sizeof(p64_generate_options)`.
    pub struct_size: u32,
    /// Not 0: goes on past tokens that end a generation.
    pub ignore_end: u32,
    /// Most tokens to generate; 0 for 256.
    pub max_tokens: usize,
    /// Texts that end the generation where they appear, and are not shown; NULL when `stops_len` is 0.
    pub stops: *const p64_text,
    /// Texts there.
    pub stops_len: usize,
}

/// What a generation gave and took.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_generation {
    /// A `p64_stop`.
    pub stop: u32,
    /// Zero.
    pub reserved: u32,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens generated. The first comes from the prompt's logits: a rate counts the others.
    pub generated_tokens: usize,
    /// Seconds that the prompt took, up to its logits.
    pub prompt_seconds: f64,
    /// Seconds from there to the end.
    pub generate_seconds: f64,
}

/// Is shown text as it is generated: `len` bytes of UTF-8, whole characters, without a NUL. Anything but 0 ends the
/// generation. It must return, and leave the session alone.
pub type p64_text_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, text: *const c_char, len: usize) -> core::ffi::c_int>;

/// A sequence of tokens over a model: its keys and values, and what draws the next token.
#[derive(Debug)]
pub struct p64_session {
    session: Session<Arc<LoadedModel>>,
    sampler: Sampler,
    /// A token that was drawn but not yet passed through the model: a caller that stops here does not pay for it.
    drawn: Option<u32>,
}

impl p64_session {
    /// Tokens so far, the one drawn last among them.
    fn position(&self) -> usize {
        self.session.history().len().saturating_add(usize::from(self.drawn.is_some()))
    }

    /// Passes the token that was drawn last through the model.
    fn settle(&mut self) -> Result {
        if let Some(id) = self.drawn {
            self.session.step(id)?;
            self.drawn = None;
        }
        Ok(())
    }

    fn logits(&self) -> Outcome<&[f32]> {
        self.session.logits().map_or(fail(status::P64_STATUS_NOT_OPEN), Ok)
    }
}

fn sampling(options: &p64_session_options) -> Result<Sampler> {
    let off_at_zero = |value: f32| if value == 0.0 { 1.0 } else { value };
    let params = SamplerParams {
        temperature: options.temperature,
        top_k: options.top_k as usize,
        top_p: off_at_zero(options.top_p),
        min_p: options.min_p,
        repeat_penalty: off_at_zero(options.repeat_penalty),
        repeat_last_n: if options.repeat_last_n == 0 { 64 } else { options.repeat_last_n as usize },
        seed: options.seed,
    };
    Sampler::new(params).map_err(|error| Failure::new(status::P64_STATUS_BAD_ARGUMENT, error))
}

fn running(options: &p64_session_options) -> Result<SessionOptions> {
    let defaults = SessionOptions::default();
    let kind = match options.kv_type {
        0 => KvType::F32,
        1 => KvType::F16,
        2 => KvType::Q8_0,
        _ => return Err(p64_error::of(status::P64_STATUS_BAD_ARGUMENT).into()),
    };
    Ok(SessionOptions {
        context: Some(options.context).filter(|context| *context > 0),
        threads: options.threads as usize,
        activations: p64_activations::read(options.activations)?,
        batch: if options.batch == 0 { defaults.batch } else { options.batch },
        kv: kind.into(),
    })
}

/// Makes a session over a model. `options` may be NULL.
///
/// Owner: the caller's, until `p64_session_free`; it holds on to the model's file, so that the model may be freed first.
/// Threads: any; a model may have any number of sessions. Errors: `P64_STATUS_BAD_ARGUMENT` for options out of range,
/// for a `kv_type` that the model's heads do not fit, and for a context that memory cannot hold. Cost: memory for the
/// context, and starting the threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_session_new(
    model: *const p64_model,
    options: *const p64_session_options,
    out: *mut *mut p64_session,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let (model, out) = (Arc::clone(&c.get(model)?.model), c.out(out)?);
        let (options, sampler) = if options.is_null() {
            let greedy = Sampler::new(SamplerParams::greedy());
            (SessionOptions::default(), greedy.map_err(|error| Failure::new(status::P64_STATUS_BAD_ARGUMENT, error))?)
        } else {
            let options = c.get(options)?;
            struct_size::<p64_session_options>(options.struct_size)?;
            (running(options)?, sampling(options)?)
        };
        out.give(p64_session { session: Session::new(model, &options)?, sampler, drawn: None });
        Ok(())
    })
}

/// Ends a session.
///
/// Threads: any, once no other uses it. Errors: none; NULL is fine. Cost: constant, and ending its threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_session_free(session: *mut p64_session) {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(core::ptr::null_mut()) };
    caller.run(|c| c.take_back(session).map(drop));
}

/// Passes tokens through the model, after those so far.
///
/// Threads: one at a time. Errors: `P64_STATUS_TOKEN_RANGE` at the token, `P64_STATUS_CONTEXT_FULL`,
/// `P64_STATUS_LENGTH_MISMATCH` for no tokens; the session then stands where it stood. Cost: one pass over the model's
/// weights for each batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_session_prompt(
    session: *mut p64_session,
    ids: *const u32,
    ids_len: usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let (session, ids) = (c.get_mut(session)?, c.slice(ids, ids_len)?);
        session.settle()?;
        session.session.prefill(ids)?;
        ids.iter().for_each(|id| session.sampler.accept(*id));
        Ok(())
    })
}

/// Draws the next token.
///
/// Threads: one at a time. Errors: `P64_STATUS_NOT_OPEN` before the first prompt, and after tokens were forgotten and before
/// the next prompt; `P64_STATUS_CONTEXT_FULL`; `P64_STATUS_REFUSED` when every logit is NaN, which damaged weights cause.
/// Cost: one pass over the model's weights, but for the first token after a prompt.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_session_next(session: *mut p64_session, id: *mut u32, error: *mut p64_error) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let (session, out) = (c.get_mut(session)?, c.out(id)?);
        session.settle()?;
        let p64_session { session: sequence, sampler, drawn } = session;
        let logits = sequence.logits().ok_or(p64_error::of(status::P64_STATUS_NOT_OPEN))?;
        let choice = sampler.sample(logits).filter(|_| logits.iter().any(|logit| !logit.is_nan()));
        let id = choice.ok_or_else(|| Failure::new(status::P64_STATUS_REFUSED, "every logit is NaN"))?;
        sampler.accept(id);
        *drawn = Some(id);
        out.set(id);
        Ok(())
    })
}

/// The logits after the last token, one for each entry of the vocabulary.
///
/// Owner: the caller's buffer. Threads: one at a time. Errors: as `p64_session_next`; `P64_STATUS_BUFFER_TOO_SMALL`. Cost:
/// one pass over the model's weights when a token has been drawn since the last pass, else a copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_session_logits(
    session: *mut p64_session,
    logits: *mut f32,
    logits_len: usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let (session, out) = (c.get_mut(session)?, c.slice_mut(logits, logits_len)?);
        session.settle()?;
        let logits = session.logits()?;
        let place = out.get_mut(..logits.len());
        let place = place.ok_or_else(|| p64_error::from(Error::buffer_too_small(logits.len(), logits_len)))?;
        place.copy_from_slice(logits);
        Ok(())
    })
}

/// Generates after a prompt, which follows the tokens so far, until something ends it, and shows the text to `on_text` as
/// soon as it cannot belong to a stop text any more. `options`, `on_text` and `out` may be NULL. The tokens are then the
/// last ones of `p64_session_tokens`.
///
/// Threads: one at a time; `on_text` is called on the caller's. Errors: `P64_STATUS_BAD_ARGUMENT` for an empty prompt, for
/// one longer than the room left and for stop texts that are no UTF-8; as `p64_session_next`. After an error in the middle
/// the tokens passed so far stay. Cost: as `p64_session_prompt`, and one pass over the model's weights for each token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_session_generate(
    session: *mut p64_session,
    prompt: *const u32,
    prompt_len: usize,
    options: *const p64_generate_options,
    on_text: p64_text_callback,
    user: *mut c_void,
    out: *mut p64_generation,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let (session, prompt) = (c.get_mut(session)?, c.slice(prompt, prompt_len)?);
        let out = if out.is_null() { None } else { Some(c.out(out)?) };
        let options = generate_options(c, options)?;
        session.settle()?;
        let p64_session { session, sampler, drawn } = session;
        let done = session.generate(prompt, &options, sampler, &mut |text| {
            let go_on = on_text.is_none_or(|show| {
                // SAFETY: by p64.h the function takes this pointer and a text that it may read until it returns.
                let answer = unsafe { show(user, text.as_ptr().cast(), text.len()) };
                answer == 0
            });
            if go_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        *drawn = done.ids.last().copied();
        if let Some(out) = out {
            out.set(p64_generation {
                stop: match done.reason {
                    StopReason::EndOfGeneration => p64_stop::P64_STOP_END,
                    StopReason::StopText => p64_stop::P64_STOP_TEXT,
                    StopReason::Length => p64_stop::P64_STOP_LENGTH,
                    StopReason::ContextFull => p64_stop::P64_STOP_CONTEXT,
                    StopReason::Cancelled => p64_stop::P64_STOP_CANCELLED,
                } as u32,
                reserved: 0,
                prompt_tokens: done.stats.prompt_tokens,
                generated_tokens: done.stats.generated_tokens,
                prompt_seconds: done.stats.prompt_time.as_secs_f64(),
                generate_seconds: done.stats.generate_time.as_secs_f64(),
            });
        }
        Ok(())
    })
}

fn generate_options(c: &Caller<'_>, options: *const p64_generate_options) -> Result<GenerateOptions> {
    let defaults = GenerateOptions::default();
    if options.is_null() {
        return Ok(defaults);
    }
    let options = c.get(options)?;
    struct_size::<p64_generate_options>(options.struct_size)?;
    let stops = c.slice(options.stops, options.stops_len)?;
    Ok(GenerateOptions {
        max_tokens: if options.max_tokens == 0 { defaults.max_tokens } else { options.max_tokens },
        stop: stops.iter().map(|stop| Ok(stop.read(c)?.to_owned())).collect::<Result<Vec<_>>>()?,
        ignore_eos: options.ignore_end != 0,
        ..defaults
    })
}

/// All tokens so far, prompts and drawn ones.
///
/// Owner: the caller's buffer. Threads: one at a time. Errors: `P64_STATUS_BUFFER_TOO_SMALL`, whose `expected` is their
/// number. Cost: linear in their number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_session_tokens(
    session: *const p64_session,
    ids: *mut u32,
    ids_len: usize,
    len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let session = c.get(session)?;
        let tokens = [session.session.history(), session.drawn.as_slice()].concat();
        hand_over(c, &tokens, (ids, ids_len), len)
    })
}

/// Number of tokens so far, and of those there is room for. Either pointer may be NULL.
///
/// Threads: one at a time. Errors: `P64_STATUS_NULL_POINTER`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_session_position(
    session: *const p64_session,
    position: *mut usize,
    context: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let session = c.get(session)?;
        for (value, out) in [(session.position(), position), (session.session.context(), context)] {
            if !out.is_null() {
                c.out(out)?.set(value);
            }
        }
        Ok(())
    })
}

/// Forgets the tokens from `position` on. The next call must be a prompt, unless nothing was forgotten.
///
/// Threads: one at a time. Errors: `P64_STATUS_LENGTH_MISMATCH` for a position past the last token. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_session_truncate(
    session: *mut p64_session,
    position: usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let session = c.get_mut(session)?;
        let (have, wanted) = (session.position(), position);
        if wanted > have {
            let mismatch = Error::new(Code::LengthMismatch, Place::File).values(have as u64, wanted as u64);
            return Err(p64_error::from(mismatch).into());
        }
        if wanted < have {
            session.drawn = None;
            session.session.truncate(wanted);
        }
        Ok(())
    })
}

/// Forgets all tokens, and begins the random numbers anew.
///
/// Threads: one at a time. Errors: `P64_STATUS_NULL_POINTER`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_session_reset(session: *mut p64_session, error: *mut p64_error) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let session = c.get_mut(session)?;
        session.drawn = None;
        session.session.reset();
        session.sampler.reset();
        Ok(())
    })
}
