//! CRC-32C with eight tables of 256 words: eight bytes a step, whose look-ups do not wait for each other.
//!
//! `TABLES[k][b]` is the register after byte `b` and `k` zero bytes. Source: Kounavis and Berry, "A systematic approach to
//! building high performance software-based CRC generators", 2005.
#![forbid(unsafe_code)]

use super::nibble::shift;

static TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut value = 0;
    while value < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let mut crc = shift(value as u32, 8);
        let mut zeros = 0;
        while zeros < 8 {
            tables[zeros][value] = crc;
            crc = shift(crc, 8);
            zeros += 1;
        }
        value += 1;
    }
    tables
};

pub(super) fn update(crc: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(!crc, |crc, [a, b, c, d, tail @ ..]| {
        let [a, b, c, d] = (crc ^ u32::from_le_bytes([*a, *b, *c, *d])).to_le_bytes();
        let [e, f, g, h] = *tail;
        // The first byte has seven more to pass, the last one none.
        [(a, 7), (b, 6), (c, 5), (d, 4), (e, 3), (f, 2), (g, 1), (h, 0)]
            .into_iter()
            .fold(0, |sum, (byte, zeros)| sum ^ TABLES[zeros][usize::from(byte)])
    });
    !rest.iter().fold(crc, |crc, byte| TABLES[0][usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8))
}
