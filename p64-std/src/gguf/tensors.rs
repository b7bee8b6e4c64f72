//! The tensor table of a GGUF and where its payloads lie.

use super::error::{Error, Place, Problem};
use super::head::{Reader, Stop};
use p64_core::extent::{align_up, is_aligned};
use p64_core::layout::dtype::SizeError;
use p64_core::{DType, Shape};
use std::collections::HashMap;

const MAX_NAME: u64 = 1_024;

/// One tensor of a GGUF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GgufTensor<'a> {
    /// The name, unique in the file, without NUL.
    pub name: &'a str,
    /// The dimensions, contiguous one first.
    pub shape: Shape,
    /// The element type, one of the GGML registry.
    pub dtype: DType,
    /// Offset of the payload from the start of the data, a multiple of the alignment.
    pub offset: u64,
    /// Payload bytes, worked out from type and shape.
    pub size: u64,
}

type Table<'a> = (Vec<GgufTensor<'a>>, HashMap<&'a str, u32>);

pub(super) fn read_infos<'a>(reader: &mut Reader<'a>, count: u64, alignment: u32) -> Result<Table<'a>, Stop> {
    let mut tensors = Vec::new();
    let mut by_name = HashMap::new();
    for index in 0u32.. {
        if u64::from(index) == count {
            break;
        }
        let tensor = read_info(reader, index, alignment)?;
        if let Some(first) = by_name.insert(tensor.name, index) {
            let place = Place::Tensor(index, Some(tensor.name.to_owned()));
            return Err(Error::new(Problem::DuplicateName { first }, place).into());
        }
        tensors.push(tensor);
    }
    Ok((tensors, by_name))
}

fn read_info<'a>(reader: &mut Reader<'a>, index: u32, alignment: u32) -> Result<GgufTensor<'a>, Stop> {
    let start = reader.at;
    let name = read_name(reader, index, start)?;
    let place = Place::Tensor(index, Some(name.to_owned()));
    let refuse = |problem, at| Stop::Refused(Error::at(problem, place.clone(), at));

    let at = reader.at;
    let rank = reader.u32(&place)?;
    let mut dims = [0u32; Shape::MAX_RANK];
    let used = usize::try_from(rank).ok().and_then(|rank| dims.get_mut(..rank)).filter(|used| !used.is_empty());
    let Some(used) = used else { return Err(refuse(Problem::Rank(rank), at)) };
    for (axis, dim) in (0u32..).zip(used.iter_mut()) {
        let at = reader.at;
        let found = reader.u64(&place)?;
        *dim = u32::try_from(found).map_err(|_| refuse(Problem::Dimension { axis, found }, at))?;
    }
    let shape = Shape::new(used).ok_or_else(|| refuse(Problem::Rank(rank), at))?;

    let at = reader.at;
    let id = reader.u32(&place)?;
    let dtype = read_type(id).map_err(|problem| refuse(problem, at))?;
    let size = match dtype.byte_len(&shape) {
        Ok(Some(size)) => size,
        // No type of GGML's has rows side by side.
        Ok(None) | Err(SizeError::PartialTile(_)) => return Err(refuse(Problem::UnknownType(id), at)),
        Err(SizeError::Overflow) => return Err(refuse(Problem::SizeOverflow, start)),
        Err(SizeError::PartialBlock(block)) => {
            return Err(refuse(Problem::PartialBlock { row: shape.row_len(), block, dtype }, start));
        }
    };

    let at = reader.at;
    let offset = reader.u64(&place)?;
    if !is_aligned(offset, u64::from(alignment)) {
        return Err(refuse(Problem::Misaligned { offset, alignment }, at));
    }
    Ok(GgufTensor { name, shape, dtype, offset, size })
}

fn read_name<'a>(reader: &mut Reader<'a>, index: u32, at: u64) -> Result<&'a str, Stop> {
    let place = Place::Tensor(index, None);
    let refuse = |problem| Stop::Refused(Error::at(problem, place.clone(), at));
    let len = reader.u64(&place)?;
    if len == 0 {
        return Err(refuse(Problem::NameEmpty));
    }
    if len > MAX_NAME {
        return Err(refuse(Problem::NameTooLong { found: len }));
    }
    let bytes = reader.take(len, &place)?;
    let name = std::str::from_utf8(bytes).map_err(|_| refuse(Problem::NameNotUtf8))?;
    if name.contains('\0') {
        return Err(refuse(Problem::NameNul));
    }
    Ok(name)
}

fn read_type(id: u32) -> Result<DType, Problem> {
    if let Some(name) = DType::removed_name(id) {
        return Err(Problem::RemovedType { id, name });
    }
    let dtype = u16::try_from(id).map(DType::from_id).ok();
    dtype.filter(|dtype| dtype.is_ggml()).ok_or(Problem::UnknownType(id))
}

/// Positions in the table in the order of the payloads: by offset, at one offset those without bytes first.
pub(crate) fn data_order(tensors: &[GgufTensor<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by_key(|&index| tensors.get(index).map(|tensor| (tensor.offset, tensor.size != 0)));
    order
}

/// Rules G16 and G17. Answers the file offset where the last payload ends, or the table when no tensor has bytes.
pub(super) fn check_layout(
    tensors: &[GgufTensor<'_>],
    alignment: u32,
    info_end: u64,
    data_offset: u64,
    file_len: u64,
) -> Result<u64, Error> {
    let mut expected = 0u64;
    let mut payload_end = info_end;
    for index in data_order(tensors) {
        let Some(tensor) = tensors.get(index) else { continue };
        let refuse = |problem| {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            Error::new(problem, Place::Tensor(index, Some(tensor.name.to_owned())))
        };
        let found = tensor.offset;
        if found > expected {
            return Err(refuse(Problem::Gap { expected, found }));
        }
        if found < expected {
            return Err(refuse(Problem::Overlap { expected, found }));
        }
        let end = found.checked_add(tensor.size).ok_or_else(|| refuse(Problem::SizeOverflow))?;
        expected = align_up(end, u64::from(alignment)).ok_or_else(|| refuse(Problem::SizeOverflow))?;
        let file_end = data_offset.checked_add(end).ok_or_else(|| refuse(Problem::SizeOverflow))?;
        if tensor.size != 0 {
            if file_end > file_len {
                return Err(refuse(Problem::DataShort { missing: file_end.saturating_sub(file_len) }));
            }
            payload_end = file_end;
        }
    }
    Ok(payload_end)
}
