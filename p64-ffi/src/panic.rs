//! The end of the line where there is no operating system: a panic is a defect of this library and cannot be returned from.

use core::panic::PanicInfo;

// SAFETY: the firmware's function takes and gives nothing, as p64.h says.
unsafe extern "C" {
    /// Defined by the firmware: resets, halts or blinks. When it returns, the processor spins here.
    safe fn p64_panic();
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    p64_panic();
    loop {
        core::hint::spin_loop();
    }
}
