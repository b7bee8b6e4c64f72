//! One tensor of a safetensors file, and its bytes as the payload of a container.

use super::error::{Error as FormatError, Problem};
use super::file::SafetensorsFile;
use super::header::TensorInfo;
use crate::error::{Error, Result};
use crate::source::Payload;
use p64_core::{DType, Shape};

/// A tensor as a file has it.
#[derive(Clone, Copy, Debug)]
pub struct StoredTensor<'s> {
    file: &'s SafetensorsFile,
    info: &'s TensorInfo,
}

impl<'s> StoredTensor<'s> {
    pub(super) const fn new(file: &'s SafetensorsFile, info: &'s TensorInfo) -> Self {
        Self { file, info }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'s str {
        &self.info.name
    }

    /// Name, type, shape and place.
    #[must_use]
    pub const fn info(&self) -> &'s TensorInfo {
        self.info
    }

    /// The file that it lies in.
    #[must_use]
    pub const fn file(&self) -> &'s SafetensorsFile {
        self.file
    }

    /// The tensor as a container would hold it: the same bytes, the shape reversed into GGML order; a scalar becomes a
    /// row of one element.
    ///
    /// # Errors
    /// [`Error::Safetensors`] when GGML has no such type, or a container no room for the shape or the name.
    pub fn payload(&self) -> Result<StoredPayload<'s>> {
        let refuse = |problem| Error::safetensors(self.file.path(), FormatError::tensor(problem, self.name()));
        let dtype = self.info.dtype.ggml().ok_or_else(|| refuse(Problem::NoGgmlType(self.info.dtype)))?;
        let rank = self.info.shape.len();
        if rank > Shape::MAX_RANK {
            return Err(refuse(Problem::Rank(rank)));
        }
        let mut dims = Vec::with_capacity(Shape::MAX_RANK);
        for &dim in self.info.shape.iter().rev() {
            dims.push(u32::try_from(dim).map_err(|_| refuse(Problem::Dimension(dim)))?);
        }
        if dims.is_empty() {
            dims.push(1);
        }
        let shape = Shape::new(&dims).ok_or_else(|| refuse(Problem::Rank(rank)))?;
        if self.name().starts_with("p64.") {
            return Err(refuse(Problem::Reserved));
        }
        Ok(StoredPayload { tensor: *self, dtype, shape })
    }
}

/// The bytes of a tensor that a container can hold.
#[derive(Clone, Copy, Debug)]
pub struct StoredPayload<'s> {
    tensor: StoredTensor<'s>,
    dtype: DType,
    shape: Shape,
}

impl Payload for StoredPayload<'_> {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn len(&self) -> u64 {
        self.tensor.info.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let StoredTensor { file, info } = self.tensor;
        match offset.checked_add(out.len() as u64) {
            Some(end) if end <= info.len() => file.read_at(file.extent(info).start().saturating_add(offset), out),
            _ => Err(Error::io(file.path(), "read it", std::io::ErrorKind::UnexpectedEof.into())),
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.tensor.file.bytes(self.tensor.info)
    }
}
