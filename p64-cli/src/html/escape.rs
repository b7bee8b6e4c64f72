//! Text of any origin made safe for HTML, and the digests of the page's policy.

use sha2::{Digest, Sha256};

/// Characters of a name that are shown; files may hold names of a kilobyte.
const MAX_NAME: usize = 96;

/// Text as it can stand between tags and in quoted attributes. Control characters and those that turn the direction of
/// writing, with which a name could pose as another, become visible escapes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '`' => out.push_str("&#96;"),
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => {
                out.extend(c.escape_unicode());
            }
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// A name of at most 96 characters once it is escaped, the sign that it was cut among them.
pub fn short_name(name: &str) -> String {
    let mut buffer = [0; 4];
    let mut escaped = 0;
    // Where the first characters end that leave room for the sign.
    let mut cut = 0;
    for (at, c) in name.char_indices() {
        if escaped < MAX_NAME {
            cut = at;
        }
        escaped += escape(c.encode_utf8(&mut buffer)).chars().count();
        if escaped > MAX_NAME {
            return format!("{}…", name.get(..cut).unwrap_or_default());
        }
    }
    name.to_owned()
}

/// The source expression of a content security policy for an inline script or style: `sha256-` and base64.
pub fn digest(content: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(content.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = usize::try_from(word >> (18 - 6 * place) & 63).unwrap_or(0);
            out.push(if place <= chunk.len() { char::from(DIGITS[digit]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_place() {
        let hostile = "</script><img src=x onerror='alert(1)'>\" & `\u{202e}\n";
        let safe = escape(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '`', '\u{202e}', '\n']), "{safe}");
        assert_eq!(escape("a&b"), "a&amp;b");
    }

    #[test]
    fn names_keep_within_their_room() {
        assert_eq!(short_name(&"é".repeat(96)), "é".repeat(96));
        assert_eq!(short_name(&"é".repeat(97)), format!("{}…", "é".repeat(95)));
        // `<` takes four characters: 23 of them and the sign are 93, one more would be 97.
        assert_eq!(short_name(&"<".repeat(24)), "<".repeat(24));
        assert_eq!(short_name(&"<".repeat(25)), format!("{}…", "<".repeat(23)));
        assert_eq!(short_name(""), "");
    }

    /// RFC 4648 §10.
    #[test]
    fn base64_vectors() {
        for (text, encoded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }
}
