//! Ctrl-C: while an answer is made it stops the answer, otherwise the program.

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a program that SIGINT ended, as shells have it.
const INTERRUPTED: i32 = 128 + SIGINT;

/// Who is to hear of the signal.
pub struct Interrupt {
    /// Set by the signal.
    raised: Arc<AtomicBool>,
    /// Whether the next signal ends the program.
    deadly: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes the signal over. Nothing else runs in its handler than reading one flag, setting the other, and `_exit`.
    pub fn install() -> io::Result<Self> {
        let this = Self { raised: Arc::default(), deadly: Arc::new(AtomicBool::new(true)) };
        flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&this.deadly))?;
        // A second one in the same answer: whatever is being computed does not look at the first.
        flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&this.raised))?;
        flag::register(SIGINT, Arc::clone(&this.raised))?;
        Ok(this)
    }

    /// The flag that the signal sets during [`Interrupt::catch`].
    pub fn raised(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.raised)
    }

    /// Runs `work`, during which a first signal only sets the flag.
    pub fn catch<T>(&self, work: impl FnOnce() -> T) -> T {
        self.raised.store(false, Ordering::SeqCst);
        self.deadly.store(false, Ordering::SeqCst);
        let result = work();
        self.deadly.store(true, Ordering::SeqCst);
        self.raised.store(false, Ordering::SeqCst);
        result
    }
}
