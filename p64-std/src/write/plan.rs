//! The plan of a container: where everything will stand.

use super::error::PlanError;
use super::order::file_order;
use super::sections;
use p64_core::extent::align_up;
use p64_core::hash::fnv1a64;
use p64_core::layout::flags::Flags;
use p64_core::layout::header::{VERSION, VERSION_LARGE};
use p64_core::layout::hparams::RawHParams;
use p64_core::layout::tensor::RawTensorEntry;
use p64_core::layout::{DEFAULT_PAGE_SIZE, MIN_PAGE_SIZE, PACK_ALIGN, SECTION_ALIGN};
use p64_core::limits::{MAX_FILE_V4, MAX_LAYERS, MAX_STRING};
use p64_core::{DType, Role, Shape};
use std::collections::HashSet;
use std::ops::Range;

/// One tensor as the writer needs to know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorDescription {
    /// The name, unique, not empty, without NUL.
    pub name: String,
    /// The engine role.
    pub role: Role,
    /// The layer, for layer roles alone.
    pub layer: Option<u32>,
    /// The element type.
    pub dtype: DType,
    /// The shape in GGML order.
    pub shape: Shape,
    /// Payload bytes.
    pub size: u64,
    /// Offset in the source's data region, or [`RawTensorEntry::NO_SOURCE`].
    pub source_offset: u64,
    /// Hash of the source's name.
    pub source_name_hash: u64,
}

impl TensorDescription {
    /// A tensor of a GGUF: the role follows from the name, and a layer role counts only below `n_layer`.
    #[must_use]
    pub fn from_gguf(name: &str, n_layer: u32, dtype: DType, shape: Shape, size: u64, source_offset: u64) -> Self {
        let (role, layer) = match Role::from_gguf_name(name) {
            Some((role, None)) => (role, None),
            Some((role, Some(layer))) if layer < n_layer => (role, Some(layer)),
            _ => (Role::UNKNOWN, None),
        };
        let source_name_hash = fnv1a64(name.as_bytes());
        Self { name: name.to_owned(), role, layer, dtype, shape, size, source_offset, source_name_hash }
    }

    /// `size` bytes that the converter adds: no role, no source, type I8 (spec §17). `None` past 32 bits.
    #[must_use]
    pub fn added(name: &str, size: u64) -> Option<Self> {
        let shape = Shape::new(&[u32::try_from(size).ok()?])?;
        Some(Self::from_gguf(name, 0, DType::I8, shape, size, RawTensorEntry::NO_SOURCE))
    }

    pub(super) fn manifold_idx(&self, n_layer: u32) -> u32 {
        self.layer.unwrap_or(n_layer)
    }
}

/// How the blobs are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayoutOptions {
    /// Blob alignment, a power of two of at least 256.
    pub page_size: u32,
    /// Layer-major order (flag bit 4).
    pub layer_major: bool,
    /// Pages between layers only (flag bit 5).
    pub pack: bool,
    /// A layer schedule (flag bit 6); needs layer-major order. A model without layers gets none.
    pub schedule: bool,
}

impl LayoutOptions {
    /// For flash, where a page of 16 KiB before every layer is room that is paid for: the smallest page the format permits,
    /// blobs packed at 256 bytes, and the schedule, by which a reader without memory for an index finds a layer.
    pub const FIRMWARE: Self = Self { page_size: MIN_PAGE_SIZE, layer_major: true, pack: true, schedule: true };
}

impl Default for LayoutOptions {
    fn default() -> Self {
        Self { page_size: DEFAULT_PAGE_SIZE, layer_major: true, pack: true, schedule: true }
    }
}

/// What a container is to hold.
#[derive(Clone, Debug)]
pub struct Model {
    /// The hyperparameters; the extension is zero.
    pub hparams: RawHParams,
    /// Not a complete model (flag bit 1).
    pub raw_transcode: bool,
    /// The Q42T payload without padding, when there is a tokenizer.
    pub tokenizer: Option<Vec<u8>>,
    /// The tensors, in the source's order.
    pub tensors: Vec<TensorDescription>,
}

/// A container of which everything but the payloads and checksums is known.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) front: Vec<u8>,
    /// Position in the model's tensors and file range of each blob, in file order.
    pub(super) blobs: Vec<(usize, Range<u64>)>,
    file_len: u64,
    version: u16,
}

/// What [`sections::build`] puts into bytes.
pub(super) struct Draft<'m> {
    pub model: &'m Model,
    pub options: LayoutOptions,
    pub version: u16,
    pub flags: Flags,
    /// The tensors in file order, each with its file range.
    pub tensors: Vec<(&'m TensorDescription, Range<u64>)>,
    pub layout: sections::Layout,
}

