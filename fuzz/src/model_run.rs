//! A model: the configuration that a key-value area asks for, with tensors that fit it, passed two tokens.
//!
//! The input is 8 bytes of choices and a key-value area. Tensors come into being as binding asks for them, in the shapes that
//! its refusals name, so the fuzzer has only to find keys. A configuration that is too large to run here is only measured.

use p64_core::forward::{
    Config, KvCache, KvType, KvTypes, Layer, Logits, Model, Options, Scratch, Weight, WeightSource, argmax, forward,
    kv, scratch,
};
use p64_core::kernel::{Activations, is_supported};
use p64_core::layout::shape::Shape;
use p64_core::metadata::Metadata;
use p64_core::quant::ActivationBlock;
use p64_core::{Code, DType, Error, Place, Result, Role};
use std::cell::{Cell, RefCell};

/// The length of every tensor's payload is a part of this.
const MOST_BYTES: usize = 1 << 20;
/// Values of cache, scratch or logits.
const MOST_FLOATS: usize = 1 << 20;
/// Products of lengths that a pass computes, roughly.
const MOST_WORK: usize = 1 << 22;
const CONTEXT: usize = 8;

/// The target's body.
pub fn run(data: &[u8]) {
    passes(data);
}

/// The same, answering whether the input was a model that passed its tokens: seeds that do not reach the pass are of no use.
pub fn passes(data: &[u8]) -> bool {
    let Some((choices, area)) = data.split_first_chunk::<8>() else { return false };
    let Ok(metadata) = Metadata::parse(area, 0) else { return false };
    let Ok(config) = Config::read(&metadata) else { return false };
    let measured = scratch::required_len(&config, usize::MAX, usize::MAX).floats;
    assert_eq!(measured, usize::MAX, "what does not fit says so");
    for layer in [0, config.n_layer() - 1, usize::MAX] {
        let _ = config.span(layer);
    }
    work(&config) <= MOST_WORK && bound(&config, choices, area)
}

fn work(config: &Config) -> usize {
    let experts = config.experts().map_or(1, |experts| experts.count);
    let widest = [config.query_len(), config.kv_len(), config.inside_len().saturating_mul(experts), config.n_embd()];
    widest
        .iter()
        .fold(0, |sum: usize, len| sum.saturating_add(*len))
        .saturating_mul(config.n_embd())
        .saturating_mul(config.n_layer())
}

/// Binds and passes.
fn bound(config: &Config, choices: &[u8; 8], area: &[u8]) -> bool {
    let [types, kinds, payload, present, rows, ..] = *choices;
    let arena = arena(payload, area);
    let supported: Vec<DType> = DType::ALL.iter().copied().filter(|dtype| is_supported(*dtype)).collect();
    let source = Grown {
        arena: &arena,
        dtype: supported[usize::from(types) % supported.len()],
        present,
        n_vocab: u32::from(rows) + 1,
        tensors: RefCell::default(),
        last: RefCell::default(),
        full: Cell::new(false),
    };
    let mut layers = Vec::new();
    for index in 0..config.n_layer() {
        let Some(layer) = source.fit(|| Layer::bind(&source, config, index)) else { return false };
        layers.push(layer);
    }
    let Some(model) = source.fit(|| Model::new(&source, *config, layers.as_slice())) else { return false };
    let fitting: Vec<KvType> =
        KvType::ALL.iter().copied().filter(|kind| config.head_dim().is_multiple_of(kind.block())).collect();
    let kind = |choice: u8| fitting[usize::from(choice) % fitting.len()];
    let types = KvTypes { keys: kind(kinds), values: kind(kinds / 3) };
    let activations = if kinds & 128 == 0 { Activations::Quantized } else { Activations::F32 };
    let tokens = [0, u32::from(rows)];

    let together = pass(&model, types, activations, &[&tokens]);
    let apart = pass(&model, types, activations, &[&tokens[..1], &tokens[1..]]);
    match (together, apart) {
        (Ok(together), Ok(apart)) => {
            let same =
                together.iter().zip(&apart).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()));
            assert!(same, "a token's result depends on its company");
            assert!((argmax(&together) as usize) < model.n_vocab());
            together.len() == model.n_vocab()
        }
        (together, apart) => {
            assert_eq!(together.map(|_| ()), apart.map(|_| ()));
            false
        }
    }
}

/// The logits of the last token; none when the buffers would be too long.
fn pass<'w>(
    model: &Model<'w, &[Layer<'w>]>,
    types: KvTypes,
    activations: Activations,
    batches: &[&[u32]],
) -> Result<Vec<f32>> {
    let config = model.config();
    let context = if model_positions(config) { config.context() } else { CONTEXT };
    let (need, words) = (scratch::required_len(config, 2, context), kv::required_len_of(config, types, context));
    if need.floats.max(words).max(need.activations) > MOST_FLOATS {
        return Ok(Vec::new());
    }
    let mut kv = KvCache::of(config, types, context, vec![f32::NAN; words])?;
    // What buffers hold does not matter.
    let (mut floats, mut blocks) = (vec![f32::NAN; need.floats], vec![ActivationBlock::ZERO; need.activations]);
    let mut scratch = Scratch::new(config, 2, context, &mut floats, &mut blocks)?;
    let mut options = Options { activations, ..Options::default() };
    let mut logits = vec![f32::NAN; model.n_vocab()];
    let mut before = 0;
    for batch in batches {
        forward(model, batch, &mut kv, &mut scratch, &mut options, Logits::Last(&mut logits))
            .map_err(|error| counted_from(before, error))?;
        before += u32::try_from(batch.len()).expect("two at most");
    }
    Ok(logits)
}

