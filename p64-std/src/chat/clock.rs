//! `strftime_now`, which some templates call to tell the model the date.

use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// A point in time in Python's format language, in UTC. Directives that templates do not use are left as they stand.
pub fn strftime(format: &str, time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let name = |names: &'static [&'static str], index: u64| {
        usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or_default()
    };
    let short = |name: &'static str| name.get(..3).unwrap_or(name);
    let (month_name, day_name) = (name(&MONTHS, month - 1), name(&DAYS, days % 7));

    let mut out = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some('Y') => out.push_str(&year.to_string()),
            Some('y') => out.push_str(&format!("{:02}", year % 100)),
            Some('m') => out.push_str(&format!("{month:02}")),
            Some('d') => out.push_str(&format!("{day:02}")),
            Some('B') => out.push_str(month_name),
            Some('b') => out.push_str(short(month_name)),
            Some('A') => out.push_str(day_name),
            Some('a') => out.push_str(short(day_name)),
            Some('H') => out.push_str(&format!("{:02}", second / 3600)),
            Some('M') => out.push_str(&format!("{:02}", second / 60 % 60)),
            Some('S') => out.push_str(&format!("{:02}", second % 60)),
            Some('%') => out.push('%'),
            Some(other) => out.extend(['%', other]),
            None => out.push('%'),
        }
    }
    out
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Years counted from March 0000 end with the leap day, so that its place never matters.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(strftime("%d %b %Y", at(0)), "01 Jan 1970");
        assert_eq!(strftime("%A %a %B", at(0)), "Thursday Thu January");
        // 2024-02-29 12:34:56 UTC, a Thursday.
        assert_eq!(strftime("%Y-%m-%d %H:%M:%S %A", at(1_709_210_096)), "2024-02-29 12:34:56 Thursday");
        assert_eq!(strftime("%y%%%j%", at(1_735_689_599)), "24%%j%");
        assert_eq!(strftime("%d.%m.%Y", at(4_107_542_400)), "01.03.2100");
    }
}
