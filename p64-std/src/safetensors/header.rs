//! The header of a safetensors file: a length, and a JSON object that describes every tensor.

use super::dtype::ElementType;
use super::error::{Error, Place, Problem};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

/// Most bytes of a header that the format permits.
pub const MAX_HEADER: u64 = 100_000_000;

/// Most dimensions that are taken in; the format sets no bound.
const MAX_RANK: usize = 64;
const MAX_NAME: usize = 1024;
const METADATA: &str = "__metadata__";

/// One tensor of a header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorInfo {
    /// The name, 1 to 1,024 bytes without NUL, unique in its file.
    pub name: String,
    /// The element type.
    pub dtype: ElementType,
    /// The shape as stored: the last dimension is the contiguous one. Empty for a scalar.
    pub shape: Vec<u64>,
    /// First byte, counted from the end of the header: `data_offsets[0]`.
    pub begin: u64,
    /// Byte behind the last one: `data_offsets[1]`.
    pub end: u64,
}

impl TensorInfo {
    /// Number of bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// Whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements, or `None` when the product does not fit 64 bits.
    #[must_use]
    pub fn elements(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim))
    }
}

/// A checked header.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// The tensors in the order of their bytes; of those that begin at one offset, the ones without bytes first.
    pub tensors: Vec<TensorInfo>,
    /// The pairs of `__metadata__` in the header's order; `None` where the header has none.
    pub metadata: Option<Vec<(String, String)>>,
    /// Places in `tensors`, sorted by name.
    by_name: Vec<u32>,
}

impl Header {
    /// Reads the JSON text of a header whose data region has `data_len` bytes.
    ///
    /// # Errors
    /// The first broken rule of `docs/acceptance.md` §4.
    pub fn parse(text: &[u8], data_len: u64) -> Result<Self, Error> {
        let refuse = |problem| Err(Error::new(problem, Place::Header));
        match text.first() {
            Some(b'{') => {}
            Some(&first) => return refuse(Problem::NotAnObject { first }),
            None => return refuse(Problem::Json("it has no bytes".to_owned())),
        }
        let text = match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => return refuse(Problem::NotUtf8 { at: error.valid_up_to() as u64 }),
        };
        let mut header = read_json(text)?;
        check_names(&mut header)?;
        check_sizes(&header.tensors)?;
        check_layout(&header.tensors, data_len)?;
        Ok(header)
    }

    /// The tensor of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&TensorInfo> {
        let info = |index: &u32| usize::try_from(*index).ok().and_then(|index| self.tensors.get(index));
        let found = self.by_name.binary_search_by(|index| info(index).map_or("", |info| &info.name).cmp(name)).ok()?;
        self.by_name.get(found).and_then(info)
    }
}

/// What the visitors pass upwards beside JSON's own errors.
#[derive(Default)]
struct Context {
    /// Where reading stands.
    place: Option<Place>,
    /// A finding that is none of JSON's.
    problem: Option<Problem>,
}

fn read_json(text: &str) -> Result<Header, Error> {
    let context = RefCell::new(Context::default());
    let mut json = serde_json::Deserializer::from_str(text);
    let header = match json.deserialize_map(HeaderVisitor(&context)) {
        Ok(header) => header,
        Err(error) => {
            let Context { place, problem } = context.into_inner();
            let problem = problem.unwrap_or_else(|| Problem::json(&error));
            return Err(Error::new(problem, place.unwrap_or(Place::Header)));
        }
    };
    // The object's end is where the stream has come to: behind it, spaces alone.
    let end = json.into_iter::<serde::de::IgnoredAny>().byte_offset();
    let tail = text.as_bytes().get(end..).unwrap_or_default();
    match tail.iter().find(|byte| **byte != b' ') {
        Some(&byte) => Err(Error::new(Problem::AfterJson { byte }, Place::Header)),
        None => Ok(header),
    }
}

struct HeaderVisitor<'c>(&'c RefCell<Context>);

impl<'de> Visitor<'de> for HeaderVisitor<'_> {
    type Value = Header;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object that describes tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
        let mut header = Header::default();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if name == METADATA {
                self.0.borrow_mut().place = Some(Place::Metadata);
                if header.metadata.is_some() {
                    let problem = Problem::DuplicateKey(METADATA.to_owned());
                    *self.0.borrow_mut() = Context { place: Some(Place::Header), problem: Some(problem) };
                    return Err(A::Error::custom("duplicate"));
                }
                header.metadata = Some(map.next_value_seed(MetadataSeed)?);
            } else {
                self.0.borrow_mut().place = Some(Place::Tensor(name.clone().into_owned()));
                let described = map.next_value::<Described<'de>>()?;
                let Some(dtype) = ElementType::from_name(&described.dtype) else {
                    self.0.borrow_mut().problem = Some(Problem::UnknownType(described.dtype.into_owned()));
                    return Err(A::Error::custom("unknown type"));
                };
                let [begin, end] = described.data_offsets;
                header.tensors.push(TensorInfo {
                    name: name.into_owned(),
                    dtype,
                    shape: described.shape.0,
                    begin,
                    end,
                });
            }
            self.0.borrow_mut().place = None;
        }
        Ok(header)
    }
}

