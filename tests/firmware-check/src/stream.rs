//! The validator alone, through reads of at most 256 bytes: what a boot loader would link.
#![no_std]
#![no_main]

use p64_core::crc32c::Checksum;
use p64_core::stream::{ReadAt, ReadFault, Step, Validator};
use p64_core::validate::{OpenOptions, Storage};

firmware_check::program!(check);

/// Flash behind a bus: `memcpy` stands for the transfer.
struct Flash(&'static [u8]);

impl ReadAt for Flash {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
        let start = usize::try_from(offset).map_err(|_| ReadFault(1))?;
        let bytes = self.0.get(start..).and_then(|tail| tail.get(..buffer.len())).ok_or(ReadFault(1))?;
        buffer.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}

#[inline(never)]
fn check(file: &'static [u8]) -> u32 {
    let options = OpenOptions { checksum: Checksum::BYTES_64, ..OpenOptions::default() };
    let mut buffer = [0; 256];
    let mut run = || {
        let mut validator = Validator::new(Flash(file), &mut buffer, Storage::default(), &options)?;
        // A watchdog would be fed here.
        while validator.step(&mut |_| ())? == Step::More {}
        validator.finish().map(|_| ())
    };
    run().map_or_else(|error| error.code.number().into(), |()| 0)
}
