//! CRC-32C (Castagnoli), reflected, polynomial 0x82f63b78, initial value and final complement all ones (spec §11).
//!
//! How fast is a matter of the table, and the table is flash on a small machine. Each size is a [`Checksum`] of its own, so
//! that an image holds the one it names:
//!
//! ```text
//! Checksum::BYTES_64    16 words     4 bits a step     crc32c/nibble.rs
//! Checksum::KIB_1       256 words    a byte a step     the `crc` crate's Table<1>
//! Checksum::KIB_8       8 x 256      8 bytes a step    crc32c/slicing.rs
//! Checksum::KIB_16      16 x 256     16 bytes a step   the `crc` crate's Table<16>, the default
//! ```
//!
//! A processor's own instructions (`p64-std`) or a hardware unit enter through [`Checksum::new`] and
//! [`Checksum::with_context`]. All are checked against the same published values.
#![forbid(unsafe_code)]

mod nibble;
mod slicing;

use core::fmt;
use crc::{CRC_32_ISCSI, Crc, Table};

static TABLE_1: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISCSI);
static TABLE_16: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// A way to compute CRC-32C, piece by piece: given the checksum of what came before (0 for nothing), the checksum with
/// `bytes` appended.
#[derive(Clone, Copy)]
pub struct Checksum(Update);

#[derive(Clone, Copy)]
enum Update {
    Plain(fn(u32, &[u8]) -> u32),
    With(usize, fn(usize, u32, &[u8]) -> u32),
}

impl Checksum {
    /// 64 bytes of table, for the smallest flash.
    pub const BYTES_64: Self = Self::new(nibble::update);
    /// 1 KiB of table.
    pub const KIB_1: Self =
        Self::new(|crc, bytes| continued(TABLE_1.digest_with_initial(raw(crc)), bytes, |d, b| d.update(b)).finalize());
    /// 8 KiB of table.
    pub const KIB_8: Self = Self::new(slicing::update);
    /// 16 KiB of table: what [`checksum`] uses.
    pub const KIB_16: Self =
        Self::new(|crc, bytes| continued(TABLE_16.digest_with_initial(raw(crc)), bytes, |d, b| d.update(b)).finalize());

    /// A function of the caller's: `update(crc, bytes)` answers with the checksum of what `crc` is the checksum of, followed
    /// by `bytes`.
    #[must_use]
    pub const fn new(update: fn(u32, &[u8]) -> u32) -> Self {
        Self(Update::Plain(update))
    }

    /// The same with a number passed along, such as the address of a hardware unit's registers.
    #[must_use]
    pub const fn with_context(context: usize, update: fn(usize, u32, &[u8]) -> u32) -> Self {
        Self(Update::With(context, update))
    }

    /// The checksum of what `crc` is the checksum of, followed by `bytes`.
    #[must_use]
    pub fn update(&self, crc: u32, bytes: &[u8]) -> u32 {
        match self.0 {
            Update::Plain(update) => update(crc, bytes),
            Update::With(context, update) => update(context, crc, bytes),
        }
    }

    /// The checksum of `bytes` alone.
    #[must_use]
    pub fn of(&self, bytes: &[u8]) -> u32 {
        self.update(0, bytes)
    }
}

impl Default for Checksum {
    fn default() -> Self {
        Self::KIB_16
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checksum").finish_non_exhaustive()
    }
}

/// CRC-32C of `bytes`.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    TABLE_16.checksum(bytes)
}

/// The register of the `crc` crate, which turns its initial value's bits, for a finished checksum.
const fn raw(crc: u32) -> u32 {
    (!crc).reverse_bits()
}

fn continued<D>(mut digest: D, bytes: &[u8], update: impl Fn(&mut D, &[u8])) -> D {
    update(&mut digest, bytes);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const TABLES: [(&str, Checksum); 4] = [
        ("64 B", Checksum::BYTES_64),
        ("1 KiB", Checksum::KIB_1),
        ("8 KiB", Checksum::KIB_8),
        ("16 KiB", Checksum::KIB_16),
    ];

    /// RFC 3720 appendix B.4 and the spec's own examples.
    #[test]
    fn published_values() {
        let ascending: [u8; 32] = core::array::from_fn(|i| u8::try_from(i).expect("small"));
        let cases: [(&[u8], u32); 7] = [
            (b"123456789", 0xe306_9283),
            (b"", 0),
            (b"a", 0xc1d0_4330),
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
            (b"p64\0", 0x9313_b240),
        ];
        for (bytes, expected) in cases {
            assert_eq!(checksum(bytes), expected);
            for (name, table) in TABLES {
                for cut in 0..=bytes.len() {
                    let (head, tail) = bytes.split_at(cut);
                    assert_eq!(table.update(table.of(head), tail), expected, "{name}, cut at {cut}");
                }
            }
        }
    }

    /// Every length around the steps of the tables, against the `crc` crate's bit-wise algorithm.
    #[test]
    fn all_tables_agree_on_every_length() {
        let bits = Crc::<u32, crc::NoTable>::new(&CRC_32_ISCSI);
        let bytes: Vec<u8> = (0..200u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0]).collect();
        for len in 0..=bytes.len() {
            for (name, table) in TABLES {
                assert_eq!(table.of(&bytes[..len]), bits.checksum(&bytes[..len]), "{name}, {len} bytes");
            }
        }
    }

    #[test]
    fn a_context_reaches_the_hook() {
        let hook = Checksum::with_context(7, |context, crc, bytes| {
            assert_eq!(context, 7);
            Checksum::KIB_1.update(crc, bytes)
        });
        assert_eq!(hook.of(b"123456789"), 0xe306_9283);
    }
}
