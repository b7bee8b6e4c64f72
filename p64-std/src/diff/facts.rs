//! What a file says of itself beside tensors and keys.

use crate::map::MappedSet;
use crate::source::OpenSource;
use p64_core::{Container, Role};

/// Something of the file's make-up that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fact {
    /// What it is.
    pub name: &'static str,
    /// Of the first file, where it has such a thing.
    pub a: Option<String>,
    /// Of the second.
    pub b: Option<String>,
}

/// The facts that differ.
pub(super) fn compare(a: &OpenSource, b: &OpenSource) -> Vec<Fact> {
    let (left, mut right) = (of(a), of(b));
    let mut facts = Vec::new();
    for (name, a) in left {
        let b = right.iter().position(|(other, _)| *other == name).map(|at| right.remove(at).1);
        facts.push(Fact { name, a: Some(a), b });
    }
    facts.extend(right.into_iter().map(|(name, b)| Fact { name, a: None, b: Some(b) }));
    facts.retain(|fact| fact.a != fact.b);
    facts
}

type Facts = Vec<(&'static str, String)>;

fn of(source: &OpenSource) -> Facts {
    match source {
        OpenSource::Gguf(set) => {
            let (version, alignment) =
                set.parts().first().map_or((0, 0), |part| (part.gguf().version(), part.gguf().alignment()));
            vec![
                ("format", "GGUF".to_owned()),
                ("version", version.to_string()),
                ("files", set.parts().len().to_string()),
                ("bytes", set.file_len().to_string()),
                ("tensors", set.tensors().count().to_string()),
                ("alignment", alignment.to_string()),
            ]
        }
        OpenSource::P64(set) => set.parts().first().map_or_else(Vec::new, |part| of_container(set, part.container())),
        OpenSource::Safetensors(set) => vec![
            ("format", "safetensors".to_owned()),
            ("files", set.files().len().to_string()),
            ("bytes", set.file_len().to_string()),
            ("tensors", set.tensors().count().to_string()),
        ],
    }
}

/// `first` is the file that stands for what all files of the set have in common.
fn of_container(set: &MappedSet, first: &Container<'_>) -> Facts {
    let (header, hparams) = (first.header(), first.hparams());
    let own = set.tensors().count();
    let yes_no = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let mut facts = vec![
        ("format", "P64".to_owned()),
        ("version", header.version.get().to_string()),
        ("files", set.parts().len().to_string()),
        ("bytes", set.file_len().to_string()),
        ("tensors", own.to_string()),
        ("page size", header.page_size.get().to_string()),
        ("flags", first.flags().names().collect::<Vec<_>>().join(" ")),
        ("layer schedule", yes_no(first.has_schedule())),
        ("layers", hparams.n_layer.get().to_string()),
        ("width", hparams.n_embd.get().to_string()),
        ("heads", hparams.n_head.get().to_string()),
        ("key/value heads", hparams.n_kv_head.get().to_string()),
        ("vocabulary", hparams.vocab_size.get().to_string()),
    ];
    if let Some(tokenizer) = set.tokenizer() {
        let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
        let mut add = |text: &str| {
            digest.update(text.as_bytes());
            digest.update(&[0]);
        };
        tokenizer.tokens().for_each(&mut add);
        tokenizer.merges().for_each(|(left, right)| {
            add(left);
            add(right);
        });
        let (tokens, merges) = (tokenizer.token_count(), tokenizer.merge_count());
        facts.push(("tokenizer", format!("{tokens} tokens, {merges} merges, CRC-32C {:08x}", digest.finalize())));
    }
    facts
}

/// Layer and role of each of a container's own tensors, in the order of [`OpenSource::tensors`]; empty for other formats.
pub(super) fn placements(source: &OpenSource) -> Vec<(u32, Role)> {
    match source {
        OpenSource::P64(mapped) => {
            mapped.tensors().map(|found| (found.info.manifold_idx(), found.info.role())).collect()
        }
        OpenSource::Gguf(_) | OpenSource::Safetensors(_) => Vec::new(),
    }
}
