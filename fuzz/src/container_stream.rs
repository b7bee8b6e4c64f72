//! A P64 file through reads: the same verdict, warnings and content as from a slice, whatever the buffer's length. And the
//! same bytes as the front of a file past 4 GiB, which no slice of the fuzzer's could hold.

use p64_core::stream::StreamContainer;
use p64_core::validate::{Integrity, OpenOptions, Policy, Storage};
use p64_core::{Error, Result};
use p64_tests::agree;
use p64_tests::far::Far;
use p64_tests::mutate::refix;

/// The target's body. The first byte chooses the buffer's length, the rest is the file.
pub fn run(data: &[u8]) {
    let Some((choice, file)) = data.split_first() else { return };
    let buffer = 64 + 3 * usize::from(*choice);
    agree::check(file, &[buffer]);
    let mut fixed = file.to_vec();
    refix(&mut fixed);
    if fixed != file {
        agree::check(&fixed, &[buffer]);
    }
    for front in [file, fixed.as_slice()] {
        for policy in [Policy::Strict, Policy::Compatible] {
            let _ = far(front, policy, buffer);
        }
    }
}

/// Bytes behind the input in the file past 4 GiB: those of one large tensor, whose seed is `past_4_gib`.
pub const BEHIND: u64 = 1 << 32;
/// Enough to check all of an input several times, too little to look through 4 GiB of padding.
const BUDGET: u64 = 1 << 22;

/// Opens the file past 4 GiB that begins with `front`, lazily, and asks it what it holds.
///
/// # Errors
/// Why it does not open, which may be that it took more reading than a fuzzer has time for.
pub fn far(front: &[u8], policy: Policy, buffer: usize) -> Result<u32> {
    let len = BEHIND.saturating_add(front.len() as u64);
    let options = OpenOptions { policy, integrity: Integrity::Lazy, ..OpenOptions::default() };
    let mut buffer = vec![0; buffer];
    let mut name = vec![0; 65_535];
    let reader = Far::new(front, len).within(BUDGET);
    let mut container = StreamContainer::open(reader, &mut buffer, Storage::default(), &options, &mut |_: Error| ())?;
    assert_eq!(container.header().version.get(), 5, "another version passes 4 GiB");
    for index in 0..container.tensor_count() {
        let tensor = container.tensor(index)?;
        assert!(tensor.extent().end() <= len && tensor.extent().start() >= container.sections().blob_floor);
        container.name(&tensor, &mut name)?;
    }
    for layer in 0..=container.n_layer() {
        assert!(container.layer(layer)?.extent.end() <= len);
    }
    Ok(container.tensor_count())
}
