//! A session: a prompt goes in, tokens and text come out.

use crate::error::{Error, Result};
use crate::model::LoadedModel;
use crate::pool::Pool;
use p64_core::forward::{KvCache, KvTypes, Logits, Options, Scratch, forward, kv, prefill, scratch};
use p64_core::kernel::Activations;
use p64_core::quant::ActivationBlock;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

mod generate;
mod stop;

pub use generate::{GenerateOptions, Generation, Stats, StopReason};

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
    /// Set by somebody who wants a generation to end.
    interrupt: Option<Arc<AtomicBool>>,
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
            interrupt: None,
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

    /// Most tokens that pass through the model at once.
    #[must_use]
    pub const fn batch(&self) -> usize {
        self.batch
    }

    /// Lets another thread, or a signal handler, end a generation: [`Session::generate`] looks at `flag` before each batch
    /// of the prompt and before each token, and ends with [`StopReason::Cancelled`] where it is set. It sets nothing back.
    pub fn set_interrupt(&mut self, flag: Arc<AtomicBool>) {
        self.interrupt = Some(flag);
    }

    fn interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
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

    /// Keeps what `tokens` have in common with what was passed, forgets the rest, and answers with how many tokens that are:
    /// those behind them are left to pass. The last one always is, because its logits are wanted.
    ///
    /// A token's keys and values depend on the tokens before it alone, so the result is the one of a new session, bit for
    /// bit.
    pub fn reuse(&mut self, tokens: &[u32]) -> usize {
        let common = self.history.iter().zip(tokens).take_while(|(had, wanted)| had == wanted).count();
        let kept = common.min(tokens.len().saturating_sub(1));
        self.truncate(kept);
        kept
    }

    /// Makes `tokens` what the session has seen, passing only those that it has not, and answers with the logits after the
    /// last.
    ///
    /// # Errors
    /// As [`Session::prefill`]; what was in common is remembered then.
    pub fn prefill_reusing(&mut self, tokens: &[u32]) -> Result<&[f32]> {
        let kept = self.reuse(tokens);
        self.prefill(&tokens[kept..])
    }

    /// Makes room: keeps the first `keep` tokens, forgets the older half of those behind them, and moves the newer half up.
    /// Answers with how many were forgotten; 0 when fewer than two are behind the first `keep`.
    ///
    /// The keys in the cache hold their positions, so the newer half passes through the model again, as a prompt does. That
    /// is right for every family, and costs about one token of prompt for each token of room. The result is the one of a
    /// new session that was given the tokens that remain, bit for bit.
    ///
    /// # Errors
    /// As [`Session::prefill`]; the first `keep` tokens are remembered then.
    pub fn shift(&mut self, keep: usize) -> Result<usize> {
        let drop = self.history.len().saturating_sub(keep) / 2;
        if drop > 0 {
            let newer = self.history.split_off(keep + drop);
            self.truncate(keep);
            self.prefill(&newer)?;
        }
        Ok(drop)
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
