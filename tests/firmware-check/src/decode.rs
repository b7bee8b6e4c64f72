//! Everything: open a container, bind its model, decode one token.
#![no_std]
#![no_main]

use core::hint::black_box;
use p64_core::crc32c::Checksum;
use p64_core::forward::{Config, KvCache, Layer, Logits, Model, Options, Scratch, argmax, forward};
use p64_core::metadata::Metadata;
use p64_core::quant::ActivationBlock;
use p64_core::validate::{OpenOptions, Storage};
use p64_core::{Code, Container, Error, Place, Result};

firmware_check::program!(check);

/// Most layers that this image has room for.
const LAYERS: usize = 4;

/// Memory of the image; on a device it would be statics.
struct Buffers {
    kv: [f32; 512],
    floats: [f32; 1536],
    activations: [ActivationBlock; 8],
    logits: [f32; 1024],
}

/// The token after `token`, by the model that lies in `file`.
fn decode(file: &[u8], token: u32, buffers: &mut Buffers) -> Result<u32> {
    let options = OpenOptions { checksum: Checksum::BYTES_64, ..OpenOptions::default() };
    let container = Container::open_with(file, &options, Storage::default(), &mut |_| ())?;
    let config = Config::read(&container.metadata()?.unwrap_or(Metadata::EMPTY))?;
    let too_many = Error::new(Code::BufferTooSmall, Place::File);

    let mut layers = [Layer::bind(&container, &config, 0)?; LAYERS];
    let layers = layers.get_mut(..config.n_layer()).ok_or(too_many)?;
    for (index, layer) in layers.iter_mut().enumerate() {
        *layer = Layer::bind(&container, &config, index)?;
    }
    let model = Model::new(&container, config, &*layers)?;
    let mut kv = KvCache::new(&config, 1, &mut buffers.kv[..])?;
    let mut scratch = Scratch::new(&config, 1, 1, &mut buffers.floats, &mut buffers.activations)?;
    let logits = buffers.logits.get_mut(..model.n_vocab()).ok_or(too_many)?;
    forward(&model, &[token], &mut kv, &mut scratch, &mut Options::default(), Logits::Last(logits))?;
    Ok(argmax(logits))
}

#[inline(never)]
fn check(file: &'static [u8]) -> u32 {
    let activations = [ActivationBlock::ZERO; 8];
    let mut buffers = Buffers { kv: [0.0; 512], floats: [0.0; 1536], activations, logits: [0.0; 1024] };
    decode(file, black_box(1), &mut buffers).map_or_else(|error| error.code.number().into(), |id| black_box(id) & 0)
}
