//! HybriDNA: byte-pair encoding, and between `<dna>` and `</dna>` a token for every six bases.

use super::bpe::{Bpe, Scratch};
use super::vocab::Vocabulary;

/// What keeps six bases apart from a token of the same letters: the end of their text in the file, not shown.
pub(super) const KMER: &[u8] = "\u{e000}".as_bytes();
const BASES: usize = 6;
const OPEN: &[u8] = b"<dna>";
const CLOSE: &[u8] = b"</dna>";

/// Appends the tokens of a fragment. Without the three tokens of DNA it is text.
pub(super) fn encode(bpe: &Bpe, fragment: &[u8], vocabulary: &Vocabulary, scratch: &mut Scratch, out: &mut Vec<u32>) {
    let tokens = [OPEN, CLOSE, b"<oov>"].map(|text| vocabulary.find(text));
    let [Some(open), Some(close), Some(unknown)] = tokens else {
        return bpe.encode(fragment, &vocabulary.texts, scratch, out);
    };
    let mut rest = fragment;
    while let Some((text, after)) = split(rest, OPEN) {
        bpe.encode(text, &vocabulary.texts, scratch, out);
        out.push(open);
        let (dna, after, closed) =
            split(after, CLOSE).map_or((after, &[][..], false), |(dna, after)| (dna, after, true));
        for bases in dna.chunks(BASES) {
            let mut text = bases.to_ascii_uppercase();
            text.resize(BASES, b'A');
            text.extend_from_slice(KMER);
            out.push(vocabulary.find(&text).unwrap_or(unknown));
        }
        if closed {
            out.push(close);
        }
        rest = after;
    }
    bpe.encode(rest, &vocabulary.texts, scratch, out);
}

/// What lies before and after the first `mark`.
fn split<'t>(text: &'t [u8], mark: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let at = text.windows(mark.len()).position(|window| window == mark)?;
    Some((text.get(..at)?, text.get(at + mark.len()..)?))
}
