//! Weights from names: the twin of `scripts/conformance/fill.py`, which says what the rules mean.

/// What fills a scale field of a block.
#[derive(Clone, Copy)]
enum Scale {
    /// An f16.
    Half,
    /// A negative f16.
    Minus,
    /// A power of two in a byte.
    E8M0,
    /// A float without a sign, of four bits exponent and three bits mantissa.
    Ue4m3,
    /// An f16 in the top nibbles of four words.
    Nibbles,
}

/// An element type as GGUF knows it.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) id: u32,
    pub(super) elements: usize,
    pub(super) bytes: usize,
    /// Where the scales of a block lie, and what is added to their exponent.
    scales: &'static [(usize, Scale, i32)],
}

const fn kind(
    name: &'static str,
    id: u32,
    elements: usize,
    bytes: usize,
    scales: &'static [(usize, Scale, i32)],
) -> Kind {
    Kind { name, id, elements, bytes, scales }
}

use Scale::{E8M0, Half, Minus, Nibbles, Ue4m3};

const KINDS: [Kind; 28] = [
    kind("F32", 0, 1, 4, &[]),
    kind("F16", 1, 1, 2, &[]),
    kind("BF16", 30, 1, 2, &[]),
    kind("Q4_0", 2, 32, 18, &[(0, Half, 0)]),
    kind("Q4_1", 3, 32, 20, &[(0, Half, 0), (2, Minus, 3)]),
    kind("Q5_0", 6, 32, 22, &[(0, Half, 0)]),
    kind("Q5_1", 7, 32, 24, &[(0, Half, 0), (2, Minus, 4)]),
    kind("Q8_0", 8, 32, 34, &[(0, Half, 0)]),
    kind("Q2_K", 10, 256, 84, &[(80, Half, 0), (82, Half, 0)]),
    kind("Q3_K", 11, 256, 110, &[(108, Half, 0)]),
    kind("Q4_K", 12, 256, 144, &[(0, Half, 0), (2, Half, 3)]),
    kind("Q5_K", 13, 256, 176, &[(0, Half, 0), (2, Half, 4)]),
    kind("Q6_K", 14, 256, 210, &[(208, Half, 0)]),
    kind("IQ2_XXS", 16, 256, 66, &[(0, Half, 0)]),
    kind("IQ2_XS", 17, 256, 74, &[(0, Half, 0)]),
    kind("IQ3_XXS", 18, 256, 98, &[(0, Half, 0)]),
    kind("IQ1_S", 19, 256, 50, &[(0, Half, 0)]),
    kind("IQ4_NL", 20, 32, 18, &[(0, Half, 0)]),
    kind("IQ3_S", 21, 256, 110, &[(0, Half, 0)]),
    kind("IQ2_S", 22, 256, 82, &[(0, Half, 0)]),
    kind("IQ4_XS", 23, 256, 136, &[(0, Half, 0)]),
    kind("IQ1_M", 29, 256, 56, &[(48, Nibbles, 0)]),
    kind("TQ1_0", 34, 256, 54, &[(52, Half, 0)]),
    kind("TQ2_0", 35, 256, 66, &[(64, Half, 0)]),
    kind("Q1_0", 41, 128, 18, &[(0, Half, 0)]),
    kind("Q2_0", 42, 64, 18, &[(0, Half, 0)]),
    kind("MXFP4", 39, 32, 17, &[(0, E8M0, 0)]),
    kind("NVFP4", 40, 64, 36, &[(0, Ue4m3, 0), (1, Ue4m3, 0), (2, Ue4m3, 0), (3, Ue4m3, 0)]),
];

/// The type of a name.
pub(super) fn named(name: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.name == name).unwrap_or_else(|| panic!("a recipe names the type {name}"))
}

