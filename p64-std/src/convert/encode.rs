//! Encodes a payload anew: in runs of values, as many at a time as there are threads for.
//!
//! ```text
//! runs      whole rows, or parts of very long ones, cut where the blocks of both types begin; never across matrices
//! batch     a few runs per thread: read, decode, encode, decode again for the error, all on one thread per run
//! write     the runs of the batch in their order
//! ```
//!
//! Memory is that of one batch. What is written depends on neither the number of threads nor their luck.

use super::recipe::Recipe;
use super::runs::{Run, Runs};
use crate::error::{Error, Result};
use crate::pool::Tasks;
use crate::quantize::{self, Importance, QuantizeError, TensorError, TernaryScale};
use crate::source::{Payload, SourceTensor};
use crate::split::Failure;
use p64_core::kernel::dequantize;
use p64_core::quant::ternary::{self, Ternary};
use p64_core::quant::tile::{self, Units};
use p64_core::quant::{q4_k, q4_k_soa};
use p64_core::{DType, Shape};
use std::io::{self, Write};
use std::path::Path;

/// Runs for each thread in a batch.
const RUNS_PER_THREAD: usize = 2;

/// A tensor that is to be encoded.
pub(super) struct Encoding<'a> {
    pub tensor: &'a SourceTensor<'a>,
    pub recipe: Recipe,
    /// How much each column counts.
    pub importance: Option<Importance<'a>>,
    pub pool: &'a Tasks,
    /// The source, for messages.
    pub path: &'a Path,
}

/// One run, done.
struct Done {
    bytes: Vec<u8>,
    error: TensorError,
}

impl Encoding<'_> {
    /// Writes the new payload and answers how far it is from the old one. `progress` is told the bytes of each run.
    pub fn write(
        &self,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> std::result::Result<TensorError, Failure> {
        let to = self.to();
        let mut tiles;
        let out: &mut dyn Write = match (self.recipe, self.tensor.payload.as_ref()) {
            (Recipe::EncodeTiles(_), payload) => {
                tiles = Tiles::new(out, to, payload.shape().row_len());
                &mut tiles
            }
            _ => out,
        };
        let scale = if to == DType::Ternary { Some(self.scale()?) } else { None };
        if let Some(scale) = scale {
            out.write_all(&scale.to_le_bytes())?;
            progress(4);
        }
        let mut total = TensorError::new();
        self.for_each_batch(
            |run| self.encode(run, scale),
            |done| {
                out.write_all(&done.bytes)?;
                total.merge(&done.error);
                progress(done.bytes.len() as u64);
                Ok(())
            },
        )?;
        Ok(total)
    }

    /// The type of the new values, row after row.
    const fn to(&self) -> DType {
        match self.recipe.encoded() {
            Some(to) => to,
            None => DType::Q4KSoa,
        }
    }

    /// The scale of the whole tensor, summed up in its order.
    fn scale(&self) -> std::result::Result<f32, Failure> {
        let mut scale = TernaryScale::new();
        self.for_each_batch(
            |run| self.decode(run),
            |values| {
                scale.add(&values);
                Ok(())
            },
        )?;
        Ok(scale.scale())
    }

    /// Calls `work` for all runs, several at a time, and `take` for each result in their order.
    fn for_each_batch<T: Send>(
        &self,
        work: impl Fn(&Run) -> Result<T> + Sync,
        mut take: impl FnMut(T) -> std::result::Result<(), Failure>,
    ) -> std::result::Result<(), Failure> {
        let payload = &self.tensor.payload;
        let mut runs = Runs::of(&payload.shape(), self.to());
        let size = self.pool.threads().saturating_mul(RUNS_PER_THREAD);
        loop {
            let batch: Vec<Run> = runs.by_ref().take(size).collect();
            if batch.is_empty() {
                return Ok(());
            }
            for result in self.pool.map(&batch, &work) {
                take(result?)?;
            }
        }
    }

    fn encode(&self, run: &Run, scale: Option<f32>) -> Result<Done> {
        let to = self.to();
        if self.recipe == Recipe::Expand {
            return self.expand(run);
        }
        let values = self.decode(run)?;
        let mut decoded = vec![0.0; values.len()];
        let bytes = match scale {
            Some(scale) => {
                let mut bytes = scale.to_le_bytes().to_vec();
                bytes.resize(ternary::byte_len(values.len()).unwrap_or_default(), 0);
                if let Some((_, digits)) = bytes.split_first_chunk_mut::<4>() {
                    quantize::encode_ternary(&values, scale, digits);
                }
                dequantize(to, &bytes, &mut decoded).map_err(|error| self.core(error))?;
                bytes.drain(..size_of::<f32>().min(bytes.len()));
                bytes
            }
            None => {
                let encoded = if to == DType::Q4KSoa { DType::Q4_K } else { to };
                let mut bytes = vec![0; byte_len(encoded, values.len())];
                let importance = self.importance_of(run);
                quantize::encode_rows(encoded, &values, run.row, importance, &mut bytes)
                    .map_err(|error| self.refuse(run, error))?;
                if encoded != to {
                    bytes = expand(&bytes);
                }
                dequantize(to, &bytes, &mut decoded).map_err(|error| self.core(error))?;
                bytes
            }
        };
        let error = self.error_of(run, &values, &decoded)?;
        Ok(Done { bytes, error })
    }

    /// How far the new values are from the old ones; they are finite, or it is an error: an expanded scale may be larger
    /// than its type reaches.
    fn error_of(&self, run: &Run, values: &[f32], decoded: &[f32]) -> Result<TensorError> {
        if let Some((index, value)) = (0..).zip(decoded).find(|(_, new)| !new.is_finite()) {
            return Err(self.refuse(run, QuantizeError::NotFinite { index, value: *value }));
        }
        let mut error = TensorError::new();
        error.add(values, decoded);
        Ok(error)
    }

    fn expand(&self, run: &Run) -> Result<Done> {
        let source = read(self.tensor.payload.as_ref(), run)?;
        let bytes = expand(&source);
        let (mut values, mut decoded) = (vec![0.0; run.len], vec![0.0; run.len]);
        dequantize(DType::Q4_K, &source, &mut values).map_err(|error| self.core(error))?;
        dequantize(DType::Q4KSoa, &bytes, &mut decoded).map_err(|error| self.core(error))?;
        let error = self.error_of(run, &values, &decoded)?;
        Ok(Done { bytes, error })
    }

    /// The values of a run, all of them finite.
    fn decode(&self, run: &Run) -> Result<Vec<f32>> {
        let payload = self.tensor.payload.as_ref();
        let mut values = vec![0.0; run.len];
        let bytes = read(payload, run)?;
        if payload.dtype() == DType::Ternary {
            let skip = run.first_in_byte();
            let elements = run.len.saturating_add(skip);
            Ternary::new(&bytes, elements).map_err(|error| self.core(error))?.dequantize(skip, &mut values);
        } else {
            dequantize(payload.dtype(), &bytes, &mut values).map_err(|error| self.core(error))?;
        }
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(index) => {
                let value = values.get(index).copied().unwrap_or(f32::NAN);
                Err(self.refuse(run, QuantizeError::NotFinite { index, value }))
            }
        }
    }

    fn importance_of(&self, run: &Run) -> Option<&[f32]> {
        let row = run.first.checked_div(self.tensor.payload.shape().row_len())?;
        let end = run.column.checked_add(run.row)?;
        self.importance.as_ref()?.of_row(row).get(run.column..end)
    }

    fn refuse(&self, run: &Run, error: QuantizeError) -> Error {
        // Positions count from the beginning of the tensor, not of the run.
        let place = |index: usize| run.first.saturating_add(index as u64);
        let text = match &error {
            QuantizeError::NotFinite { index, value } => {
                format!(
                    "element {} is {value}; only finite values can be encoded, keep this tensor's type",
                    place(*index)
                )
            }
            QuantizeError::TooLarge { dtype, index, value, limit } => format!(
                "element {} is {value:e}, {dtype} reaches {limit:e}; keep this tensor's type, or take F32 or BF16",
                place(*index)
            ),
            other => other.to_string(),
        };
        self.refused(&text)
    }

    fn core(&self, error: p64_core::Error) -> Error {
        self.refused(&error.to_string())
    }

    fn refused(&self, reason: &str) -> Error {
        Error::refused(self.path, format!("tensor {:?}: {reason}", self.tensor.name))
    }
}

