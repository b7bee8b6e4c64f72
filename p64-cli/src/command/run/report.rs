//! What a generation took, for people and as an object.

use crate::output::{Ui, number};
use p64_std::session::{Generation, Stats, StopReason};
use serde_json::json;
use std::time::Duration;

/// Two lines on what a generation took.
pub fn statistics(generation: &Generation, ui: &Ui) {
    let stats = &generation.stats;
    let line = |name: &str, tokens: usize, time: Duration, rate: f64, end: &str| {
        let time = number::duration(time);
        ui.note(format_args!("{name:<10} {tokens:>5} tokens in {time:>9}, {rate:>8.1} tokens/s{end}"));
    };
    ui.note("");
    line("prompt", stats.prompt_tokens, stats.prompt_time, stats.prompt_rate(), "");
    let end = format!(", {}", ended(generation.reason));
    line("generated", stats.generated_tokens, stats.generate_time, stats.generate_rate(), &end);
    if stats.shifts > 0 {
        ui.note(format_args!("{:<10} {:>5} times, their time is in the line above", "shifted", stats.shifts));
    }
}

/// Why it ended, in words.
pub fn ended(reason: StopReason) -> &'static str {
    match reason {
        StopReason::EndOfGeneration => "ended by the model",
        StopReason::StopText => "ended at a stop text",
        StopReason::Length => "ended at -n",
        StopReason::ContextFull => "ended: the context is full (-c, --context-shift)",
        StopReason::Cancelled => "stopped",
    }
}

/// The statistics as an object.
pub fn object(stats: &Stats) -> serde_json::Value {
    json!({
        "prompt_tokens": stats.prompt_tokens,
        "prompt_seconds": stats.prompt_time.as_secs_f64(),
        "prompt_tok_s": stats.prompt_rate(),
        "generated_tokens": stats.generated_tokens,
        "generate_seconds": stats.generate_time.as_secs_f64(),
        "generate_tok_s": stats.generate_rate(),
        "context_shifts": stats.shifts,
    })
}