/// FNV-1a over "MODEL/TENSOR".
pub(super) fn seed(model: &str, tensor: &str) -> u64 {
    let bytes = model.bytes().chain(*b"/").chain(tensor.bytes());
    bytes.fold(0xCBF2_9CE4_8422_2325, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

/// Of SplitMix64's sequence the word at `index`.
fn word(seed: u64, index: u64) -> u64 {
    let z = seed.wrapping_add((index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Appends a tensor of `count` elements.
pub(super) fn fill(out: &mut Vec<u8>, kind: &Kind, count: usize, rule: &str, e: i32, seed: u64) {
    if rule == "blocks" {
        return blocks(out, kind, count / kind.elements, e, seed);
    }
    for index in 0..count as u64 {
        let [a, b, c, d, ..] = word(seed, index).to_le_bytes();
        let k = ([a, b, c, d].map(i32::from).iter().sum::<i32>() - 508) >> 2;
        let (whole, exponent) = match rule {
            "normal" => (k, -e),
            "around" => (256 + k, e - 8),
            "factors" => (32 + k.abs(), e - 5),
            _ => panic!("a recipe names the rule {rule}"),
        };
        let value = f32::from(i16::try_from(whole).expect("small")) * power(exponent);
        match kind.name {
            "F32" => out.extend_from_slice(&value.to_le_bytes()),
            "F16" => out.extend_from_slice(&half(value).to_le_bytes()),
            // The upper half of an f32 that needs no more.
            "BF16" => out.extend_from_slice(&value.to_le_bytes()[2..]),
            name => panic!("{name} is filled with blocks"),
        }
    }
}

/// 2 to the power of `exponent`.
fn power(exponent: i32) -> f32 {
    f32::from_bits(u32::try_from(exponent + 127).expect("a normal number") << 23)
}

/// The f16 of a value that it holds exactly.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = u16::try_from(bits >> 31).expect("one bit") << 15;
    if value == 0.0 {
        return sign;
    }
    let exponent = i32::try_from(bits >> 23 & 255).expect("eight bits") - 112;
    let mantissa = bits >> 13 & 1023;
    let bits = match u32::try_from(exponent) {
        Ok(exponent @ 1..31) => exponent << 10 | mantissa,
        // Below the normal numbers the leading one is written out.
        _ => (1024 | mantissa) >> (1 - exponent),
    };
    sign | u16::try_from(bits).expect("fifteen bits")
}

fn blocks(out: &mut Vec<u8>, kind: &Kind, count: usize, e: i32, seed: u64) {
    let start = out.len();
    let len = count * kind.bytes;
    for index in 0..len.div_ceil(8) as u64 {
        out.extend_from_slice(&word(seed, index).to_le_bytes());
    }
    out.truncate(start + len);
    for (index, block) in (0..).zip(out[start..].chunks_exact_mut(kind.bytes)) {
        if kind.name == "TQ2_0" {
            // Four digits a byte, of which each is at most 2.
            block[..64].iter_mut().for_each(|digits| *digits ^= *digits & (*digits >> 1) & 0x55);
        }
        let mantissa = u16::try_from(word(seed ^ 0x5CA1_E5CA_1E5C_A1E5, index) & 1023).expect("ten bits");
        for &(at, scale, more) in kind.scales {
            let exponent = u16::try_from(e + more).expect("not negative");
            let bits = exponent << 10 | mantissa;
            let byte = |value: u16| u8::try_from(value).expect("eight bits");
            match scale {
                Half => block[at..at + 2].copy_from_slice(&bits.to_le_bytes()),
                Minus => block[at..at + 2].copy_from_slice(&(0x8000 | bits).to_le_bytes()),
                E8M0 => block[at] = byte(exponent + (mantissa & 1)),
                Ue4m3 => block[at] = byte(exponent << 3 | (mantissa >> (2 * at)) & 7),
                Nibbles => {
                    for i in 0..4 {
                        let upper = &mut block[at + 2 * i + 1];
                        *upper = *upper & 0x0F | byte((bits >> (4 * i)) & 15) << 4;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator's published first values for the seed 0.
    #[test]
    fn words_are_splitmix64s() {
        assert_eq!(
            [0, 1, 2].map(|i| word(0, i)),
            [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]
        );
    }

    #[test]
    fn halves_are_exact() {
        for (value, bits) in [(0.0, 0), (1.0, 0x3C00), (-2.0, 0xC000), (0.125, 0x3000), (6.103_515_6e-5, 0x0400)] {
            assert_eq!(half(value), bits, "{value}");
        }
        // Subnormal: 2^-24 is the smallest.
        assert_eq!((half(power(-24)), half(3.0 * power(-20))), (1, 48));
    }
}
