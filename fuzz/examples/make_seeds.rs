//! Writes the made seeds of `fuzz/corpus`: run it after a change of a format and commit what it writes.
//!
//! `cargo run --manifest-path fuzz/Cargo.toml --no-default-features --example make_seeds`
//!
//! Findings that became regressions stand in the same folders under names of their own and are left alone.

use p64_core::DType;
use p64_core::kernel::matrix::is_supported;
use p64_core::metadata::ValueKind;
use p64_tests::assemble::{Assembly, TensorSpec, tokenizer};
use p64_tests::conformance::{KeyRow, Recipe};
use p64_tests::mutate::{at, entry, put_u16, put_u32, refix};
use std::path::Path;
use std::{fs, io};

type Seed = (&'static str, Vec<u8>);

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let targets = [
        ("metadata", metadata()),
        ("q42t", q42t()),
        ("container_slice", containers()),
        ("container_stream", streams()),
        ("gguf_reader", ggufs()),
        ("convert_and_back", ggufs()),
        ("model_run", models()),
        ("safetensors", safetensors()),
        ("tokenizer", tokenizers()),
    ];
    for (target, seeds) in targets {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in &seeds {
            fs::write(folder.join(name), bytes)?;
        }
        println!("{target}: {} seeds", seeds.len());
    }
    Ok(())
}

fn safetensors() -> Vec<Seed> {
    let file = |header: &str, len: usize| {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; len]].concat()
    };
    let metadata =
        r#"{"__metadata__":{"format":"pt","a":"b\n"},"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}"#;
    let mixed = r#"{"x":{"dtype":"I64","shape":[],"data_offsets":[4,12]},"e":{"dtype":"F16","shape":[0,7],"data_offsets":[4,4]},
"u":{"shape":[4],"data_offsets":[0,4],"dtype":"U8","more":[{"a":1e9}]}}   "#;
    let index = r#"{"metadata":{"total_size":8},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}"#;
    vec![
        ("metadata_and_one", file(metadata, 12)),
        ("mixed_with_spaces", file(mixed, 12)),
        ("sub_bytes", file(r#"{"w":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}}"#, 3)),
        ("index", index.as_bytes().to_vec()),
        ("index_leads_elsewhere", br#"{"weight_map":{"a":"../m.safetensors"}}"#.to_vec()),
        ("index_twice", br#"{"weight_map":{"a":"m","a":"n"}}"#.to_vec()),
    ]
}

fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text].concat()
}

fn pair(key: &str, kind: ValueKind, value: &[u8]) -> Vec<u8> {
    [string(key.as_bytes()).as_slice(), &kind.id().to_le_bytes(), value].concat()
}

fn array(key: &str, kind: ValueKind, len: u64, elements: &[u8]) -> Vec<u8> {
    pair(key, ValueKind::Array, &[kind.id().to_le_bytes().as_slice(), &len.to_le_bytes(), elements].concat())
}

fn area(pairs: &[Vec<u8>]) -> Vec<u8> {
    [&(pairs.len() as u64).to_le_bytes(), pairs.concat().as_slice()].concat()
}

fn metadata() -> Vec<Seed> {
    let scalars: Vec<_> = (0..13)
        .filter_map(ValueKind::from_id)
        .filter(|kind| kind.size() > 0)
        .map(|kind| pair(kind.name(), kind, &1u64.to_le_bytes()[..usize::try_from(kind.size()).expect("at most 8")]))
        .collect();
    let arrays = [
        array("strings", ValueKind::String, 3, &["", "<s>", "\u{2581}the"].map(|s| string(s.as_bytes())).concat()),
        array("scores", ValueKind::F32, 2, &[0f32, -1.5].map(f32::to_le_bytes).concat()),
        array("bools", ValueKind::Bool, 2, &[1, 0]),
        array("empty", ValueKind::String, 0, &[]),
    ];
    let one = pair("a", ValueKind::U32, &1u32.to_le_bytes());
    vec![
        ("no_pairs", area(&[])),
        ("every_scalar", area(&scalars)),
        ("arrays", area(&arrays)),
        ("a_string", area(&[pair("general.name", ValueKind::String, &string(b"a tiny model"))])),
        ("duplicate_key", area(&[one.clone(), one.clone()])),
        ("string_not_utf8", area(&[pair("a", ValueKind::String, &string(&[0xff, 0xfe]))])),
        ("bool_of_two", area(&[pair("a", ValueKind::Bool, &[2])])),
        ("nested_array", area(&[array("a", ValueKind::Array, 0, &[])])),
        ("count_past_the_end", [(1u64 << 40).to_le_bytes().as_slice(), &one].concat()),
        ("string_length_wraps", area(&[pair("a", ValueKind::String, &(u64::MAX - 3).to_le_bytes())])),
    ]
}

/// A GGUF of version 3: pairs, then tensors of (name, type, dimensions, payload), each payload on `alignment`.
fn gguf(pairs: &[Vec<u8>], tensors: &[(&str, DType, &[u64], usize)], alignment: usize) -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend((pairs.len() as u64).to_le_bytes());
    file.extend(pairs.concat());
    let mut data = Vec::new();
    for (name, dtype, dims, size) in tensors {
        file.extend(string(name.as_bytes()));
        file.extend(u32::try_from(dims.len()).expect("at most 4").to_le_bytes());
        dims.iter().for_each(|dim| file.extend(dim.to_le_bytes()));
        file.extend(u32::from(dtype.id()).to_le_bytes());
        file.extend((data.len() as u64).to_le_bytes());
        data.extend((0..*size).map(|i| u8::try_from(i % 59).expect("small")));
        data.resize(data.len().next_multiple_of(alignment), 0);
    }
    file.resize(file.len().next_multiple_of(alignment), 0);
    file.extend(data);
    file
}

