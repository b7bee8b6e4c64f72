//! How deep the stack has been: it is painted, and later searched for the lowest word that has another colour.

use crate::machine;
use core::ptr;

const COLOUR: u32 = 0xc0de_c0de;
/// Bytes below the caller's frame that stay unpainted: the painting function's own frame lies there. Depths below this are
/// reported as this.
const OWN: usize = 64;

// SAFETY: the linker script defines the symbol, at the stack's end; only its address is taken.
unsafe extern "C" {
    /// The lowest word of the stack, given by the linker script.
    static mut _stack_end: u32;
}

pub struct Painted {
    top: *mut u32,
}

/// Paints what the caller's callees will use.
#[inline(never)]
pub fn paint() -> Painted {
    let top = ptr::with_exposed_provenance_mut::<u32>(machine::stack_pointer());
    let mut word = &raw mut _stack_end;
    while word < top.wrapping_byte_sub(OWN) {
        // SAFETY: aligned words between the stack's end and this function's frame, which calls nothing while they are
        // written; nothing interrupts.
        unsafe { word.write_volatile(COLOUR) };
        word = word.wrapping_add(1);
    }
    Painted { top }
}

impl Painted {
    /// Most bytes of stack used since it was painted.
    #[inline(never)]
    pub fn used(&self) -> u32 {
        let mut word = &raw mut _stack_end;
        while word < self.top {
            // SAFETY: an aligned word between the stack's end and its top; nothing is borrowed there.
            if unsafe { word.read_volatile() } != COLOUR {
                break;
            }
            word = word.wrapping_add(1);
        }
        (self.top.addr() - word.addr()) as u32
    }
}
