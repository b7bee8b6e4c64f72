//! Why a GGUF is refused: the rule of `docs/acceptance.md`, the place, what was expected and what was found.

use crate::sniff::Kind;
use p64_core::DType;
use std::fmt;

/// Where in the file the rule is broken.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Place {
    /// The 24 bytes at the front.
    Header,
    /// A pair of the key-value area, by position and, where it could be read, by name.
    Key(u32, Option<String>),
    /// A tensor, by position in the table and, where it could be read, by name.
    Tensor(u32, Option<String>),
    /// The bytes after the last payload.
    Tail,
    /// The set of files of a split model.
    Set,
}

/// What is wrong. The sentences are [`Error`]'s `Display`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "variant and field names say it; Display says it in a sentence")]
pub enum Problem {
    NotGguf(Kind),
    BigEndian,
    Version(u32),
    Short { need: u64, have: u64 },
    KeyCount { declared: u64, room: u64 },
    TensorCount { declared: u64, room: u64 },
    HeadTooLarge { limit: u64 },
    Metadata(p64_core::Error),
    ValueNotUtf8,
    DuplicateKey { first: u32 },
    AlignmentType { found: &'static str },
    Alignment(u32),
    NameEmpty,
    NameTooLong { found: u64 },
    NameNotUtf8,
    NameNul,
    DuplicateName { first: u32 },
    Rank(u32),
    Dimension { axis: u32, found: u64 },
    SizeOverflow,
    RemovedType { id: u32, name: &'static str },
    UnknownType(u32),
    PartialBlock { row: u64, block: u32, dtype: DType },
    Misaligned { offset: u64, alignment: u32 },
    Gap { expected: u64, found: u64 },
    Overlap { expected: u64, found: u64 },
    DataShort { missing: u64 },
    TailLength { found: u64, limit: u64 },
    TailNotZero { byte: u8 },
    SplitName { count: u64 },
    SplitCount { expected: u64, found: u64 },
    SplitNumber { expected: u64, found: u64 },
    SplitTensors { expected: u64, found: u64 },
    SplitDuplicate,
    SplitNotFirst { first: String },
}

/// One broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// What is wrong.
    pub problem: Problem,
    /// Where.
    pub place: Place,
    /// File offset of the bytes at fault, where there is one.
    pub offset: Option<u64>,
}

impl Error {
    pub(crate) const fn new(problem: Problem, place: Place) -> Self {
        Self { problem, place, offset: None }
    }

    pub(crate) const fn at(problem: Problem, place: Place, offset: u64) -> Self {
        Self { problem, place, offset: Some(offset) }
    }

    /// The rule of `docs/acceptance.md` that is broken.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        use p64_core::Code;
        match &self.problem {
            Problem::NotGguf(_) => "G2",
            Problem::BigEndian | Problem::Version(_) => "G3",
            Problem::Short { .. } if self.place == Place::Header => "G1",
            Problem::Short { .. }
            | Problem::KeyCount { .. }
            | Problem::TensorCount { .. }
            | Problem::HeadTooLarge { .. } => "G4",
            Problem::Metadata(error) => match error.code {
                Code::MetadataType => "G6",
                Code::MetadataNested => "G7",
                Code::MetadataBool => "G8",
                Code::MetadataTruncated | Code::MetadataCount => "G4",
                _ => "G5",
            },
            Problem::DuplicateKey { .. } => "G5",
            Problem::ValueNotUtf8 => "G8",
            Problem::AlignmentType { .. } | Problem::Alignment(_) => "G9",
            Problem::NameEmpty
            | Problem::NameTooLong { .. }
            | Problem::NameNotUtf8
            | Problem::NameNul
            | Problem::DuplicateName { .. } => "G10",
            Problem::Rank(_) => "G11",
            Problem::Dimension { .. } | Problem::SizeOverflow => "G12",
            Problem::RemovedType { .. } | Problem::UnknownType(_) => "G13",
            Problem::PartialBlock { .. } => "G14",
            Problem::Misaligned { .. } => "G15",
            Problem::Gap { .. } | Problem::Overlap { .. } => "G16",
            Problem::DataShort { .. } => "G17",
            Problem::TailLength { .. } | Problem::TailNotZero { .. } => "G18",
            Problem::SplitName { .. }
            | Problem::SplitCount { .. }
            | Problem::SplitNumber { .. }
            | Problem::SplitTensors { .. }
            | Problem::SplitDuplicate
            | Problem::SplitNotFirst { .. } => "split sets",
        }
    }
}