/// A refused token's place counts from the start of its batch; here from the first of all tokens.
fn counted_from(before: u32, mut error: Error) -> Error {
    if let Place::Token(index) = &mut error.place {
        *index += before;
    }
    error
}

/// Whether the model was made for fewer positions than are tried otherwise.
fn model_positions(config: &Config) -> bool {
    config.context() < CONTEXT
}

/// The bytes of all tensors: a few small numbers in every type, or whatever the input has, not-a-number included.
fn arena(choice: u8, area: &[u8]) -> Vec<u8> {
    if choice & 1 == 0 || area.is_empty() {
        let byte = |i: usize| (i.wrapping_mul(usize::from(choice) | 7) >> 3).to_le_bytes()[0] & 0x3f;
        return (0..MOST_BYTES).map(byte).collect();
    }
    area.iter().rev().copied().cycle().take(MOST_BYTES).collect()
}

/// A tensor that binding asked for.
struct Tensor {
    name: String,
    role: Role,
    dims: Vec<u32>,
}

/// A source that has what it is asked for, once the asking has failed.
struct Grown<'w> {
    arena: &'w [u8],
    dtype: DType,
    present: u8,
    n_vocab: u32,
    tensors: RefCell<Vec<Tensor>>,
    /// What was asked for last.
    last: RefCell<(String, Option<Role>)>,
    full: Cell<bool>,
}

impl<'w> Grown<'w> {
    /// Tries until nothing that can be mended is refused.
    fn fit<T>(&self, attempt: impl Fn() -> Result<T>) -> Option<T> {
        // A layer has far fewer tensors, and each is mended a few times.
        for _ in 0..1000 {
            match attempt() {
                Ok(bound) => return (!self.full.get()).then_some(bound),
                Err(error) if self.mend(&error) => {}
                Err(_) => return None,
            }
        }
        None
    }

    fn mend(&self, error: &Error) -> bool {
        let mut tensors = self.tensors.borrow_mut();
        match (error.code, error.place) {
            (Code::MissingTensor, _) => {
                let (name, role) = self.last.take();
                let dims = if name == "token_embd.weight" { vec![0, self.n_vocab] } else { vec![0] };
                tensors.push(Tensor { name, role: role.unwrap_or(Role::UNKNOWN), dims });
                true
            }
            (Code::WrongShape, Place::Tensor(index)) => {
                let Some(tensor) = tensors.get_mut(index as usize) else { return false };
                let Ok(needed) = u32::try_from(error.expected) else { return false };
                match tensor.dims[0] {
                    0 => tensor.dims[0] = needed,
                    _ if tensor.dims.len() < 4 => tensor.dims.push(needed),
                    _ => return false,
                }
                true
            }
            _ => false,
        }
    }

    /// Whether a tensor that need not be there is.
    fn wants(&self, name: &str) -> bool {
        let suffix = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')).map_or(name, |(_, suffix)| suffix);
        let hash = suffix.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        // Most combinations are refused, so few are tried.
        self.present >> 3 != 0 && u32::from(self.present) % 61 == hash % 61
            || u32::from(self.present) % 7 == hash % 7 && self.present & 8 != 0
    }

    fn answer(&self, name: &str, role: Option<Role>) -> Option<Weight<'w>> {
        let mut tensors = self.tensors.borrow_mut();
        let found = tensors.iter().position(|tensor| tensor.name == name);
        let index = match found {
            Some(index) => index,
            None if self.wants(name) => {
                tensors.push(Tensor { name: name.to_owned(), role: role.unwrap_or(Role::UNKNOWN), dims: vec![0] });
                tensors.len() - 1
            }
            None => {
                *self.last.borrow_mut() = (name.to_owned(), role);
                return None;
            }
        };
        let shape = Shape::new(&tensors[index].dims)?;
        let matrix = tensors[index].dims.len() > 1 && role.is_some();
        let whole = |dtype: &DType| dtype.byte_len(&shape).is_ok_and(|len| len.is_some());
        let dtype = Some(self.dtype).filter(|dtype| matrix && whole(dtype)).unwrap_or(DType::F32);
        let len = dtype.byte_len(&shape).ok().flatten().and_then(|len| usize::try_from(len).ok());
        let bytes = len.and_then(|len| self.arena.get(..len));
        self.full.set(self.full.get() || bytes.is_none());
        Some(Weight { index: u32::try_from(index).ok()?, dtype, shape, bytes: bytes.unwrap_or_default() })
    }
}

impl<'w> WeightSource<'w> for Grown<'w> {
    fn by_name(&self, name: &str) -> Result<Option<Weight<'w>>> {
        Ok(self.answer(name, None))
    }

    fn by_role(&self, role: Role, layer: Option<u32>) -> Result<Option<Weight<'w>>> {
        let name = match layer {
            Some(layer) => format!("blk.{layer}.{}", role.gguf_name()),
            None => role.gguf_name().to_owned(),
        };
        Ok(self.answer(&name, Some(role)))
    }

    fn each(&self, visit: &mut dyn FnMut(u32, &str, Role) -> Result<()>) -> Result<()> {
        (0..).zip(self.tensors.borrow().iter()).try_for_each(|(index, tensor)| visit(index, &tensor.name, tensor.role))
    }
}
