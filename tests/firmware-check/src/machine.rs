//! What differs between processors: how a program starts, how the debugger (or emulator) is called.

#[cfg(target_arch = "arm")]
mod arm;
#[cfg(target_arch = "arm")]
use arm as this;
#[cfg(target_arch = "riscv32")]
mod riscv;
#[cfg(target_arch = "riscv32")]
use riscv as this;

pub use this::{load_word, stack_pointer};

/// Semihosting: write a zero-terminated string.
const WRITE0: usize = 0x04;
/// Semihosting: end the program, with a reason and a status.
const EXIT_EXTENDED: usize = 0x20;
/// The reason "the program ended by itself".
const APPLICATION_EXIT: usize = 0x20026;

/// Writes text that ends with a zero byte.
pub fn text(text: &'static [u8]) {
    if text.last() == Some(&0) {
        this::call(WRITE0, text.as_ptr().addr());
    }
}

/// Writes eight hexadecimal digits and ends the line.
pub fn hex(number: u32) {
    let mut digits = *b"00000000\n\0";
    for (digit, shift) in digits.iter_mut().zip((0..32).step_by(4).rev()) {
        let value = (number >> shift & 15) as u8;
        *digit = if value < 10 { b'0' + value } else { b'a' - 10 + value };
    }
    this::call(WRITE0, digits.as_ptr().expose_provenance());
}

/// Ends the program with exit code 0, or 1 for a failure.
pub fn exit(success: bool) -> ! {
    let reason = [APPLICATION_EXIT, usize::from(!success)];
    this::call(EXIT_EXTENDED, reason.as_ptr().expose_provenance());
    loop {
        core::hint::spin_loop();
    }
}
