//! A P64 file: the two policies and the two integrity modes agree as they promise, and what opens can be walked to its end.
//!
//! Random changes break a checksum first, so each input is tried as it stands and once more with its checksums put right.

use p64_core::validate::{Integrity, NameSlot, OpenOptions, Policy, Storage};
use p64_core::{Container, Error, Result};
use p64_tests::mutate::refix;
use std::sync::atomic::AtomicU8;

/// The target's body.
pub fn run(data: &[u8]) {
    check(data);
    let mut fixed = data.to_vec();
    refix(&mut fixed);
    if fixed != data {
        check(&fixed);
    }
}

fn check(file: &[u8]) {
    let outcome = [Policy::Strict, Policy::Compatible].map(|policy| {
        let mut warnings = Vec::new();
        let full = open(file, policy, Integrity::Full, &mut warnings);
        let lazy = open(file, policy, Integrity::Lazy, &mut Vec::new());
        assert_eq!(full, lazy, "full and lazy disagree under {policy:?}");
        full.map(|()| warnings)
    });
    if let [Ok(strict), compatible] = outcome {
        assert_eq!(Ok(strict), compatible, "a strict file is more than a compatible one");
    }
}

/// Opens, with and without a name index, and touches everything.
fn open(file: &[u8], policy: Policy, integrity: Integrity, warnings: &mut Vec<Error>) -> Result<()> {
    let options = OpenOptions { policy, integrity, ..OpenOptions::default() };
    let tensors = file.len() / 64;
    let mut names = vec![NameSlot::default(); tensors];
    let mut verified: Vec<_> = (0..tensors).map(|_| AtomicU8::new(0)).collect();
    let indexed = Storage { names: &mut names, verified: &mut verified };

    let plain = Container::open_with(file, &options, Storage::default(), &mut |_| ());
    let container = match Container::open_with(file, &options, indexed, &mut |warning| warnings.push(warning)) {
        Ok(container) => container,
        Err(error) => {
            // Another name may be the first to be called a duplicate, so only the code is the same.
            assert_eq!(plain.map(|_| ()).map_err(|e| e.code), Err(error.code), "the name index changes the verdict");
            return Err(error);
        }
    };
    let plain = plain.expect("opens without a name index too");
    container.verify_all()?;
    walk(&container, &plain);
    Ok(())
}

fn walk(container: &Container<'_>, plain: &Container<'_>) {
    assert_eq!(container.tensors().count(), container.tensor_count() as usize);
    let mut row = Vec::new();
    for info in container.tensors() {
        assert!(info.extent().end() <= container.file_len());
        let found = container.find(info.name()).expect("a listed name is found");
        assert_eq!(found.name(), info.name());
        assert_eq!(Some(found), plain.find(info.name()), "the name index finds another tensor");
        container.find_role(info.role(), info.manifold_idx()).expect("a listed role is found");
        let tensor = container.tensor(&info).expect("verified a moment ago");
        assert_eq!(tensor.bytes().len() as u64, info.extent().len());
        if let Ok(matrix) = tensor.matrix()
            && matrix.rows() > 0
        {
            row.resize(matrix.cols(), 0.0);
            // Only ternary digits can be bad here; whatever it says, it must not panic.
            let _ = matrix.dequantize_row(matrix.rows() - 1, &mut row);
        }
    }
    let in_layers: u64 = (0..=container.n_layer()).map(|layer| container.layer_tensors(layer).count() as u64).sum();
    assert_eq!(in_layers, u64::from(container.tensor_count()), "a tensor belongs to no layer");
    assert_eq!(container.layers().count(), container.n_layer() as usize);
    assert!(container.manifold(container.n_layer()).is_some());
    if let Some(tokenizer) = container.tokenizer() {
        assert_eq!(tokenizer.tokens().count(), tokenizer.token_count() as usize);
    }
    let _ = (container.metadata().is_ok(), container.provenance().is_ok());
}
