//! The numbers that say how a call ended.

use crate::boundary::Status;
use core::ffi::{CStr, c_char};
use p64_core::Code;

/// How a call ended. The numbers are frozen. Below 300 they are those of the format's checks (docs/errors.md); the
/// values they speak of stand in `p64_error`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum p64_status {
    /// It did what was asked.
    P64_STATUS_OK = 0,
    /// The file has `found` bytes, a header needs `expected`.
    P64_STATUS_TOO_SHORT = 1,
    /// The first four bytes are `found`, a P64 begins with `expected` ("p64" and a NUL).
    P64_STATUS_BAD_MAGIC = 2,
    /// Container version `found`, this reader knows `expected`.
    P64_STATUS_BAD_VERSION = 3,
    /// Flag bit 0 (little-endian) is not set in `found`.
    P64_STATUS_NOT_LITTLE_ENDIAN = 4,
    /// Reserved flag bits `found` are set.
    P64_STATUS_RESERVED_FLAGS = 5,
    /// Reserved header byte is `found`, not zero.
    P64_STATUS_RESERVED_HEADER = 6,
    /// Page size `found` is not a power of two of at least `expected`.
    P64_STATUS_BAD_PAGE_SIZE = 7,
    /// The field role_table_offset is `found` but flag bit 6 is not set.
    P64_STATUS_ROLE_TABLE_OFFSET = 8,
    /// Flag TERNARY is `found`, the tensors say `expected`.
    P64_STATUS_FLAG_TERNARY = 9,
    /// Flag Q4K_SOA is `found`, the tensors say `expected`.
    P64_STATUS_FLAG_Q4K_SOA = 10,
    /// The file has `found` bytes, container version 4 ends below `expected`.
    P64_STATUS_FILE_TOO_LARGE = 11,
    /// Flag bits `found` have no meaning in container version 3.
    P64_STATUS_VERSION_3_FLAGS = 12,
    /// Container version 5 in a file of `found` bytes, which version 4 holds below `expected`.
    P64_STATUS_NEEDLESS_VERSION = 13,
    /// The section ends at `found`, past `expected`.
    P64_STATUS_SECTION_BOUNDS = 30,
    /// The section begins at `found`, inside or before what precedes it, which ends at `expected`.
    P64_STATUS_SECTION_ORDER = 31,
    /// Offset `found` is not a multiple of `expected`.
    P64_STATUS_SECTION_ALIGNMENT = 32,
    /// Padding byte before the section is `found`, not zero.
    P64_STATUS_GAP_NOT_ZERO = 33,
    /// Reserved hyperparameter byte is `found`, not zero.
    P64_STATUS_RESERVED_HPARAMS = 34,
    /// Hyperparameter bytes 28..55 carry the QualiaDB extension (first byte `found`).
    P64_STATUS_HPARAMS_EXTENSION = 35,
    /// `found` layers, this reader's limit is `expected`.
    P64_STATUS_LAYER_LIMIT = 36,
    /// A complete model (flag bit 1 clear) needs every hyperparameter, number `expected` is zero.
    P64_STATUS_HPARAMS_MISSING = 37,
    /// A RoPE value (bits `found`) is not finite.
    P64_STATUS_HPARAMS_NOT_FINITE = 38,
    /// Rank `found` is not in 1 to `expected`.
    P64_STATUS_BAD_RANK = 60,
    /// A dimension past the rank is `found`, not zero.
    P64_STATUS_UNUSED_DIMENSION = 61,
    /// The shape's byte count does not fit 64 bits.
    P64_STATUS_SHAPE_OVERFLOW = 62,
    /// Rows of `found` elements are no whole number of blocks of `expected`.
    P64_STATUS_PARTIAL_BLOCK = 63,
    /// Blob of `found` bytes, the shape and type need `expected`.
    P64_STATUS_BLOB_SIZE = 64,
    /// Manifold index `found` is not below `expected`.
    P64_STATUS_MANIFOLD_INDEX = 65,
    /// Reserved entry byte is `found`, not zero.
    P64_STATUS_RESERVED_ENTRY = 66,
    /// Name offset `found` is outside the string table of `expected` bytes.
    P64_STATUS_NAME_OFFSET = 67,
    /// The name at string offset `found` has no NUL before the table ends.
    P64_STATUS_NAME_UNTERMINATED = 68,
    /// The name at string offset `found` is not UTF-8.
    P64_STATUS_NAME_NOT_UTF8 = 69,
    /// The name is empty.
    P64_STATUS_NAME_EMPTY = 70,
    /// The name is also that of tensor `expected`.
    P64_STATUS_NAME_DUPLICATE = 71,
    /// The name has `found` bytes, this reader's limit is `expected`.
    P64_STATUS_NAME_TOO_LONG = 72,
    /// Name offset `found`, names follow each other without gaps and this one begins at `expected`.
    P64_STATUS_NAME_ORDER = 73,
    /// The string table begins with `found`, not with a NUL.
    P64_STATUS_STRINGS_HEAD = 74,
    /// Role id `found` has no meaning in this draft.
    P64_STATUS_UNKNOWN_ROLE = 75,
    /// Element type `found` is not in the registry; the bytes are kept as they are.
    P64_STATUS_UNKNOWN_DTYPE = 76,
    /// The string table holds bytes after the last name.
    P64_STATUS_STRINGS_TAIL = 77,
    /// Manifold index `found` does not go with the role: layer roles are below `expected`, all others at it.
    P64_STATUS_MANIFOLD_ROLE = 78,
    /// `found` rows in each matrix are no multiple of `expected`, which the type has side by side.
    P64_STATUS_PARTIAL_TILE = 79,
    /// Blob offset `found` is not a multiple of `expected`.
    P64_STATUS_BLOB_ALIGNMENT = 90,
    /// Blob begins at `found`, before the preceding one ends at `expected`.
    P64_STATUS_BLOB_ORDER = 91,
    /// Blob begins at `found`, below the blob floor `expected`.
    P64_STATUS_BLOB_FLOOR = 92,
    /// Blob ends at `found`, the file at `expected`.
    P64_STATUS_BLOB_BOUNDS = 93,
    /// Padding byte before the blob is `found`, not zero.
    P64_STATUS_BLOB_PADDING = 94,
    /// Byte `found` after the last blob is not zero.
    P64_STATUS_TAIL_PADDING = 95,
    /// The file has `found` bytes, its content ends at `expected`.
    P64_STATUS_FILE_LENGTH = 96,
    /// Out of layer-major order (sort key `found` after `expected`).
    P64_STATUS_LAYER_MAJOR_ORDER = 110,
    /// Reserved schedule byte is `found`, not zero.
    P64_STATUS_SCHEDULE_RESERVED = 111,
    /// The record names layer `found`, its place is `expected`.
    P64_STATUS_SCHEDULE_LAYER = 112,
    /// Blob_begin is `found`, the layer's blobs begin at `expected`.
    P64_STATUS_SCHEDULE_BEGIN = 113,
    /// Blob_end is `found`, the layer's blobs end at `expected`.
    P64_STATUS_SCHEDULE_END = 114,
    /// Tensor_count is `found`, the layer has `expected`.
    P64_STATUS_SCHEDULE_COUNT = 115,
    /// Roles_mask is `found`, the layer's roles are `expected`.
    P64_STATUS_SCHEDULE_ROLES = 116,
    /// The schedule of `expected` layers is all zero.
    P64_STATUS_SCHEDULE_ALL_ZERO = 117,
    /// A coordinate (bits `found`) is not finite.
    P64_STATUS_MANIFOLD_NOT_FINITE = 118,
    /// Reserved manifold byte is `found`, not zero.
    P64_STATUS_MANIFOLD_RESERVED = 119,
    /// `found` layers times tensors; a schedule over scattered layers is checked up to `expected`.
    P64_STATUS_SCHEDULE_SCATTERED = 120,
    /// The section begins with `found`, not with `expected` ("Q42T").
    P64_STATUS_TOKENIZER_MAGIC = 130,
    /// Q42T version `found`, this reader knows 1 and `expected`.
    P64_STATUS_TOKENIZER_VERSION = 131,
    /// Q42T flags are `found`, not zero.
    P64_STATUS_TOKENIZER_FLAGS = 132,
    /// `expected` more bytes are needed, `found` are left in the section.
    P64_STATUS_TOKENIZER_TRUNCATED = 133,
    /// A string of `found` bytes is not UTF-8.
    P64_STATUS_TOKENIZER_NOT_UTF8 = 134,
    /// `found` vocabulary entries, the limit is `expected`.
    P64_STATUS_TOKENIZER_VOCABULARY = 135,
    /// `found` merge pairs, the limit is `expected`.
    P64_STATUS_TOKENIZER_MERGES = 136,
    /// Special token id `found` is not below the vocabulary's `expected`.
    P64_STATUS_TOKENIZER_SPECIAL_ID = 137,
    /// Padding byte is `found`, not zero.
    P64_STATUS_TOKENIZER_PADDING = 138,
    /// `found` stop ids, the trailer holds `expected`.
    P64_STATUS_TOKENIZER_STOPS = 140,
    /// A complete model (flag bit 1 clear) has no tokenizer section.
    P64_STATUS_TOKENIZER_MISSING = 141,
    /// `found` bytes follow the payload, padding to `expected` needs fewer.
    P64_STATUS_TOKENIZER_LENGTH = 142,
    /// `expected` more bytes are needed, `found` are left.
    P64_STATUS_METADATA_TRUNCATED = 150,
    /// `found` entries cannot fit the remaining `expected` bytes.
    P64_STATUS_METADATA_COUNT = 151,
    /// Value type `found` is not in 0..=`expected`.
    P64_STATUS_METADATA_TYPE = 152,
    /// An array of arrays.
    P64_STATUS_METADATA_NESTED = 153,
    /// A boolean byte is `found`, not 0 or 1.
    P64_STATUS_METADATA_BOOL = 154,
    /// A string of `found` bytes is not UTF-8.
    P64_STATUS_METADATA_NOT_UTF8 = 155,
    /// The key is empty.
    P64_STATUS_METADATA_EMPTY_KEY = 156,
    /// The key stands at position `expected` already.
    P64_STATUS_METADATA_DUPLICATE_KEY = 157,
    /// `found` bytes follow the last pair.
    P64_STATUS_METADATA_TRAILING = 158,
    /// The key holds a NUL byte.
    P64_STATUS_METADATA_KEY_NUL = 159,
    /// The value has type `found`, the key needs type `expected`.
    P64_STATUS_METADATA_WRONG_TYPE = 160,
    /// The value `found` is outside what the key permits (`expected`).
    P64_STATUS_METADATA_RANGE = 161,
    /// Metadata says `expected`, the hyperparameter record `found`.
    P64_STATUS_METADATA_CONTRADICTION = 162,
    /// The key has `found` bytes, the limit is `expected`.
    P64_STATUS_METADATA_KEY_TOO_LONG = 163,
    /// CRC-32C of everything before the checksum table is `found`, the table says `expected`.
    P64_STATUS_METADATA_CHECKSUM = 170,
    /// CRC-32C of the blob is `found`, the table says `expected`.
    P64_STATUS_TENSOR_CHECKSUM = 171,
    /// Packed byte `found` is above `expected`.
    P64_STATUS_TERNARY_DIGIT = 172,
    /// The buffer has room for `found`, `expected` are needed.
    P64_STATUS_BUFFER_TOO_SMALL = 200,
    /// There is no tensor `found`, the file has `expected`.
    P64_STATUS_NO_SUCH_TENSOR = 201,
    /// The slice has `found` elements, `expected` are needed.
    P64_STATUS_LENGTH_MISMATCH = 202,
    /// Position `found` is past the context of `expected` positions.
    P64_STATUS_CONTEXT_FULL = 203,
    /// Token id `found` is not below the vocabulary's `expected`.
    P64_STATUS_TOKEN_RANGE = 204,
    /// `found` tensors need an index of that many slots, `expected` were given.
    P64_STATUS_TOO_MANY_TENSORS = 205,
    /// The validation has not come to its end.
    P64_STATUS_NOT_VALIDATED = 206,
    /// The model's architecture is not one this build runs.
    P64_STATUS_UNSUPPORTED_ARCHITECTURE = 220,
    /// Element type `found` is kept but cannot be decoded by this build.
    P64_STATUS_UNSUPPORTED_DTYPE = 221,
    /// A tensor that the architecture needs is missing (role `found`).
    P64_STATUS_MISSING_TENSOR = 222,
    /// A metadata key that the architecture needs is missing (parameter `found`).
    P64_STATUS_MISSING_KEY = 223,
    /// The tensor has `found` where the architecture needs `expected`.
    P64_STATUS_WRONG_SHAPE = 224,
    /// The model uses a feature this build does not run (parameter `found`).
    P64_STATUS_UNSUPPORTED_FEATURE = 225,
    /// The read failed, the reader's own code is `found`.
    P64_STATUS_READ_FAILED = 230,
    /// The bytes read now are not those that were validated.
    P64_STATUS_READ_CHANGED = 231,
    /// A pointer that must not be NULL is.
    P64_STATUS_NULL_POINTER = 300,
    /// A pointer is not aligned as its type asks: `found` modulo `expected` is not zero.
    P64_STATUS_MISALIGNED = 301,
    /// A `struct_size` is not that of this library: `expected` is.
    P64_STATUS_BAD_STRUCT_SIZE = 302,
    /// The storage was not opened, or its opening failed: the calls are in the wrong order.
    P64_STATUS_NOT_OPEN = 303,
    /// An argument is outside what the function permits: an enumeration's number, a length that no buffer has,
    /// buffers that overlap.
    P64_STATUS_BAD_ARGUMENT = 304,
    /// There is nothing of that name, key, role or number.
    P64_STATUS_NOT_FOUND = 305,
    /// A defect of the library, stopped at the border. What the call was changing must not be used further.
    P64_STATUS_PANIC = 306,
    /// The operating system refused; `p64_error_message` has its sentence.
    P64_STATUS_IO = 310,
    /// The file is neither a P64 nor a GGUF that can be used here.
    P64_STATUS_NOT_A_MODEL = 311,
    /// The operation was refused for a reason that `p64_error_message` gives in words.
    P64_STATUS_REFUSED = 312,
}

