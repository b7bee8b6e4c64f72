//! The smallest image that uses p64-core: open a container, bind its model, decode one token. It is linked, never run: that
//! it links shows that nothing of `std`, `alloc` or libc is asked for, and `.ci/firmware.sh` looks through its symbols.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::panic::PanicInfo;
use p64_core::forward::{Config, KvCache, Layer, Logits, Model, Options, Scratch, argmax, forward};
use p64_core::metadata::Metadata;
use p64_core::quant::ActivationBlock;
use p64_core::{Code, Container, Error, Place, Result};

/// Most layers that this image has room for.
const LAYERS: usize = 4;

/// Memory of the image; on a device it would be statics.
struct Buffers<'b> {
    kv: &'b mut [f32],
    floats: &'b mut [f32],
    activations: &'b mut [ActivationBlock],
    logits: &'b mut [f32],
}

/// The token after `token`, by the model that lies in `file`.
fn decode(file: &[u8], token: u32, buffers: Buffers<'_>) -> Result<u32> {
    let container = Container::open(file)?;
    let config = Config::read(&container.metadata()?.unwrap_or(Metadata::EMPTY))?;
    let too_many = Error::new(Code::BufferTooSmall, Place::File);

    let mut layers = [Layer::bind(&container, &config, 0)?; LAYERS];
    let layers = layers.get_mut(..config.n_layer()).ok_or(too_many)?;
    for (index, layer) in layers.iter_mut().enumerate() {
        *layer = Layer::bind(&container, &config, index)?;
    }
    let model = Model::new(&container, config, &*layers)?;
    let mut kv = KvCache::new(&config, 1, buffers.kv)?;
    let mut scratch = Scratch::new(&config, 1, 1, buffers.floats, buffers.activations)?;
    let logits = buffers.logits.get_mut(..model.n_vocab()).ok_or(too_many)?;
    forward(&model, &[token], &mut kv, &mut scratch, &mut Options::default(), Logits::Last(logits))?;
    Ok(argmax(logits))
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Where the image begins. `black_box` keeps the compiler from knowing what lies in flash.
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    static FLASH: [u8; 256] = [0; 256];
    let buffers =
        Buffers { kv: &mut [0.0; 256], floats: &mut [0.0; 1024], activations: &mut [], logits: &mut [0.0; 64] };
    let _ = black_box(decode(black_box(&FLASH), black_box(1), black_box(buffers)));
    loop {
        core::hint::spin_loop();
    }
}
