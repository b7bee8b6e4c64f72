//! What can go wrong in core: one `Copy` value that says what, where, what was expected and what was found.
//!
//! The numbers of [`Code`] are frozen (the C ABI maps by them) in ranges: 1.. header, 30.. sections, 60.. tensor entries,
//! 90.. blobs, 110.. order, schedule, manifold, 130.. tokenizer, 150.. metadata, 170.. checksums, 200.. the caller's
//! mistakes, 220.. models this build cannot run, 230.. where the bytes come from.
#![forbid(unsafe_code)]

use core::fmt;

/// Result of core's functions.
pub type Result<T> = core::result::Result<T, Error>;

/// The kinds that stay apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Kind {
    /// The bytes break the format.
    Malformed,
    /// The bytes may be well-formed but pass a limit of this reader.
    Limit,
    /// The caller passed something that does not fit.
    Caller,
    /// The model is well-formed, but this build cannot run it.
    Unsupported,
    /// Where the bytes come from failed, not the bytes.
    Environment,
}

/// A section of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Section {
    Header,
    HParams,
    Schedule,
    TensorTable,
    Strings,
    Manifold,
    Tokenizer,
    Checksums,
    Blobs,
    Metadata,
}

impl Section {
    /// The name people read.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::HParams => "hparams",
            Self::Schedule => "layer schedule",
            Self::TensorTable => "tensor table",
            Self::Strings => "string table",
            Self::Manifold => "manifold table",
            Self::Tokenizer => "tokenizer",
            Self::Checksums => "checksum table",
            Self::Blobs => "blobs",
            Self::Metadata => "metadata",
        }
    }
}

/// Where it went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Place {
    /// The file as a whole, or an argument.
    File,
    /// A section.
    Section(Section),
    /// A tensor, by index in the table.
    Tensor(u32),
    /// A layer.
    Layer(u32),
    /// A token of the vocabulary.
    Token(u32),
    /// A merge pair.
    Merge(u32),
    /// A metadata key, by its position.
    Key(u32),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("file"),
            Self::Section(section) => f.write_str(section.name()),
            Self::Tensor(i) => write!(f, "tensor {i}"),
            Self::Layer(i) => write!(f, "layer {i}"),
            Self::Token(i) => write!(f, "token {i}"),
            Self::Merge(i) => write!(f, "merge {i}"),
            Self::Key(i) => write!(f, "key {i}"),
        }
    }
}

/// One failed check. `Copy`, without text of its own: `Display` builds the sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Error {
    /// What went wrong.
    pub code: Code,
    /// Where.
    pub place: Place,
    /// File offset of the bytes at fault, or [`Error::NO_OFFSET`].
    pub offset: u64,
    /// The value that would have passed; its meaning is the code's.
    pub expected: u64,
    /// The value that was there.
    pub found: u64,
}

impl Error {
    /// Stands for "no file offset".
    pub const NO_OFFSET: u64 = u64::MAX;

    /// A failure of `code` at `place`, without an offset and values.
    #[must_use]
    pub const fn new(code: Code, place: Place) -> Self {
        Self { code, place, offset: Self::NO_OFFSET, expected: 0, found: 0 }
    }

    /// The same at a file offset.
    #[must_use]
    pub const fn at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// The same with what was expected and what was found.
    #[must_use]
    pub const fn values(self, expected: u64, found: u64) -> Self {
        Self { expected, found, ..self }
    }

    /// A buffer of the caller's that is shorter than its `required_len`.
    #[must_use]
    pub const fn buffer_too_small(need: usize, have: usize) -> Self {
        Self::new(Code::BufferTooSmall, Place::File).values(need as u64, have as u64)
    }