pub use p64_status::*;

/// Statuses of the border itself, which core has no code for.
const OWN: [(p64_status, &CStr); 11] = [
    (P64_STATUS_OK, c"ok"),
    (P64_STATUS_NULL_POINTER, c"null-pointer"),
    (P64_STATUS_MISALIGNED, c"misaligned"),
    (P64_STATUS_BAD_STRUCT_SIZE, c"bad-struct-size"),
    (P64_STATUS_NOT_OPEN, c"not-open"),
    (P64_STATUS_BAD_ARGUMENT, c"bad-argument"),
    (P64_STATUS_NOT_FOUND, c"not-found"),
    (P64_STATUS_PANIC, c"panic"),
    (P64_STATUS_IO, c"io"),
    (P64_STATUS_NOT_A_MODEL, c"not-a-model"),
    (P64_STATUS_REFUSED, c"refused"),
];

/// Longest name of a core code, with the NUL.
const LONGEST: usize = 32;

/// Core's short names as C strings, made of core's own so that they cannot differ.
static CORE: [[u8; LONGEST]; Code::ALL.len()] = {
    let mut names = [[0; LONGEST]; Code::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = crate::names::padded(Code::ALL[at].slug());
        at += 1;
    }
    names
};

/// A status' short name, such as `tensor-checksum`; `unknown` for a number that is none.
///
/// Owner: a static string, never freed. Threads: any. Errors: none. Cost: one pass over the list of statuses.
#[unsafe(no_mangle)]
pub extern "C" fn p64_status_str(status: Status) -> *const c_char {
    if let Some((_, name)) = OWN.iter().find(|(own, _)| *own as i32 == status) {
        return name.as_ptr();
    }
    let known = Code::ALL.iter().zip(&CORE).find(|(code, _)| i32::from(code.number()) == status);
    known.map_or(c"unknown".as_ptr(), |(_, name)| name.as_ptr().cast())
}

