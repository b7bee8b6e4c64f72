//! A file, and a file with changes that are not in it yet, for core's validation through reads.

use crate::files;
use p64_core::stream::{ReadAt, ReadFault};
use std::fs::File;
use std::path::Path;

/// A file as core reads it, with regions that stand in for what it holds.
pub(super) struct Reader<'f> {
    pub file: &'f File,
    pub path: &'f Path,
    /// Length of what is read, which the regions may extend.
    pub len: u64,
    /// File offset and bytes, in order, without overlap.
    pub regions: &'f [(u64, &'f [u8])],
}

impl ReadAt for Reader<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
        let mut at = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            let covering = self.regions.iter().find_map(|(start, bytes)| {
                let skip = usize::try_from(at.checked_sub(*start)?).ok()?;
                bytes.get(skip..).filter(|bytes| !bytes.is_empty())
            });
            let len = if let Some(bytes) = covering {
                let len = bytes.len().min(rest.len());
                for (to, from) in rest.iter_mut().zip(bytes) {
                    *to = *from;
                }
                len
            } else {
                let next = self.regions.iter().filter_map(|(start, _)| start.checked_sub(at)).min();
                let len = next.and_then(|len| usize::try_from(len).ok()).unwrap_or(usize::MAX).min(rest.len());
                let piece = rest.get_mut(..len).unwrap_or_default();
                files::read_at(self.file, self.path, at, piece).map_err(|error| ReadFault(fault(&error)))?;
                len
            };
            rest = rest.get_mut(len..).unwrap_or_default();
            at = at.saturating_add(len as u64);
        }
        Ok(())
    }
}

fn fault(error: &crate::Error) -> u32 {
    match error {
        crate::Error::Io { source, .. } => source.raw_os_error().and_then(|code| u32::try_from(code).ok()).unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_stand_in_and_the_rest_is_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        std::fs::write(&path, b"0123456789").expect("written");
        let file = File::open(&path).expect("there");
        let regions: [(u64, &[u8]); 2] = [(0, b"ab"), (7, b"WXYZ!")];
        let mut reader = Reader { file: &file, path: &path, len: 12, regions: &regions };
        let expected = b"ab23456WXYZ!";
        for start in 0..12 {
            for end in start..=12 {
                let mut out = vec![0; end - start];
                reader.read_at(start as u64, &mut out).expect("inside");
                assert_eq!(out, expected[start..end]);
            }
        }
    }
}
