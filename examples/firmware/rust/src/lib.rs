//! A story told by a model in flash, in memory that is known at compile time.
//!
//! The machine's program (`main.rs`) and the host's (`host.rs`) call the same function; what differs is the compiler's
//! target, so that equal output means equal arithmetic, down to the bits of the logits.
#![no_std]

use p64_core::crc32c::Checksum;
use p64_core::forward::{Config, KvCache, Layer, Logits, Model, Options, Scratch, argmax, forward};
use p64_core::metadata::Metadata;
use p64_core::quant::ActivationBlock;
use p64_core::tokenizer::encode::{self, Slot, encode};
use p64_core::tokenizer::{Vocabulary, decode};
use p64_core::{Code, Container, Error, Place, Result};

/// How it begins.
pub const PROMPT: &str = "Once upon a time";
/// Tokens told.
pub const TOKENS: usize = 32;

/// Positions of prompt and story together.
const CONTEXT: usize = 40;
/// Most tokens of the prompt: a token has at least a byte, and the model may put one before and one behind.
const PROMPT_TOKENS: usize = PROMPT.len() + 2;
const LAYERS: usize = 4;
const VOCABULARY: usize = 1024;
/// Two caches, keys and values, of two heads of 32 values.
const KV: usize = 2 * LAYERS * CONTEXT * 2 * 32;
/// The scratch of one position; `forward::scratch::required_len` says how much a model takes: where there are vectors, more heads
/// are computed at once.
const FLOATS: usize = if cfg!(target_arch = "x86_64") { 1616 } else { 1376 };
/// The widest row, 256 values, in blocks of 32.
const ACTIVATIONS: usize = 8;

/// The model; `build.rs` says which.
#[repr(C, align(64))]
pub struct Flash<T>(pub T);

/// The file as it lies in flash.
// SAFETY: the section is read-only and holds nothing else.
#[cfg_attr(target_os = "none", unsafe(link_section = ".model"))]
pub static FLASH: Flash<[u8; include_bytes!(env!("P64_MODEL")).len()]> = Flash(*include_bytes!(env!("P64_MODEL")));

/// All memory the decoding takes besides the stack.
pub struct Memory {
    kv: [f32; KV],
    floats: [f32; FLOATS],
    activations: [ActivationBlock; ACTIVATIONS],
    logits: [f32; VOCABULARY],
    slots: [Slot; PROMPT.len()],
}

impl Memory {
    /// All zeros, so that it costs no flash.
    pub const EMPTY: Self = Self {
        kv: [0.0; KV],
        floats: [0.0; FLOATS],
        activations: [ActivationBlock::ZERO; ACTIVATIONS],
        logits: [0.0; VOCABULARY],
        slots: [Slot::EMPTY; PROMPT.len()],
    };
}

/// What the model told.
pub struct Story {
    /// The tokens, each the likeliest.
    pub ids: [u32; TOKENS],
    /// What they spell, `text_len` bytes of it.
    pub text: [u8; 8 * TOKENS],
    /// Bytes of the text.
    pub text_len: usize,
    /// CRC-32C over the bits of all logits of all those tokens.
    pub logits: u32,
}

/// Continues [`PROMPT`] with the likeliest tokens.
///
/// # Errors
/// The model does not fit `memory`, or is none that can be run.
#[inline(never)]
pub fn tell(container: &Container<'_>, memory: &mut Memory) -> Result<Story> {
    let metadata = container.metadata()?.unwrap_or(Metadata::EMPTY);
    let config = Config::read(&metadata)?;
    let mut layers = [Layer::bind(container, &config, 0)?; LAYERS];
    for (index, layer) in layers.iter_mut().enumerate() {
        *layer = Layer::bind(container, &config, index)?;
    }
    let model = Model::new(container, config, &layers[..])?;
    let mut kv = KvCache::new(&config, CONTEXT, &mut memory.kv[..])?;
    let mut scratch = Scratch::new(&config, 1, CONTEXT, &mut memory.floats, &mut memory.activations)?;
    let too_large = Error::new(Code::BufferTooSmall, Place::File);
    let logits = memory.logits.get_mut(..model.n_vocab()).ok_or(too_large)?;
    let mut step =
        |id: u32, logits: Logits<'_>| forward(&model, &[id], &mut kv, &mut scratch, &mut Options::default(), logits);

    let vocabulary = Vocabulary::read(&metadata)?;
    let mut prompt = [0; PROMPT_TOKENS];
    let options = encode::Options { add_special: true, parse_special: false };
    let len = encode(&vocabulary, PROMPT.as_bytes(), options, &mut memory.slots, &mut prompt)?;
    let Some((last, before)) = prompt.get(..len).and_then(<[u32]>::split_last) else {
        return Err(Error::new(Code::LengthMismatch, Place::File).values(1, 0));
    };
    for id in before {
        step(*id, Logits::None)?;
    }
    let mut story = Story { ids: [0; TOKENS], text: [0; 8 * TOKENS], text_len: 0, logits: 0 };
    let mut last = *last;
    for id in &mut story.ids {
        step(last, Logits::Last(logits))?;
        for logit in &*logits {
            story.logits = Checksum::BYTES_64.update(story.logits, &logit.to_bits().to_le_bytes());
        }
        last = argmax(logits);
        *id = last;
        story.text_len += decode::decode(&vocabulary, last, false, &mut story.text[story.text_len..])?;
    }
    Ok(story)
}