/// A name in quotes, cut where it would fill a screen: keys may have 65,535 bytes.
fn quoted(name: &str) -> String {
    const MOST: usize = 80;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}...", name.get(..end).unwrap_or(name)),
        None => format!("{name:?}"),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("GGUF header"),
            Self::Key(index, None) => write!(f, "GGUF key {index}"),
            Self::Key(index, Some(name)) => write!(f, "GGUF key {index} {}", quoted(name)),
            Self::Tensor(index, None) => write!(f, "GGUF tensor {index}"),
            Self::Tensor(index, Some(name)) => write!(f, "GGUF tensor {index} {}", quoted(name)),
            Self::Tail => f.write_str("end of the GGUF"),
            Self::Set => f.write_str("split GGUF"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGguf(kind) => write!(f, "this is {kind}"),
            Self::BigEndian => write!(f, "the file is big-endian: {}", Kind::GgufBigEndian.advice()),
            Self::Version(found) => write!(f, "version {found}, this reader knows 2 and 3"),
            Self::Short { need, have } => {
                write!(f, "{need} bytes are needed, {have} are left: the file is cut short; fetch it again")
            }
            Self::KeyCount { declared, room } => write!(f, "{declared} keys cannot fit the {room} bytes that follow"),
            Self::TensorCount { declared, room } => {
                write!(f, "{declared} tensors cannot fit the {room} bytes that follow")
            }
            Self::HeadTooLarge { limit } => {
                write!(f, "keys and tensor table are longer than {limit} bytes, a limit of this reader")
            }
            Self::Metadata(error) => f.write_str(&core_sentence(error)),
            Self::ValueNotUtf8 => f.write_str("a string value is not UTF-8"),
            Self::DuplicateKey { first } => write!(f, "the same key stands at position {first} already"),
            Self::AlignmentType { found } => write!(f, "the alignment has type {found}, u32 is needed"),
            Self::Alignment(found) => write!(f, "the alignment {found} is not a power of two from 1 to 65536"),
            Self::NameEmpty => f.write_str("the name is empty"),
            Self::NameTooLong { found } => write!(f, "the name has {found} bytes, 1024 are allowed"),
            Self::NameNotUtf8 => f.write_str("the name is not UTF-8"),
            Self::NameNul => f.write_str("the name holds a NUL byte, which a P64 cannot store"),
            Self::DuplicateName { first } => write!(f, "tensor {first} has the same name"),
            Self::Rank(found) => write!(f, "{found} dimensions, 1 to 4 are allowed"),
            Self::Dimension { axis, found } => write!(f, "dimension {axis} is {found}, the limit is 4294967295"),
            Self::SizeOverflow => f.write_str("the size of the tensor does not fit 64 bits"),
            Self::RemovedType { id, name } => {
                write!(f, "type {id} was removed from GGML (it was {name}); quantise the model again")
            }
            Self::UnknownType(id) => write!(f, "type {id} is not in the GGML registry"),
            Self::PartialBlock { row, block, dtype } => {
                write!(f, "rows of {row} are no whole number of {dtype} blocks of {block}")
            }
            Self::Misaligned { offset, alignment } => {
                write!(f, "data offset {offset:#x} is not a multiple of the alignment {alignment}")
            }
            Self::Gap { expected, found } => {
                write!(f, "data offset {found:#x} leaves a gap, the tensor before it ends at {expected:#x}")
            }
            Self::Overlap { expected, found } => {
                write!(f, "data offset {found:#x} overlaps the tensor before it, which ends at {expected:#x}")
            }
            Self::DataShort { missing } => {
                write!(f, "the file ends {missing} bytes before the tensor does; fetch it again")
            }
            Self::TailLength { found, limit } => {
                write!(f, "{found} bytes follow the last payload, padding explains {limit}")
            }
            Self::TailNotZero { byte } => write!(f, "byte {byte:#04x} follows the last payload where padding is zero"),
            Self::SplitName { count } => {
                write!(f, "split.count is {count}, so the file must be named <stem>-00001-of-{count:05}.gguf")
            }
            Self::SplitCount { expected, found } => write!(f, "split.count is {found}, the first file says {expected}"),
            Self::SplitNumber { expected, found } => write!(f, "split.no is {found}, the name says {expected}"),
            Self::SplitTensors { expected, found } => {
                write!(f, "split.tensors.count is {expected}, the files hold {found} tensors")
            }
            Self::SplitDuplicate => f.write_str("another file of the set has a tensor of this name"),
            Self::SplitNotFirst { first } => write!(f, "this is not the first file of its set: open {first}"),
        }
    }
}

/// Core's sentence without the place and clause of a P64.
fn core_sentence(error: &p64_core::Error) -> String {
    let mut bare = *error;
    bare.offset = p64_core::Error::NO_OFFSET;
    let text = bare.to_string();
    let text = text.split_once(": ").map_or(text.as_str(), |(_, tail)| tail);
    text.rsplit_once(" (§").map_or(text, |(head, _)| head).to_owned()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)?;
        if let Some(offset) = self.offset {
            write!(f, ", at file offset {offset:#x}")?;
        }
        write!(f, " (acceptance rule {})", self.rule())
    }
}

impl std::error::Error for Error {}
