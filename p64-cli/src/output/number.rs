//! Numbers as people read them. Units are decimal: 1 MB is 10^6 bytes.

use std::time::Duration;

/// `98.4 MB`, `512 B`.
pub fn bytes(count: u64) -> String {
    scaled(count, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// `134.5 M`, `640`.
pub fn count(count: u64) -> String {
    scaled(count, &["", "k", "M", "G", "T", "P", "E"])
}

/// `49,152`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `0.7 %`; what is there but rounds to nothing is `< 0.1 %`.
pub fn share(part: u64, whole: u64) -> String {
    let percent = ratio(part, whole) * 100.0;
    if part > 0 && percent < 0.05 { "< 0.1 %".to_owned() } else { format!("{percent:.1} %") }
}

/// `3.2 ms`, `1.5 s`, `2 min 05 s`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
    }
}

/// `1.9 GB/s`, `310.2 MB/s`.
pub fn bytes_per_second(count: u64, time: Duration) -> String {
    let rate = per_second(count, time);
    if rate >= 1e9 { format!("{:.1} GB/s", rate / 1e9) } else { format!("{:.1} MB/s", rate / 1e6) }
}

/// Things per second; 0 when no time has passed.
pub fn per_second(count: u64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { float(count) / seconds } else { 0.0 }
}

/// `part / whole`; 0 of nothing is 0.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

/// A real number in four digits: `0.0123`, `-1.5`, `3.2e-7`; `0` only for zero itself.
pub fn short(number: f64) -> String {
    let magnitude = number.abs();
    if number == 0.0 {
        "0".to_owned()
    } else if !(1e-3..1e4).contains(&magnitude) {
        format!("{number:.2e}")
    } else if magnitude < 1.0 {
        format!("{number:.5}")
    } else {
        format!("{number:.3}")
    }
}

/// `thing` or `things`, after its number.
pub fn plural(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(count), if count == 1 { "" } else { "s" })
}

#[expect(clippy::cast_precision_loss, reason = "for display: 53 bits are more digits than are shown")]
fn float(number: u64) -> f64 {
    number as f64
}

fn scaled(count: u64, units: &[&str]) -> String {
    let mut value = float(count);
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < units.len() {
        value /= 1e3;
        unit += 1;
    }
    let unit_name = units[unit];
    let number = if unit == 0 { count.to_string() } else { format!("{value:.1}") };
    if unit_name.is_empty() { number } else { format!("{number} {unit_name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_000), "1.0 kB");
        assert_eq!(bytes(999_949), "999.9 kB");
        assert_eq!(bytes(999_950), "1.0 MB");
        assert_eq!(bytes(98_362_432), "98.4 MB");
        assert_eq!(bytes(u64::MAX), "18.4 EB");
        assert_eq!(count(640), "640");
        assert_eq!(count(134_515_008), "134.5 M");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn shares_and_times() {
        assert_eq!(share(0, 0), "0.0 %");
        assert_eq!(share(1, 1_000_000), "< 0.1 %");
        assert_eq!(share(7, 1000), "0.7 %");
        assert_eq!(duration(Duration::from_micros(3_200)), "3.2 ms");
        assert_eq!(duration(Duration::from_millis(1_500)), "1.5 s");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 05 s");
        assert_eq!(
            [0.0, 0.012_34, -1.5, 3.21e-7, 123_456.0].map(short),
            ["0", "0.01234", "-1.500", "3.21e-7", "1.23e5"]
        );
        assert_eq!(plural(1, "tensor"), "1 tensor");
        assert_eq!(plural(1000, "tensor"), "1,000 tensors");
    }
}
