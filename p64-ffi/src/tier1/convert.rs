//! Tier 1: from GGUF to P64 and back.

use super::message::Result;
use super::p64_phase;
use crate::boundary::{Caller, Status, struct_size};
use crate::error::p64_error;
use crate::status;
use core::ffi::{c_char, c_void};
use p64_std::convert::{ConvertOptions, Phase, Progress, convert_gguf};
use p64_std::export::export_gguf;

/// How a container is laid out. Zero in every field but `struct_size` means the defaults.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_convert_options {
    /// `sizeof(p64_convert_options)`.
    pub struct_size: u32,
    /// Alignment of layers in bytes, a power of two from 256; 0 for 16384.
    pub page_size: u32,
    /// Not 0: every tensor begins on a page, not only every layer.
    pub no_pack: u32,
    /// Not 0: no layer schedule.
    pub no_schedule: u32,
    /// Not 0: the tensors keep the order of the source. This leaves the schedule out too.
    pub no_layer_major: u32,
    /// Zero.
    pub reserved: u32,
}

/// What a conversion or an export wrote.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_written {
    /// Tensors.
    pub tensors: u64,
    /// Bytes of the output; of an export all files together.
    pub bytes: u64,
    /// Bytes of the source; 0 for an export.
    pub source_bytes: u64,
    /// Padding bytes between and behind the tensors of a container; 0 for an export.
    pub padding_bytes: u64,
    /// Files written.
    pub files: u32,
    /// Of an export: 1 when the digests are those of the original source, 0 when they differ, 2 when the container does not
    /// say what those were. Of a conversion: 2.
    pub identical: u32,
    /// Seconds it took.
    pub seconds: f64,
}

/// Is told how far a `p64_phase` has come, in bytes. It must return.
pub type p64_progress_callback = Option<unsafe extern "C" fn(user: *mut c_void, phase: u32, done: u64, total: u64)>;

fn tell(callback: p64_progress_callback, user: *mut c_void, progress: Progress) {
    let phase = match progress.phase {
        Phase::Digest => p64_phase::P64_PHASE_DIGEST,
        Phase::Compare => p64_phase::P64_PHASE_COMPARE,
        _ => p64_phase::P64_PHASE_WRITE,
    };
    if let Some(callback) = callback {
        // SAFETY: by p64.h the function takes this pointer and any numbers.
        unsafe { callback(user, phase as u32, progress.done, progress.total) };
    }
}

fn layout(c: &Caller<'_>, options: *const p64_convert_options) -> Result<ConvertOptions> {
    let defaults = ConvertOptions::default();
    if options.is_null() {
        return Ok(defaults);
    }
    let options = c.get(options)?;
    struct_size::<p64_convert_options>(options.struct_size)?;
    if options.reserved != 0 {
        return Err(p64_error::of(status::P64_STATUS_BAD_ARGUMENT).into());
    }
    let layer_major = options.no_layer_major == 0;
    Ok(ConvertOptions {
        page_size: if options.page_size == 0 { defaults.page_size } else { options.page_size },
        layer_major,
        pack: options.no_pack == 0,
        schedule: options.no_schedule == 0 && layer_major,
    })
}

/// Converts a GGUF (of a split one, its first file) into one container, byte for byte. `options`, `progress` and `out` may
/// be NULL. The output appears whole or not at all; what stood there is replaced in one step.
///
/// Threads: any; `progress` is called on the caller's. Errors: `P64_STATUS_IO`; `P64_STATUS_NOT_A_MODEL` for a source that is
/// no GGUF or a malformed one; `P64_STATUS_REFUSED` for what no container can hold; `P64_STATUS_BAD_ARGUMENT` for options
/// that contradict each other and for one file as input and output. Cost: two passes over the source, one write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_convert(
    input: *const c_char,
    output: *const c_char,
    options: *const p64_convert_options,
    progress: p64_progress_callback,
    user: *mut c_void,
    out: *mut p64_written,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let (input, output) = (c.path(input)?, c.path(output)?);
        let out = if out.is_null() { None } else { Some(c.out(out)?) };
        let report = convert_gguf(&input, &output, &layout(c, options)?, &mut |step| tell(progress, user, step))?;
        if let Some(out) = out {
            out.set(p64_written {
                tensors: report.tensors,
                bytes: report.bytes,
                source_bytes: report.source_bytes,
                padding_bytes: report.padding_bytes,
                files: 1,
                identical: 2,
                seconds: report.duration.as_secs_f64(),
            });
        }
        Ok(())
    })
}

/// Rebuilds the GGUF that a container was made from. `progress` and `out` may be NULL. The output appears whole or not at
/// all.
///
/// Threads: any; `progress` is called on the caller's. Errors: `P64_STATUS_IO`; as `p64_file_open`, the tensors' checksums
/// among them; `P64_STATUS_REFUSED` for a container without the keys that a GGUF needs. A digest that differs from the
/// source's is no error: `identical` tells. Cost: one pass over the container, one write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_export(
    input: *const c_char,
    output: *const c_char,
    progress: p64_progress_callback,
    user: *mut c_void,
    out: *mut p64_written,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run_std(|c| {
        let (input, output) = (c.path(input)?, c.path(output)?);
        let out = if out.is_null() { None } else { Some(c.out(out)?) };
        let report = export_gguf(&input, &output, &mut |step| tell(progress, user, step))?;
        if let Some(out) = out {
            out.set(p64_written {
                tensors: report.tensors,
                bytes: report.files.iter().map(|file| file.bytes).sum(),
                source_bytes: 0,
                padding_bytes: 0,
                files: u32::try_from(report.files.len()).unwrap_or(u32::MAX),
                identical: report.identical.map_or(2, u32::from),
                seconds: report.duration.as_secs_f64(),
            });
        }
        Ok(())
    })
}
