//! Threads that wait for short jobs.
//!
//! A token of a small model is some two hundred products of tens of microseconds each: a thread that sleeps between two of them
//! costs more than it computes. So one that waits looks again and again for a while, and sleeps when nothing has come for longer than
//! a pass leaves it waiting. What is known of yielding in between: docs/kernels.md.
//!
//! ```text
//! state    number of the job | open | threads inside
//!
//! caller   writes the job, opens it, does its part, closes it, waits until nobody is inside
//! thread   sees an open job that it has not seen: goes inside (only while it is open), does its part, leaves
//! ```
//!
//! A thread that comes late finds the job closed and has held nobody up. The caller waits for those inside alone.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a thread does of a job; the caller is number 0.
type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// How long a thread looks before it sleeps: longer than most stretches between two products.
const PATIENCE: Duration = Duration::from_micros(100);

/// Looks between two looks at the clock.
const LOOKS: u32 = 64;

const INSIDE: u64 = 0xffff;
const OPEN: u64 = 1 << 16;
const JOB: u64 = 1 << 17;

/// The caller's helpers.
pub(super) struct Team {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Whether a job is running: another one from elsewhere, or from inside of it, is done by its caller alone.
    busy: AtomicBool,
}

struct Shared {
    state: AtomicU64,
    /// What the open job does.
    work: Mutex<Option<Work<'static>>>,
    /// What the first thread that panicked said.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    stop: AtomicBool,
    helpers: Sleepers,
    caller: Sleepers,
}

impl Team {
    /// Starts `helpers` threads.
    ///
    /// # Errors
    /// What the system answers when it gives no more.
    pub(super) fn new(helpers: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            work: Mutex::new(None),
            panic: Mutex::new(None),
            stop: AtomicBool::new(false),
            helpers: Sleepers::default(),
            caller: Sleepers::default(),
        });
        // Dropped on an error, it ends those that were started.
        let mut team = Self { shared, threads: Vec::with_capacity(helpers), busy: AtomicBool::new(false) };
        for number in 1..=helpers {
            let shared = Arc::clone(&team.shared);
            let thread = std::thread::Builder::new().name(format!("p64-{number}"));
            team.threads.push(thread.spawn(move || shared.help(number))?);
        }
        Ok(team)
    }

    /// Runs `work(0)` here and, at the same time, `work(i)` on those of the helpers that come before it is done. Work must be
    /// complete when `work(0)` and every call that began have returned.
    ///
    /// # Panics
    /// With what a part of the work panicked with, after all of them have ended.
    pub(super) fn run(&self, work: Work<'_>) {
        if self.busy.swap(true, Ordering::Acquire) {
            return work(0);
        }
        let free = Free(&self.busy);
        let shared = &*self.shared;
        // One of a job whose caller panicked too.
        drop(lock(&shared.panic).take());
        #[expect(unsafe_code, reason = "threads that live on cannot borrow for a job's time")]
        // SAFETY: the reference is used no longer than `work` lives, which is past the end of this function. It is reached through
        // `shared.work` alone, between going inside and leaving. `Closing`, dropped on every way out of this function, closes
        // the job, after which nobody goes inside, waits until nobody is, and then takes the reference out of `shared.work`.
        let lasting = unsafe { std::mem::transmute::<Work<'_>, Work<'static>>(work) };
        let closing = Closing(shared);
        *lock(&shared.work) = Some(lasting);
        // `busy` says that there is one caller, and the job before is closed and left: nobody else writes the state.
        let before = shared.state.load(Ordering::Relaxed);
        shared.state.store(before.wrapping_add(JOB) | OPEN, Ordering::SeqCst);
        shared.helpers.wake();
        work(0);
        drop(closing);
        let panic = lock(&shared.panic).take();
        drop(free);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.helpers.wake();
        for thread in self.threads.drain(..) {
            // One that panicked where no job could has nothing left to say.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// A helper's life.
    fn help(&self, number: usize) {
        let mut seen = 0;
        while let Some(job) = self.next(seen) {
            seen = job;
            self.take_part(job, number);
        }
    }

    /// Waits for an open job that is not `seen`, and answers with its number; `None` when there will be no more.
    fn next(&self, seen: u64) -> Option<u64> {
        let look = || {
            let state = self.state.load(Ordering::SeqCst);
            if self.stop.load(Ordering::SeqCst) {
                return Some(None);
            }
            (state & OPEN != 0 && state / JOB != seen).then_some(Some(state / JOB))
        };
        self.helpers.wait(look)
    }

    /// Does this helper's part of a job, unless that was closed meanwhile.
    fn take_part(&self, job: u64, number: usize) {
        let enter = |state: u64| (state & OPEN != 0 && state / JOB == job).then_some(state + 1);
        if self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, enter).is_err() {
            return;
        }
        // Leaves when everything below is gone, by return or by panic.
        let _inside = Inside(self);
        let Some(work) = *lock(&self.work) else { return };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(number))) {
            lock(&self.panic).get_or_insert(panic);
        }
    }
}

/// A helper inside a job.
struct Inside<'a>(&'a Shared);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let state = self.0.state.fetch_sub(1, Ordering::SeqCst) - 1;
        if state & (OPEN | INSIDE) == 0 {
            self.0.caller.wake();
        }
    }
}

/// The caller's promise to close the job and to wait for those inside.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let shared = self.0;
        shared.state.fetch_and(!OPEN, Ordering::SeqCst);
        shared.caller.wait(|| (shared.state.load(Ordering::SeqCst) & INSIDE == 0).then_some(()));
        *lock(&shared.work) = None;
    }
}

/// The end of a job, for the next caller.
struct Free<'a>(&'a AtomicBool);

impl Drop for Free<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Those that sleep until something changes.
#[derive(Default)]
struct Sleepers {
    count: AtomicUsize,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Sleepers {
    /// Looks until there is an answer. What is looked at must be changed before [`Sleepers::wake`] is called, and both the look
    /// and the change be sequentially consistent: then either the look after counting sees the change, or `wake` the count.
    fn wait<T>(&self, look: impl Fn() -> Option<T>) -> T {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            for _ in 0..LOOKS {
                if let Some(answer) = look() {
                    return answer;
                }
                std::hint::spin_loop();
            }
        }
        let mut guard = lock(&self.lock);
        self.count.fetch_add(1, Ordering::SeqCst);
        let answer = loop {
            if let Some(answer) = look() {
                break answer;
            }
            guard = self.woken.wait(guard).unwrap_or_else(PoisonError::into_inner);
        };
        self.count.fetch_sub(1, Ordering::SeqCst);
        answer
    }

    fn wake(&self) {
        if self.count.load(Ordering::SeqCst) > 0 {
            // Who counted himself holds the lock until he sleeps.
            drop(lock(&self.lock));
            self.woken.notify_all();
        }
    }
}

/// A panic elsewhere does not make the value wrong: it is replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
