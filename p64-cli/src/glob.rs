//! Patterns of names: `*` for any run of characters, `?` for any one.

/// A pattern.
#[derive(Clone, Debug)]
pub struct Glob(Vec<char>);

impl std::str::FromStr for Glob {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.chars().collect()))
    }
}

impl Glob {
    /// Whether all of `name` is of this pattern. Takes at most `pattern * name` steps.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut in_pattern) = (0, 0);
        // Where to go on when what follows the last star does not fit: the star takes one character more.
        let mut retry: Option<(usize, usize)> = None;
        while at < name.len() {
            match self.0.get(in_pattern) {
                Some('*') => {
                    retry = Some((at, in_pattern));
                    in_pattern += 1;
                }
                Some(c) if *c == '?' || name.get(at) == Some(c) => {
                    at += 1;
                    in_pattern += 1;
                }
                _ => {
                    let Some((taken, star)) = retry else { return false };
                    retry = Some((taken + 1, star));
                    (at, in_pattern) = (taken + 1, star + 1);
                }
            }
        }
        self.0.iter().skip(in_pattern).all(|c| *c == '*')
    }
}

/// Whether a name is of one of the patterns; without patterns every name is.
pub fn any(globs: &[Glob], name: &str) -> bool {
    globs.is_empty() || globs.iter().any(|glob| glob.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_marks() {
        for (pattern, name, matches) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("blk.*.attn_q.weight", "blk.11.attn_q.weight", true),
            ("blk.?.attn_q.weight", "blk.11.attn_q.weight", false),
            ("*ffn*", "blk.0.ffn_up.weight", true),
            ("*a*b*c", "xaybzbzc", true),
            ("*a*b*c", "xaybzbzcd", false),
            ("a*", "ba", false),
            ("**?", "", false),
            ("é?", "éx", true),
        ] {
            let glob: Glob = pattern.parse().expect("any text is a pattern");
            assert_eq!(glob.matches(name), matches, "{pattern} on {name}");
        }
        assert!(any(&[], "x"));
    }
}