/// Valid files; the malformed ones of `tests/data` are used besides.
fn ggufs() -> Vec<Seed> {
    let text = |key: &str, value: &str| pair(key, ValueKind::String, &string(value.as_bytes()));
    let number = |key: &str, value: u32| pair(key, ValueKind::U32, &value.to_le_bytes());
    let tokens = ["<s>", "</s>", "a", "b"].map(|token| string(token.as_bytes())).concat();
    let model = [
        text("general.architecture", "llama"),
        number("llama.block_count", 1),
        number("llama.embedding_length", 32),
        number("llama.attention.head_count", 2),
        number("llama.context_length", 16),
        pair("llama.attention.layer_norm_rms_epsilon", ValueKind::F32, &1e-5f32.to_le_bytes()),
        text("tokenizer.ggml.model", "llama"),
        array("tokenizer.ggml.tokens", ValueKind::String, 4, &tokens),
        array("tokenizer.ggml.scores", ValueKind::F32, 4, &[0; 16]),
        number("tokenizer.ggml.bos_token_id", 0),
    ];
    let weights: [(&str, DType, &[u64], usize); 5] = [
        ("token_embd.weight", DType::F16, &[32, 4], 256),
        ("blk.0.attn_norm.weight", DType::F32, &[32], 128),
        ("blk.0.attn_q.weight", DType::Q4_0, &[32, 32], 18 * 32),
        ("blk.0.ffn_down.weight", DType::Q8_0, &[64, 32], 34 * 64),
        ("output_norm.weight", DType::F32, &[32], 128),
    ];
    let aligned = [number("general.alignment", 64)];
    vec![
        ("one_layer", gguf(&model, &weights, 32)),
        ("alignment_64", gguf(&aligned, &weights[..2], 64)),
        ("q4_k_one_block", gguf(&model[..1], &[("blk.0.ffn_up.weight", DType::Q4_K, &[256], 144)], 32)),
        ("no_tensors", gguf(&model[..2], &[], 32)),
        ("zero_sized", gguf(&[], &[("a", DType::F32, &[0, 4], 0), ("b", DType::I8, &[3], 3)], 32)),
    ]
}

fn padded(mut section: Vec<u8>) -> Vec<u8> {
    section.resize(section.len().next_multiple_of(64), 0);
    section
}

fn q42t() -> Vec<Seed> {
    let tokens = ["<s>", "a", "b", "ab", "\u{120}t", ""];
    let version_1 = tokenizer(&tokens, &[("a", "b"), ("\u{120}", "t")], "gpt-2", 0, u32::MAX);
    let mut version_2 = version_1.clone();
    version_2[4] = 2;
    version_2.extend([2, 0, 0, 0]);
    version_2.extend([1u32, 3, 0, 0, 0, 0, 0, 0].map(u32::to_le_bytes).concat());
    vec![
        ("version_1", padded(version_1)),
        ("version_2_two_stops", padded(version_2)),
        ("no_merges", padded(tokenizer(&tokens, &[], "", 1, 2))),
        ("no_tokens", padded(tokenizer(&[], &[], "default", u32::MAX, u32::MAX))),
        ("bos_past_the_vocabulary", padded(tokenizer(&["a"], &[], "", 1, 0))),
    ]
}

