//! Tier 0: a file that is read, not mapped, through a callback and a buffer of any size from 64 bytes.

use crate::boundary::{Caller, Outcome, Status, apart, fail};
use crate::container::{self, p64_hparams, p64_info, p64_open_options};
use crate::error::p64_error;
use crate::layer::{p64_layer, p64_manifold};
use crate::status;
use crate::tensor::p64_tensor;
use core::ffi::{c_char, c_void};
use p64_core::stream::{ReadAt, ReadFault, Step, StreamContainer, StreamTensor, Validator};
use p64_core::{Code, Error, Place, Role};

/// Shortest buffer that a stream works with, in bytes. Longer ones make fewer reads.
pub const P64_STREAM_MIN_BUFFER: usize = 64;

const _: () = assert!(P64_STREAM_MIN_BUFFER == p64_core::stream::MIN_BUFFER);

/// Fills `len` bytes at `buffer` with those of the file from `offset` on; the range lies within the file. Returns 0, or a
/// number of its own for a failure, which comes back in `p64_error.found` of `P64_STATUS_READ_FAILED`.
pub type p64_read =
    Option<unsafe extern "C" fn(user: *mut c_void, offset: u64, buffer: *mut c_void, len: usize) -> i32>;

/// Bytes at an offset: flash behind a bus, a file, a range of a larger image.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_reader {
    /// Reads.
    pub read: p64_read,
    /// Passed to `read`.
    pub user: *mut c_void,
    /// Bytes of the file.
    pub len: u64,
}

/// A stream in memory of the caller's: a validation under way, then what the file holds. It refers to the buffer it was
/// given, to what the options lend and to what the reader's `user` points to, which must outlive it; it owns nothing and
/// needs no closing. It must not be copied.
#[derive(Debug)]
#[repr(C)]
pub struct p64_stream {
    /// The library's own.
    pub opaque: [u64; 128],
}

/// What lies in a [`p64_stream`]. `'static` stands for "as long as the caller keeps what it lent".
#[repr(C)]
struct Running {
    magic: u64,
    options: p64_open_options,
    state: State,
}

enum State {
    Validating(Validator<'static, Reader>),
    Open(StreamContainer<'static, Reader>),
    /// Every check has passed, but what the options lent does not suffice to go on.
    Failed(Error),
}

const _: () = assert!(size_of::<Running>() <= size_of::<p64_stream>());
const _: () = assert!(align_of::<Running>() <= align_of::<p64_stream>());

const MAGIC: u64 = u64::from_le_bytes(*b"p64 read") ^ (size_of::<Running>() as u64).rotate_right(16);

struct Reader(p64_reader);

impl ReadAt for Reader {
    fn len(&self) -> u64 {
        self.0.len
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
        // `begin` has checked that there is one.
        let Some(read) = self.0.read else { return Err(ReadFault(0)) };
        // SAFETY: by p64.h the function writes no more than `len` bytes at `buffer`, and answers with a number.
        let answer = unsafe { read(self.0.user, offset, buffer.as_mut_ptr().cast(), buffer.len()) };
        if answer == 0 { Ok(()) } else { Err(ReadFault(answer.cast_unsigned())) }
    }
}

impl Running {
    /// Takes one step, and opens the file after the last.
    fn step(&mut self) -> Outcome<Step> {
        let validator = match &mut self.state {
            State::Validating(validator) => validator,
            State::Open(_) => return Ok(Step::Done),
            State::Failed(error) => return Err((*error).into()),
        };
        let options = &self.options;
        if validator.step(&mut |warning| options.warn(warning))? == Step::More {
            return Ok(Step::More);
        }
        let moving = State::Failed(Error::new(Code::NotValidated, Place::File));
        if let State::Validating(validator) = core::mem::replace(&mut self.state, moving) {
            self.state = validator.finish().map_or_else(State::Failed, State::Open);
        }
        // Done, or the reason why not.
        self.step()
    }

    fn open(&mut self) -> Outcome<&mut StreamContainer<'static, Reader>> {
        match &mut self.state {
            State::Open(container) => Ok(container),
            _ => Err(Error::new(Code::NotValidated, Place::File).into()),
        }
    }
}

fn running<'c>(c: &Caller<'c>, stream: *mut p64_stream) -> Outcome<&'c mut Running> {
    if c.get(stream)?.opaque[0] != MAGIC {
        return fail(status::P64_STATUS_NOT_OPEN);
    }
    // SAFETY: `get` has checked the pointer; the storage is large and aligned enough (asserted above), begins with the word
    // that is only written with the whole of a `Running`, and by p64.h nobody else uses storage that a function changes.
    Ok(unsafe { &mut *stream.cast::<Running>() })
}

