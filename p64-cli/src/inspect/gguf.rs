//! A GGUF, described.

use super::{Model, Report, Section, Space, Tensor, Tokenizer, layers::Layers, type_shares, values};
use p64_core::Role;
use p64_core::metadata::{Metadata, Value};
use p64_std::gguf::Gguf;
use serde_json::json;
use std::path::Path;

/// Everything there is to say about a GGUF.
pub fn describe(path: &Path, gguf: &Gguf<'_>, full: bool) -> Report {
    let metadata = gguf.metadata();
    let mut layers = Layers::default();
    let mut tensors = Vec::new();
    for (index, tensor) in (0u32..).zip(gguf.tensors()) {
        let role = Role::from_gguf_name(tensor.name).map(|(role, _)| role);
        let layer = layer_of(tensor.name);
        let extent = gguf.extent(tensor);
        layers.add(0, layer, extent, role);
        tensors.push(Tensor {
            index,
            name: tensor.name.to_owned(),
            role: role.map(|role| role.to_string()),
            layer,
            dtype: tensor.dtype.to_string(),
            shape: tensor.shape.dims().iter().copied().map(u64::from).collect(),
            file: None,
            offset: extent.start(),
            bytes: extent.len(),
            crc32c: None,
        });
    }
    let all = || gguf.tensors().iter();
    let shares = all().map(|tensor| (tensor.dtype, tensor.shape.elements().unwrap_or(0), tensor.size));
    let payload = all().map(|tensor| tensor.size).fold(0, u64::saturating_add);
    let front = gguf.info_end();
    let space = Space {
        front,
        payload,
        page_padding: 0,
        other_padding: gguf.file_len().saturating_sub(front).saturating_sub(payload),
    };
    Report {
        path: path.display().to_string(),
        format: "gguf",
        version: Some(gguf.version()),
        bytes: gguf.file_len(),
        header: [
            ("alignment", json!(gguf.alignment())),
            ("tensor_count", json!(gguf.tensors().len())),
            ("key_count", json!(metadata.len())),
            ("data_offset", json!(gguf.data_offset())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect(),
        model: Model {
            parameters: all().filter_map(|tensor| tensor.shape.elements()).fold(0, u64::saturating_add),
            ..model(&metadata)
        },
        padding: space.padding(),
        space,
        warnings: Vec::new(),
        sections: sections(gguf),
        files: Vec::new(),
        types: type_shares(shares),
        layers: layers.finish(),
        tensors,
        metadata: values::keys(&metadata, full),
        provenance: Vec::new(),
    }
}

fn layer_of(name: &str) -> Option<u32> {
    name.strip_prefix("blk.")?.split_once('.')?.0.parse().ok()
}

fn sections(gguf: &Gguf<'_>) -> Vec<Section> {
    const HEADER: u64 = 24;
    let metadata = gguf.metadata();
    let keys = metadata.pair_bytes().len() as u64;
    let table = HEADER + keys;
    let count = Some(gguf.tensors().len() as u64);
    let (info_end, data) = (gguf.info_end(), gguf.data_offset());
    vec![
        Section { name: "header", offset: 0, bytes: HEADER, records: None },
        Section { name: "keys", offset: HEADER, bytes: keys, records: Some(metadata.len().into()) },
        Section { name: "tensor table", offset: table, bytes: info_end.saturating_sub(table), records: count },
        Section { name: "data", offset: data, bytes: gguf.file_len().saturating_sub(data), records: count },
    ]
}

/// What the key-value area says of the model, one pass over it.
pub fn model(metadata: &Metadata<'_>) -> Model {
    let mut model = Model::default();
    let text = |value: Value<'_>| value.as_str().map(str::to_owned);
    model.architecture = metadata.get("general.architecture").and_then(text);
    let prefix = model.architecture.as_ref().map_or_else(String::new, |name| format!("{name}."));
    let mut tokenizer = Tokenizer { model: None, pre: None, tokens: 0, merges: 0, bos: None, eos: None, add_bos: None };
    let len = |value: Value<'_>| value.as_array().map_or(0, |array| array.len());
    for (key, value) in metadata.iter() {
        match key {
            "general.name" => model.name = text(value),
            "tokenizer.ggml.model" => tokenizer.model = text(value),
            "tokenizer.ggml.pre" => tokenizer.pre = text(value),
            "tokenizer.ggml.tokens" => tokenizer.tokens = len(value),
            "tokenizer.ggml.merges" => tokenizer.merges = len(value),
            "tokenizer.ggml.bos_token_id" => tokenizer.bos = value.as_u64(),
            "tokenizer.ggml.eos_token_id" => tokenizer.eos = value.as_u64(),
            "tokenizer.ggml.add_bos_token" => tokenizer.add_bos = value.as_bool(),
            _ => match key.strip_prefix(&prefix) {
                Some("block_count") => model.n_layer = value.as_u64(),
                Some("embedding_length") => model.n_embd = value.as_u64(),
                Some("attention.head_count") => model.n_head = value.as_u64(),
                Some("attention.head_count_kv") => model.n_kv_head = value.as_u64(),
                Some("context_length") => model.context_length = value.as_u64(),
                Some("vocab_size") => model.vocabulary = value.as_u64(),
                _ => {}
            },
        }
    }
    if tokenizer.tokens > 0 {
        model.vocabulary = model.vocabulary.or(Some(tokenizer.tokens));
        model.tokenizer = Some(tokenizer);
    }
    model
}
