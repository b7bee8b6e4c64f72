//! Thousands of damaged sources: each is refused with a sentence, or becomes a strict container that gives it back.

use p64_core::DType;
use p64_core::container::Container;
use p64_core::crc32c::Checksum;
use p64_core::validate::{Integrity, OpenOptions, Policy, Storage};
use p64_std::Error;
use p64_std::convert::{ConvertOptions, Warning, convert_bytes};
use p64_std::export::export_bytes;
use p64_tests::gguf::GgufBuilder;
use std::path::Path;

/// xorshift64: the same cases on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("below a usize")
    }
}

fn check(bytes: Vec<u8>) -> bool {
    let label = Path::new("mutated");
    let options = ConvertOptions { page_size: 256, ..ConvertOptions::default() };
    match convert_bytes(label, bytes.clone(), &options) {
        Ok((p64, report)) => {
            let strict =
                OpenOptions { policy: Policy::Strict, integrity: Integrity::Full, checksum: Checksum::default() };
            let container = Container::open_with(&p64, &strict, Storage::default(), &mut |_| ()).expect("strict");
            let (back, identical) = export_bytes(label, &container).expect("exported");
            let odd = report.warnings.iter().any(|warning| matches!(warning, Warning::OddPadding { .. }));
            assert_eq!(back == bytes, !odd);
            assert_eq!(identical, Some(!odd));
            true
        }
        Err(Error::Gguf { .. } | Error::Refused { .. } | Error::NotAModel { .. } | Error::TooLarge { .. }) => false,
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn every_damaged_source_is_refused_or_given_back() {
    let small = GgufBuilder::new(3).alignment(8).model_keys(1).tensor("a", DType::I8, &[3]);
    let sources = [
        small.clone().tensor("blk.0.attn_q.weight", DType::Q4_0, &[32, 2]).tensor("b", DType::F32, &[0]).build(),
        small.tensor("output.weight", DType::F32, &[2]).data_order(&[1, 0]).build(),
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut accepted, mut refused) = (0, 0);
    let mut count = |accept| *(if accept { &mut accepted } else { &mut refused }) += 1;
    for source in &sources {
        // Every bit once, every truncation once, then random damage of several bytes.
        for at in 0..source.len() {
            for bit in 0..8 {
                let mut bytes = source.clone();
                bytes[at] ^= 1 << bit;
                count(check(bytes));
            }
            count(check(source[..at].to_vec()));
        }
        for _ in 0..2000 {
            let mut bytes = source.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes[at] = u8::try_from(random.below(256)).expect("a byte"),
                    1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                    2 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, u8::try_from(random.below(256)).expect("a byte")),
                }
            }
            count(check(bytes));
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} accepted, {refused} refused: the cases test one side only");
}