/// The container in a stream whose validation is done.
fn opened<'c>(c: &Caller<'c>, stream: *mut p64_stream) -> Outcome<&'c mut StreamContainer<'static, Reader>> {
    running(c, stream)?.open()
}

/// Puts the beginning of a validation into its storage.
fn begin<'c>(
    c: &Caller<'static>,
    stream: *mut p64_stream,
    reader: *const p64_reader,
    buffer: (*mut c_void, usize),
    options: *const p64_open_options,
) -> Outcome<&'c mut Running> {
    let storage = c.get_mut(stream)?;
    storage.opaque[0] = 0;
    let reader = *c.get(reader)?;
    if reader.read.is_none() {
        return fail(status::P64_STATUS_NULL_POINTER);
    }
    let options = if options.is_null() { p64_open_options::DEFAULT } else { *c.get(options)? };
    let core = container::read_options(c, &options)?;
    let window = c.slice_mut(buffer.0.cast::<u8>(), buffer.1)?;
    let lent = container::lent_storage(c, &options, window)?;
    let state = State::Validating(Validator::new(Reader(reader), window, lent, &core)?);
    let place = core::ptr::from_mut(storage).cast::<Running>();
    // SAFETY: the storage is large and aligned enough, asserted above.
    unsafe { place.write(Running { magic: MAGIC, options, state }) };
    // SAFETY: just written, and lent by C like the storage.
    Ok(unsafe { &mut *place })
}

/// Begins to validate what a reader gives, through `buffer_len` bytes at `buffer`. Nothing is read yet. `options` may be
/// NULL.
///
/// Owner: the stream refers to the buffer and to what the options lend (their record of verified tensors and name index work
/// as for `p64_container_open`); they stay the caller's and nobody else may touch them while the stream is used. Reader and
/// options themselves are copied. Threads: any, each with a stream of its own. Errors: `P64_STATUS_BUFFER_TOO_SMALL` below
/// `P64_STREAM_MIN_BUFFER`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_begin(
    stream: *mut p64_stream,
    reader: *const p64_reader,
    buffer: *mut c_void,
    buffer_len: usize,
    options: *const p64_open_options,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| begin(c, stream, reader, (buffer, buffer_len), options).map(|_| ()))
}

/// Does the next piece of the validation: at most one buffer is read (one name, where names are longer), so that a watchdog
/// can be fed and other work done between steps. `done` is set to 1 when the last check has passed, else to 0.
///
/// Threads: one at a time. Errors: those of `p64_container_open`, the same at the same place, and every later step answers
/// with it too. After `P64_STATUS_READ_FAILED` the next step tries again where this one stopped. Cost: linear in the buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_step(stream: *mut p64_stream, done: *mut i32, error: *mut p64_error) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (running, done) = (running(c, stream)?, c.out(done)?);
        done.set(i32::from(running.step()? == Step::Done));
        Ok(())
    })
}

/// `p64_stream_begin`, and every step.
///
/// Owner, Threads: as `p64_stream_begin`. Errors: those of `p64_container_open`, the same at the same place;
/// `P64_STATUS_READ_FAILED`. After an error the stream counts as not opened. Cost: linear in the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_open(
    stream: *mut p64_stream,
    reader: *const p64_reader,
    buffer: *mut c_void,
    buffer_len: usize,
    options: *const p64_open_options,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let running = begin(c, stream, reader, (buffer, buffer_len), options)?;
        loop {
            match running.step() {
                Ok(Step::More) => {}
                Ok(Step::Done) => return Ok(()),
                Err(error) => {
                    running.magic = 0;
                    return Err(error);
                }
            }
        }
    })
}

/// What the file as a whole is.
///
/// Threads: one at a time. Errors: `P64_STATUS_NOT_VALIDATED` before the last step, `P64_STATUS_READ_FAILED`. Cost: one pass
/// over the tensor table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_info(stream: *mut p64_stream, out: *mut p64_info, error: *mut p64_error) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (opened(c, stream)?, c.out(out)?);
        let mut tensor_bytes = 0u64;
        for index in 0..container.tensor_count() {
            tensor_bytes = tensor_bytes.saturating_add(container.tensor(index)?.extent().len());
        }
        let (has_schedule, has_tokenizer) = (container.has_schedule(), container.tokenizer().is_some());
        out.set(p64_info::new(
            container.header(),
            container.sections(),
            container.n_layer(),
            container.file_len(),
            tensor_bytes,
            has_schedule,
            has_tokenizer,
        ));
        Ok(())
    })
}

