//! A session: a prompt goes in, tokens and text come out.

use crate::error::{Error, Result};
use crate::model::LoadedModel;
use crate::pool::Pool;
use crate::sample::Sampler;
use crate::tokenizer::Utf8Stream;
use p64_core::forward::{KvCache, KvTypes, Logits, Options, Scratch, forward, kv, prefill, scratch};
use p64_core::kernel::Activations;
use p64_core::quant::ActivationBlock;
use std::ops::{ControlFlow, Deref};
use std::time::{Duration, Instant};

mod stop;

use stop::StopFilter;

/// How a session runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionOptions {
    /// Positions the KV cache holds; `None` for what the model was trained for, at most [`DEFAULT_CONTEXT`].
    pub context: Option<usize>,
    /// Threads; 0 for one per core.
    pub threads: usize,
    /// What activations are rounded to before they meet the weights.
    pub activations: Activations,
    /// Most prompt tokens passed through the model at once.
    pub batch: usize,
    /// The types of the cached keys and values.
    pub kv: KvTypes,
}

/// Positions a session has room for unless it is told otherwise: the cache of a small model then stays below 200 MB.
pub const DEFAULT_CONTEXT: usize = 4096;

impl Default for SessionOptions {
    fn default() -> Self {
        Self { context: None, threads: 0, activations: Activations::Quantized, batch: 512, kv: KvTypes::default() }
    }
}

/// When a generation ends, besides the model's own end-of-generation tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GenerateOptions {
    /// Most tokens to generate.
    pub max_tokens: usize,
    /// Texts that end the generation where they appear; they are not part of the result.
    pub stop: Vec<String>,
    /// Whether to go on past end-of-generation tokens.
    pub ignore_eos: bool,
}

impl Default for GenerateOptions {
    /// Up to 256 tokens, no stop texts, ending where the model ends.
    fn default() -> Self {
        Self { max_tokens: 256, stop: Vec::new(), ignore_eos: false }
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
    /// The caller asked for it.
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
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Time the prompt took, up to its logits.
    pub prompt_time: Duration,
    /// Tokens generated.
    pub generated_tokens: usize,
    /// Time from the prompt's logits to the end.
    pub generate_time: Duration,
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

/// One sequence over a loaded model. `M` is how it holds on to the model: a reference, or an `Arc` where the session has to
/// live on its own.
pub struct Session<M> {
    model: M,
    pool: Pool,
    activations: Activations,
    batch: usize,
    kv: KvCache<Vec<f32>>,
    floats: Vec<f32>,
    blocks: Vec<ActivationBlock>,
    logits: Vec<f32>,
    /// The tokens whose keys and values are in the cache.
    history: Vec<u32>,
    /// Whether `logits` are those after the last of them.
    fresh: bool,
}

impl<M: Deref<Target = LoadedModel>> std::fmt::Debug for Session<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("model", &*self.model)
            .field("positions", &self.history.len())
            .finish_non_exhaustive()
    }
}

impl<M: Deref<Target = LoadedModel>> Session<M> {
    /// Allocates cache and buffers.
    ///
    /// # Errors
    /// [`Error::Usage`] for a context or batch of zero, or one that memory cannot hold, and for a type of the cache that the
    /// model's heads do not fit.
    pub fn new(model: M, options: &SessionOptions) -> Result<Self> {
        let config = model.config();
        let context = options.context.unwrap_or_else(|| config.context().min(DEFAULT_CONTEXT));
        if context == 0 || options.batch == 0 {
            return Err(Error::Usage { reason: "context and batch must be at least 1".to_owned() });
        }
        for kind in [options.kv.keys, options.kv.values] {
            let (head, block) = (config.head_dim(), kind.block());
            if !head.is_multiple_of(block) {
                let reason = format!(
                    "a {kind} cache needs heads of a multiple of {block} elements, and this model's have {head}; choose f16 or f32"
                );
                return Err(Error::Usage { reason });
            }
        }
        let batch = options.batch.min(context);
        let need = scratch::required_len(config, batch, context);
        let kv_len = kv::required_len_of(config, options.kv, context);
        let mut session = Self {
            pool: Pool::new(options.threads)?,
            activations: options.activations,
            batch,
            kv: KvCache::new(config, 0, Vec::new()).map_err(|error| Error::core(model.path(), error))?,
            floats: allocate(need.floats, 0.0)?,
            blocks: allocate(need.activations, ActivationBlock::ZERO)?,
            logits: allocate(model.model().n_vocab(), 0.0)?,
            history: Vec::new(),
            fresh: false,
            model,
        };
        let kv = KvCache::of(session.model.config(), options.kv, context, allocate(kv_len, 0.0)?);
        session.kv = kv.map_err(|error| session.core(error))?;
        Ok(session)
    }

