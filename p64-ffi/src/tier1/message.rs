//! Tier 1: the sentence of a failure, and what `p64_std`'s errors are to C.

use crate::boundary::{Caller, Status};
use crate::error::p64_error;
use crate::status::{self, p64_status};
use core::ffi::c_char;
use p64_std::Error;
use std::cell::RefCell;
use std::ffi::CString;

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Why the last call of tier 1 that failed on this thread failed: one sentence that names the file, and mostly what to do.
/// Empty when none has.
///
/// Owner: the library's; the string ends with a NUL and stays until the next call of tier 1 on this thread. Threads: each
/// has its own. Errors: none. Cost: constant.
#[unsafe(no_mangle)]
pub extern "C" fn p64_error_message() -> *const c_char {
    // While a thread ends its message may be gone already.
    MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Remembers a sentence for `p64_error_message`. A NUL in it, which only a file can have brought in, would end it.
fn remember(sentence: &str) {
    let text = CString::new(sentence.replace('\0', "\u{fffd}")).unwrap_or_default();
    // A sentence that finds no place is lost; the status is not.
    let _ = MESSAGE.try_with(|message| message.replace(text));
}

/// A failure of tier 1: what C is told, and in words.
pub(super) struct Failure {
    error: p64_error,
    sentence: String,
}

/// Result of what a function of tier 1 does.
pub(super) type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    pub(super) fn new(status: p64_status, sentence: impl ToString) -> Self {
        Self { error: p64_error::of(status), sentence: sentence.to_string() }
    }
}

impl From<p64_error> for Failure {
    fn from(error: p64_error) -> Self {
        let sentence = error.core().map_or_else(|| status::sentence(error.status).to_owned(), |core| core.to_string());
        Self { error, sentence }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let sentence = error.to_string();
        let error = match error {
            Error::Core { source, .. } => source.into(),
            Error::Io { source, .. } => {
                let answer = source.raw_os_error().and_then(|number| usize::try_from(number).ok());
                p64_error::of(status::P64_STATUS_IO).values(0, answer.unwrap_or(0))
            }
            Error::SourceChanged { .. } => p64_error::of(status::P64_STATUS_IO),
            Error::Gguf { .. }
            | Error::Safetensors { .. }
            | Error::NotAModel { .. }
            | Error::WrongFormat { .. }
            | Error::NotAFile { .. } => p64_error::of(status::P64_STATUS_NOT_A_MODEL),
            Error::SameFile { .. } | Error::Usage { .. } => p64_error::of(status::P64_STATUS_BAD_ARGUMENT),
            _ => p64_error::of(status::P64_STATUS_REFUSED),
        };
        Self { error, sentence }
    }
}

impl Caller<'_> {
    /// Runs a call of tier 1: as [`Caller::run`], and remembers the sentence of a failure.
    pub(super) fn run_std(&self, body: impl FnOnce(&Self) -> Result) -> Status {
        let mut sentence = None;
        let status = self.run(|c| {
            body(c).map_err(|failure| {
                sentence = Some(failure.sentence);
                failure.error
            })
        });
        if status != status::P64_STATUS_OK as i32 {
            // Without one it was a panic.
            remember(sentence.as_deref().unwrap_or_else(|| status::sentence(status)));
        }
        status
    }
}
