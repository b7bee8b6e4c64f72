//! Tables: columns as wide as their longest cell, the last one cut to the terminal.

use super::columns;
use std::fmt::Write;

/// On which side a column's cells stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows under a head. Only the last column may hold text of any length.
#[derive(Clone, Debug)]
pub struct Table {
    head: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

const INDENT: &str = "  ";
const GAP: &str = "  ";

impl Table {
    /// A table without rows.
    pub fn new<const N: usize>(head: [(&'static str, Align); N]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.head.len());
        self.rows.push(cells.to_vec());
    }

    /// The table for the terminal on stdout.
    pub fn render(&self) -> String {
        self.render_in(columns())
    }

    fn render_in(&self, limit: Option<usize>) -> String {
        let titles: Vec<String> = self.head.iter().map(|(title, _)| (*title).to_owned()).collect();
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells = std::iter::once(&titles).chain(&self.rows).filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut out = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let mut line = INDENT.to_owned();
            for (column, ((cell, &width), (_, align))) in row.iter().zip(&widths).zip(&self.head).enumerate() {
                if column > 0 {
                    line.push_str(GAP);
                }
                let last = column + 1 == row.len();
                // Writing to a string cannot fail.
                let _ = match align {
                    Align::Right => write!(line, "{cell:>width$}"),
                    Align::Left if last => write!(line, "{cell}"),
                    Align::Left => write!(line, "{cell:<width$}"),
                };
            }
            out.push_str(&shorten(line.trim_end(), limit));
            out.push('\n');
        }
        out
    }
}

/// `text` in at most `limit` characters, the last of them `…` when something is missing.
pub fn shorten(text: &str, limit: Option<usize>) -> String {
    match limit {
        Some(limit) if text.chars().count() > limit => {
            text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
        }
        _ => text.to_owned(),
    }
}

/// Text in one line: control characters as escapes.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_is_cut() {
        let mut table = Table::new([("id", Align::Right), ("name", Align::Left), ("text", Align::Left)]);
        table.row(["7".into(), "é".into(), "short".into()]);
        table.row(["1234".into(), "longer".into(), "a text that goes on".into()]);
        assert_eq!(
            table.render_in(Some(24)),
            "    id  name    text\n     7  é       short\n  1234  longer  a text …\n"
        );
        assert!(table.render_in(None).ends_with("a text that goes on\n"));
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(one_line("a\n\x1b[2J\tb"), "a\\n\\u{1b}[2J\\tb");
    }
}