impl Plan {
    /// Works out every offset, and with the last of them the container version: 4 for a file of less than 4 GiB, 5 for any
    /// other (spec §15.1).
    ///
    /// # Errors
    /// [`PlanError`] when the model or the options cannot become a container.
    pub fn new(model: &Model, options: &LayoutOptions) -> Result<Self, PlanError> {
        check_options(options)?;
        check_model(model)?;
        let flags = flags(model, options);
        let layout = sections::Layout::new(model, flags)?;
        let order = file_order(&model.tensors, options.layer_major);
        let page = u64::from(options.page_size);
        let n_layer = model.hparams.n_layer.get();

        let mut blobs = Vec::with_capacity(order.len());
        let mut tensors = Vec::with_capacity(order.len());
        let (mut end, mut group) = (layout.checksums.end(), None);
        for index in order {
            let Some(tensor) = model.tensors.get(index) else { continue };
            let own = tensor.manifold_idx(n_layer);
            let alignment = if options.pack && group == Some(own) { PACK_ALIGN } else { page };
            let range = align_up(end, alignment).and_then(|start| Some(start..start.checked_add(tensor.size)?));
            let range = range.ok_or(PlanError::TooLarge { bytes: u64::MAX })?;
            (end, group) = (range.end, Some(own));
            tensors.push((tensor, range.clone()));
            blobs.push((index, range));
        }
        let file_len = align_up(end, SECTION_ALIGN).ok_or(PlanError::TooLarge { bytes: u64::MAX })?;
        let version = if file_len < MAX_FILE_V4 { VERSION } else { VERSION_LARGE };
        let front = sections::build(&Draft { model, options: *options, version, flags, tensors, layout })?;
        Ok(Self { front, blobs, file_len, version })
    }

    /// Bytes of the whole file.
    #[must_use]
    pub const fn file_len(&self) -> u64 {
        self.file_len
    }

    /// The container version.
    #[must_use]
    pub const fn version(&self) -> u16 {
        self.version
    }

    /// Bytes of all payloads.
    #[must_use]
    pub fn payload_len(&self) -> u64 {
        self.blobs.iter().map(|(_, range)| range.end.saturating_sub(range.start)).sum()
    }

    /// Zero bytes between and behind the blobs.
    #[must_use]
    pub fn padding_len(&self) -> u64 {
        let table = self.checksum_table_len();
        self.file_len.saturating_sub(self.front.len() as u64).saturating_sub(table).saturating_sub(self.payload_len())
    }

    /// Bytes of the checksum table.
    pub(super) fn checksum_table_len(&self) -> u64 {
        (self.blobs.len() as u64).saturating_add(1).saturating_mul(4)
    }
}

fn check_options(options: &LayoutOptions) -> Result<(), PlanError> {
    if !options.page_size.is_power_of_two() || options.page_size < MIN_PAGE_SIZE {
        return Err(PlanError::PageSize(options.page_size));
    }
    if options.schedule && !options.layer_major {
        return Err(PlanError::ScheduleWithoutOrder);
    }
    Ok(())
}

fn check_model(model: &Model) -> Result<(), PlanError> {
    let hparams = &model.hparams;
    let n_layer = hparams.n_layer.get();
    if n_layer > MAX_LAYERS {
        return Err(PlanError::TooManyLayers(n_layer));
    }
    if !hparams.rope_freq_base.get().is_finite() || !hparams.rope_scale.get().is_finite() {
        return Err(PlanError::NotFinite);
    }
    let needed = [hparams.n_layer, hparams.n_embd, hparams.n_head, hparams.n_kv_head, hparams.vocab_size];
    if !model.raw_transcode && (model.tokenizer.is_none() || needed.iter().any(|value| value.get() == 0)) {
        return Err(PlanError::Incomplete);
    }
    if u32::try_from(model.tensors.len()).is_err() {
        return Err(PlanError::TooManyTensors(model.tensors.len()));
    }
    let mut names = HashSet::new();
    for tensor in &model.tensors {
        let name = || tensor.name.clone();
        let len = tensor.name.len() as u64;
        if len == 0 || len > u64::from(MAX_STRING) || tensor.name.contains('\0') {
            return Err(PlanError::Name(name()));
        }
        if !names.insert(tensor.name.as_str()) {
            return Err(PlanError::DuplicateName(name()));
        }
        let layer_fits = match tensor.layer {
            Some(layer) => tensor.role.is_layer() && layer < n_layer,
            None => !tensor.role.is_layer(),
        };
        if !layer_fits {
            return Err(PlanError::Layer(name()));
        }
        let expected = tensor.dtype.byte_len(&tensor.shape).ok().flatten();
        if expected != Some(tensor.size) {
            let expected = expected.unwrap_or(0);
            return Err(PlanError::Size { name: name(), expected, found: tensor.size });
        }
    }
    Ok(())
}

fn flags(model: &Model, options: &LayoutOptions) -> Flags {
    let any = |dtype| model.tensors.iter().any(|tensor| tensor.dtype == dtype);
    let schedule = options.schedule && model.hparams.n_layer.get() != 0;
    [
        (Flags::RAW_TRANSCODE, model.raw_transcode),
        (Flags::TERNARY, any(DType::Ternary)),
        (Flags::Q4K_SOA, any(DType::Q4KSoa)),
        (Flags::LAYER_MAJOR, options.layer_major),
        (Flags::LAYER_PACK, options.pack),
        (Flags::LAYER_SCHEDULE, schedule),
    ]
    .into_iter()
    .filter(|(_, set)| *set)
    .fold(Flags::LITTLE_ENDIAN, |all, (flag, _)| all.union(flag))
}
