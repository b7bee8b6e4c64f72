//! Tier 0: a validated file in the caller's storage.

use crate::boundary::{Caller, Outcome, Status, apart, fail, struct_size};
use crate::crc::{self, p64_crc32c};
use crate::error::p64_error;
use crate::status;
use core::ffi::c_void;
use core::sync::atomic::AtomicU8;
use p64_core::crc32c::Checksum;
use p64_core::layout::header::RawHeader;
use p64_core::layout::hparams::RawHParams;
use p64_core::validate::{Integrity, NameSlot, OpenOptions, Policy, Sections, Storage};
use p64_core::{Container, Error};

/// How deviations that real writers are known for are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_policy {
    /// Also accepts what the QualiaDB writers put on disk, and reports each deviation as a warning.
    P64_POLICY_COMPATIBLE = 0,
    /// The standard to the letter.
    P64_POLICY_STRICT = 1,
}

/// When the checksums of tensors are verified. That of everything before the tensors always is, when opening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_integrity {
    /// All of them, when opening.
    P64_INTEGRITY_FULL = 0,
    /// Each when its tensor is first used; bytes of a tensor that fails are never handed out.
    P64_INTEGRITY_LAZY = 1,
}

impl p64_policy {
    pub(crate) fn read(number: u32) -> Outcome<Policy> {
        match number {
            0 => Ok(Policy::Compatible),
            1 => Ok(Policy::Strict),
            _ => fail(status::P64_STATUS_BAD_ARGUMENT),
        }
    }
}

impl p64_integrity {
    pub(crate) fn read(number: u32) -> Outcome<Integrity> {
        match number {
            0 => Ok(Integrity::Full),
            1 => Ok(Integrity::Lazy),
            _ => fail(status::P64_STATUS_BAD_ARGUMENT),
        }
    }
}

/// Room for one entry of the name index. The library fills it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_name_slot {
    /// The library's own.
    pub opaque: [u32; 2],
}

const _: () = assert!(size_of::<p64_name_slot>() == size_of::<NameSlot>());
const _: () = assert!(align_of::<p64_name_slot>() == align_of::<NameSlot>());

/// How a container is opened. Zero in every field but `struct_size` means the defaults.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_open_options {
    /// `sizeof(p64_open_options)`.
    pub struct_size: u32,
    /// A `p64_policy`.
    pub policy: u32,
    /// A `p64_integrity`.
    pub integrity: u32,
    /// Zero.
    pub reserved: u32,
    /// How CRC-32C is computed; NULL for the built-in way. What it points to must live as long as the container.
    pub crc32c: *const p64_crc32c,
    /// Memory for an index of names, or NULL: one slot a tensor makes looking up a name `O(log n)`, and files of more than
    /// 4096 tensors need it. It is the container's for as long as that is used.
    pub names: *mut p64_name_slot,
    /// Slots there.
    pub names_len: usize,
    /// One byte a tensor, or NULL: remembers under `P64_INTEGRITY_LAZY` which tensors have been verified, so that each is
    /// read once. It is the container's for as long as that is used, and nobody else may write it.
    pub verified: *mut u8,
    /// Bytes there.
    pub verified_len: usize,
    /// Is told each deviation that the policy lets pass, or NULL. It must return.
    pub warning: Option<unsafe extern "C" fn(user: *mut c_void, warning: *const p64_error)>,
    /// Passed to `warning`.
    pub warning_user: *mut c_void,
}

/// Storage of a container, in memory of the caller's: a static, the stack, the heap. It refers to the file's bytes and to
/// what the options lend, so those must outlive it; it owns nothing and needs no closing. It may be copied with `=`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_container {
    /// The library's own.
    pub opaque: [u64; 64],
}

impl p64_container {
    /// Storage with this container in it.
    #[cfg(feature = "std")]
    pub(crate) fn of(container: Container<'static>) -> Self {
        let mut storage = Self { opaque: [0; 64] };
        Caller::store(&mut storage, container);
        storage
    }
}

/// What lies in a [`p64_container`]. `'static` stands for "as long as the caller keeps what it lent".
#[derive(Clone, Copy)]
#[repr(C)]
struct Opened {
    magic: u64,
    container: Container<'static>,
}

const _: () = assert!(size_of::<Opened>() <= size_of::<p64_container>());
const _: () = assert!(align_of::<Opened>() <= align_of::<p64_container>());

/// Stands at the front of opened storage, and nowhere by chance.
const MAGIC: u64 = u64::from_le_bytes(*b"p64 open") ^ (size_of::<Opened>() as u64).rotate_right(16);

