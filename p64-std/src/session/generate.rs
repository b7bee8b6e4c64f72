//! Generation: a prompt, then a token at a time, until something ends it.

use super::Session;
use super::stop::StopFilter;
use crate::error::{Error, Result};
use crate::model::LoadedModel;
use crate::sample::Sampler;
use crate::tokenizer::Utf8Stream;
use std::ops::{ControlFlow, Deref};
use std::time::{Duration, Instant};

/// When a generation ends, besides the model's own end-of-generation tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GenerateOptions {
    /// Most tokens to generate.
    pub max_tokens: usize,
    /// Texts that end the generation where they appear; they are not part of the result.
    pub stop: Vec<String>,
    /// Whether to go on past end-of-generation tokens.
    pub ignore_eos: bool,
    /// What to do when the context is full: with `None` the generation ends there, with `Some(keep)` it goes on after
    /// [`Session::shift`] has made room.
    pub shift: Option<usize>,
}

impl Default for GenerateOptions {
    /// Up to 256 tokens, no stop texts, ending where the model or the context ends.
    fn default() -> Self {
        Self { max_tokens: 256, stop: Vec::new(), ignore_eos: false, shift: None }
    }
}

/// Why a generation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// The model gave an end-of-generation token.
    EndOfGeneration,
    /// One of the stop texts appeared.
    StopText,
    /// `max_tokens` were generated.
    Length,
    /// The context is full.
    ContextFull,
    /// The caller asked for it, by its answer to a text or by [`Session::set_interrupt`].
    Cancelled,
}

impl StopReason {
    /// A word for it: `eos`, `stop`, `length`, `context`, `cancelled`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndOfGeneration => "eos",
            Self::StopText => "stop",
            Self::Length => "length",
            Self::ContextFull => "context",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a generation took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Tokens of the prompt that were passed.
    pub prompt_tokens: usize,
    /// Time the prompt took, up to its logits.
    pub prompt_time: Duration,
    /// Tokens generated.
    pub generated_tokens: usize,
    /// Time from the prompt's logits to the end.
    pub generate_time: Duration,
    /// How many times the context was shifted.
    pub shifts: usize,
}

impl Stats {
    /// Prompt tokens a second.
    #[must_use]
    pub fn prompt_rate(&self) -> f64 {
        rate(self.prompt_tokens, self.prompt_time)
    }

