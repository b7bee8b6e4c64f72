use super::*;
use proptest::prelude::*;

fn matcher(tokens: &[&str]) -> Matcher {
    Matcher::new((0..).zip(tokens.iter().map(|t| t.as_bytes())).collect()).unwrap()
}

/// The rule as it is told: token by token, the longest first, over whatever text is left.
fn naive<'t>(tokens: &[&str], text: &'t [u8]) -> Vec<Fragment<'t>> {
    let mut order: Vec<(u32, &[u8])> = (0..).zip(tokens.iter().map(|t| t.as_bytes())).collect();
    order.retain(|(_, t)| !t.is_empty());
    order.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then(a.0.cmp(&b.0)));
    let mut fragments = if text.is_empty() { vec![] } else { vec![Fragment::Text(text)] };
    for (id, token) in order {
        let mut next = Vec::new();
        for fragment in fragments {
            let Fragment::Text(mut rest) = fragment else {
                next.push(fragment);
                continue;
            };
            while let Some(at) = rest.windows(token.len()).position(|w| w == token) {
                if at > 0 {
                    next.push(Fragment::Text(&rest[..at]));
                }
                next.push(Fragment::Token(id));
                rest = &rest[at + token.len()..];
            }
            if !rest.is_empty() {
                next.push(Fragment::Text(rest));
            }
        }
        fragments = next;
    }
    fragments
}

#[test]
fn the_longest_anywhere_comes_first() {
    let text = |t: &'static str| Fragment::Text(t.as_bytes());
    assert_eq!(matcher(&["ab", "bcd"]).partition(b"abcd"), [text("a"), Fragment::Token(1)]);
    assert_eq!(matcher(&["<a>", "<a>b"]).partition(b"<a>b<a>"), [Fragment::Token(1), Fragment::Token(0)]);
    // The longer one is blocked at its end: the shorter one that it begins with is tried.
    assert_eq!(matcher(&["ab", "abc", "cdefg"]).partition(b"abcdefg"), [Fragment::Token(0), Fragment::Token(2)]);
    assert_eq!(matcher(&["x", "x"]).partition(b"x"), [Fragment::Token(0)]);
    assert_eq!(matcher(&[]).partition(b"x"), [text("x")]);
    assert!(matcher(&["x", ""]).partition(b"").is_empty());
    assert!(Matcher::new(vec![(0, &[b'x'; 1025][..])]).is_err());
}

proptest! {
    #[test]
    fn equals_the_rule_as_it_is_told(
        tokens in proptest::collection::vec("[ab]{0,5}|[abc]{1,3}|\u{ff}", 0..12),
        text in "[abc\u{ff}]{0,60}",
    ) {
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        prop_assert_eq!(matcher(&tokens).partition(text.as_bytes()), naive(&tokens, text.as_bytes()));
    }
}
