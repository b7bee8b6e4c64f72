//! Patterns of names: `*` for any run of characters, `?` for any one.

/// Whether all of `name` is of the pattern. Takes at most `pattern * name` steps: the last star is the only one gone back to.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go on when what follows the last star does not fit: the star takes one character more.
    let mut retry = None;
    while let Some(c) = name.get(n) {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p, n));
                p += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == c => (p, n) = (p + 1, n + 1),
            _ => match retry {
                Some((star, taken)) => {
                    retry = Some((star, taken + 1));
                    (p, n) = (star + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_marks() {
        for (pattern, name, expected) in [
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
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }
}
