//! Opening, validating and decoding call the allocator zero times.
//!
//! The counting allocator counts per thread, so that the test harness' own threads do not show.

use p64_core::Container;
use p64_core::crc32c::Checksum;
use p64_core::forward::{Config, KvCache, Layer, Logits, Model, Options, Scratch, argmax, forward, kv, scratch};
use p64_core::kernel::Activations;
use p64_core::metadata::Metadata;
use p64_core::quant::ActivationBlock;
use p64_core::stream::StreamContainer;
use p64_core::tokenizer::encode::{self, Slot};
use p64_core::tokenizer::{Vocabulary, decode};
use p64_core::validate::{Integrity, NameSlot, OpenOptions, Policy, Storage};
use p64_tests::toy;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::AtomicU8;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; the counter is a thread-local `Cell` without a
// destructor, which allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are the ones passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(work: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(count(|| drop(black_box(vec![1u8]))), 1);
}

fn generate(file: &[u8], integrity: Integrity, activations: Activations) -> [u32; 8] {
    let mut names = [NameSlot::default(); 32];
    let mut verified = [const { AtomicU8::new(0) }; 32];
    let storage = Storage { names: &mut names, verified: &mut verified };
    let options = OpenOptions { policy: Policy::Strict, integrity, checksum: Checksum::default() };
    let container = Container::open_with(file, &options, storage, &mut |_| ()).expect("valid");
    let metadata = container.metadata().expect("well-formed").expect("there");
    let config = Config::read(&metadata).expect("a llama");
    config.check_hparams(container.hparams()).expect("they agree");
    let layers: [Layer<'_>; 2] = [0, 1].map(|layer| Layer::bind(&container, &config, layer).expect("complete"));
    let model = Model::new(&container, config, layers).expect("complete");

    let mut floats = [0f32; 4096];
    let mut blocks = [ActivationBlock::ZERO; 32];
    let mut cache = [0f32; 2 * 2 * 16 * 16];
    assert!(scratch::required_len(&config, 4, 16).floats <= floats.len());
    assert!(kv::required_len(&config, 16) <= cache.len());
    let mut kv = KvCache::new(&config, 16, &mut cache[..]).expect("enough");
    let mut scratch = Scratch::new(&config, 4, 16, &mut floats, &mut blocks).expect("enough");
    let mut options = Options { activations, ..Options::default() };
    let mut logits = [0f32; 8];
    let mut ids = [0; 8];
    let mut next: &[u32] = &[0, 1, 2];
    for id in &mut ids {
        forward(&model, next, &mut kv, &mut scratch, &mut options, Logits::Last(&mut logits)).expect("runs");
        *id = argmax(&logits);
        next = std::slice::from_ref(id);
    }
    assert!(logits.iter().all(|logit| logit.is_finite()));
    ids
}

#[test]
fn open_validate_and_decode_never_allocate() {
    let file = toy::model(&toy::metadata()).build();
    for integrity in [Integrity::Full, Integrity::Lazy] {
        for activations in [Activations::F32, Activations::Quantized] {
            let mut ids = [0; 8];
            let calls = count(|| ids = generate(&file, integrity, activations));
            assert_eq!(calls, 0, "{integrity:?}, {activations:?}");
            assert_eq!(generate(&file, integrity, activations), ids, "the same every time");
        }
    }
}

#[test]
fn validating_through_reads_never_allocates() {
    let file = toy::model(&toy::metadata()).build();
    let calls = count(|| {
        let (mut buffer, mut names) = ([0; 256], [NameSlot::default(); 32]);
        let storage = Storage { names: &mut names, verified: &mut [] };
        let opened = StreamContainer::open(&file[..], &mut buffer, storage, &OpenOptions::default(), &mut |_| ());
        let mut container = opened.expect("valid");
        let tensor = container.find("token_embd.weight").expect("readable").expect("there");
        container.verify(&tensor).expect("sound");
    });
    assert_eq!(calls, 0);
}

#[test]
fn refusing_a_file_does_not_allocate_either() {
    let mut file = toy::model(&toy::metadata()).build();
    let strict = OpenOptions { policy: Policy::Strict, ..OpenOptions::default() };
    for at in (0..file.len()).step_by(97) {
        file[at] ^= 0x10;
        let open = || Container::open_with(&file, &strict, Storage::default(), &mut |_| ());
        assert_eq!(count(|| assert!(open().is_err())), 0, "byte {at}");
        file[at] ^= 0x10;
    }
}

#[test]
fn text_to_ids_and_back_never_allocates() {
    let head = std::fs::read(p64_tests::data::data("tiny/tiny-stories-q8_0.gguf")).expect("in the repository");
    let pairs = u64::from_le_bytes(head[16..24].try_into().expect("eight bytes"));
    let (metadata, _) = Metadata::parse_pairs(&head[24..], pairs, 24).expect("well-formed");
    let text = "<|im_start|>Once upon a time, Lily's cat 🙂 ate 12 apples.";
    let (mut memory, mut slots, mut ids, mut bytes) = ([0; 4096], [Slot::default(); 256], [0; 64], [0; 256]);
    let mut lengths = (0, 0);
    let calls = count(|| {
        let plain = Vocabulary::read(&metadata).expect("known");
        let index = plain.build_index(&mut memory).expect("enough");
        for vocabulary in [plain, plain.with_index(index).expect("its own")] {
            let options = encode::Options { add_special: true, parse_special: true };
            lengths.0 = encode::encode(&vocabulary, text.as_bytes(), options, &mut slots, &mut ids).expect("enough");
            let mut stream = decode::Stream::new(&vocabulary, true);
            lengths.1 = 0;
            for id in &ids[..lengths.0] {
                lengths.1 += stream.next(&vocabulary, *id, &mut bytes[lengths.1..]).expect("enough");
            }
        }
    });
    assert_eq!(calls, 0);
    let written = std::str::from_utf8(&bytes[..lengths.1]).expect("whole characters");
    assert!(written.ends_with(text), "BOS and then the text: {written}");
}
