//! Cortex-M: the vector table, semihosting by breakpoint 0xab.

use core::arch::asm;

// SAFETY: the linker script defines `_stack_top`, of which only the address is taken, and `program!` the function.
unsafe extern "C" {
    static _stack_top: u32;
    fn program() -> !;
}

/// The first words of the image. The processor loads its stack pointer from the first and begins at the second.
#[repr(C)]
struct Vectors {
    stack: *const u32,
    reset: extern "C" fn() -> !,
    nmi: extern "C" fn() -> !,
    hard_fault: extern "C" fn() -> !,
}

// SAFETY: nothing ever changes the table.
unsafe impl Sync for Vectors {}

// SAFETY: the section is the linker script's for this table and holds nothing else.
#[used]
#[unsafe(link_section = ".vectors")]
static VECTORS: Vectors = Vectors { stack: &raw const _stack_top, reset: start, nmi: fault, hard_fault: fault };

#[unsafe(no_mangle)]
extern "C" fn start() -> ! {
    #[cfg(target_abi = "eabihf")]
    {
        // Coprocessors 10 and 11 are the floating-point unit; it is off after a reset.
        let access = core::ptr::with_exposed_provenance_mut::<u32>(0xe000_ed88);
        // SAFETY: CPACR of every Cortex-M with a floating-point unit, and no such instruction has run yet.
        unsafe { access.write_volatile(0xf << 20) };
    }
    // A Cortex-M0 has no unaligned access; an M4 made to trap it stands for one.
    #[cfg(not(target_has_atomic = "32"))]
    {
        let control = core::ptr::with_exposed_provenance_mut::<u32>(0xe000_ed14);
        // SAFETY: CCR of every Cortex-M; bits 3 (UNALIGN_TRP) and 9 (STKALIGN) are as an M0 has them.
        unsafe { control.write_volatile(1 << 9 | 1 << 3) };
    }
    // SAFETY: `program!` defines it; memory needs no preparing, as the linker script asserts.
    unsafe { program() }
}

extern "C" fn fault() -> ! {
    super::text(b"fault\n\0");
    super::exit(false)
}

/// Calls the debugger.
pub fn call(operation: usize, argument: usize) {
    // SAFETY: a breakpoint the debugger answers; it reads what `argument` points to and writes r0.
    unsafe { asm!("bkpt 0xab", inout("r0") operation => _, in("r1") argument, options(nostack)) };
}

/// The stack pointer.
#[inline(always)]
#[must_use]
pub fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

/// Loads a word as one instruction, whatever the address.
#[must_use]
pub fn load_word(address: usize) -> u32 {
    let word;
    // SAFETY: the callers' addresses lie in flash; a processor that wants aligned ones faults, which ends the program.
    unsafe { asm!("ldr {}, [{}]", out(reg) word, in(reg) address, options(readonly, nostack)) };
    word
}