/// What a status says on its own, for those that are not core's.
pub(crate) fn sentence(status: Status) -> &'static str {
    match OWN.iter().find(|(own, _)| *own as i32 == status).map(|(own, _)| *own) {
        Some(P64_STATUS_OK) => "nothing went wrong",
        Some(P64_STATUS_NULL_POINTER) => "a pointer is NULL that must not be",
        Some(P64_STATUS_MISALIGNED) => "a pointer is not aligned as its type asks",
        Some(P64_STATUS_BAD_STRUCT_SIZE) => "struct_size is not the size that this library knows",
        Some(P64_STATUS_NOT_OPEN) => "the storage has not been opened",
        Some(P64_STATUS_BAD_ARGUMENT) => "an argument is outside what the function permits",
        Some(P64_STATUS_NOT_FOUND) => "there is nothing of that name or number",
        Some(P64_STATUS_PANIC) => "a defect of the library was stopped at its border",
        Some(P64_STATUS_IO) => "the operating system refused",
        Some(P64_STATUS_NOT_A_MODEL) => "the file is not a model that can be used here",
        Some(P64_STATUS_REFUSED) => "refused",
        _ => "unknown status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(status: Status) -> &'static str {
        // SAFETY: the function returns static C strings.
        unsafe { CStr::from_ptr(p64_status_str(status)) }.to_str().expect("UTF-8")
    }

    /// The enumeration is written out for cbindgen; this reads it back from the source and compares it with core's codes.
    #[test]
    fn the_statuses_are_cores_codes() {
        let source = include_str!("status.rs");
        let variants: Vec<(String, i32)> = source
            .lines()
            .filter_map(|line| line.trim().strip_prefix("P64_STATUS_")?.strip_suffix(',')?.split_once(" = "))
            .map(|(name, number)| (name.to_lowercase().replace('_', "-"), number.parse().expect("a number")))
            .collect();
        for code in Code::ALL {
            let own = (code.slug().to_owned(), i32::from(code.number()));
            assert!(variants.contains(&own), "{own:?} is missing from p64_status");
        }
        assert!(variants.len() >= Code::ALL.len() + OWN.len(), "{}", variants.len());
        for (slug, number) in &variants {
            assert_eq!(name(*number), slug);
        }
        assert_eq!([name(-1), name(299), name(i32::MAX)], ["unknown"; 3]);
        assert!(variants.iter().all(|(_, number)| sentence(*number) != "unknown status" || *number < 300));
    }
}
