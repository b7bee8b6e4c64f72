//! Progress of long work: a bar on a terminal, a line every ten seconds elsewhere, nothing for quick work.

use super::{Ui, number};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

const BAR_AFTER: Duration = Duration::from_millis(300);
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How far something has come.
pub struct Progress<'u> {
    ui: &'u Ui,
    label: &'static str,
    /// An amount of what it counts, with its unit.
    amount: fn(u64) -> String,
    began: Instant,
    bar: Option<ProgressBar>,
    last_line: Cell<Instant>,
}

impl<'u> Progress<'u> {
    /// Work that `label` names, as a verb ("converting"), and that counts in bytes.
    pub fn new(ui: &'u Ui, label: &'static str) -> Self {
        Self::of(ui, label, number::bytes)
    }

    /// Work that counts in something else.
    pub fn of(ui: &'u Ui, label: &'static str, amount: fn(u64) -> String) -> Self {
        let bar = (!ui.quiet() && io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
            let template = "{prefix} [{bar:24}] {percent:>3} % of {msg}, {elapsed}";
            bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(label);
            bar
        });
        let now = Instant::now();
        Self { ui, label, amount, began: now, bar, last_line: Cell::new(now) }
    }

    /// `done` of `total` are through.
    pub fn set(&self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            if bar.is_hidden() && self.began.elapsed() >= BAR_AFTER {
                bar.set_message((self.amount)(total));
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            bar.set_length(total);
            bar.set_position(done);
        } else if self.last_line.get().elapsed() >= LINE_EVERY {
            self.last_line.set(Instant::now());
            self.ui.note(format_args!("{}: {} of {}", self.label, number::share(done, total), (self.amount)(total)));
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
