//! A Q42T section: what parses says everything its bytes say, shown by writing it out again.

use p64_core::tokenizer::{MAGIC, MAX_STOPS, NO_TOKEN, Tokenizer, VERSION_2};

/// The target's body.
pub fn run(data: &[u8]) {
    let Ok(tokenizer) = Tokenizer::parse(data) else { return };
    assert_eq!(tokenizer.tokens().count(), tokenizer.token_count() as usize);
    assert_eq!(tokenizer.merges().count(), tokenizer.merge_count() as usize);

    let mut again = write(&tokenizer);
    assert!(again.len() <= data.len() && data.len() - again.len() < 64);
    again.resize(data.len(), 0);
    // Not told by the parsed form: any non-zero add-BOS byte, and the values of unused stop slots.
    let mut said = data.to_vec();
    said[16] = u8::from(said[16] != 0);
    if let Some(unused) = unused_stops(&tokenizer) {
        said[unused].fill(0);
    }
    assert_eq!(again, said);
}

fn write(tokenizer: &Tokenizer<'_>) -> Vec<u8> {
    fn string(out: &mut Vec<u8>, text: &str) {
        out.extend(u32::try_from(text.len()).expect("read from a u32").to_le_bytes());
        out.extend(text.as_bytes());
    }
    let mut out = MAGIC.to_vec();
    out.extend(tokenizer.version().to_le_bytes());
    out.extend([0; 2]);
    out.extend(tokenizer.bos().unwrap_or(NO_TOKEN).to_le_bytes());
    out.extend(tokenizer.eos().unwrap_or(NO_TOKEN).to_le_bytes());
    out.extend([u8::from(tokenizer.add_bos()), 0, 0, 0]);
    string(&mut out, tokenizer.pre());
    out.extend(tokenizer.token_count().to_le_bytes());
    tokenizer.tokens().for_each(|token| string(&mut out, token));
    out.extend(tokenizer.merge_count().to_le_bytes());
    for (left, right) in tokenizer.merges() {
        string(&mut out, left);
        string(&mut out, right);
    }
    if tokenizer.version() == VERSION_2 {
        let stops = tokenizer.stops();
        out.extend([u8::try_from(stops.len()).expect("at most 8"), 0, 0, 0]);
        for index in 0..MAX_STOPS {
            out.extend(stops.get(index).copied().unwrap_or(0).to_le_bytes());
        }
    }
    out
}

/// Where a version 2 section keeps the stop slots past `stop_count`.
fn unused_stops(tokenizer: &Tokenizer<'_>) -> Option<std::ops::Range<usize>> {
    let end = write(tokenizer).len();
    (tokenizer.version() == VERSION_2).then(|| end - 4 * (MAX_STOPS - tokenizer.stops().len())..end)
}
