//! Tier 0: the decode step, in memory of the caller's.
//!
//! ```text
//! layers        n_layer x Layer        the model's tensors bound to their places
//! kv            f32                    keys and values of the positions so far
//! scratch       f32                    what a pass works in
//! activations   ActivationBlock
//! ```

use crate::boundary::{Caller, Outcome, Status, fail};
use crate::container::p64_container;
use crate::error::p64_error;
use crate::status;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use p64_core::forward::{Config, KvCache, Layer, Logits, Model, Options, Scratch, forward, kv, prefill, scratch};
use p64_core::metadata::Metadata;
use p64_core::quant::ActivationBlock;
use p64_core::{Container, Error, Role};

/// What decoding takes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_decode_memory {
    /// Bytes of memory for `p64_decoder_init`.
    pub bytes: usize,
    /// Alignment of that memory.
    pub alignment: usize,
    /// Floats of one position's logits: entries of the vocabulary.
    pub logits: usize,
}

/// A decoder in memory of the caller's. It refers to the file and to the memory it was given, which must outlive it; it owns
/// nothing and needs no closing. It must not be copied.
#[derive(Debug)]
#[repr(C)]
pub struct p64_decoder {
    /// The library's own.
    pub opaque: [u64; 128],
}

/// What lies in a [`p64_decoder`]. `'static` stands for "as long as the caller keeps what it lent".
#[repr(C)]
struct Running {
    magic: u64,
    model: Model<'static>,
    kv: KvCache<&'static mut [f32]>,
    scratch: Scratch<'static>,
}

const _: () = assert!(size_of::<Running>() <= size_of::<p64_decoder>());
const _: () = assert!(align_of::<Running>() <= align_of::<p64_decoder>());

const MAGIC: u64 = u64::from_le_bytes(*b"p64 step") ^ (size_of::<Running>() as u64).rotate_right(16);

/// Alignment of the memory, and of each part of it.
const ALIGNMENT: usize = 16;

const _: () = assert!(align_of::<Layer<'_>>() <= ALIGNMENT && align_of::<ActivationBlock>() <= ALIGNMENT);

/// Where the parts of the memory begin, and how many values each holds.
struct Plan {
    layers: usize,
    kv: (usize, usize),
    floats: (usize, usize),
    activations: (usize, usize),
    bytes: usize,
}

impl Plan {
    /// Saturates where the sizes do not fit: no memory is that large.
    fn new(config: &Config, context: usize, batch: usize) -> Self {
        let mut bytes = 0usize;
        let mut place = |count: usize, size: usize| {
            let begin = bytes;
            let end = begin.saturating_add(count.saturating_mul(size));
            bytes = end.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX);
            (begin, count)
        };
        let work = scratch::required_len(config, batch, context);
        let (_, layers) = place(config.n_layer(), size_of::<Layer<'_>>());
        let kv = place(kv::required_len(config, context), size_of::<f32>());
        let floats = place(work.floats, size_of::<f32>());
        let activations = place(work.activations, size_of::<ActivationBlock>());
        Self { layers, kv, floats, activations, bytes }
    }
}

/// Dimensions of a container's model, and the plan for them.
fn plan(container: &Container<'_>, context: usize, batch: usize) -> Outcome<(Config, Plan)> {
    if context == 0 || batch == 0 {
        return fail(status::P64_STATUS_BAD_ARGUMENT);
    }
    let config = Config::read(&container.metadata()?.unwrap_or(Metadata::EMPTY))?;
    let plan = Plan::new(&config, context, batch.min(context));
    Ok((config, plan))
}

/// The memory that a decoder over `context` positions takes, when it is to pass up to `batch` tokens at once.
///
/// Threads: any. Errors: `P64_STATUS_BAD_ARGUMENT` for zeros; 150 to 163 and 220 to 225 for models that this library cannot
/// run; `P64_STATUS_TENSOR_CHECKSUM` of the metadata under `P64_INTEGRITY_LAZY`. Cost: linear in the metadata.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_decode_required(
    container: *const p64_container,
    context: usize,
    batch: usize,
    out: *mut p64_decode_memory,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (c.container(container)?, c.out(out)?);
        let (_, plan) = plan(&container, context, batch)?;
        let embedding = container.find_role(Role::TokenEmbd, container.n_layer());
        let rows = embedding.and_then(|info| info.shape().rows()).and_then(|rows| usize::try_from(rows).ok());
        out.set(p64_decode_memory { bytes: plan.bytes, alignment: ALIGNMENT, logits: rows.unwrap_or(0) });
        Ok(())
    })
}

