//! Why a safetensors file is refused: the rule of `docs/acceptance.md` §4, the place, what was expected and found.

use super::dtype::ElementType;
use super::header::MAX_HEADER;
use std::fmt;

/// Where the rule is broken.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Place {
    /// The length at the front and the text behind it.
    Header,
    /// The `__metadata__` of the header.
    Metadata,
    /// The tensor of this name.
    Tensor(String),
    /// The bytes behind the header.
    Data,
    /// The index of a sharded model.
    Index,
}

/// What is wrong. The sentences are [`Error`]'s `Display`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "variant and field names say it; Display says it in a sentence")]
pub enum Problem {
    Short { have: u64 },
    HeaderTooLarge { declared: u64 },
    HeaderPastEnd { declared: u64, have: u64 },
    NotAnObject { first: u8 },
    NotUtf8 { at: u64 },
    Json(String),
    AfterJson { byte: u8 },
    TooManyTensors,
    NameEmpty,
    NameTooLong { found: u64 },
    NameNul,
    DuplicateName,
    DuplicateKey(String),
    UnknownType(String),
    SizeOverflow,
    PartialByte { dtype: ElementType },
    Length { expected: u64, found: u64 },
    Reversed { begin: u64, end: u64 },
    Gap { expected: u64, found: u64 },
    Overlap { expected: u64, found: u64 },
    DataShort { missing: u64 },
    DataLeft { bytes: u64 },
    IndexTooLarge { found: u64 },
    ShardName(String),
    MissingShards(Vec<String>),
    NotInShard { shard: String },
    NotInIndex { shard: String },
    OtherShard { named: String, found: String },
    NoGgmlType(ElementType),
    Rank(usize),
    Dimension(u64),
    Reserved,
}

impl Problem {
    /// JSON's own finding, which may quote a text of any length.
    pub(super) fn json(error: &serde_json::Error) -> Self {
        const MOST: usize = 160;
        let text = error.to_string();
        let place = text.rfind(" at line ").unwrap_or(text.len());
        let (what, place) = text.split_at_checked(place).unwrap_or((&text, ""));
        let short: String = what.chars().take(MOST).collect();
        let more = if short.len() < what.len() { "..." } else { "" };
        Self::Json(format!("{short}{more}{place}"))
    }
}

/// One broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// What is wrong.
    pub problem: Problem,
    /// Where.
    pub place: Place,
}

impl Error {
    pub(crate) const fn new(problem: Problem, place: Place) -> Self {
        Self { problem, place }
    }

    pub(crate) fn tensor(problem: Problem, name: &str) -> Self {
        Self::new(problem, Place::Tensor(name.to_owned()))
    }

    /// The rule of `docs/acceptance.md` that is broken.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self.problem {
            Problem::Short { .. } | Problem::HeaderTooLarge { .. } | Problem::HeaderPastEnd { .. } => "S1",
            Problem::NotAnObject { .. } | Problem::NotUtf8 { .. } | Problem::Json(_) | Problem::AfterJson { .. } => {
                match self.place {
                    Place::Index => "S9",
                    _ => "S2",
                }
            }
            Problem::NameEmpty | Problem::NameTooLong { .. } | Problem::NameNul | Problem::DuplicateName => "S3",
            Problem::TooManyTensors => "S3",
            Problem::DuplicateKey(_) => "S4",
            Problem::UnknownType(_) => "S5",
            Problem::SizeOverflow | Problem::PartialByte { .. } | Problem::Length { .. } | Problem::Reversed { .. } => {
                "S6"
            }
            Problem::Gap { .. } | Problem::Overlap { .. } => "S7",
            Problem::DataShort { .. } | Problem::DataLeft { .. } => "S8",
            Problem::IndexTooLarge { .. } | Problem::ShardName(_) => "S9",
            Problem::MissingShards(_)
            | Problem::NotInShard { .. }
            | Problem::NotInIndex { .. }
            | Problem::OtherShard { .. } => "S10",
            Problem::NoGgmlType(_) => "S11",
            Problem::Rank(_) | Problem::Dimension(_) => "S12",
            Problem::Reserved => "S13",
        }
    }
}

/// A name in quotes, cut where it would fill a screen: a header may hold 100 MB.
pub(super) fn quoted(name: &str) -> String {
    const MOST: usize = 80;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}...", name.get(..end).unwrap_or(name)),
        None => format!("{name:?}"),
    }
}