    /// The kind of the code.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.code.kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        let mut rest = self.code.text();
        while let Some((before, after)) = rest.split_once('{') {
            f.write_str(before)?;
            let Some((field, tail)) = after.split_once('}') else { break };
            match field {
                "e" => write!(f, "{}", self.expected)?,
                "f" => write!(f, "{}", self.found)?,
                "E" => write!(f, "{:#x}", self.expected)?,
                "F" => write!(f, "{:#x}", self.found)?,
                _ => f.write_str(field)?,
            }
            rest = tail;
        }
        f.write_str(rest)?;
        if self.offset != Self::NO_OFFSET {
            write!(f, ", at file offset {:#x}", self.offset)?;
        }
        if !self.code.clause().is_empty() {
            write!(f, " ({})", self.code.clause())?;
        }
        Ok(())
    }
}

impl core::error::Error for Error {}

macro_rules! codes {
    ($($variant:ident = $number:literal, $slug:literal, $kind:ident, $clause:literal, $text:literal;)*) => {
        /// What went wrong. The number is frozen; the slug names the fixture in `tests/data/invalid`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[repr(u16)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $text] $variant = $number,)*
        }

        impl Code {
            /// Every code, in the order of the numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The frozen number.
            #[must_use]
            pub const fn number(self) -> u16 {
                self as u16
            }

            /// A short name, unique, in lower case with dashes.
            #[must_use]
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            /// The kind of failure.
            #[must_use]
            pub const fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind,)* }
            }

            /// The clause of `docs/spec` that asks for the check, or the empty string.
            #[must_use]
            pub const fn clause(self) -> &'static str {
                match self { $(Self::$variant => $clause,)* }
            }

            /// The sentence; `{e}` and `{f}` stand for the expected and found value, `{E}` and `{F}` for them in hex.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

