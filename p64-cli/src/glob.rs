//! Patterns of names on the command line.

use p64_std::glob::matches;

/// A pattern.
#[derive(Clone, Debug)]
pub struct Glob(String);

impl std::str::FromStr for Glob {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl Glob {
    /// Whether all of `name` is of this pattern.
    pub fn matches(&self, name: &str) -> bool {
        matches(&self.0, name)
    }
}

/// Whether a name is of one of the patterns; without patterns every name is.
pub fn any(globs: &[Glob], name: &str) -> bool {
    globs.is_empty() || globs.iter().any(|glob| glob.matches(name))
}
