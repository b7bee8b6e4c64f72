//! UTF-8 that arrives in pieces (RFC 3629, section 4).
#![forbid(unsafe_code)]

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Utf8 {
    /// Continuation bytes still to come; `u8::MAX` once the text is not UTF-8.
    need: u8,
    /// Bounds of the next continuation byte.
    least: u8,
    most: u8,
}

impl Utf8 {
    pub(super) const START: Self = Self { need: 0, least: 0x80, most: 0xbf };
    const BROKEN: Self = Self { need: u8::MAX, ..Self::START };

    pub(super) fn push(&mut self, byte: u8) {
        let [least, most] = [self.least, self.most];
        let lead = |need, least, most| Self { need, least, most };
        *self = match (self.need, byte) {
            (0, 0..=0x7f) => *self,
            (0, 0xc2..=0xdf) => lead(1, 0x80, 0xbf),
            // Neither longer than needed, nor surrogates, nor past U+10FFFF.
            (0, 0xe0) => lead(2, 0xa0, 0xbf),
            (0, 0xed) => lead(2, 0x80, 0x9f),
            (0, 0xe1..=0xef) => lead(2, 0x80, 0xbf),
            (0, 0xf0) => lead(3, 0x90, 0xbf),
            (0, 0xf1..=0xf3) => lead(3, 0x80, 0xbf),
            (0, 0xf4) => lead(3, 0x80, 0x8f),
            (1..=3, _) if (least..=most).contains(&byte) => lead(self.need.saturating_sub(1), 0x80, 0xbf),
            _ => Self::BROKEN,
        };
    }

    pub(super) fn extend(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.push(*byte));
    }

    /// Whether what has arrived is UTF-8 by itself.
    pub(super) fn is_complete(self) -> bool {
        self.need == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sequence of up to two bytes, and of three and four whose first two bytes decide anything, against core's.
    #[test]
    fn agrees_with_core() {
        let same = |bytes: &[u8]| {
            let mut utf8 = Utf8::START;
            utf8.extend(bytes);
            assert_eq!(utf8.is_complete(), core::str::from_utf8(bytes).is_ok(), "{bytes:02x?}");
        };
        same(&[]);
        for a in 0..=u8::MAX {
            same(&[a]);
            for b in 0..=u8::MAX {
                same(&[a, b]);
                for c in [0x00, 0x7f, 0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xff] {
                    same(&[a, b, c]);
                    for d in [0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xf0] {
                        same(&[a, b, c, d]);
                    }
                }
            }
        }
    }
}
