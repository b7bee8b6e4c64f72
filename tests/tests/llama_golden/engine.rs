//! A model in a GGUF, ready to be run.

use p64_core::forward::{
    Config, KvCache, Layer, Logits, Model, Options, Scratch, Weight, WeightSource, forward, kv, prefill, scratch,
};
use p64_core::quant::ActivationBlock;
use p64_core::{Result, Role};
use p64_std::gguf::GgufTensor;
use p64_std::map::MappedGguf;

/// The tensors of a GGUF.
pub struct Tensors<'w>(pub &'w MappedGguf);

impl<'w> Tensors<'w> {
    fn weight(&self, tensor: &GgufTensor<'w>) -> Weight<'w> {
        let index = self.0.gguf().tensors().iter().position(|other| other.name == tensor.name).expect("it is there");
        let index = u32::try_from(index).expect("far fewer than 2^32");
        Weight { index, dtype: tensor.dtype, shape: tensor.shape, bytes: self.0.bytes(tensor) }
    }
}

impl<'w> WeightSource<'w> for Tensors<'w> {
    fn by_name(&self, name: &str) -> Result<Option<Weight<'w>>> {
        Ok(self.0.gguf().find(name).map(|tensor| self.weight(tensor)))
    }

    fn by_role(&self, role: Role, layer: Option<u32>) -> Result<Option<Weight<'w>>> {
        match layer {
            Some(layer) => self.by_name(&format!("blk.{layer}.{}", role.gguf_name())),
            None => self.by_name(role.gguf_name()),
        }
    }

    fn each(&self, visit: &mut dyn FnMut(u32, &str, Role) -> Result<()>) -> Result<()> {
        for (index, tensor) in (0..).zip(self.0.gguf().tensors()) {
            visit(index, tensor.name, Role::from_gguf_name(tensor.name).map_or(Role::UNKNOWN, |(role, _)| role))?;
        }
        Ok(())
    }
}

/// A model with a cache and a scratch of its own.
pub struct Engine<'w> {
    model: Model<'w, Vec<Layer<'w>>>,
    kv: KvCache<Vec<f32>>,
    floats: Vec<f32>,
    blocks: Vec<ActivationBlock>,
    positions: usize,
}

impl<'w> Engine<'w> {
    pub fn new(file: &'w MappedGguf, context: usize, positions: usize) -> Self {
        let config = Config::read(&file.gguf().metadata()).expect("the metadata describe a model we run");
        let source = Tensors(file);
        let layers = (0..config.n_layer()).map(|i| Layer::bind(&source, &config, i));
        let layers = layers.collect::<Result<Vec<_>>>().expect("the tensors fit");
        let model = Model::new(&source, config, layers).expect("the tensors fit");
        let kv = vec![0.0; kv::required_len(&config, context)];
        let need = scratch::required_len(&config, positions, context);
        Self {
            model,
            kv: KvCache::new(&config, context, kv).expect("long enough"),
            floats: vec![0.0; need.floats],
            blocks: vec![ActivationBlock::ZERO; need.activations],
            positions,
        }
    }

    /// Forgets what was seen and reads a prompt, chunk by chunk. Answers the last position's logits.
    pub fn prompt(&mut self, tokens: &[u32], options: &mut Options<'_>) -> Vec<f32> {
        self.kv.clear();
        let mut logits = vec![0.0; self.model.n_vocab()];
        let config = self.model.config();
        let mut scratch = Scratch::new(config, self.positions, self.kv.capacity(), &mut self.floats, &mut self.blocks)
            .expect("it fits");
        prefill(&self.model, tokens, &mut self.kv, &mut scratch, options, &mut logits).expect("the prompt is read");
        logits
    }

    /// Adds one token. Answers its logits.
    pub fn step(&mut self, token: u32, options: &mut Options<'_>) -> Vec<f32> {
        let mut logits = vec![0.0; self.model.n_vocab()];
        let config = self.model.config();
        let mut scratch = Scratch::new(config, self.positions, self.kv.capacity(), &mut self.floats, &mut self.blocks)
            .expect("it fits");
        let out = Logits::Last(&mut logits);
        forward(&self.model, &[token], &mut self.kv, &mut scratch, options, out).expect("the token is read");
        logits
    }
}
