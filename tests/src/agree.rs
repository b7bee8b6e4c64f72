//! Validation of a slice and through reads: the same verdict, at the same place, after the same warnings.

use p64_core::Container;
use p64_core::stream::{ReadAt, ReadFault, StreamContainer};
use p64_core::validate::{Integrity, NameSlot, OpenOptions, Policy, Storage};
use std::sync::atomic::AtomicU8;

/// A reader that counts, and refuses ranges past the end as a flash driver does.
#[derive(Debug)]
pub struct Flash<'f> {
    /// The whole file.
    pub file: &'f [u8],
    /// Reads so far.
    pub reads: usize,
    /// Longest read so far.
    pub longest: usize,
}

impl<'f> Flash<'f> {
    /// Nothing read yet.
    #[must_use]
    pub const fn new(file: &'f [u8]) -> Self {
        Self { file, reads: 0, longest: 0 }
    }
}

impl ReadAt for Flash<'_> {
    fn len(&self) -> u64 {
        self.file.len() as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadFault> {
        self.reads += 1;
        self.longest = self.longest.max(buffer.len());
        let start = usize::try_from(offset).map_err(|_| ReadFault(1))?;
        let bytes = self.file.get(start..).and_then(|rest| rest.get(..buffer.len())).ok_or(ReadFault(2))?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

/// Opens `file` both ways under every policy and integrity, with and without an index, through buffers of each of the
/// lengths, and compares verdicts, warnings and what the containers say. Answers with how many openings were compared.
///
/// # Panics
/// Where the two differ.
pub fn check(file: &[u8], buffers: &[usize]) -> usize {
    let mut compared = 0;
    for policy in [Policy::Strict, Policy::Compatible] {
        for integrity in [Integrity::Full, Integrity::Lazy] {
            for indexed in [false, true] {
                let options = OpenOptions { policy, integrity, ..OpenOptions::default() };
                for len in buffers {
                    let _ = compare(file, &options, indexed, *len);
                }
                compared += buffers.len();
            }
        }
    }
    compared
}

/// One opening both ways, through a buffer of `len` bytes. Answers with the verdict.
///
/// # Panics
/// Where the two differ.
pub fn compare(file: &[u8], options: &OpenOptions, indexed: bool, len: usize) -> p64_core::Result<()> {
    let slots = if indexed { file.len() / 64 + 1 } else { 0 };
    let mut names = [vec![NameSlot::default(); slots], vec![NameSlot::default(); slots]];
    let [mut of_slice, mut of_stream] = [Vec::new(), Vec::new()];
    let [for_slice, for_stream] = &mut names;

    let storage = Storage { names: for_slice, verified: &mut [] };
    let slice = Container::open_with(file, options, storage, &mut |warning| of_slice.push(warning));
    let mut buffer = vec![0xa5; len];
    let mut verified: Vec<_> = (0..slots).map(|_| AtomicU8::new(1)).collect();
    let storage = Storage { names: for_stream, verified: &mut verified };
    let stream = StreamContainer::open(Flash::new(file), &mut buffer, storage, options, &mut |w| of_stream.push(w));

    let context = format!("{options:?}, index: {indexed}, a buffer of {len} bytes");
    let verdict = |result: &p64_core::Result<()>| result.map_err(|error| error.to_string());
    let [a, b] = [slice.as_ref().map(|_| ()).map_err(|e| *e), stream.as_ref().map(|_| ()).map_err(|e| *e)];
    assert_eq!(verdict(&a), verdict(&b), "slice and stream disagree: {context}");
    assert_eq!(a, b, "{context}");
    assert_eq!(of_slice, of_stream, "the warnings differ: {context}");
    if let (Ok(slice), Ok(mut stream)) = (slice, stream) {
        same_content(&slice, &mut stream)
            .unwrap_or_else(|error| assert_eq!(slice.verify_all(), Err(error), "{context}"));
    }
    a
}

/// Everything the two say of tensors, layers and tokenizer.
fn same_content(slice: &Container<'_>, stream: &mut StreamContainer<'_, Flash<'_>>) -> p64_core::Result<()> {
    assert_eq!(slice.header(), stream.header());
    assert_eq!(slice.sections(), stream.sections());
    let mut name = vec![0; 70_000];
    for info in slice.tensors() {
        let tensor = stream.tensor(info.index())?;
        assert_eq!(stream.name(&tensor, &mut name)?, info.name());
        assert_eq!((tensor.role(), tensor.dtype(), tensor.shape()), (info.role(), info.dtype(), info.shape()));
        assert_eq!((tensor.extent(), tensor.manifold_idx()), (info.extent(), info.manifold_idx()));
        assert_eq!(stream.find(info.name())?.map(|t| t.index()), slice.find(info.name()).map(|t| t.index()));
        let by_role = stream.find_role(info.role(), info.manifold_idx())?.map(|t| t.index());
        assert_eq!(by_role, slice.find_role(info.role(), info.manifold_idx()).map(|t| t.index()));
        let verified = slice.tensor(&info);
        assert_eq!(stream.verify(&tensor), verified.map(|_| ()));
        let bytes = verified?.bytes();
        let (from, mut out) = (bytes.len() / 3, vec![0; bytes.len() - bytes.len() / 3]);
        stream.read(&tensor, from as u64, &mut out)?;
        assert_eq!(out, bytes[from..]);
    }
    for layer in 0..=slice.n_layer().min(64) {
        assert_eq!(Some(stream.layer(layer)?), slice.layer(layer));
        let [a, b] = [stream.manifold(layer)?, *slice.manifold(layer).expect("in range")];
        assert_eq!(a.values.map(|v| v.get().to_bits()), b.values.map(|v| v.get().to_bits()));
    }
    assert_eq!(stream.tokenizer().is_some(), slice.tokenizer().is_some());
    if let (Some(a), Some(b)) = (stream.tokenizer(), slice.tokenizer()) {
        assert_eq!((a.version(), a.bos(), a.eos(), a.add_bos()), (b.version(), b.bos(), b.eos(), b.add_bos()));
        assert_eq!((a.token_count(), a.merge_count()), (b.token_count(), b.merge_count()));
        // The stream walks the list for each, so only some of a long one.
        let step = b.tokens().count() / 40 + 1;
        for (id, token) in (0..).zip(b.tokens()).step_by(step) {
            assert_eq!(stream.token(id, &mut name)?, Some(token));
        }
        let mut right = vec![0; 70_000];
        for (index, merge) in (0..).zip(b.merges()).step_by(b.merges().count() / 40 + 1) {
            assert_eq!(stream.merge(index, &mut name, &mut right)?, Some(merge));
        }
    }
    Ok(())
}
