//! A tensor's shape in GGML order: `dims[0]` is the contiguous one.
#![forbid(unsafe_code)]

use core::fmt;

/// One to four dimensions. `dims[0]` is the row length (columns), the rest count rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Shape {
    rank: u8,
    dims: [u32; 4],
}

impl Shape {
    /// Largest rank a tensor entry can hold (spec §7).
    pub const MAX_RANK: usize = 4;

    /// A shape of `dims.len()` dimensions, or `None` unless that is 1 to 4. Zero-sized dimensions are legal.
    #[must_use]
    pub fn new(dims: &[u32]) -> Option<Self> {
        let rank = u8::try_from(dims.len()).ok().filter(|rank| (1..=4).contains(rank))?;
        let mut all = [0u32; 4];
        for (to, from) in all.iter_mut().zip(dims) {
            *to = *from;
        }
        Some(Self { rank, dims: all })
    }

    /// Number of dimensions, 1 to 4.
    #[must_use]
    pub const fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The dimensions, contiguous one first.
    #[must_use]
    pub fn dims(&self) -> &[u32] {
        self.dims.get(..self.rank()).unwrap_or(&self.dims)
    }

    /// All four on-disk fields; unused ones are zero.
    #[must_use]
    pub const fn raw(&self) -> [u32; 4] {
        self.dims
    }

    /// Elements of one row, `dims[0]`.
    #[must_use]
    pub const fn row_len(&self) -> u64 {
        self.dims[0] as u64
    }

    /// Rows: the product of all dimensions but the first, or `None` on overflow.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        self.dims().iter().skip(1).try_fold(1u64, |n, &d| n.checked_mul(u64::from(d)))
    }

    /// Elements, or `None` when the product does not fit 64 bits.
    #[must_use]
    pub fn elements(&self) -> Option<u64> {
        // A zero anywhere makes the product zero, whatever the partial products before it.
        if self.dims().contains(&0) {
            return Some(0);
        }
        self.dims().iter().try_fold(1u64, |n, &d| n.checked_mul(u64::from(d)))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, dim) in self.dims().iter().enumerate() {
            write!(f, "{}{dim}", if i == 0 { "" } else { " x " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn products_are_checked() {
        let shape = Shape::new(&[u32::MAX, u32::MAX, u32::MAX, 0]).expect("rank 4");
        assert_eq!(shape.elements(), Some(0));
        assert_eq!(Shape::new(&[u32::MAX; 3]).expect("rank 3").elements(), None);
        assert_eq!(Shape::new(&[]), None);
        assert_eq!(Shape::new(&[1; 5]), None);
    }

    #[test]
    fn display() {
        assert_eq!(Shape::new(&[576, 49152]).expect("rank 2").to_string(), "576 x 49152");
    }
}
