use super::*;
use crate::source::Payload;
use p64_core::{DType, Shape};
use std::sync::Arc;

/// Bytes in memory, without `bytes()`, so that reading is what is tested.
struct Stored(DType, Shape, Vec<u8>);

impl Payload for Stored {
    fn dtype(&self) -> DType {
        self.0
    }

    fn shape(&self) -> Shape {
        self.1
    }

    fn len(&self) -> u64 {
        self.2.len() as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> crate::Result<()> {
        let start = usize::try_from(offset).expect("small");
        let bytes = self.2.get(start..).and_then(|rest| rest.get(..out.len())).ok_or_else(outside)?;
        out.copy_from_slice(bytes);
        Ok(())
    }
}

fn stored(dims: &[u32], values: &[f32]) -> Box<dyn Payload> {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Box::new(Stored(DType::F32, Shape::new(dims).expect("a shape"), bytes))
}

fn counted(dims: &[u32]) -> Box<dyn Payload> {
    let count: u32 = dims.iter().product();
    stored(dims, &(0..count).map(|i| f32::from(u16::try_from(i).expect("few"))).collect::<Vec<_>>())
}

/// All values, read whole and again in every way that a range can be cut.
fn values(payload: &dyn Payload) -> Vec<f32> {
    let len = usize::try_from(payload.len()).expect("small");
    let mut whole = vec![0u8; len];
    payload.read_at(0, &mut whole).expect("readable");
    for start in 0..len {
        for end in [start, start + 1, start + 3, start + 4, start + 7, start + 9, len] {
            if end > len || start > end {
                continue;
            }
            let mut piece = vec![0xaa; end - start];
            payload.read_at(start as u64, &mut piece).expect("readable");
            assert_eq!(piece, whole[start..end], "{start}..{end}");
        }
    }
    payload.read_at(payload.len(), &mut []).expect("nothing is left");
    payload.read_at(payload.len(), &mut [0]).expect_err("past the end");
    payload.read_at(u64::MAX, &mut [0]).expect_err("past everything");
    whole.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// By hand: two heads of four rows; halves (0 1)(2 3) become 0 2 1 3.
#[test]
fn heads_are_interleaved_and_separated() {
    let permuted = Permuted::new(counted(&[1, 8]), 2, Order::Interleave).expect("two heads");
    assert_eq!(values(&permuted), [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
    let back = Permuted::new(Box::new(permuted), 2, Order::Separate).expect("two heads");
    assert_eq!(values(&back), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let vector = Permuted::new(counted(&[6]), 1, Order::Interleave).expect("one head");
    assert_eq!(values(&vector), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let rows = Permuted::new(counted(&[2, 4]), 1, Order::Interleave).expect("one head");
    assert_eq!(values(&rows), [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
    for (dims, heads) in [(&[1, 8][..], 3), (&[1, 6], 2), (&[1, 8], 0), (&[1, 0], 1)] {
        assert!(Permuted::new(counted(dims), heads, Order::Interleave).is_none(), "{dims:?} {heads}");
    }
}

#[test]
fn casts_are_exact_and_add_once() {
    let cast = Cast::new(stored(&[3], &[0.5, -1.0, 1e-9]), 1.0).expect("f32");
    assert_eq!(values(&cast), [1.5, 0.0, 1.0]);
    let bytes = vec![0x80, 0x3f, 0x00, 0xc0, 0x01, 0x00];
    let bf16 = Cast::new(Box::new(Stored(DType::BF16, Shape::new(&[3]).expect("a shape"), bytes)), 0.0).expect("bf16");
    assert_eq!(values(&bf16), [1.0, -2.0, f32::from_bits(0x0001_0000)]);
    let bytes = vec![0x00, 0x3c, 0x01, 0x00];
    let f16 = Cast::new(Box::new(Stored(DType::F16, Shape::new(&[2]).expect("a shape"), bytes)), 0.0).expect("f16");
    assert_eq!(values(&f16), [1.0, 2f32.powi(-24)]);
    assert!(Cast::new(Box::new(Stored(DType::I8, Shape::new(&[1]).expect("a shape"), vec![0])), 0.0).is_none());
}

#[test]
fn columns_become_rows() {
    let transposed = Transposed::new(counted(&[3, 2])).expect("a matrix");
    assert_eq!(transposed.shape().dims(), [2, 3]);
    assert_eq!(values(&transposed), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert!(Transposed::new(counted(&[4])).is_none());
    let empty = Transposed::new(counted(&[0, 2])).expect("a matrix");
    assert_eq!(values(&empty), [0f32; 0]);
}

#[test]
fn parts_and_joins() {
    let whole: Arc<dyn Payload> = Arc::from(counted(&[2, 3]));
    let part = |row: u64| -> Box<dyn Payload> {
        Box::new(Part::new(Arc::clone(&whole), row * 8, Shape::new(&[2, 1]).expect("a shape")).expect("inside"))
    };
    assert_eq!(values(&*part(1)), [2.0, 3.0]);
    let joined = Joined::new(Shape::new(&[2, 2]).expect("a shape"), vec![part(2), part(0)]).expect("two rows");
    assert_eq!(values(&joined), [4.0, 5.0, 0.0, 1.0]);
    assert!(Part::new(Arc::clone(&whole), 17, Shape::new(&[2, 1]).expect("a shape")).is_none());
    assert!(Part::new(Arc::clone(&whole), u64::MAX, Shape::new(&[2, 1]).expect("a shape")).is_none());
    assert!(Joined::new(Shape::new(&[2, 3]).expect("a shape"), vec![part(0)]).is_none());
    assert!(Joined::new(Shape::new(&[2, 0]).expect("a shape"), vec![]).is_none());
    assert_eq!(values(&Made::vector(&[1.0, 2.0]).expect("small")), [1.0, 2.0]);
}

#[test]
fn what_was_widened_comes_back() {
    let values_of = |dtype: DType, bits: &[u16]| {
        let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        let shape = Shape::new(&[u32::try_from(bits.len()).expect("few")]).expect("a shape");
        let back = Narrowed::new(Cast::to_f32(Box::new(Stored(dtype, shape, bytes.clone()))), dtype);
        let mut out = vec![0u8; bytes.len()];
        for (at, byte) in out.iter_mut().enumerate() {
            back.read_at(at as u64, std::slice::from_mut(byte)).expect("readable");
        }
        assert_eq!(out, bytes);
    };
    values_of(DType::BF16, &[0, 0x8000, 0x3f80, 0x0001, 0x7f80, 0xff80, 0x7fc0, 0x7f7f]);
    values_of(DType::F16, &[0, 0x8000, 0x3c00, 0x0001, 0x7c00, 0xfc00, 0x7bff]);
    // Halfway between two: to even.
    let ties = stored(&[2], &[f32::from_bits(0x3f80_8000), f32::from_bits(0x3f81_8000)]);
    let mut out = [0u8; 4];
    Narrowed::new(ties, DType::BF16).read_at(0, &mut out).expect("readable");
    assert_eq!(out, [0x80, 0x3f, 0x82, 0x3f]);
}
