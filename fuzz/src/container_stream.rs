//! A P64 file through reads: the same verdict, warnings and content as from a slice, whatever the buffer's length.

use p64_tests::agree;
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
}
