//! llama.cpp's results, as `tests/data/llama/README.md` describes them.

use p64_tests::data::data;
use serde::Deserialize;
use std::fs;

/// One prompt and its greedy continuation.
#[derive(Deserialize)]
pub struct Case {
    pub prompt_ids: Vec<u32>,
    pub gen_ids: Vec<u32>,
    pub top1_logit: Vec<f32>,
    pub top1_top2_margin: Vec<f32>,
    pub first_logits_top20: Vec<Top>,
    pub first_logits_file: Option<String>,
}

/// One of the twenty largest logits of the first position.
#[derive(Deserialize)]
pub struct Top {
    pub id: u32,
    pub logit: f32,
}

/// One intermediate of the first prompt.
#[derive(Deserialize)]
pub struct Probe {
    pub name: String,
    pub op: String,
    /// Dimensions, contiguous one first.
    pub ne: Vec<usize>,
    pub sum: f64,
    pub l2: f64,
    pub last_row_head16: Vec<f32>,
}

#[derive(Deserialize)]
struct Generated {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Probes {
    prompt_ids: Vec<u32>,
    probes: Vec<Probe>,
}

fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = data("llama").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The five prompts of a model in one of llama.cpp's variants: `deq-f32`, `repack0`, `repack1`.
pub fn cases(model: &str, variant: &str) -> Vec<Case> {
    read::<Generated>(&format!("gen_{model}.{variant}.json")).cases
}

/// The first prompt's tokens and intermediates, over weights de-quantised to F32.
pub fn probes(model: &str) -> (Vec<u32>, Vec<Probe>) {
    let probes: Probes = read(&format!("probe_{model}.deq-f32.json"));
    (probes.prompt_ids, probes.probes)
}

impl Case {
    /// All logits of the first position, where they are kept.
    pub fn first_logits(&self) -> Option<Vec<f32>> {
        let bytes = fs::read(data("llama").join(self.first_logits_file.as_ref()?)).ok()?;
        Some(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}