codes! {
    // Header
    TooShort = 1, "too-short", Malformed, "§14.1", "the file has {f} bytes, a header needs {e}";
    BadMagic = 2, "bad-magic", Malformed, "§14.2", "the first four bytes are {F}, a P64 begins with {E} (\"p64\\0\")";
    BadVersion = 3, "bad-version", Malformed, "§14.2", "container version {f}, this reader knows {e} and 5";
    NotLittleEndian = 4, "not-little-endian", Malformed, "§14.2", "flag bit 0 (little-endian) is not set in {F}";
    ReservedFlags = 5, "reserved-flags", Malformed, "§5.1", "reserved flag bits {F} are set";
    ReservedHeader = 6, "reserved-header", Malformed, "§5", "reserved header byte is {F}, not zero";
    BadPageSize = 7, "bad-page-size", Malformed, "§14.3", "page size {f} is not a power of two of at least {e}";
    RoleTableOffset = 8, "role-table-offset", Malformed, "§5", "role_table_offset is {F} but flag bit 6 is not set";
    FlagTernary = 9, "flag-ternary", Malformed, "§5.1", "flag TERNARY is {f}, the tensors say {e}";
    FlagQ4kSoa = 10, "flag-q4k-soa", Malformed, "§5.1", "flag Q4K_SOA is {f}, the tensors say {e}";
    FileTooLarge = 11, "file-too-large", Limit, "§3.3", "the file has {f} bytes, container version 4 ends below {e}";
    VersionThreeFlags = 12, "version-3-flags", Malformed, "§15", "flag bits {F} have no meaning in container version 3";
    NeedlessVersion = 13, "needless-version", Malformed, "§15.1", "container version 5 in a file of {f} bytes, which version 4 holds below {e}";

    // Sections
    SectionBounds = 30, "section-bounds", Malformed, "§14.5", "the section ends at {F}, past {E}";
    SectionOrder = 31, "section-order", Malformed, "§14.6", "the section begins at {F}, inside or before what precedes it, which ends at {E}";
    SectionAlignment = 32, "section-alignment", Malformed, "§14.7", "offset {F} is not a multiple of {e}";
    GapNotZero = 33, "gap-not-zero", Malformed, "§4", "padding byte before the section is {F}, not zero";
    ReservedHParams = 34, "reserved-hparams", Malformed, "§6", "reserved hyperparameter byte is {F}, not zero";
    HParamsExtension = 35, "hparams-extension", Malformed, "§6", "hyperparameter bytes 28..55 carry the QualiaDB extension (first byte {F})";
    LayerLimit = 36, "layer-limit", Limit, "§16", "{f} layers, this reader's limit is {e}";
    HParamsMissing = 37, "hparams-missing", Malformed, "§6", "a complete model (flag bit 1 clear) needs every hyperparameter, number {e} is zero";
    HParamsNotFinite = 38, "hparams-not-finite", Malformed, "§6", "a RoPE value (bits {F}) is not finite";

    // Tensor entries and names
    BadRank = 60, "bad-rank", Malformed, "§14.9", "rank {f} is not in 1..={e}";
    UnusedDimension = 61, "unused-dimension", Malformed, "§7", "a dimension past the rank is {f}, not zero";
    ShapeOverflow = 62, "shape-overflow", Malformed, "§14", "the shape's byte count does not fit 64 bits";
    PartialBlock = 63, "partial-block", Malformed, "§14", "rows of {f} elements are no whole number of blocks of {e}";
    BlobSize = 64, "blob-size", Malformed, "§14", "blob of {f} bytes, the shape and type need {e}";
    ManifoldIndex = 65, "manifold-index", Malformed, "§14.10", "manifold index {f} is not below {e}";
    ReservedEntry = 66, "reserved-entry", Malformed, "§7", "reserved entry byte is {F}, not zero";
    NameOffset = 67, "name-offset", Malformed, "§14.11", "name offset {f} is outside the string table of {e} bytes";
    NameUnterminated = 68, "name-unterminated", Malformed, "§14.11", "the name at string offset {f} has no NUL before the table ends";
    NameNotUtf8 = 69, "name-not-utf8", Malformed, "§8", "the name at string offset {f} is not UTF-8";
    NameEmpty = 70, "name-empty", Malformed, "§8", "the name is empty";
    NameDuplicate = 71, "name-duplicate", Malformed, "§8", "the name is also that of tensor {e}";
    NameTooLong = 72, "name-too-long", Limit, "§16", "the name has {f} bytes, this reader's limit is {e}";
    NameOrder = 73, "name-order", Malformed, "§8", "name offset {f}, names follow each other without gaps and this one begins at {e}";
    StringsHead = 74, "strings-head", Malformed, "§8", "the string table begins with {F}, not with a NUL";
    UnknownRole = 75, "unknown-role", Unsupported, "§7.1", "role id {F} has no meaning in this draft";
    UnknownDType = 76, "unknown-dtype", Unsupported, "§7.2", "element type {f} is not in the registry; the bytes are kept as they are";
    StringsTail = 77, "strings-tail", Malformed, "§8", "the string table holds bytes after the last name";
    ManifoldRole = 78, "manifold-role", Malformed, "§7.1", "manifold index {f} does not go with the role: layer roles are below {e}, all others at it";
    PartialTile = 79, "partial-tile", Malformed, "§7.2.2", "{f} rows in each matrix are no multiple of {e}, which the type has side by side";

    // Blobs
    BlobAlignment = 90, "blob-alignment", Malformed, "§14.12", "blob offset {F} is not a multiple of {E}";
    BlobOrder = 91, "blob-order", Malformed, "§14.12", "blob begins at {F}, before the preceding one ends at {E}";
    BlobFloor = 92, "blob-floor", Malformed, "§12", "blob begins at {F}, below the blob floor {E}";
    BlobBounds = 93, "blob-bounds", Malformed, "§14.12", "blob ends at {F}, the file at {E}";
    BlobPadding = 94, "blob-padding", Malformed, "§12", "padding byte before the blob is {F}, not zero";
    TailPadding = 95, "tail-padding", Malformed, "§12", "byte {F} after the last blob is not zero";
    FileLength = 96, "file-length", Malformed, "§12", "the file has {f} bytes, its content ends at {e}";

    // Order, schedule, manifold
    LayerMajorOrder = 110, "layer-major-order", Malformed, "§7.3", "out of layer-major order (sort key {f} after {e})";
    ScheduleReserved = 111, "schedule-reserved", Malformed, "§7.4", "reserved schedule byte is {F}, not zero";
    ScheduleLayer = 112, "schedule-layer", Malformed, "§7.4", "the record names layer {f}, its place is {e}";
    ScheduleBegin = 113, "schedule-begin", Malformed, "§7.4", "blob_begin is {F}, the layer's blobs begin at {E}";
    ScheduleEnd = 114, "schedule-end", Malformed, "§7.4", "blob_end is {F}, the layer's blobs end at {E}";
    ScheduleCount = 115, "schedule-count", Malformed, "§7.4", "tensor_count is {f}, the layer has {e}";
    ScheduleRoles = 116, "schedule-roles", Malformed, "§7.4", "roles_mask is {F}, the layer's roles are {E}";
    ScheduleAllZero = 117, "schedule-all-zero", Malformed, "§7.4", "the schedule of {e} layers is all zero";
    ManifoldNotFinite = 118, "manifold-not-finite", Malformed, "§9", "a coordinate (bits {F}) is not finite";
    ManifoldReserved = 119, "manifold-reserved", Malformed, "§9", "reserved manifold byte is {F}, not zero";
    ScheduleScattered = 120, "schedule-scattered", Limit, "§16", "{f} layers times tensors; a schedule over scattered layers is checked up to {e}";

    // Tokenizer (Q42T)
    TokenizerMagic = 130, "tokenizer-magic", Malformed, "§10", "the section begins with {F}, not with {E} (\"Q42T\")";
    TokenizerVersion = 131, "tokenizer-version", Malformed, "§10", "Q42T version {f}, this reader knows 1 and {e}";
    TokenizerFlags = 132, "tokenizer-flags", Malformed, "§10", "Q42T flags are {F}, not zero";
    TokenizerTruncated = 133, "tokenizer-truncated", Malformed, "§10", "{e} more bytes are needed, {f} are left in the section";
    TokenizerNotUtf8 = 134, "tokenizer-not-utf8", Malformed, "§10", "a string of {f} bytes is not UTF-8";
    TokenizerVocabulary = 135, "tokenizer-vocabulary", Limit, "§10", "{f} vocabulary entries, the limit is {e}";
    TokenizerMerges = 136, "tokenizer-merges", Limit, "§10", "{f} merge pairs, the limit is {e}";
    TokenizerSpecialId = 137, "tokenizer-special-id", Malformed, "§10", "special token id {f} is not below the vocabulary's {e}";
    TokenizerPadding = 138, "tokenizer-padding", Malformed, "§10", "padding byte is {F}, not zero";
    TokenizerStops = 140, "tokenizer-stops", Malformed, "§10", "{f} stop ids, the trailer holds {e}";
    TokenizerMissing = 141, "tokenizer-missing", Malformed, "§10", "a complete model (flag bit 1 clear) has no tokenizer section";
    TokenizerLength = 142, "tokenizer-length", Malformed, "§10", "{f} bytes follow the payload, padding to {e} needs fewer";

    // Metadata (the GGUF key-value area)
    MetadataTruncated = 150, "metadata-truncated", Malformed, "§17", "{e} more bytes are needed, {f} are left";
    MetadataCount = 151, "metadata-count", Malformed, "§17", "{f} entries cannot fit the remaining {e} bytes";
    MetadataType = 152, "metadata-type", Malformed, "§17", "value type {f} is not in 0..={e}";
    MetadataNested = 153, "metadata-nested", Malformed, "§17", "an array of arrays";
    MetadataBool = 154, "metadata-bool", Malformed, "§17", "a boolean byte is {f}, not 0 or 1";
    MetadataNotUtf8 = 155, "metadata-not-utf8", Malformed, "§17", "a string of {f} bytes is not UTF-8";
    MetadataEmptyKey = 156, "metadata-empty-key", Malformed, "§17", "the key is empty";
    MetadataDuplicateKey = 157, "metadata-duplicate-key", Malformed, "§17", "the key stands at position {e} already";
    MetadataTrailing = 158, "metadata-trailing", Malformed, "§17", "{f} bytes follow the last pair";
    MetadataKeyNul = 159, "metadata-key-nul", Malformed, "§17", "the key holds a NUL byte";
    MetadataWrongType = 160, "metadata-wrong-type", Malformed, "§17", "the value has type {f}, the key needs type {e}";
    MetadataRange = 161, "metadata-range", Malformed, "§17", "the value {f} is outside what the key permits ({e})";
    MetadataContradiction = 162, "metadata-contradiction", Malformed, "§17", "metadata says {e}, the hyperparameter record {f}";
    MetadataKeyTooLong = 163, "metadata-key-too-long", Limit, "§17", "the key has {f} bytes, the limit is {e}";

    // Checksums
    MetadataChecksum = 170, "metadata-checksum", Malformed, "§14.8", "CRC-32C of everything before the checksum table is {F}, the table says {E}";
    TensorChecksum = 171, "tensor-checksum", Malformed, "§14.13", "CRC-32C of the blob is {F}, the table says {E}";
    TernaryDigit = 172, "ternary-digit", Malformed, "§7.4", "packed byte {f} is above {e}";

    // The caller
    BufferTooSmall = 200, "buffer-too-small", Caller, "", "the buffer has room for {f}, {e} are needed";
    NoSuchTensor = 201, "no-such-tensor", Caller, "", "there is no tensor {f}, the file has {e}";
    LengthMismatch = 202, "length-mismatch", Caller, "", "the slice has {f} elements, {e} are needed";
    ContextFull = 203, "context-full", Caller, "", "position {f} is past the context of {e} positions";
    TokenRange = 204, "token-range", Caller, "", "token id {f} is not below the vocabulary's {e}";
    TooManyTensors = 205, "too-many-tensors", Caller, "", "{f} tensors need an index of that many slots, {e} were given";
    NotValidated = 206, "not-validated", Caller, "", "the validation has not come to its end";

    // Models this build cannot run
    UnsupportedArchitecture = 220, "unsupported-architecture", Unsupported, "", "the model's architecture is not one this build runs";
    UnsupportedDType = 221, "unsupported-dtype", Unsupported, "", "element type {f} is kept but cannot be decoded by this build";
    MissingTensor = 222, "missing-tensor", Unsupported, "", "a tensor that the architecture needs is missing (role {f})";
    MissingKey = 223, "missing-key", Unsupported, "", "a metadata key that the architecture needs is missing (parameter {f})";
    WrongShape = 224, "wrong-shape", Unsupported, "", "the tensor has {f} where the architecture needs {e}";
    UnsupportedFeature = 225, "unsupported-feature", Unsupported, "", "the model uses a feature this build does not run (parameter {f})";

    // Where the bytes come from
    ReadFailed = 230, "read-failed", Environment, "", "the read failed, the reader's own code is {f}";
    ReadChanged = 231, "read-changed", Environment, "", "the bytes read now are not those that were validated";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::string::ToString;

    #[test]
    fn display_names_place_values_offset_and_clause() {
        let error = Error::new(Code::BlobAlignment, Place::Tensor(7)).values(0x4000, 0x1f40);
        assert_eq!(error.to_string(), "tensor 7: blob offset 0x1f40 is not a multiple of 0x4000 (§14.12)");
        let error = Error::new(Code::TooShort, Place::Section(Section::Header)).values(64, 3).at(0);
        assert_eq!(error.to_string(), "header: the file has 3 bytes, a header needs 64, at file offset 0x0 (§14.1)");
        assert_eq!(Error::buffer_too_small(8, 3).to_string(), "file: the buffer has room for 3, 8 are needed");
    }

    #[test]
    fn numbers_and_slugs_are_unique_and_ascending() {
        let slugs: BTreeSet<_> = Code::ALL.iter().map(|code| code.slug()).collect();
        assert_eq!(slugs.len(), Code::ALL.len());
        assert!(Code::ALL.windows(2).all(|pair| pair[0].number() < pair[1].number()));
    }

    /// A caller keeps many of these; a growth is a decision (docs/decisions/0003-errors.md).
    #[test]
    fn an_error_stays_small() {
        assert!(size_of::<Error>() <= 40, "{}", size_of::<Error>());
    }
}
