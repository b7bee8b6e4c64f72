//! What the firmware examples need from their machine: a console, an exit code, a painted stack.
//!
//! The console is semihosting, which a debugger or an emulator answers. Nothing here uses `core::fmt`, so that the sizes
//! printed by the examples are those of P64 and not of a formatter.
#![no_std]

pub mod console;
pub mod stack;

use core::panic::PanicInfo;
use cortex_m_semihosting::debug;

/// Ends the emulation with exit code 0, or 1 for a failure.
pub fn exit(success: bool) -> ! {
    debug::exit(if success { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    loop {
        cortex_m::asm::wfi();
    }
}

/// Says where the program gave up, and ends it as a failure.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    console::text("panic");
    if let Some(location) = info.location() {
        console::text(" at ");
        console::text(location.file());
        console::text(":");
        console::number(location.line().into());
    }
    console::text("\n");
    exit(false)
}
