use super::*;
use proptest::prelude::*;

fn matcher(tokens: &[&str]) -> Matcher {
    Matcher::new((0..).zip(tokens.iter().map(|t| t.as_bytes())).collect(), &Strips::default()).unwrap()
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
    assert!(Matcher::new(vec![(0, &[b'x'; 1025][..])], &Strips::default()).is_err());
}

#[test]
fn white_space_goes_with_the_token_that_strips_it() {
    let tokens = [(0, &b"<m>"[..]), (1, b"<r>"), (2, b"  "), (3, b"<p>")];
    let matcher = Matcher::new(tokens.to_vec(), &Strips { before: vec![0], after: vec![1] }).unwrap();
    let (token, text) = (Fragment::Token, |text: &'static str| Fragment::Text(text.as_bytes()));
    assert_eq!(matcher.partition(b"a \n<m> b"), [text("a"), token(0), text(" b")]);
    assert_eq!(matcher.partition(b"a <r>\t b"), [text("a "), token(1), text("b")]);
    assert_eq!(matcher.partition(b"  <m><r>  "), [token(0), token(1)]);
    assert_eq!(matcher.partition(b"<r> <m>"), [token(1), token(0)]);
    // What was stripped is no longer there for a shorter token; what was not is.
    assert_eq!(matcher.partition(b"   <p>   <m>  "), [token(2), text(" "), token(3), token(0), token(2)]);
    assert_eq!(matcher.partition("\u{3000}<m>".as_bytes()), [text("\u{3000}"), token(0)]);
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
