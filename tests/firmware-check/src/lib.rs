//! The harness of the images: start-up, the file in flash, a painted stack, an exit code.
//!
//! It depends on nothing but core, so that what the images weigh is p64-core and some hundred bytes of this.
#![no_std]

pub mod machine;
mod stack;

use core::hint::black_box;
use core::panic::PanicInfo;

/// The file, aligned as flash would have it.
#[repr(C, align(4096))]
struct Flash<T>(T);

// SAFETY: the section is read-only and holds nothing else.
#[unsafe(link_section = ".model")]
static FLASH: Flash<[u8; include_bytes!(env!("P64_MODEL")).len()]> = Flash(*include_bytes!(env!("P64_MODEL")));

/// Runs `check` on the file, says how deep the stack was, and exits with 0 when it answers 0.
///
/// The compiler is kept from knowing what lies in flash.
pub fn run(check: fn(&'static [u8]) -> u32) -> ! {
    let painted = stack::paint();
    let status = check(black_box(&FLASH.0[..]));
    let used = painted.used();
    machine::text(b"stack 0x\0");
    machine::hex(used);
    machine::text(b"status 0x\0");
    machine::hex(status);
    machine::exit(status == 0)
}

/// Names the program that the machine starts.
#[macro_export]
macro_rules! program {
    ($check:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn program() -> ! {
            $crate::run($check)
        }
    };
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    machine::exit(false)
}