/// Writes rows that come one after the other side by side.
struct Tiles<'w> {
    out: &'w mut dyn Write,
    units: Option<Units>,
    /// Bytes of sixteen rows.
    len: usize,
    /// Those of a tile that have come.
    rows: Vec<u8>,
    tile: Vec<u8>,
}

impl<'w> Tiles<'w> {
    fn new(out: &'w mut dyn Write, dtype: DType, row_len: u64) -> Self {
        let row = usize::try_from(row_len).map_or(0, |elements| byte_len(dtype, elements));
        let len = row.saturating_mul(tile::ROWS);
        Self { out, units: Units::of(dtype), len, rows: Vec::with_capacity(len), tile: vec![0; len] }
    }
}

impl Write for Tiles<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (now, _) = bytes.split_at(bytes.len().min(self.len.saturating_sub(self.rows.len())));
        self.rows.extend_from_slice(now);
        if let Some(units) = self.units.filter(|_| self.rows.len() == self.len) {
            tile::tile(units, &self.rows, &mut self.tile);
            self.out.write_all(&self.tile)?;
            self.rows.clear();
        }
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Q4_K to Q4_K_SOA, block by block.
fn expand(bytes: &[u8]) -> Vec<u8> {
    let blocks = bytes.as_chunks::<{ q4_k::BYTES }>().0;
    blocks.iter().map(q4_k_soa::from_q4_k).collect::<Vec<_>>().into_flattened()
}

/// The bytes that hold a run; of a ternary payload, with the scale in front.
fn read(payload: &dyn Payload, run: &Run) -> Result<Vec<u8>> {
    let dtype = payload.dtype();
    if dtype != DType::Ternary {
        let mut bytes = vec![0; byte_len(dtype, run.len)];
        let block = dtype.block().map_or((1, 0), |block| (u64::from(block.elements), u64::from(block.bytes)));
        let offset = run.first.checked_div(block.0).unwrap_or_default().saturating_mul(block.1);
        payload.read_at(offset, &mut bytes)?;
        return Ok(bytes);
    }
    let elements = run.len.saturating_add(run.first_in_byte());
    let mut bytes = vec![0; ternary::byte_len(elements).unwrap_or_default()];
    if let Some((scale, digits)) = bytes.split_first_chunk_mut::<4>() {
        payload.read_at(0, scale)?;
        payload.read_at(run.first_byte().saturating_add(scale.len() as u64), digits)?;
    }
    Ok(bytes)
}

/// Bytes of a run of whole blocks.
fn byte_len(dtype: DType, elements: usize) -> usize {
    let shape = u32::try_from(elements).ok().and_then(|elements| Shape::new(&[elements]));
    let bytes = shape.and_then(|shape| dtype.byte_len(&shape).ok().flatten());
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default()
}
