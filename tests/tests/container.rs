//! The container on a small valid file: what it says, and that no damaged copy of the file is taken for it.

use p64_core::layout::flags::Flags;
use p64_core::validate::{Integrity, NameSlot, OpenOptions, Policy, Storage};
use p64_core::{Code, Container, DType, Error, Role};
use p64_tests::assemble::Assembly;
use std::sync::atomic::AtomicU8;

fn strict(integrity: Integrity) -> OpenOptions {
    OpenOptions { policy: Policy::Strict, integrity, ..OpenOptions::default() }
}

fn open(file: &[u8], options: &OpenOptions) -> Result<(), Error> {
    let mut names = [NameSlot::default(); 32];
    let mut verified = [const { AtomicU8::new(0) }; 32];
    let storage = Storage { names: &mut names, verified: &mut verified };
    Container::open_with(file, options, storage, &mut |_| ())?.verify_all()
}

#[test]
fn the_small_file_is_strictly_valid_and_says_what_was_put_in() {
    let assembly = Assembly::small();
    let file = assembly.build();
    for integrity in [Integrity::Full, Integrity::Lazy] {
        open(&file, &strict(integrity)).expect("valid");
    }
    let mut warnings = Vec::new();
    let container = Container::open_with(&file, &OpenOptions::default(), Storage::default(), &mut |w| warnings.push(w))
        .expect("valid");
    assert_eq!(warnings, []);
    assert_eq!(container.tensor_count() as usize, assembly.tensors.len());
    for (info, spec) in container.tensors().zip(&assembly.tensors) {
        assert_eq!(info.name().as_bytes(), spec.name);
        assert_eq!(info.role().id(), spec.role);
        assert_eq!(info.dtype().id(), spec.dtype);
        assert_eq!(info.shape().dims(), spec.dims);
        assert_eq!(info.source_offset(), spec.source_offset);
        assert_eq!(container.tensor(&info).expect("verified").bytes(), spec.bytes);
    }
    assert!(container.flags().contains(Flags::LAYER_SCHEDULE));
    let metadata = container.metadata().expect("well-formed").expect("there");
    assert_eq!(metadata.str("general.architecture"), Ok(Some("test")));
    assert_eq!(container.tokenizer().expect("there").tokens().collect::<Vec<_>>(), ["<s>", "a", "b", "ab"]);
}

#[test]
fn tensors_are_found_every_way() {
    let file = Assembly::small().build();
    let mut names = [NameSlot::default(); 16];
    let storage = Storage { names: &mut names, verified: &mut [] };
    let indexed = Container::open_with(&file, &OpenOptions::default(), storage, &mut |_| ()).expect("valid");
    let plain = Container::open(&file).expect("valid");
    for container in [indexed, plain] {
        for info in container.tensors() {
            assert_eq!(container.find(info.name()), Some(info));
            assert_eq!(container.find_source_hash(info.source_name_hash()), Some(info));
        }
        assert_eq!(container.find("blk.9.attn_q.weight"), None);
        assert_eq!(container.find(""), None);
        let q = container.find_role(Role::AttnQ, 1).expect("there");
        assert_eq!((q.name(), q.dtype()), ("blk.1.attn_q.weight", DType::Q8_0));
        assert_eq!(container.find_role(Role::TokenEmbd, 2).map(|info| info.name()), Some("token_embd.weight"));
        assert_eq!(container.find_role(Role::AttnQ, 2), None);
    }
}

#[test]
fn layers_from_the_schedule_equal_layers_computed() {
    let mut assembly = Assembly::small();
    let scheduled = assembly.build();
    assembly.flags &= !(1 << 6);
    let plain = assembly.build();
    let (scheduled, plain) = (Container::open(&scheduled).expect("valid"), Container::open(&plain).expect("valid"));
    assert!(scheduled.has_schedule() && !plain.has_schedule());
    for (a, b) in scheduled.layers().zip(plain.layers()) {
        assert_eq!((a.layer, a.tensor_count, a.roles_mask), (b.layer, 3, b.roles_mask));
        assert_eq!(a.extent.len(), b.extent.len());
        assert!(a.has(Role::AttnQ) && !a.has(Role::AttnV));
    }
    assert_eq!(scheduled.layers().count(), 2);
    assert_eq!(scheduled.layer_tensors(2).count(), 6);
}

/// Every bit of every byte, in both integrity modes; lazy files are refused at the latest when all tensors are touched.
#[test]
fn every_one_bit_flip_is_rejected() {
    let original = Assembly::small().build();
    for integrity in [Integrity::Full, Integrity::Lazy] {
        let options = strict(integrity);
        let mut file = original.clone();
        for at in 0..file.len() {
            for bit in 0..8 {
                file[at] ^= 1 << bit;
                assert!(open(&file, &options).is_err(), "bit {bit} of byte {at} was flipped unseen ({integrity:?})");
                file[at] ^= 1 << bit;
            }
        }
        assert_eq!(file, original);
    }
}

#[test]
fn every_truncation_and_extension_is_rejected() {
    let file = Assembly::small().build();
    for integrity in [Integrity::Full, Integrity::Lazy] {
        for len in 0..file.len() {
            assert!(open(&file[..len], &strict(integrity)).is_err(), "{len} of {} bytes", file.len());
        }
        for extra in [1, 63, 64, 4096] {
            let longer = [file.as_slice(), &vec![0; extra]].concat();
            assert_eq!(open(&longer, &strict(integrity)).expect_err("too long").code, Code::FileLength);
        }
    }
}

