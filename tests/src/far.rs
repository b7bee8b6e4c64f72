//! A file of which only the front is held: zeros stand everywhere behind it.

use p64_core::stream::{ReadAt, ReadFault};

/// Reads such a file, until it has read as much as it may.
#[derive(Debug)]
pub struct Far<'f> {
    front: &'f [u8],
    len: u64,
    /// Bytes that may still be read.
    budget: u64,
}

/// What a [`Far`] answers once its budget is spent.
pub const SPENT: ReadFault = ReadFault(1);

impl<'f> Far<'f> {
    /// A file of `len` bytes that begins with `front`.
    #[must_use]
    pub const fn new(front: &'f [u8], len: u64) -> Self {
        Self { front, len, budget: u64::MAX }
    }

    /// The same, of which no more than `budget` bytes are read.
    #[must_use]
    pub const fn within(self, budget: u64) -> Self {
        Self { budget, ..self }
    }
}

impl ReadAt for Far<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
        let wanted = buffer.len() as u64;
        assert!(offset.checked_add(wanted).is_some_and(|end| end <= self.len), "a read past the end");
        self.budget = self.budget.checked_sub(wanted).ok_or(SPENT)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.front.len());
        let known = &self.front[from..self.front.len().min(from + buffer.len())];
        let (head, rest) = buffer.split_at_mut(known.len());
        head.copy_from_slice(known);
        rest.fill(0);
        Ok(())
    }
}
