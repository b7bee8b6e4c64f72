//! Caches in types smaller than `f32`.

use super::*;
use crate::forward::kv::required_len_of;
use crate::forward::{KvType, KvTypes};
use crate::kernel::generic::cache::Rows;

fn types() -> impl Iterator<Item = KvTypes> {
    let pairs = KvType::ALL.iter().flat_map(|keys| KvType::ALL.iter().map(|values| (*keys, *values)));
    pairs.map(|(keys, values)| KvTypes { keys, values })
}

fn tiny_config() -> Config {
    let [(_, pairs, ..), _] = models();
    Config::read(&tiny::metadata(&pairs)).expect("it reads")
}

fn of(config: &Config, types: KvTypes, capacity: usize) -> Result<Kv> {
    KvCache::of(config, types, capacity, vec![f32::NAN; required_len_of(config, types, capacity)])
}

#[test]
fn lengths_are_those_of_the_types() {
    // 2 layers, 2 heads of 32: 128 elements a position.
    let config = Config { head_dim: 32, ..tiny_config() };
    let bytes = |kind| match kind {
        KvType::F32 => 512usize,
        KvType::F16 => 256,
        KvType::Q8_0 => 136,
    };
    for types in types() {
        for capacity in [0, 1, 7, 4096] {
            let need = (bytes(types.keys) * capacity).div_ceil(4) + (bytes(types.values) * capacity).div_ceil(4);
            assert_eq!(required_len_of(&config, types, capacity), need, "{types:?}");
            let cache = of(&config, types, capacity).expect("long enough");
            assert_eq!((cache.types(), cache.capacity()), (types, capacity));
            let short = KvCache::of(&config, types, capacity, vec![0.0; need.saturating_sub(1)]);
            assert_eq!(short.is_ok(), need == 0);
        }
        assert_eq!(required_len_of(&config, types, usize::MAX / 2), usize::MAX);
    }
    assert_eq!(kv::required_len(&config, 9), required_len_of(&config, KvTypes::default(), 9));
}

#[test]
fn what_is_kept_is_found_again() {
    let config = Config { head_dim: 32, ..tiny_config() };
    let len = config.kv_len();
    for types in types() {
        let mut cache = of(&config, types, 5).expect("long enough");
        let row = |seed: usize| (0..len).map(|i| ((i * 7 + seed * 13) % 255) as f32 - 127.0).collect::<Vec<_>>();
        // Whole numbers up to 127 are exact in every type when one of a block is 127.
        let row = |seed| {
            let mut row = row(seed);
            row.chunks_mut(32).for_each(|block| block[0] = 127.0);
            row
        };
        for layer in 0..config.n_layer {
            for position in [3, 0, 4, 1, 2] {
                cache.store(layer, position, &row(layer * 10 + position), &row(layer * 10 + position + 100));
            }
        }
        // Two positions at once; past the end nothing is kept, and nothing else is touched.
        cache.store(1, 1, &[row(50), row(51)].concat(), &[row(150), row(151)].concat());
        cache.store(config.n_layer, 0, &row(0), &row(0));
        for layer in 0..config.n_layer {
            let (keys, values) = cache.layer(layer);
            let seed =
                |position| if layer == 1 && [1, 2].contains(&position) { 49 + position } else { layer * 10 + position };
            // Head by head, all positions of each.
            let heads = |more: usize| -> Vec<f32> {
                let rows: Vec<Vec<f32>> = (0..5).map(|position| row(seed(position) + more)).collect();
                let head = |at: usize| rows.iter().flat_map(move |row| row[at..at + config.head_dim].to_vec());
                (0..len).step_by(config.head_dim).flat_map(head).collect()
            };
            assert_eq!(decode(types.keys, keys), heads(0), "{types:?}");
            assert_eq!(decode(types.values, values), heads(100), "{types:?}");
        }
        let (keys, values) = cache.layer(config.n_layer);
        assert!(keys.is_empty() && values.is_empty());
    }
}

fn decode(kind: KvType, rows: Rows<'_>) -> Vec<f32> {
    let (dtype, bytes, elements) = match kind {
        // As the machine has them: a cache is no file.
        KvType::F32 => return rows.bytes().as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect(),
        KvType::F16 => (crate::DType::F16, 2, 1),
        KvType::Q8_0 => (crate::DType::Q8_0, 34, 32),
    };
    let mut out = vec![0.0; rows.bytes().len() / bytes * elements];
    crate::kernel::dequantize(dtype, rows.bytes(), &mut out).expect("fits");
    out
}

#[test]
fn heads_that_are_no_blocks_are_refused() {
    let config = tiny_config();
    for types in types() {
        let whole = types.keys != KvType::Q8_0 && types.values != KvType::Q8_0;
        let expected = Error::new(Code::PartialBlock, Place::File).values(32, 4);
        assert_eq!(of(&config, types, 4).map(|_| ()), if whole { Ok(()) } else { Err(expected) });
    }
}

#[test]
fn pieces_do_not_change_a_bit_and_rounding_changes_little() {
    for (tiny, pairs, ..) in models() {
        let model = tiny.model(&tiny::metadata(&pairs)).expect("it binds");
        let exact = in_pieces(&model, &mut cache(model.config()), &[N], &mut Options::default());
        let largest = exact.iter().fold(0.0f32, |largest, logit| largest.max(logit.abs()));
        for types in types().filter(|types| types.keys != KvType::Q8_0 && types.values != KvType::Q8_0).skip(1) {
            let mut kv = of(model.config(), types, CONTEXT).expect("long enough");
            let whole = in_pieces(&model, &mut kv, &[N], &mut Options::default());
            assert_ne!(bits(&exact), bits(&whole), "{types:?}");
            for (exact, rounded) in exact.iter().zip(&whole) {
                assert!((exact - rounded).abs() <= 2e-3 * largest, "{types:?}: {rounded}, not {exact}");
            }
            for pieces in [&[1; N][..], &[4, 15], &[18, 1]] {
                kv.clear();
                assert_eq!(bits(&whole), bits(&in_pieces(&model, &mut kv, pieces, &mut Options::default())));
            }
            kv.truncate(4);
            let replayed = in_pieces(&model, &mut kv, &[3, 12], &mut Options::default());
            assert_eq!(bits(&whole[4 * N_VOCAB..]), bits(&replayed));
        }
    }
}

#[test]
fn names_are_those_people_use() {
    for (kind, name) in KvType::ALL.iter().zip(["f32", "f16", "q8_0"]) {
        assert_eq!((kind.name(), KvType::from_name(name)), (name, Some(*kind)));
    }
    assert_eq!(KvType::from_name("q4_0"), None);
    assert_eq!(KvTypes::from(KvType::F16), KvTypes { keys: KvType::F16, values: KvType::F16 });
}