/// The hyperparameters.
///
/// Threads: one at a time. Errors: `P64_STATUS_NOT_VALIDATED` before the last step. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_hparams(
    stream: *mut p64_stream,
    out: *mut p64_hparams,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (opened(c, stream)?, c.out(out)?);
        out.set(container.hparams().into());
        Ok(())
    })
}

impl From<StreamTensor> for p64_tensor {
    fn from(tensor: StreamTensor) -> Self {
        let extent = tensor.extent();
        Self {
            name: core::ptr::null(),
            name_len: 0,
            index: tensor.index(),
            role: u32::from(tensor.role().id()),
            dtype: u32::from(tensor.dtype().id()),
            layer: tensor.manifold_idx(),
            rank: tensor.shape().dims().len() as u32,
            dims: tensor.shape().raw(),
            reserved: 0,
            offset: extent.start(),
            size: extent.len(),
            source_offset: tensor.source_offset(),
            source_name_hash: tensor.source_name_hash(),
        }
    }
}

/// The tensor at a place in the table. Its `name` is NULL: `p64_stream_name` reads it.
///
/// Threads: one at a time. Errors: `P64_STATUS_NO_SUCH_TENSOR`, `P64_STATUS_NOT_VALIDATED`, `P64_STATUS_READ_FAILED`. Cost:
/// one read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_tensor(
    stream: *mut p64_stream,
    index: u32,
    out: *mut p64_tensor,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (opened(c, stream)?, c.out(out)?);
        out.set(container.tensor(index)?.into());
        Ok(())
    })
}

/// The name of a tensor: UTF-8 in the front of `buffer`, its bytes in `len`. No NUL is written.
///
/// Owner: the caller's buffer. Threads: one at a time. Errors: `P64_STATUS_BUFFER_TOO_SMALL` with the length of the name;
/// as `p64_stream_tensor`. Cost: linear in the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_name(
    stream: *mut p64_stream,
    index: u32,
    buffer: *mut c_char,
    buffer_len: usize,
    len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, len) = (opened(c, stream)?, c.out(len)?);
        let tensor = container.tensor(index)?;
        len.set(container.name(&tensor, c.slice_mut(buffer.cast::<u8>(), buffer_len)?)?.len());
        Ok(())
    })
}

/// The tensor of a name. Its `name` in `out` is NULL.
///
/// Threads: one at a time. Errors: `P64_STATUS_NOT_FOUND`, `P64_STATUS_NOT_VALIDATED`, `P64_STATUS_READ_FAILED`. Cost:
/// `O(log n)` with a name index, else a pass over the names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_find(
    stream: *mut p64_stream,
    name: *const c_char,
    name_len: usize,
    out: *mut p64_tensor,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (opened(c, stream)?, c.out(out)?);
        let found = container.find(c.str(name, name_len)?)?;
        out.set(found.ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))?.into());
        Ok(())
    })
}

/// The first tensor of a role in a layer; `layer` is `n_layer` for roles that belong to none. Its `name` in `out` is NULL.
///
/// Threads: one at a time. Errors: `P64_STATUS_NOT_FOUND`; `P64_STATUS_BAD_ARGUMENT` for a role above 65535;
/// `P64_STATUS_NOT_VALIDATED`, `P64_STATUS_READ_FAILED`. Cost: `O(log n)` reads and the layer's part of the table in
/// layer-major files, else a pass over the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_find_role(
    stream: *mut p64_stream,
    role: u32,
    layer: u32,
    out: *mut p64_tensor,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (opened(c, stream)?, c.out(out)?);
        let role = u16::try_from(role).or(fail(status::P64_STATUS_BAD_ARGUMENT))?;
        let found = container.find_role(Role::from_id(role), layer)?;
        out.set(found.ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))?.into());
        Ok(())
    })
}