impl Caller<'_> {
    /// The container in its storage.
    pub fn container(&self, storage: *const p64_container) -> Outcome<Container<'static>> {
        let storage = self.get(storage)?;
        if storage.opaque[0] != MAGIC {
            return fail(status::P64_STATUS_NOT_OPEN);
        }
        // SAFETY: the storage is large and aligned enough (asserted above), and begins with the word that only `store`
        // writes, after an `Opened`; a copy made with `=` is as good.
        Ok(unsafe { core::ptr::from_ref(storage).cast::<Opened>().read() }.container)
    }

    /// Puts a container into its storage.
    fn store(storage: &mut p64_container, container: Container<'static>) {
        // SAFETY: the storage is large and aligned enough, asserted above.
        unsafe { core::ptr::from_mut(storage).cast::<Opened>().write(Opened { magic: MAGIC, container }) };
    }
}

/// Validates `len` bytes at `data` as a P64 file, completely, and makes `container` of them. `options` may be NULL.
///
/// Owner: the container refers to `data` and to what the options lend; they stay the caller's and must neither change nor
/// go away while the container is used. Threads: any; the opened container may be used by any number of threads at once.
/// Errors: the first check that fails, with its place; `P64_STATUS_BUFFER_TOO_SMALL` and `P64_STATUS_TOO_MANY_TENSORS` for
/// lent memory that is too short. After an error the storage counts as not opened. Cost: linear in the file (lazily: in what
/// stands before the tensors, and the padding between them); no allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_open(
    container: *mut p64_container,
    data: *const c_void,
    len: usize,
    options: *const p64_open_options,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let storage = c.get_mut(container)?;
        storage.opaque[0] = 0;
        let file = c.slice(data.cast::<u8>(), len)?;
        let options = if options.is_null() { &p64_open_options::DEFAULT } else { c.get(options)? };
        let (core, lent) = (read_options(c, options)?, lent_storage(c, options, file)?);
        let opened = Container::open_with(file, &core, lent, &mut |warning| options.warn(warning))?;
        Caller::store(storage, opened);
        Ok(())
    })
}

/// The processor's instructions where there is an operating system, the smallest table where flash is short.
fn default_checksum() -> Checksum {
    #[cfg(feature = "std")]
    return p64_std::map::CHECKSUM;
    #[cfg(not(feature = "std"))]
    Checksum::BYTES_64
}

pub(crate) fn read_options(c: &Caller<'_>, options: &p64_open_options) -> Outcome<OpenOptions> {
    struct_size::<p64_open_options>(options.struct_size)?;
    let (policy, integrity) = (p64_policy::read(options.policy)?, p64_integrity::read(options.integrity)?);
    if options.reserved != 0 {
        return fail(status::P64_STATUS_BAD_ARGUMENT);
    }
    let checksum = if options.crc32c.is_null() { default_checksum() } else { crc::hook(c, options.crc32c)? };
    Ok(OpenOptions { policy, integrity, checksum })
}

pub(crate) fn lent_storage<'c>(c: &Caller<'c>, options: &p64_open_options, file: &[u8]) -> Outcome<Storage<'c>> {
    apart(file, (options.names, options.names_len))?;
    apart(file, (options.verified, options.verified_len))?;
    let names = c.slice_mut(options.names.cast::<NameSlot>(), options.names_len)?;
    names.fill(NameSlot::default());
    apart(names, (options.verified, options.verified_len))?;
    let verified = c.slice_mut(options.verified.cast::<AtomicU8>(), options.verified_len)?;
    Ok(Storage { names, verified })
}

impl p64_open_options {
    /// What NULL stands for.
    pub(crate) const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        policy: p64_policy::P64_POLICY_COMPATIBLE as u32,
        integrity: p64_integrity::P64_INTEGRITY_FULL as u32,
        reserved: 0,
        crc32c: core::ptr::null(),
        names: core::ptr::null_mut(),
        names_len: 0,
        verified: core::ptr::null_mut(),
        verified_len: 0,
        warning: None,
        warning_user: core::ptr::null_mut(),
    };

    pub(crate) fn warn(&self, warning: Error) {
        if let Some(tell) = self.warning {
            let warning = p64_error::from(warning);
            // SAFETY: by p64.h the function takes this pointer and an error that it may read until it returns.
            unsafe { tell(self.warning_user, &raw const warning) };
        }
    }
}