    fn core(&self, error: p64_core::Error) -> Error {
        Error::core(self.model.path(), error)
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &LoadedModel {
        &self.model
    }

    /// Positions there is room for.
    #[must_use]
    pub const fn context(&self) -> usize {
        self.kv.capacity()
    }

    /// Tokens passed so far.
    #[must_use]
    pub fn history(&self) -> &[u32] {
        &self.history
    }

    /// The logits after the last token passed; `None` before the first, and after something was forgotten.
    #[must_use]
    pub fn logits(&self) -> Option<&[f32]> {
        self.fresh.then_some(self.logits.as_slice())
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.truncate(0);
    }

    /// Forgets what came after the first `len` tokens.
    pub fn truncate(&mut self, len: usize) {
        self.fresh &= len >= self.history.len();
        self.kv.truncate(len);
        self.history.truncate(len);
    }

    /// Passes tokens through the model, a batch at a time, and answers with the logits after the last.
    ///
    /// # Errors
    /// A token id outside the vocabulary, no tokens, or more than the context has room for; nothing is remembered then.
    pub fn prefill(&mut self, tokens: &[u32]) -> Result<&[f32]> {
        let Self { model, kv, floats, blocks, logits, pool, .. } = self;
        let mut options = Options { activations: self.activations, workers: &*pool, probe: None };
        let config = model.config();
        let run = Scratch::new(config, self.batch, kv.capacity(), floats, blocks)
            .and_then(|mut scratch| prefill(model.model(), tokens, kv, &mut scratch, &mut options, logits));
        run.map_err(|error| self.core(error))?;
        self.history.extend_from_slice(tokens);
        self.fresh = true;
        Ok(&self.logits)
    }

    /// Passes one token through the model and answers with the logits after it.
    ///
    /// # Errors
    /// As [`Session::prefill`].
    pub fn step(&mut self, token: u32) -> Result<&[f32]> {
        self.prefill(&[token])
    }

    /// Passes at most a batch of tokens and answers with the logits after each: n x vocabulary.
    ///
    /// # Errors
    /// As [`Session::prefill`]; also more tokens than a batch.
    pub fn logits_of_all(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let mut all = allocate(tokens.len().saturating_mul(self.logits.len()), 0.0)?;
        let Self { model, kv, floats, blocks, pool, .. } = self;
        let mut options = Options { activations: self.activations, workers: &*pool, probe: None };
        let run = Scratch::new(model.config(), self.batch, kv.capacity(), floats, blocks).and_then(|mut scratch| {
            forward(model.model(), tokens, kv, &mut scratch, &mut options, Logits::All(&mut all))
        });
        run.map_err(|error| self.core(error))?;
        self.history.extend_from_slice(tokens);
        self.fresh = false;
        Ok(all)
    }

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
        prompt.iter().for_each(|&id| sampler.accept(id));
        self.prefill(prompt)?;
        let prompt_time = started.elapsed();
        let started = Instant::now();
        let mut output = Output::new(options);
        let mut ids = Vec::new();
        let reason = loop {
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
            if self.history.len() >= self.context() {
                break StopReason::ContextFull;
            }
            self.step(id)?;
        };
        let text = output.finish(on_text);
        let stats = Stats {
            prompt_tokens: prompt.len(),
            prompt_time,
            generated_tokens: ids.len(),
            generate_time: started.elapsed(),
        };
        Ok(Generation { ids, text, reason, stats })
    }
}

/// Memory filled with `value`, or an error instead of an abort.
fn allocate<T: Clone>(len: usize, value: T) -> Result<Vec<T>> {
    // Only to learn whether it can be had: `vec!` then asks for zeroed pages, which cost nothing until they are touched.
    let probe = Vec::<T>::new().try_reserve_exact(len);
    probe.map_err(|_| {
        let bytes = len.saturating_mul(size_of::<T>());
        let reason = format!("{bytes} bytes of memory are not to be had; ask for a smaller context (-c)");
        Error::Usage { reason }
    })?;
    Ok(vec![value; len])
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