/// A layer as the unit to load. `layer == n_layer` is the group of tensors that belong to no layer.
///
/// Threads: one at a time. Errors: `P64_STATUS_NOT_FOUND` past that; `P64_STATUS_NOT_VALIDATED`, `P64_STATUS_READ_FAILED`.
/// Cost: one read with a layer schedule, else a pass over the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_layer(
    stream: *mut p64_stream,
    layer: u32,
    out: *mut p64_layer,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (opened(c, stream)?, c.out(out)?);
        layer_exists(container, layer)?;
        out.set(container.layer(layer)?.into());
        Ok(())
    })
}

/// The coordinates of a layer. `layer == n_layer` is the record of the tensors that belong to none.
///
/// Threads: one at a time. Errors: as `p64_stream_layer`. Cost: one read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_manifold(
    stream: *mut p64_stream,
    layer: u32,
    out: *mut p64_manifold,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (opened(c, stream)?, c.out(out)?);
        layer_exists(container, layer)?;
        out.set(p64_manifold { values: container.manifold(layer)?.values.map(|value| value.get()) });
        Ok(())
    })
}

fn layer_exists(container: &StreamContainer<'_, Reader>, layer: u32) -> Outcome {
    if layer <= container.n_layer() { Ok(()) } else { fail(status::P64_STATUS_NOT_FOUND) }
}

/// Verifies the checksum of a tensor by reading all of it, whatever was verified before.
///
/// Threads: one at a time. Errors: `P64_STATUS_TENSOR_CHECKSUM`; as `p64_stream_tensor`. Cost: linear in the tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_verify(stream: *mut p64_stream, index: u32, error: *mut p64_error) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let container = opened(c, stream)?;
        let tensor = container.tensor(index)?;
        Ok(container.verify(&tensor)?)
    })
}

/// Reads `len` bytes of a tensor from `offset` on, counted from the tensor's beginning. Under `P64_INTEGRITY_LAZY` the whole
/// tensor is verified first: each time, unless the options lent a record of verified tensors. After an error the buffer's
/// content means nothing.
///
/// Owner: the caller's buffer. Threads: one at a time. Errors: `P64_STATUS_LENGTH_MISMATCH` past the tensor's end;
/// `P64_STATUS_TENSOR_CHECKSUM`; as `p64_stream_tensor`. Cost: linear in what is read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_read(
    stream: *mut p64_stream,
    index: u32,
    offset: u64,
    buffer: *mut c_void,
    len: usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let container = opened(c, stream)?;
        let tensor = container.tensor(index)?;
        Ok(container.read(&tensor, offset, c.slice_mut(buffer.cast::<u8>(), len)?)?)
    })
}

/// The string of a token, as the vocabulary spells it: UTF-8 in the front of `buffer`, its bytes in `len`. No NUL is
/// written.
///
/// Owner: the caller's buffer. Threads: one at a time. Errors: `P64_STATUS_NOT_FOUND` past the vocabulary or without one,
/// `P64_STATUS_BUFFER_TOO_SMALL` with the length of the string; `P64_STATUS_NOT_VALIDATED`, `P64_STATUS_READ_FAILED`. Cost:
/// linear in the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_token(
    stream: *mut p64_stream,
    id: u32,
    buffer: *mut c_char,
    buffer_len: usize,
    len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, len) = (opened(c, stream)?, c.out(len)?);
        let text = container.token(id, c.slice_mut(buffer.cast::<u8>(), buffer_len)?)?;
        len.set(text.ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))?.len());
        Ok(())
    })
}

/// The two strings of a merge pair, as `p64_stream_token` gives one.
///
/// Owner: the caller's buffers, which must not overlap. Threads: one at a time. Errors: as `p64_stream_token`, and
/// `P64_STATUS_BAD_ARGUMENT` for buffers that overlap. Cost: linear in the index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_stream_merge(
    stream: *mut p64_stream,
    index: u32,
    left: *mut c_char,
    left_capacity: usize,
    left_len: *mut usize,
    right: *mut c_char,
    right_capacity: usize,
    right_len: *mut usize,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, left_len, right_len) = (opened(c, stream)?, c.out(left_len)?, c.out(right_len)?);
        let left = c.slice_mut(left.cast::<u8>(), left_capacity)?;
        apart(left, (right, right_capacity))?;
        let right = c.slice_mut(right.cast::<u8>(), right_capacity)?;
        let pair = container.merge(index, left, right)?.ok_or(p64_error::of(status::P64_STATUS_NOT_FOUND))?;
        left_len.set(pair.0.len());
        right_len.set(pair.1.len());
        Ok(())
    })
}
