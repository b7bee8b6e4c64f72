//! The control of the strict-alignment test: one unaligned load, which must end in a fault.
#![no_std]
#![no_main]

firmware_check::program!(check);

#[inline(never)]
fn check(file: &'static [u8]) -> u32 {
    firmware_check::machine::load_word(file.as_ptr().addr() + 1) & 0
}