/// What stands behind a tensor's name. Each field once; fields that the format does not have are skipped.
#[derive(serde::Deserialize)]
struct Described<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: Dimensions,
    data_offsets: [u64; 2],
}

struct Dimensions(Vec<u64>);

impl<'de> serde::Deserialize<'de> for Dimensions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Dimensions;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of whole numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Dimensions, A::Error> {
                let mut dims = Vec::new();
                while let Some(dim) = list.next_element()? {
                    if dims.len() == MAX_RANK {
                        return Err(A::Error::custom(format_args!("more than {MAX_RANK} dimensions")));
                    }
                    dims.push(dim);
                }
                Ok(Dimensions(dims))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// The pairs of `__metadata__`, texts alone.
struct MetadataSeed;

impl<'de> DeserializeSeed<'de> for MetadataSeed {
    type Value = Vec<(String, String)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MetadataSeed {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

/// The pairs of a `__metadata__` that stands alone, as a container keeps it.
pub(crate) fn parse_metadata(text: &str) -> Option<Vec<(String, String)>> {
    let mut json = serde_json::Deserializer::from_str(text);
    let pairs = json.deserialize_map(MetadataSeed).ok()?;
    json.end().ok()?;
    Some(pairs)
}

/// Names are usable and none stands twice; sorts the tensors by their bytes.
fn check_names(header: &mut Header) -> Result<(), Error> {
    let tensors = &mut header.tensors;
    for tensor in tensors.iter() {
        let problem = match tensor.name.as_bytes() {
            [] => Problem::NameEmpty,
            name if name.len() > MAX_NAME => Problem::NameTooLong { found: name.len() as u64 },
            name if name.contains(&0) => Problem::NameNul,
            _ => continue,
        };
        return Err(Error::tensor(problem, &tensor.name));
    }
    tensors.sort_by_key(|tensor| (tensor.begin, tensor.end));
    let count = u32::try_from(tensors.len()).map_err(|_| Error::new(Problem::TooManyTensors, Place::Header))?;
    let name = |index: u32| usize::try_from(index).ok().and_then(|index| tensors.get(index)).map(|info| &info.name);
    let mut by_name: Vec<u32> = (0..count).collect();
    by_name.sort_unstable_by_key(|&index| name(index));
    let twice = by_name.array_windows().find(|&&[a, b]| name(a) == name(b));
    if let Some(&[first, _]) = twice {
        let name = name(first).map_or("", String::as_str);
        return Err(Error::tensor(Problem::DuplicateName, name));
    }
    header.by_name = by_name;
    if let Some(pairs) = &header.metadata {
        let mut keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        if let Some([key, _]) = keys.array_windows().find(|[a, b]| a == b) {
            return Err(Error::new(Problem::DuplicateKey((*key).to_owned()), Place::Metadata));
        }
    }
    Ok(())
}

/// Shape, type and offsets of each tensor agree.
fn check_sizes(tensors: &[TensorInfo]) -> Result<(), Error> {
    for tensor in tensors {
        let refuse = |problem| Err(Error::tensor(problem, &tensor.name));
        let TensorInfo { dtype, begin, end, .. } = *tensor;
        if end < begin {
            return refuse(Problem::Reversed { begin, end });
        }
        let Some(bits) = tensor.elements().and_then(|elements| elements.checked_mul(dtype.bits())) else {
            return refuse(Problem::SizeOverflow);
        };
        if !bits.is_multiple_of(8) {
            return refuse(Problem::PartialByte { dtype });
        }
        let (expected, found) = (bits / 8, tensor.len());
        if expected != found {
            return refuse(Problem::Length { expected, found });
        }
    }
    Ok(())
}

/// The tensors follow each other without hole and overlap and fill the data region.
fn check_layout(tensors: &[TensorInfo], data_len: u64) -> Result<(), Error> {
    let mut expected = 0;
    for tensor in tensors {
        let found = tensor.begin;
        match found.cmp(&expected) {
            std::cmp::Ordering::Less => return Err(Error::tensor(Problem::Overlap { expected, found }, &tensor.name)),
            std::cmp::Ordering::Greater => return Err(Error::tensor(Problem::Gap { expected, found }, &tensor.name)),
            std::cmp::Ordering::Equal => expected = tensor.end,
        }
    }
    let refuse = |problem| Err(Error::new(problem, Place::Data));
    match data_len.cmp(&expected) {
        std::cmp::Ordering::Less => refuse(Problem::DataShort { missing: expected.saturating_sub(data_len) }),
        std::cmp::Ordering::Greater => refuse(Problem::DataLeft { bytes: data_len.saturating_sub(expected) }),
        std::cmp::Ordering::Equal => Ok(()),
    }
}
