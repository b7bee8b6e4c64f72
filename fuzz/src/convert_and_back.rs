//! A GGUF through a container and back: what converts is a strict P64 with the source's tensors, and comes back either as
//! the very same bytes or with a report that says it did not. What does not convert leaves nothing behind.

use p64_core::Container;
use p64_core::validate::{Integrity, OpenOptions, Policy, Storage};
use p64_std::convert::{ConvertOptions, check_parity, convert_gguf};
use p64_std::export::export_gguf;
use p64_std::gguf::Gguf;
use std::path::Path;
use std::{env, fs};

/// The target's body.
pub fn run(data: &[u8]) {
    // Files in memory where the system has such a folder: syncing them to a disk would be most of the time.
    let shared_memory = Path::new("/dev/shm");
    let parent = if shared_memory.is_dir() { shared_memory.to_owned() } else { env::temp_dir() };
    let folder = tempfile::tempdir_in(parent).expect("a temporary folder");
    let path = |name| folder.path().join(name);
    let (source, container, back) = (path("source.gguf"), path("container.p64"), path("back.gguf"));
    fs::write(&source, data).expect("writable");

    let accepted = Gguf::parse(data).is_ok();
    // Small pages keep the files small.
    let options = ConvertOptions { page_size: 256, ..ConvertOptions::default() };
    match convert_gguf(&source, &container, &options, &mut |_| ()) {
        Ok(_) => assert!(accepted, "converted what the reader refuses"),
        Err(_) => {
            assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1, "a failed conversion left a file");
            return;
        }
    }
    check_strict(&fs::read(&container).expect("there"));
    let parity = check_parity(&source, &container, &mut |_| ()).expect("both open");
    assert!(parity.is_equal(), "{:?}", parity.differences);

    let report = export_gguf(&container, &back, &mut |_| ()).expect("what was converted can be exported");
    let returned = fs::read(&back).expect("there");
    assert_eq!(report.identical, Some(returned == data), "the report is wrong about what came back");
    let (first, second) = (Gguf::parse(data).expect("accepted"), Gguf::parse(&returned).expect("ours is well-formed"));
    assert_eq!(first.tensors(), second.tensors());
    assert_eq!(first.metadata().pair_bytes(), second.metadata().pair_bytes());
}

fn check_strict(file: &[u8]) {
    let options = OpenOptions { policy: Policy::Strict, integrity: Integrity::Full, ..OpenOptions::default() };
    let opened = Container::open_with(file, &options, Storage::default(), &mut |_| ());
    opened.expect("the writer's files are strict");
}
