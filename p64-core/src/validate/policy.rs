//! The two reading policies, and where their difference is decided.
#![forbid(unsafe_code)]

use crate::error::{Code, Error, Place, Result};
use core::fmt;

/// How deviations that real writers are known for are taken (spec §1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// The standard to the letter.
    Strict,
    /// Also accepts what the QualiaDB writers put on disk, and reports each deviation as a warning.
    #[default]
    Compatible,
}

/// When the blobs' checksums are verified. The metadata checksum always is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Integrity {
    /// All of them, before any blob is exposed.
    #[default]
    Full,
    /// Each when its tensor is first taken; a tensor that fails is never handed out.
    Lazy,
}

/// Takes findings: an error ends the validation, a warning goes to the caller.
pub struct Report<'w> {
    policy: Policy,
    on_warning: &'w mut dyn FnMut(Error),
    error: Option<Error>,
}

/// A check has failed; which one and where, the [`Report`] holds. An [`Error`] of forty bytes handed on by value would be
/// code at every call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stop;

/// Result of the checks.
pub(crate) type Checked<T> = core::result::Result<T, Stop>;

impl fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl<'w> Report<'w> {
    /// A report that hands warnings to `on_warning`.
    pub fn new(policy: Policy, on_warning: &'w mut dyn FnMut(Error)) -> Self {
        Self { policy, on_warning, error: None }
    }

    /// The policy in force.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// A finding that both policies tell and neither refuses.
    #[inline(never)]
    pub fn warn(&mut self, finding: Error) {
        (self.on_warning)(finding);
    }

    /// An error under both policies.
    #[inline(never)]
    pub(crate) fn refuse(&mut self, finding: Error) -> Stop {
        self.error = Some(finding);
        Stop
    }

    /// A deviation: an error under [`Policy::Strict`], a warning under [`Policy::Compatible`].
    #[inline(never)]
    pub(crate) fn deviation(&mut self, finding: Error) -> Checked<()> {
        if self.policy == Policy::Strict {
            return Err(self.refuse(finding));
        }
        self.warn(finding);
        Ok(())
    }

    /// The error of the check that stopped.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// What a run of checks came to, as the error it met.
    pub(crate) fn outcome<T>(&mut self, checked: Checked<T>) -> Result<T> {
        checked.map_err(|Stop| self.take_error().unwrap_or(Error::new(Code::NotValidated, Place::File)))
    }
}