/// What the header and the section tables say.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_info {
    /// Container version: 4, 5 for a file of 4 GiB and more (or 3 under the compatible policy).
    pub version: u32,
    /// The header's flag bits.
    pub flags: u32,
    /// Alignment of tensors in the file.
    pub page_size: u32,
    /// Transformer layers.
    pub n_layer: u32,
    /// Tensors.
    pub tensor_count: u32,
    /// 1 when the file carries a layer schedule, else 0.
    pub has_schedule: u32,
    /// 1 when the file carries a tokenizer section, else 0.
    pub has_tokenizer: u32,
    /// Zero.
    pub reserved: u32,
    /// Bytes of the file.
    pub file_len: u64,
    /// No tensor begins below this offset.
    pub blob_floor: u64,
    /// Bytes of the tensors, without the padding between them.
    pub tensor_bytes: u64,
    /// Bytes between the sections' end and the file's that belong to no tensor.
    pub padding_bytes: u64,
}

impl p64_info {
    pub(crate) fn new(
        header: &RawHeader,
        sections: &Sections,
        n_layer: u32,
        file_len: u64,
        tensor_bytes: u64,
        has_schedule: bool,
        has_tokenizer: bool,
    ) -> Self {
        Self {
            version: u32::from(header.version.get()),
            flags: u32::from(header.flags.get()),
            page_size: header.page_size.get(),
            n_layer,
            tensor_count: header.tensor_count.get(),
            has_schedule: u32::from(has_schedule),
            has_tokenizer: u32::from(has_tokenizer),
            reserved: 0,
            file_len,
            blob_floor: sections.blob_floor,
            tensor_bytes,
            padding_bytes: file_len.saturating_sub(sections.checksums.end()).saturating_sub(tensor_bytes),
        }
    }
}

/// What the file as a whole is.
///
/// Threads: any. Errors: `P64_STATUS_NOT_OPEN`. Cost: one pass over the tensor table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_info(
    container: *const p64_container,
    out: *mut p64_info,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (c.container(container)?, c.out(out)?);
        let tensor_bytes = container.tensors().fold(0u64, |sum, info| sum.saturating_add(info.extent().len()));
        out.set(p64_info::new(
            container.header(),
            container.sections(),
            container.n_layer(),
            container.file_len(),
            tensor_bytes,
            container.has_schedule(),
            container.tokenizer().is_some(),
        ));
        Ok(())
    })
}

/// The hyperparameter record. Fields from `head_dim` on are an extension that only the compatible policy reads; zero
/// stands for "not said".
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct p64_hparams {
    /// Transformer layers.
    pub n_layer: u32,
    /// Length of the stream between layers.
    pub n_embd: u32,
    /// Query heads.
    pub n_head: u32,
    /// Key and value heads.
    pub n_kv_head: u32,
    /// Vocabulary entries.
    pub vocab_size: u32,
    /// Base of the rotary embedding.
    pub rope_freq_base: f32,
    /// Scale of the rotary embedding.
    pub rope_scale: f32,
    /// Length of a head.
    pub head_dim: u32,
    /// Length of a head in layers with a sliding window.
    pub head_dim_swa: u32,
    /// Positions of the sliding window.
    pub sliding_window: u32,
    /// Layers that share their keys and values.
    pub shared_kv_layers: u32,
    /// Soft cap of the logits.
    pub logit_softcap: f32,
    /// The extension's architecture number.
    pub architecture: u32,
    /// The extension's architecture flags.
    pub arch_flags: u32,
}

impl From<&RawHParams> for p64_hparams {
    fn from(record: &RawHParams) -> Self {
        Self {
            n_layer: record.n_layer.get(),
            n_embd: record.n_embd.get(),
            n_head: record.n_head.get(),
            n_kv_head: record.n_kv_head.get(),
            vocab_size: record.vocab_size.get(),
            rope_freq_base: record.rope_freq_base.get(),
            rope_scale: record.rope_scale.get(),
            head_dim: record.head_dim.get(),
            head_dim_swa: record.head_dim_swa.get(),
            sliding_window: record.sliding_window.get(),
            shared_kv_layers: record.shared_kv_layers.get(),
            logit_softcap: record.logit_softcap.get(),
            architecture: record.architecture.get(),
            arch_flags: record.arch_flags.get(),
        }
    }
}

/// The hyperparameters.
///
/// Threads: any. Errors: `P64_STATUS_NOT_OPEN`. Cost: constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_hparams(
    container: *const p64_container,
    out: *mut p64_hparams,
    error: *mut p64_error,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| {
        let (container, out) = (c.container(container)?, c.out(out)?);
        out.set(container.hparams().into());
        Ok(())
    })
}

/// Verifies the checksum of every tensor not yet verified.
///
/// Threads: any. Errors: `P64_STATUS_TENSOR_CHECKSUM` at the first tensor that fails. Cost: linear in the file under
/// `P64_INTEGRITY_LAZY`; under `P64_INTEGRITY_FULL` opening did it, and this is one pass over the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_container_verify_all(container: *const p64_container, error: *mut p64_error) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(error) };
    caller.run(|c| Ok(c.container(container)?.verify_all()?))
}
