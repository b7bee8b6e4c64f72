//! RISC-V in machine mode: the first instructions, semihosting by the marked breakpoint.

use core::arch::{asm, global_asm};

// SAFETY: the section is the linker script's for the first instructions; they set the stack and leave for `program`.
global_asm!(".section .vectors, \"ax\"", ".globl start", "start:", "la sp, _stack_top", "j program",);

/// Calls the debugger.
pub fn call(operation: usize, argument: usize) {
    // SAFETY: three uncompressed instructions on one page, which the debugger knows as a call; it reads what `argument`
    // points to and writes a0.
    unsafe {
        asm!(
            ".balign 16",
            ".option push",
            ".option norvc",
            "slli x0, x0, 0x1f",
            "ebreak",
            "srai x0, x0, 7",
            ".option pop",
            inout("a0") operation => _,
            in("a1") argument,
            options(nostack)
        );
    };
}

/// The stack pointer.
#[inline(always)]
#[must_use]
pub fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe { asm!("mv {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

/// Loads a word as one instruction, whatever the address.
#[must_use]
pub fn load_word(address: usize) -> u32 {
    let word;
    // SAFETY: the callers' addresses lie in flash; a processor that wants aligned ones faults, which ends the program.
    unsafe { asm!("lw {}, 0({})", out(reg) word, in(reg) address, options(readonly, nostack)) };
    word
}
