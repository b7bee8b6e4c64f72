//! A report as a page.

use crate::stats::Report;

/// The page.
pub fn page(_report: &Report) -> String {
    String::new()
}