    /// Generated tokens a second. The first comes from the prompt's logits and is not counted.
    #[must_use]
    pub fn generate_rate(&self) -> f64 {
        rate(self.generated_tokens.saturating_sub(1), self.generate_time)
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts are small")]
fn rate(tokens: usize, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { tokens as f64 / time.as_secs_f64() }
}

/// What a generation gave.
#[derive(Clone, PartialEq, Debug)]
pub struct Generation {
    /// The generated tokens; an end-of-generation token that ended it is the last.
    pub ids: Vec<u32>,
    /// Their text, without special tokens and without the stop text.
    pub text: String,
    /// Why it ended.
    pub reason: StopReason,
    /// What it took.
    pub stats: Stats,
}

impl<M: Deref<Target = LoadedModel>> Session<M> {
    /// Generates after `prompt`, which follows what the session has seen; `sampler` takes in the prompt and each token. The
    /// last token generated has not been passed through the model: a next turn's prompt begins with it. Each piece of text
    /// is shown to `on_text` as soon as it is certain not to belong to a stop text.
    ///
    /// # Errors
    /// As [`Session::prefill`]; also an empty prompt, and a model that answers with nothing but NaN.
    pub fn generate(
        &mut self,
        prompt: &[u32],
        options: &GenerateOptions,
        sampler: &mut Sampler,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Generation> {
        let started = Instant::now();
        if prompt.is_empty() {
            return Err(Error::Usage { reason: "the prompt has no tokens; give it some text".to_owned() });
        }
        if prompt.len() > self.context().saturating_sub(self.history.len()) {
            let (need, room) = (prompt.len(), self.context().saturating_sub(self.history.len()));
            let reason =
                format!("the prompt has {need} tokens, the context has room for {room}; ask for a larger context (-c)");
            return Err(Error::Usage { reason });
        }
        let prompt_tokens = self.read(prompt)?;
        prompt.iter().take(prompt_tokens).for_each(|&id| sampler.accept(id));
        let prompt_time = started.elapsed();
        let started = Instant::now();
        let mut output = Output::new(options);
        let mut ids = Vec::new();
        let mut shifts = 0;
        let reason = loop {
            if prompt_tokens < prompt.len() {
                break StopReason::Cancelled;
            }
            if ids.len() >= options.max_tokens {
                break StopReason::Length;
            }
            let choice = sampler.sample(&self.logits).filter(|_| self.logits.iter().any(|logit| !logit.is_nan()));
            let Some(id) = choice else {
                let reason = "every logit is NaN: the weights are damaged, or this build computes the model wrongly";
                return Err(Error::refused(self.model.path(), reason));
            };
            sampler.accept(id);
            ids.push(id);
            if self.model.tokenizer().is_end_of_generation(id) && !options.ignore_eos {
                break StopReason::EndOfGeneration;
            }
            let bytes = self.model.tokenizer().token_bytes(id, false);
            if let Some(reason) = output.push(&bytes, on_text) {
                break reason;
            }
            if ids.len() >= options.max_tokens {
                break StopReason::Length;
            }
            if self.interrupted() {
                break StopReason::Cancelled;
            }
            if self.history.len() >= self.context() {
                match options.shift {
                    Some(keep) if self.shift(keep)? > 0 => shifts += 1,
                    _ => break StopReason::ContextFull,
                }
            }
            self.step(id)?;
        };
        let text = output.finish(on_text);
        let stats =
            Stats { prompt_tokens, prompt_time, generated_tokens: ids.len(), generate_time: started.elapsed(), shifts };
        Ok(Generation { ids, text, reason, stats })
    }

    /// Passes a prompt, a batch at a time, and answers with how many of its tokens were passed: all, unless somebody
    /// interrupts. After an error none are remembered.
    fn read(&mut self, prompt: &[u32]) -> Result<usize> {
        let start = self.history.len();
        let mut passed = 0;
        for batch in prompt.chunks(self.batch) {
            if self.interrupted() {
                break;
            }
            if let Err(error) = self.prefill(batch) {
                self.truncate(start);
                return Err(error);
            }
            passed += batch.len();
        }
        Ok(passed)
    }
}

/// Bytes of tokens to text, text to the caller.
struct Output {
    utf8: Utf8Stream,
    filter: StopFilter,
    text: String,
    cancelled: bool,
}

impl Output {
    fn new(options: &GenerateOptions) -> Self {
        let filter = StopFilter::new(&options.stop);
        Self { utf8: Utf8Stream::new(), filter, text: String::new(), cancelled: false }
    }

    fn push(&mut self, bytes: &[u8], on_text: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Option<StopReason> {
        let mut piece = String::new();
        self.utf8.push(bytes, &mut piece);
        let stopped = self.filter.push(&piece);
        self.emit(on_text);
        match (stopped, self.cancelled) {
            (true, _) => Some(StopReason::StopText),
            (false, true) => Some(StopReason::Cancelled),
            (false, false) => None,
        }
    }

    fn emit(&mut self, on_text: &mut dyn FnMut(&str) -> ControlFlow<()>) {
        let ready = self.filter.take();
        if !ready.is_empty() {
            self.text.push_str(&ready);
            self.cancelled |= on_text(&ready).is_break();
        }
    }

    fn finish(mut self, on_text: &mut dyn FnMut(&str) -> ControlFlow<()>) -> String {
        let mut rest = String::new();
        self.utf8.finish(&mut rest);
        self.filter.push(&rest);
        self.filter.flush();
        // Who asked to stop is shown nothing more; the result still has what was generated.
        if self.cancelled {
            self.text.push_str(&self.filter.take());
        } else {
            self.emit(on_text);
        }
        self.text
    }
}