/// The first few of a list, and how many more there are.
fn some_of(names: &[String]) -> String {
    const MOST: usize = 5;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| quoted(name)).collect();
    match names.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("header"),
            Self::Metadata => f.write_str("__metadata__"),
            Self::Tensor(name) => write!(f, "tensor {}", quoted(name)),
            Self::Data => f.write_str("data"),
            Self::Index => f.write_str("index"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { have } => {
                write!(f, "the file has {have} bytes, the header's length alone takes 8; fetch it again")
            }
            Self::HeaderTooLarge { declared } => {
                write!(f, "its length is {declared} bytes, the format permits {MAX_HEADER}")
            }
            Self::HeaderPastEnd { declared, have } => {
                write!(f, "its length is {declared} bytes, the file has {have} after it; fetch it again")
            }
            Self::NotAnObject { first } => write!(f, "it begins with byte {first:#04x}, not with '{{'"),
            Self::NotUtf8 { at } => write!(f, "it is not UTF-8 at byte {at}"),
            Self::Json(reason) => f.write_str(reason),
            Self::AfterJson { byte } => {
                write!(f, "byte {byte:#04x} follows the JSON object where only spaces may stand")
            }
            Self::TooManyTensors => f.write_str("it describes more than 4294967295 tensors"),
            Self::NameEmpty => f.write_str("its name is empty; rename it"),
            Self::NameTooLong { found } => write!(f, "its name has {found} bytes, at most 1024 are read"),
            Self::NameNul => f.write_str("its name holds a NUL, which no container can store"),
            Self::DuplicateName => f.write_str("the header describes it twice"),
            Self::DuplicateKey(key) => write!(f, "key {} stands twice", quoted(key)),
            Self::UnknownType(name) => {
                write!(f, "its dtype {} is none of the format's; make the file again with a known one", quoted(name))
            }
            Self::SizeOverflow => f.write_str("its shape has more elements than 64 bits can count"),
            Self::PartialByte { dtype } => write!(f, "its elements of type {dtype} fill no whole number of bytes"),
            Self::Length { expected, found } => {
                write!(f, "shape and dtype make {expected} bytes, data_offsets spans {found}")
            }
            Self::Reversed { begin, end } => write!(f, "data_offsets ends at {end}, before it begins at {begin}"),
            Self::Gap { expected, found } => {
                write!(f, "it begins at data offset {found}, the tensor before it ends at {expected}: a hole")
            }
            Self::Overlap { expected, found } => {
                write!(f, "it begins at data offset {found}, inside the tensor before it, which ends at {expected}")
            }
            Self::DataShort { missing } => {
                write!(f, "the file ends {missing} bytes before its last tensor does; fetch it again")
            }
            Self::DataLeft { bytes } => write!(f, "{bytes} bytes at the end of the file belong to no tensor"),
            Self::IndexTooLarge { found } => write!(f, "it has {found} bytes, at most {MAX_HEADER} are read"),
            Self::ShardName(name) => {
                write!(f, "the file name {} is not one in the index's own folder", quoted(name))
            }
            Self::MissingShards(names) => {
                write!(f, "these files of the model are missing: {}; fetch them into the same folder", some_of(names))
            }
            Self::NotInShard { shard } => write!(f, "the index says {} has it, but it has not", quoted(shard)),
            Self::NotInIndex { shard } => write!(f, "{} has it, but the index does not name it", quoted(shard)),
            Self::OtherShard { named, found } => {
                write!(f, "{} has it, the index says {}", quoted(found), quoted(named))
            }
            Self::NoGgmlType(dtype) => {
                let remedy = match dtype {
                    ElementType::Bool | ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => {
                        "store it as a signed integer, or leave it out of the file"
                    }
                    ElementType::C64 => "store it as pairs of F32",
                    _ => "store it as BF16, F16 or F32 (multiplied by its scales, where it has some)",
                };
                write!(f, "a container has no type for the elements of {dtype}; {remedy}")
            }
            Self::Rank(rank) => {
                write!(f, "it has {rank} dimensions, a container holds up to 4; reshape it before it is saved")
            }
            Self::Dimension(found) => write!(f, "a dimension of {found} does not fit the 32 bits of a container"),
            Self::Reserved => {
                f.write_str("names that begin with \"p64.\" are reserved for what a container adds; rename it")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (acceptance rule {})", self.place, self.problem, self.rule())
    }
}

impl std::error::Error for Error {}
