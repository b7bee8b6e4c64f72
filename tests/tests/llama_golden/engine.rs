//! A model with a cache and a scratch of its own.

use p64_core::forward::{KvCache, Logits, Options, Scratch, forward, kv, prefill, scratch};
use p64_core::quant::ActivationBlock;
use p64_std::map::MapOptions;
use p64_std::model::LoadedModel;
use p64_tests::data::model;

/// Positions of the longest prompt with its continuation, and some more.
const CONTEXT: usize = 96;
/// Tokens at once: the longest prompt in one pass, as llama.cpp read it.
const POSITIONS: usize = 48;

/// A loaded model and its buffers.
pub struct Engine {
    loaded: LoadedModel,
    kv: KvCache<Vec<f32>>,
    floats: Vec<f32>,
    blocks: Vec<ActivationBlock>,
}

impl Engine {
    /// Opens `models/<name>.gguf`.
    pub fn open(name: &str) -> Self {
        let loaded = LoadedModel::open(&model(&format!("{name}.gguf")), &MapOptions::default());
        let loaded = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
        let config = loaded.config();
        let storage = vec![0.0; kv::required_len(config, CONTEXT)];
        let kv = KvCache::new(config, CONTEXT, storage).expect("long enough");
        let need = scratch::required_len(config, POSITIONS, CONTEXT);
        let (floats, blocks) = (vec![0.0; need.floats], vec![ActivationBlock::ZERO; need.activations]);
        Self { loaded, kv, floats, blocks }
    }

    /// Forgets what was seen and reads a prompt. Answers the last position's logits.
    pub fn prompt(&mut self, tokens: &[u32], options: &mut Options<'_>) -> Vec<f32> {
        self.kv.clear();
        let model = self.loaded.model();
        let mut logits = vec![0.0; model.n_vocab()];
        let scratch = Scratch::new(model.config(), POSITIONS, CONTEXT, &mut self.floats, &mut self.blocks);
        let mut scratch = scratch.expect("long enough");
        prefill(model, tokens, &mut self.kv, &mut scratch, options, &mut logits).expect("the prompt is read");
        logits
    }

    /// Adds one token. Answers its logits.
    pub fn step(&mut self, token: u32, options: &mut Options<'_>) -> Vec<f32> {
        let model = self.loaded.model();
        let mut logits = vec![0.0; model.n_vocab()];
        let scratch = Scratch::new(model.config(), POSITIONS, CONTEXT, &mut self.floats, &mut self.blocks);
        let mut scratch = scratch.expect("long enough");
        let out = Logits::Last(&mut logits);
        forward(model, &[token], &mut self.kv, &mut scratch, options, out).expect("the token is read");
        logits
    }
}