/// A flipped blob: the lazy container opens, gives every other tensor, and never this one.
#[test]
fn a_damaged_tensor_is_never_handed_out() {
    let mut file = Assembly::small().build();
    let damaged = {
        let container = Container::open(&file).expect("valid");
        container.find("blk.1.attn_q.weight").expect("there").extent()
    };
    file[usize::try_from(damaged.start()).expect("small") + 50] ^= 4;
    assert_eq!(Container::open(&file).expect_err("damaged").code, Code::TensorChecksum);

    let mut verified = [const { AtomicU8::new(0) }; 16];
    let storage = Storage { names: &mut [], verified: &mut verified };
    let container = Container::open_with(&file, &strict(Integrity::Lazy), storage, &mut |_| ()).expect("opens");
    for _ in 0..2 {
        for info in container.tensors() {
            let taken = container.tensor(&info);
            assert_eq!(taken.is_err(), info.extent() == damaged, "{}", info.name());
        }
    }
}

/// An info of one file is no key to another one's bytes.
#[test]
fn a_foreign_info_is_refused() {
    let file = Assembly::small().build();
    let mut other = Assembly::small();
    other.tensors[1].name = b"blk.0.attn_x.weight".to_vec();
    let other = other.build();
    let (here, there) = (Container::open(&file).expect("valid"), Container::open(&other).expect("valid"));
    let info = there.info(1).expect("there");
    assert_eq!(here.tensor(&info).expect_err("foreign").code, Code::NoSuchTensor);
}

#[test]
fn a_file_without_tensors() {
    let mut assembly = Assembly::small();
    assembly.tensors.clear();
    let file = assembly.build();
    let container = Container::open_with(&file, &strict(Integrity::Full), Storage::default(), &mut |_| ());
    assert_eq!(container.expect("valid").tensors().count(), 0);
}

/// 100,000 crafted collisions would be quadratic; the limit says so instead.
#[test]
fn many_tensors_need_an_index() {
    let mut assembly = Assembly::small();
    assembly.flags = 0b10_0001;
    assembly.tensors =
        (0..5000).map(|i| p64_tests::assemble::TensorSpec::new(&format!("t{i}"), 0xfffe, 24, 2, &[0], 0)).collect();
    let file = assembly.build();
    let error = Container::open(&file).expect_err("no index");
    assert_eq!((error.code, error.found), (Code::TooManyTensors, 5000));
    let mut names = vec![NameSlot::default(); 5000];
    let storage = Storage { names: &mut names, verified: &mut [] };
    let container = Container::open_with(&file, &strict(Integrity::Full), storage, &mut |_| ()).expect("valid");
    assert_eq!(container.find("t4999").map(|info| info.index()), Some(4999));
}

/// Memory that served one file must not vouch for the next one.
#[test]
fn used_memory_verifies_nothing() {
    let good = Assembly::small().build();
    let mut bad = good.clone();
    let at = Container::open(&good).expect("valid").find("token_embd.weight").expect("there").extent().start();
    bad[usize::try_from(at).expect("small")] ^= 1;
    let mut verified = [const { AtomicU8::new(0) }; 16];
    for (file, passes) in [(&good, true), (&bad, false)] {
        let storage = Storage { names: &mut [], verified: &mut verified };
        let container = Container::open_with(file, &strict(Integrity::Lazy), storage, &mut |_| ()).expect("opens");
        assert_eq!(container.verify_all().is_ok(), passes);
    }
}

/// 5,000 names that are all the same 60,000 bytes would cost a scan of them each: 300 MB for a file of 400 KB.
#[test]
fn names_that_share_bytes_are_bounded() {
    let mut assembly = Assembly::small();
    assembly.flags = 0b10_0001;
    let tensor = |name: String| p64_tests::assemble::TensorSpec::new(&name, 0xfffe, 24, 2, &[0], 0);
    assembly.tensors = (0..5000).map(|i| tensor(if i == 0 { "n".repeat(60_000) } else { format!("t{i}") })).collect();
    let mut file = assembly.build();
    let mut names = vec![NameSlot::default(); 5000];
    for (shared, passes) in [(1, true), (2, true), (5000, false)] {
        for index in 0..shared {
            let at = p64_tests::mutate::entry(&file, index, 0);
            p64_tests::mutate::put_u32(&mut file, at, 1);
        }
        p64_tests::mutate::refix(&mut file);
        let storage = Storage { names: &mut names, verified: &mut [] };
        let opened = Container::open_with(&file, &OpenOptions::default(), storage, &mut |_| ());
        // Two of them and the other names stay within the table and one longest name.
        assert_eq!(opened.err().map(|error| error.code), (!passes).then_some(Code::NameOrder), "{shared} share");
    }
}

/// Layers summed up in one pass equal layers summed up one by one, whether the table goes layer by layer or not.
#[test]
fn layers_equal_each_layer() {
    let mut assembly = Assembly::small();
    assembly.flags = 0b10_0001;
    assembly.hparams[0] = 4;
    for (order, grouped) in [([0, 0, 3, 3, 1, 4], false), ([0, 4, 0, 1, 4, 3], true)] {
        for (tensor, layer) in assembly.tensors.iter_mut().zip(order.into_iter().chain([4; 6])) {
            tensor.layer = layer;
        }
        let file = assembly.build();
        let container = Container::open(&file).expect("valid");
        let each: Vec<_> = (0..4).map(|layer| container.layer(layer).expect("there")).collect();
        assert_eq!(container.layers().collect::<Vec<_>>(), each, "grouped: {grouped}");
        assert_eq!(each.iter().map(|unit| unit.tensor_count).sum::<u32>(), if grouped { 4 } else { 5 });
        assert!(each[2].extent.is_empty() && each[2].tensor_count == 0);
    }
}
