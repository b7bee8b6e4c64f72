//! The two reading policies, and where their difference is decided.
#![forbid(unsafe_code)]

use crate::error::{Error, Result};
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
}

impl fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl<'w> Report<'w> {
    /// A report that hands warnings to `on_warning`.
    pub fn new(policy: Policy, on_warning: &'w mut dyn FnMut(Error)) -> Self {
        Self { policy, on_warning }
    }

    /// The policy in force.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// A finding that both policies tell and neither refuses.
    pub fn warn(&mut self, finding: Error) {
        (self.on_warning)(finding);
    }

    /// A deviation: an error under [`Policy::Strict`], a warning under [`Policy::Compatible`].
    ///
    /// # Errors
    /// The finding itself, under the strict policy.
    pub fn deviation(&mut self, finding: Error) -> Result<()> {
        match self.policy {
            Policy::Strict => Err(finding),
            Policy::Compatible => {
                self.warn(finding);
                Ok(())
            }
        }
    }
}