/// Binds a container's model to `memory_len` bytes at `memory`, with room for `context` positions and for `batch` tokens at
/// once, and makes `decoder` of them.
///
/// Owner: the decoder refers to the file and to `memory`, which stay the caller's; `memory` is the decoder's alone while that
/// is used. The container's own storage is not needed afterwards. Threads: any. Errors: `P64_STATUS_BUFFER_TOO_SMALL` below
/// what `p64_decode_required` says, `P64_STATUS_MISALIGNED`; 220 to 225 for models that this library cannot run;
/// `P64_STATUS_TENSOR_CHECKSUM` under `P64_INTEGRITY_LAZY`. After an error the decoder counts as not opened. Cost: one
/// look-up for each tensor of each layer, and under `P64_INTEGRITY_LAZY` one pass over the tensors; no allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_decoder_init(
    decoder: *mut p64_decoder,
    container: *const p64_container,
    context: usize,
    batch: usize,
    memory: *mut c_void,
    memory_len: usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let storage = c.get_mut(decoder)?;
        storage.opaque[0] = 0;
        let container = c.container(container)?;
        let (config, plan) = plan(&container, context, batch)?;
        if memory_len < plan.bytes {
            return Err(Error::buffer_too_small(plan.bytes, memory_len).into());
        }
        let parts = Parts::carve(c, memory.cast::<u8>(), &plan)?;
        let layers = bind(&container, &config, parts.layers)?;
        let model = Model::new(&container, config, layers)?;
        let kv = KvCache::new(&config, context, parts.kv)?;
        let scratch = Scratch::new(&config, batch.min(context), context, parts.floats, parts.activations)?;
        let running = Running { magic: MAGIC, model, kv, scratch };
        // SAFETY: the storage is large and aligned enough, asserted above.
        unsafe { core::ptr::from_mut(storage).cast::<Running>().write(running) };
        Ok(())
    })
}

struct Parts {
    layers: &'static mut [MaybeUninit<Layer<'static>>],
    kv: &'static mut [f32],
    floats: &'static mut [f32],
    activations: &'static mut [ActivationBlock],
}

impl Parts {
    fn carve(c: &Caller<'static>, memory: *mut u8, plan: &Plan) -> Outcome<Self> {
        // Checks that the memory is there, aligned and of a length that can be; the parts lie in it side by side.
        c.slice_mut(memory.cast::<Aligned>(), plan.bytes / ALIGNMENT)?;
        let at = |begin: usize| memory.wrapping_add(begin);
        Ok(Self {
            layers: c.slice_mut(at(0).cast(), plan.layers)?,
            kv: c.slice_mut(at(plan.kv.0).cast(), plan.kv.1)?,
            floats: c.slice_mut(at(plan.floats.0).cast(), plan.floats.1)?,
            activations: c.slice_mut(at(plan.activations.0).cast(), plan.activations.1)?,
        })
    }
}

/// A piece of memory as aligned as the parts of it must be.
#[repr(align(16))]
struct Aligned(#[expect(dead_code, reason = "only its size and alignment count")] [u8; ALIGNMENT]);

/// Binds every layer into its place.
fn bind(
    container: &Container<'static>,
    config: &Config,
    places: &'static mut [MaybeUninit<Layer<'static>>],
) -> Outcome<&'static [Layer<'static>]> {
    for (index, place) in places.iter_mut().enumerate() {
        place.write(Layer::bind(container, config, index)?);
    }
    // SAFETY: the loop has written each of them.
    Ok(unsafe { places.assume_init_ref() })
}

fn running<'c>(c: &Caller<'c>, decoder: *const p64_decoder) -> Outcome<&'c Running> {
    if c.get(decoder)?.opaque[0] != MAGIC {
        return fail(status::P64_STATUS_NOT_OPEN);
    }
    // SAFETY: `get` has checked the pointer; the storage is large and aligned enough (asserted above), and begins with the
    // word that is only written with the whole of a `Running`.
    Ok(unsafe { &*decoder.cast::<Running>() })
}

fn running_mut<'c>(c: &Caller<'c>, decoder: *mut p64_decoder) -> Outcome<&'c mut Running> {
    running(c, decoder)?;
    // SAFETY: as in `running`, and by p64.h nobody else uses storage that a function changes.
    Ok(unsafe { &mut *decoder.cast::<Running>() })
}

/// Passes tokens through the model at the positions after those so far, and gives the logits after the last of them. With
/// `logits_len` 0 only the cache is filled. The result does not depend on how tokens are spread over calls, bit for bit.
///
/// Threads: one at a time. Errors: `P64_STATUS_TOKEN_RANGE` at the token, `P64_STATUS_CONTEXT_FULL`,
/// `P64_STATUS_LENGTH_MISMATCH` for no tokens or for logits of another length than the vocabulary's. After an error the
/// decoder stands where it stood. Cost: one pass over the model's weights for each `batch` tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_decoder_step(
    decoder: *mut p64_decoder,
    tokens: *const u32,
    n_tokens: usize,
    logits: *mut f32,
    logits_len: usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let Running { model, kv, scratch, .. } = running_mut(c, decoder)?;
        let tokens = c.slice(tokens, n_tokens)?;
        crate::boundary::apart(tokens, (logits, logits_len))?;
        let logits = c.slice_mut(logits, logits_len)?;
        let mut options = Options::default();
        if !logits.is_empty() || tokens.is_empty() {
            return Ok(prefill(model, tokens, kv, scratch, &mut options, logits)?);
        }
        let start = kv.len();
        for chunk in tokens.chunks(scratch.positions()) {
            let done = forward(model, chunk, kv, scratch, &mut options, Logits::None);
            if let Err(error) = done {
                kv.truncate(start);
                return Err(error.into());
            }
        }
        Ok(())
    })
}

/// Positions so far.
///
/// Threads: one at a time. Errors: `P64_STATUS_NOT_OPEN`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_decoder_position(
    decoder: *const p64_decoder,
    out: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (running, out) = (running(c, decoder)?, c.out(out)?);
        out.set(running.kv.len());
        Ok(())
    })
}

/// Forgets the positions from `position` on; past the last one it does nothing.
///
/// Threads: one at a time. Errors: `P64_STATUS_NOT_OPEN`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_decoder_truncate(
    decoder: *mut p64_decoder,
    position: usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        running_mut(c, decoder)?.kv.truncate(position);
        Ok(())
    })
}
