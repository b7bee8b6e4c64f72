//! What a file of a set says of the set, in its `p64.provenance` (spec §13.4).

use crate::write::Pairs;
use p64_core::metadata::{Metadata, Value};

const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";
const SET: &str = "p64.split.set";
const RAW_TRANSCODE: &str = "p64.split.raw_transcode";
const PLACES: &str = "p64.split.tensors";

/// Most files of a set: its number is a `u16`, and no file is called 0.
pub const MAX_FILES: usize = 65_535;

/// Length of a set's identity: a SHA-256 in hexadecimal digits.
pub(crate) const IDENTITY_LEN: usize = 64;

/// A file's place in its set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Membership<'a> {
    /// Number of the file, from 0.
    pub number: u16,
    /// Files of the set.
    pub count: u16,
    /// Tensors of the model, `p64.metadata` and `p64.provenance` not counted.
    pub tensors: u32,
    /// What files of one set have in common and no others.
    pub identity: &'a str,
    /// Whether the whole model is a raw transcode.
    pub raw_transcode: bool,
    /// For each tensor of the file, in the order of its table, the place in the table of the whole model.
    pub places: Vec<u32>,
}

impl<'a> Membership<'a> {
    /// Reads the keys; `None` for a file that holds a whole model, `Err` with the key that is missing or makes no sense.
    pub fn read(provenance: &Metadata<'a>) -> Result<Option<Self>, &'static str> {
        let whole = |key: &'static str| provenance.get(key).and_then(Value::as_u64).ok_or(key);
        let short = |key: &'static str| whole(key).and_then(|value| u16::try_from(value).map_err(|_| key));
        if provenance.get(COUNT).is_none() {
            return Ok(None);
        }
        let (count, number) = (short(COUNT)?, short(NUMBER)?);
        if count == 0 {
            return Err(COUNT);
        }
        if number >= count {
            return Err(NUMBER);
        }
        let tensors = whole(TENSORS).and_then(|value| u32::try_from(value).map_err(|_| TENSORS))?;
        let identity = provenance.str(SET).ok().flatten().filter(|text| text.len() == IDENTITY_LEN).ok_or(SET)?;
        let raw_transcode = provenance.bool(RAW_TRANSCODE).ok().flatten().ok_or(RAW_TRANSCODE)?;
        let places = provenance.array(PLACES).ok().flatten().ok_or(PLACES)?;
        let narrow = |value: Value<'_>| value.as_u64().and_then(|value| u32::try_from(value).ok());
        let places = places.iter().map(narrow).collect::<Option<Vec<u32>>>().ok_or(PLACES)?;
        Ok(Some(Self { number, count, tensors, identity, raw_transcode, places }))
    }

    /// Adds the keys to those of the whole model, which the first file carries.
    pub fn push(&self, pairs: &mut Pairs) {
        pairs.u16(NUMBER, self.number).u16(COUNT, self.count);
        // GGUF has the key as an i32; a table has fewer entries than that counts.
        pairs.value(TENSORS, Value::I32(i32::try_from(self.tensors).unwrap_or(i32::MAX)));
        pairs.str(SET, self.identity).bool(RAW_TRANSCODE, self.raw_transcode).u32_array(PLACES, &self.places);
    }
}

/// The keys of the whole model, without those of a set.
pub(crate) fn of_whole(provenance: &Metadata<'_>) -> Pairs {
    let mut pairs = Pairs::new();
    for (key, value) in provenance.iter().filter(|(key, _)| !is_of_set(key)) {
        pairs.value(key, value);
    }
    pairs
}

pub(super) fn is_of_set(key: &str) -> bool {
    [NUMBER, COUNT, TENSORS, SET, RAW_TRANSCODE, PLACES].contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(identity: &str) -> Membership<'_> {
        Membership { number: 1, count: 3, tensors: 7, identity, raw_transcode: true, places: vec![4, 2] }
    }

    #[test]
    fn what_is_written_is_read() {
        let identity = "0123456789abcdef".repeat(4);
        let mut pairs = Pairs::new();
        pairs.str("p64.profile", "x");
        let alone = pairs.to_area();
        member(&identity).push(&mut pairs);
        let area = pairs.to_area();
        let read = Metadata::parse(&area, 0).expect("well-formed");
        assert_eq!(Membership::read(&read), Ok(Some(member(&identity))));
        assert_eq!(of_whole(&read).to_area(), alone);
        assert_eq!(Membership::read(&Metadata::parse(&alone, 0).expect("well-formed")), Ok(None));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let identity = "0".repeat(IDENTITY_LEN);
        let refused = |edit: &dyn Fn(&mut Membership<'_>)| {
            let mut member = member(&identity);
            edit(&mut member);
            let mut pairs = Pairs::new();
            member.push(&mut pairs);
            let area = pairs.to_area();
            Membership::read(&Metadata::parse(&area, 0).expect("well-formed")).expect_err("refused")
        };
        assert_eq!(refused(&|member| member.count = 0), COUNT);
        assert_eq!(refused(&|member| member.number = 3), NUMBER);
        assert_eq!(refused(&|member| member.identity = "short"), SET);
        let mut pairs = Pairs::new();
        pairs.u16(COUNT, 2).u16(NUMBER, 0);
        let area = pairs.to_area();
        assert_eq!(Membership::read(&Metadata::parse(&area, 0).expect("well-formed")), Err(TENSORS));
    }
}
