//! CRC-32C with a table of 16 words: half a byte a step.
#![forbid(unsafe_code)]

/// The reflected polynomial (spec §11).
pub(super) const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `crc`, whose low `bits` bits are looked at, after that many steps of the register.
pub(super) const fn shift(mut crc: u32, bits: u32) -> u32 {
    let mut bit = 0;
    while bit < bits {
        crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
        bit += 1;
    }
    crc
}

static TABLE: [u32; 16] = {
    let mut table = [0; 16];
    let mut value = 0;
    while value < 16 {
        #[expect(clippy::cast_possible_truncation, reason = "below 16")]
        let word = value as u32;
        table[value] = shift(word, 4);
        value += 1;
    }
    table
};

pub(super) fn update(crc: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32| TABLE[crc as usize & 15] ^ (crc >> 4);
    !bytes.iter().fold(!crc, |crc, byte| step(step(crc ^ u32::from(*byte))))
}