fn containers() -> Vec<Seed> {
    let small = Assembly::small();
    let changed = |change: &dyn Fn(&mut Assembly)| {
        let mut assembly = small.clone();
        change(&mut assembly);
        assembly.build()
    };
    vec![
        ("small", small.build()),
        ("no_schedule", changed(&|a| a.flags &= !(1 << 6))),
        ("not_packed", changed(&|a| a.flags &= !(1 << 5))),
        ("no_tensors", changed(&|a| a.tensors.clear())),
        ("no_tokenizer", changed(&|a| a.tokenizer.clear())),
        ("duplicate_names", changed(&|a| a.tensors[1].name = a.tensors[0].name.clone())),
        ("page_of_4096", changed(&|a| a.page_size = 4096)),
        ("every_kernel_type", changed(&every_type)),
        ("version_5", version_5(small.build())),
    ]
}

/// After the byte that chooses the buffer's length; the other seeds of that target chose theirs by hand.
fn streams() -> Vec<Seed> {
    [("version_5", version_5(Assembly::small().build())), ("past_4_gib", past_4_gib())]
        .map(|(name, file)| (name, [vec![64], file].concat()))
        .into()
}

fn version_5(mut file: Vec<u8>) -> Vec<u8> {
    put_u16(&mut file, at::VERSION, 5);
    refix(&mut file);
    file
}

/// The small file with a last tensor of 2^32 bytes, all of which lie behind it.
fn past_4_gib() -> Vec<u8> {
    let mut assembly = Assembly::small();
    let layer = assembly.hparams[0];
    let huge = TensorSpec { source_offset: u64::MAX, ..TensorSpec::new("huge", 0xfffe, 24, layer, &[1 << 31, 2], 0) };
    assembly.tensors.push(huge);
    let mut file = assembly.build();
    let high = entry(&file, assembly.tensors.len() - 1, 60);
    put_u32(&mut file, high, 1);
    version_5(file)
}

/// One block of each type that has kernels.
fn every_type(assembly: &mut Assembly) {
    assembly.flags &= !(1 << 6);
    let types = DType::ALL.iter().filter(|dtype| is_supported(**dtype));
    let tensor = |dtype: &DType| {
        let block = dtype.block()?;
        let size = usize::try_from(block.bytes).expect("a block is small");
        Some(TensorSpec::new(dtype.name(), 0xfffe, dtype.id(), 2, &[block.elements], size))
    };
    assembly.tensors = types.filter_map(tensor).collect();
    // Ternary has no blocks: one scale, then five digits a byte.
    assembly.tensors.push(TensorSpec::new("ternary", 0xfffe, DType::Ternary.id(), 2, &[7], 6));
    assembly.flags |= 0b1100;
}

/// The keys of conformance models, one for each way in which families differ.
fn models() -> Vec<Seed> {
    let names = [
        "bitnet-sub-norms",
        "cohere2-window-8",
        "command-r-q8_0",
        "gemma2-soft-caps-window-8",
        "gemma3-untied-own-local-base",
        "gpt2-tied",
        "granitemoe-one-shared",
        "llama-grouped-heads",
        "llama-longrope-long",
        "llama-yarn",
        "mixtral-two-of-five-experts",
        "olmo2-pattern-as-a-list",
        "phi3-longrope-short",
        "qwen2moe-three-of-seven-one-shared",
        "qwen3-head-norms",
    ];
    (0..).zip(names).map(|(index, name)| (name, model(&Recipe::load(name), index))).collect()
}

/// Choices that differ from seed to seed, and the keys.
fn model(recipe: &Recipe, index: u8) -> Vec<u8> {
    let mut pairs = vec![pair("general.architecture", ValueKind::String, &string(recipe.arch.as_bytes()))];
    for KeyRow(name, kind, value) in &recipe.keys {
        let number = u32::try_from(value.as_u64().unwrap_or(0)).expect("32 bits");
        let bools = value.as_array().into_iter().flatten().map(|one| u8::from(one.as_bool() == Some(true)));
        #[expect(clippy::cast_possible_truncation, reason = "a seed's constant may be rounded")]
        let float = value.as_f64().unwrap_or(0.0) as f32;
        pairs.push(match kind.as_str() {
            "u32" => pair(name, ValueKind::U32, &number.to_le_bytes()),
            "f32" => pair(name, ValueKind::F32, &float.to_le_bytes()),
            "bool" => pair(name, ValueKind::Bool, &[u8::from(value.as_bool() == Some(true))]),
            "str" => pair(name, ValueKind::String, &string(value.as_str().unwrap_or_default().as_bytes())),
            "bools" => {
                let bools: Vec<u8> = bools.collect();
                array(name, ValueKind::Bool, bools.len() as u64, &bools)
            }
            other => panic!("a recipe names the kind {other}"),
        });
    }
    [&[index, index, index % 2, 0, 31, 0, 0, 0], area(&pairs).as_slice()].concat()
}

