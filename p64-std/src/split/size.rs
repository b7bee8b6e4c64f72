//! Sizes as people write them.

/// Bytes of `2G`, `500M`, `4GiB`, `1048576`: K, M, G and T are powers of 1000, Ki, Mi, Gi and Ti of 1024, and a B may
/// follow. `None` for other text, for 0 and for more than 64 bits hold.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.strip_suffix(['B', 'b']).unwrap_or(text);
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text.get(digits.len()..)?.to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return None,
    };
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: u64 = plain.then(|| digits.parse().ok()).flatten()?;
    count.checked_mul(unit).filter(|&size| size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        for (text, bytes) in [
            ("1", 1),
            ("4096B", 4096),
            ("2G", 2_000_000_000),
            ("500m", 500_000_000),
            ("4GiB", 1 << 32),
            ("16Ki", 16_384),
            ("1T", 1_000_000_000_000),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "0", "G", "1.5G", "-1", "+1", "2 G", "2X", "1e9", "99999999999999999999", "18446744073709552T"]
        {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
