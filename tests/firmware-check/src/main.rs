//! The smallest image that uses p64-core: it is linked, never run. That it links shows that nothing of `std`, `alloc` or
//! libc is asked for; `.ci/firmware.sh` also looks through its symbols.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::panic::PanicInfo;
use p64_core::metadata::Metadata;

/// Stands for the flash that a model lies in; black_box keeps the compiler from knowing what is there.
static FLASH: [u8; 256] = [0; 256];

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    let flash = black_box(FLASH.as_slice());
    black_box(Metadata::parse(flash, 0).is_ok());
    loop {
        core::hint::spin_loop();
    }
}
