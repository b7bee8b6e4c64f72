//! The validator alone, over a file that lies in the address space.
#![no_std]
#![no_main]

use p64_core::Container;
use p64_core::crc32c::Checksum;
use p64_core::validate::{OpenOptions, Storage};

firmware_check::program!(check);

#[inline(never)]
fn check(file: &'static [u8]) -> u32 {
    let options = OpenOptions { checksum: Checksum::BYTES_64, ..OpenOptions::default() };
    let opened = Container::open_with(file, &options, Storage::default(), &mut |_| ());
    opened.map_or_else(|error| error.code.number().into(), |container| u32::from(container.tensor_count() == 0))
}