/// One vocabulary of each model, with a text.
fn tokenizers() -> Vec<Seed> {
    let text = |key: &str, value: &str| pair(key, ValueKind::String, &string(value.as_bytes()));
    let id =
        |key: &str, value: u32| pair(&format!("tokenizer.ggml.{key}_token_id"), ValueKind::U32, &value.to_le_bytes());
    let strings = |key: &str, values: &[&str]| {
        let bytes = values.iter().map(|value| string(value.as_bytes())).collect::<Vec<_>>().concat();
        array(key, ValueKind::String, values.len() as u64, &bytes)
    };
    let vocabulary = |model: &str, tokens: &[&str], types: &[i32]| {
        let count = tokens.len() as u64;
        let scores: Vec<u8> =
            (0..count).flat_map(|id| (-(u8::try_from(id % 256).map_or(0.0, f32::from))).to_le_bytes()).collect();
        let types: Vec<u8> = types.iter().flat_map(|kind| kind.to_le_bytes()).collect();
        vec![
            text("tokenizer.ggml.model", model),
            strings("tokenizer.ggml.tokens", tokens),
            array("tokenizer.ggml.scores", ValueKind::F32, count, &scores),
            array("tokenizer.ggml.token_type", ValueKind::I32, count, &types),
        ]
    };
    let seed = |pairs: &[Vec<u8>], input: &str| {
        let area = area(pairs);
        [&u16::try_from(area.len()).expect("a small vocabulary").to_le_bytes(), area.as_slice(), input.as_bytes()]
            .concat()
    };
    let letters = [
        "<unk>",
        "<s>",
        "</s>",
        "a",
        "b",
        "ab",
        "\u{2581}",
        "\u{2581}a",
        "\u{2581}ab",
        "##b",
        "[SEP]",
        "1",
        "\u{120}a",
    ];
    let types = [2, 3, 3, 1, 1, 1, 1, 1, 4, 1, 3, 1, 1];
    let bpe = |model: &str, pre: &str| {
        let mut pairs = vocabulary(model, &letters, &types);
        pairs.push(text("tokenizer.ggml.pre", pre));
        pairs.push(strings("tokenizer.ggml.merges", &["a b", "\u{120} a", "ab 1"]));
        pairs
    };
    let with = |model: &str, more: &[Vec<u8>]| [vocabulary(model, &letters, &types).as_slice(), more].concat();
    let map: Vec<u8> = [1024u32, 256 << 10]
        .into_iter()
        .chain((1u32..256).map(|i| if i == 0x61 { 1 << 8 | 0x61 } else { 1 << 31 }))
        .flat_map(u32::to_le_bytes)
        .chain(*b"xy\0\0")
        .collect();
    let map = array("tokenizer.ggml.precompiled_charsmap", ValueKind::U8, map.len() as u64, &map);
    let bytes: Vec<String> =
        (0..256).map(|byte| format!("<0x{byte:02X}>")).chain(["<unk>", "ab", "a"].map(String::from)).collect();
    let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
    let byte_types: Vec<i32> = (0..bytes.len()).map(|id| if id < 256 { 6 } else { 1 }).collect();
    let input = "ab abc\u{e9}  1234567's\n\t\u{2581}\u{4e00}<s>[SEP]";
    vec![
        ("bpe_gpt2", seed(&bpe("gpt2", "gpt-2"), input)),
        ("bpe_llama3", seed(&bpe("gpt2", "llama-bpe"), input)),
        ("bpe_digits", seed(&bpe("gpt2", "afmoe"), input)),
        ("bpe_powers", seed(&bpe("gpt2", "jais-2"), "a                      b")),
        ("bpe_characters", seed(&bpe("gemma4", ""), input)),
        ("dna", seed(&bpe("hybriddna", "gpt-2"), "a<dna>ACGTACG</dna>b")),
        ("whitespace", seed(&bpe("whitespace", "whitespace"), input)),
        ("spm", seed(&with("llama", &[id("unknown", 0), id("bos", 1)]), input)),
        ("wordpiece", seed(&with("bert", &[id("unknown", 0), id("seperator", 10), id("bos", 1)]), input)),
        ("unigram", seed(&with("t5", &[id("unknown", 0), map]), input)),
        ("rwkv", seed(&with("rwkv", &[id("unknown", 0)]), input)),
        ("plamo", seed(&vocabulary("plamo2", &bytes, &byte_types), input)),
    ]
}
