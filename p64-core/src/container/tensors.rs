//! Tensors: what the table says of one, and its verified bytes.
#![forbid(unsafe_code)]

use super::Container;
use crate::error::Result;
use crate::extent::Extent;
use crate::kernel::Matrix;
use crate::layout::dtype::DType;
use crate::layout::header::OffsetWidth;
use crate::layout::role::Role;
use crate::layout::shape::Shape;
use crate::layout::tensor::RawTensorEntry;
use crate::num;
use crate::validate::name_at;

/// What the tensor table says of one tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorInfo<'a> {
    index: u32,
    name: &'a str,
    shape: Shape,
    entry: &'a RawTensorEntry,
    width: OffsetWidth,
}

impl<'a> TensorInfo<'a> {
    /// Place in the table, from 0.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// The engine role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.entry.role()
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.entry.dtype()
    }

    /// The shape in GGML order.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Layer, or `n_layer` for globals and unknown roles.
    #[must_use]
    pub const fn manifold_idx(&self) -> u32 {
        self.entry.manifold_idx.get()
    }

    /// Where the payload lies in the file.
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.entry.extent(self.width)
    }

    /// Offset in the source's data region; [`RawTensorEntry::NO_SOURCE`] for tensors the converter added.
    #[must_use]
    pub const fn source_offset(&self) -> u64 {
        self.entry.source_offset.get()
    }

    /// FNV-1a of the source's name ([`crate::hash`]).
    #[must_use]
    pub const fn source_name_hash(&self) -> u64 {
        self.entry.source_name_hash.get()
    }
}

/// A tensor whose bytes have passed their checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tensor<'a> {
    info: TensorInfo<'a>,
    bytes: &'a [u8],
}

impl<'a> Tensor<'a> {
    pub(super) const fn new(info: TensorInfo<'a>, bytes: &'a [u8]) -> Self {
        Self { info, bytes }
    }

    /// What the table says.
    #[must_use]
    pub const fn info(&self) -> &TensorInfo<'a> {
        &self.info
    }

    /// The payload.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The tensor as rows of `dims[0]` elements, for the kernels.
    ///
    /// # Errors
    /// [`Code::UnsupportedDType`](crate::Code::UnsupportedDType) when no kernel reads the type.
    pub fn matrix(&self) -> Result<Matrix<'a>> {
        let shape = self.info.shape();
        let rows = shape.rows().and_then(|rows| usize::try_from(rows).ok()).unwrap_or(usize::MAX);
        let cols = usize::try_from(shape.row_len()).unwrap_or(usize::MAX);
        Matrix::new(self.info.dtype(), rows, cols, self.bytes)
    }
}

impl<'a> Container<'a> {
    /// Number of tensors.
    #[must_use]
    pub const fn tensor_count(&self) -> u32 {
        self.parts.header.tensor_count.get()
    }

    /// The tensor at a place in the table.
    #[must_use]
    pub fn info(&self, index: u32) -> Option<TensorInfo<'a>> {
        let entry = self.parts.entries.get(num::index(index))?;
        let dims = entry.dimensions.map(|dimension| dimension.get());
        let shape = dims.get(..num::index(entry.rank.get())).and_then(Shape::new)?;
        let name = name_at(entry, self.parts.strings);
        Some(TensorInfo { index, name, shape, entry, width: self.offset_width() })
    }

    /// All tensors in table order, which is file order.
    pub fn tensors(&self) -> impl Iterator<Item = TensorInfo<'a>> + use<'a> {
        let container = *self;
        (0..container.tensor_count()).filter_map(move |index| container.info(index))
    }
}
