//! One broken file per code: the small valid file with exactly one thing wrong, its checksums put right again.

use crate::assemble::{Assembly, TensorSpec, string_area, tokenizer};
use crate::mutate::{at, entry, put_u16, put_u32, refix, u32_at, usize_at};
use p64_core::{Code, DType};

/// A change to the small valid file.
type Break = fn(&mut Vec<u8>);

/// Writes a `u32` field of a tensor entry.
fn set(file: &mut [u8], index: usize, field: usize, value: u32) {
    let at = entry(file, index, field);
    put_u32(file, at, value);
}

fn first_blob(file: &[u8]) -> usize {
    usize_at(file, entry(file, 0, 32))
}

/// The small assembly with one thing changed before it is written.
fn built(change: impl FnOnce(&mut Assembly)) -> Vec<u8> {
    let mut assembly = Assembly::small();
    change(&mut assembly);
    assembly.build()
}

fn with_metadata(area: Vec<u8>) -> Vec<u8> {
    built(|assembly| {
        let tensor = assembly.tensors.iter_mut().find(|tensor| tensor.name == b"p64.metadata").expect("there");
        tensor.dims = vec![u32::try_from(area.len()).expect("small")];
        tensor.bytes = area;
    })
}

/// A key-value area of one pair: key, type, value bytes.
fn pair(key: &[u8], kind: u32, value: &[u8]) -> Vec<u8> {
    let mut out = 1u64.to_le_bytes().to_vec();
    out.extend((key.len() as u64).to_le_bytes());
    out.extend(key);
    out.extend(kind.to_le_bytes());
    out.extend(value);
    out
}

fn with_tokenizer(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    built(|assembly| change(&mut assembly.tokenizer))
}

fn changed(change: Break) -> Vec<u8> {
    let mut file = Assembly::small().build();
    change(&mut file);
    refix(&mut file);
    file
}

/// The broken file of a code; `None` for codes that no container file can show (they have calls of their own).
#[must_use]
#[expect(clippy::too_many_lines, reason = "a table: one short entry per code")]
pub fn file(code: Code) -> Option<Vec<u8>> {
    Some(match code {
        Code::TooShort => changed(|f| f.truncate(63)),
        Code::BadMagic => changed(|f| f[0] = b'P'),
        Code::BadVersion => changed(|f| put_u16(f, at::VERSION, 6)),
        Code::NotLittleEndian => changed(|f| f[at::FLAGS] &= !1),
        Code::ReservedFlags => changed(|f| f[at::FLAGS + 1] = 0x80),
        Code::ReservedHeader => changed(|f| f[63] = 1),
        Code::BadPageSize => changed(|f| put_u32(f, at::PAGE_SIZE, 384)),
        Code::RoleTableOffset => changed(|f| f[at::FLAGS] &= !0x40),
        Code::FlagTernary => changed(|f| f[at::FLAGS] |= 4),
        Code::FlagQ4kSoa => changed(|f| f[at::FLAGS] |= 8),

        Code::SectionBounds => changed(|f| put_u32(f, at::TENSOR_COUNT, 1 << 30)),
        Code::SectionOrder => changed(|f| {
            let table = u32_at(f, at::TENSOR_TABLE);
            put_u32(f, at::STRINGS, table);
        }),
        Code::SectionAlignment => changed(|f| {
            let to = u32_at(f, at::MANIFOLD) - 4;
            put_u32(f, at::MANIFOLD, to);
        }),
        Code::GapNotZero => changed(|f| {
            // Without its flag the schedule is no section, and its bytes are no padding.
            f[at::FLAGS] &= !0x40;
            put_u32(f, at::ROLE_TABLE, 0);
        }),
        Code::ReservedHParams => changed(|f| f[64 + 60] = 1),
        Code::HParamsExtension => changed(|f| f[64 + 28] = 64),
        Code::LayerLimit => changed(|f| put_u32(f, 64, 65_536)),
        Code::HParamsMissing => changed(|f| put_u32(f, 64 + 4, 0)),
        Code::HParamsNotFinite => changed(|f| put_u32(f, 64 + 20, f32::NAN.to_bits())),

        Code::BadRank => changed(|f| set(f, 1, 12, 5)),
        Code::UnusedDimension => changed(|f| set(f, 1, 28, 1)),
        Code::ShapeOverflow => built(|a| a.tensors[8].dims = vec![u32::MAX; 4]),
        Code::PartialBlock => changed(|f| set(f, 1, 16, 33)),
        // Tensor 1 has not 16 rows.
        Code::PartialTile => changed(|f| {
            let at = entry(f, 1, 6);
            put_u16(f, at, DType::F32_R16.id());
        }),
        Code::BlobSize => changed(|f| set(f, 1, 36, 101)),
        Code::ManifoldIndex => changed(|f| set(f, 1, 8, 3)),
        Code::ReservedEntry => changed(|f| set(f, 1, 60, 1)),
        Code::NameOffset => changed(|f| set(f, 1, 0, 1 << 20)),
        Code::NameUnterminated => changed(|f| {
            // The last name, and the padding behind it, become one string that reaches the manifold table.
            let (start, end) = (usize_at(f, at::STRINGS), usize_at(f, at::MANIFOLD));
            let last = usize_at(f, entry(f, 11, 0));
            f[start + last..end].fill(b'x');
        }),
        Code::NameNotUtf8 => built(|a| a.tensors[1].name[4] = 0xff),
        Code::NameEmpty => built(|a| a.tensors[8].name.clear()),
        Code::NameDuplicate => built(|a| a.tensors[9].name = a.tensors[8].name.clone()),
        Code::NameTooLong => built(|a| a.tensors[8].name = vec![b'n'; 65_536]),
        Code::NameOrder => changed(|f| {
            let (a, b) = (entry(f, 0, 0), entry(f, 1, 0));
            let (first, second) = (u32_at(f, a), u32_at(f, b));
            put_u32(f, a, second);
            put_u32(f, b, first);
        }),
        Code::StringsHead => changed(|f| {
            let start = usize_at(f, at::STRINGS);
            f[start] = b'x';
        }),
        Code::StringsTail => changed(|f| {
            let end = usize_at(f, at::MANIFOLD);
            f[end - 1] = b'x';
        }),

        Code::ManifoldRole => built(|a| {
            a.flags &= !0x40;
            a.tensors[8].layer = 0;
        }),

        Code::BlobAlignment => changed(|f| {
            let to = u32_at(f, entry(f, 1, 32)) + 64;
            set(f, 1, 32, to);
        }),
        Code::BlobOrder => changed(|f| {
            let to = u32_at(f, entry(f, 1, 32));
            set(f, 2, 32, to);
        }),
        Code::BlobFloor => changed(|f| set(f, 0, 32, 256)),
        Code::BlobBounds => changed(|f| set(f, 11, 32, 1 << 30)),
        Code::BlobPadding => changed(|f| {
            let start = first_blob(f);
            f[start - 1] = 1;
        }),
        Code::TailPadding => changed(|f| *f.last_mut().expect("not empty") = 1),
        Code::FileLength => changed(|f| f.resize(f.len() + 64, 0)),

        Code::LayerMajorOrder => built(|a| a.tensors.swap(0, 1)),
        Code::ScheduleReserved => changed(|f| f[128 + 63] = 1),
        Code::ScheduleLayer => changed(|f| put_u32(f, 128 + 64, 0)),
        Code::ScheduleBegin => changed(|f| put_u32(f, 128 + 4, 0)),
        Code::ScheduleEnd => changed(|f| put_u32(f, 128 + 8, 0)),
        Code::ScheduleCount => changed(|f| put_u16(f, 128 + 12, 2)),
        Code::ScheduleRoles => changed(|f| put_u16(f, 128 + 14, 1)),
        Code::ScheduleAllZero => changed(|f| f[128..256].fill(0)),
        Code::ManifoldNotFinite => changed(|f| {
            let start = usize_at(f, at::MANIFOLD);
            put_u32(f, start + 36, f32::INFINITY.to_bits());
        }),
        Code::ManifoldReserved => changed(|f| {
            let start = usize_at(f, at::MANIFOLD);
            f[start + 40] = 1;
        }),

        Code::TokenizerMagic => with_tokenizer(|t| t[3] = b'U'),
        Code::TokenizerVersion => with_tokenizer(|t| t[4] = 3),
        Code::TokenizerFlags => with_tokenizer(|t| t[6] = 1),
        Code::TokenizerTruncated => with_tokenizer(|t| put_u32(t, 33, 1 << 20)),
        Code::TokenizerNotUtf8 => with_tokenizer(|t| t[24] = 0xff),
        Code::TokenizerVocabulary => with_tokenizer(|t| put_u32(t, 29, 1_000_001)),
        Code::TokenizerMerges => with_tokenizer(|t| {
            let at = t.len() - 14;
            put_u32(t, at, 5_000_001);
        }),
        Code::TokenizerSpecialId => with_tokenizer(|t| put_u32(t, 12, 4)),
        Code::TokenizerPadding => with_tokenizer(|t| t[18] = 1),
        Code::TokenizerStops => with_tokenizer(|t| {
            t[4] = 2;
            t.extend([9, 0, 0, 0]);
            t.extend([0; 32]);
        }),
        Code::TokenizerMissing => built(|a| a.tokenizer.clear()),
        Code::TokenizerLength => built(|a| {
            a.tokenizer = tokenizer(&["a"], &[], "", 0, 0);
            a.tokenizer.resize(256, 0);
        }),

        Code::MetadataTruncated => with_metadata(pair(b"k", 4, &[0; 3])),
        Code::MetadataCount => with_metadata(u64::MAX.to_le_bytes().to_vec()),
        Code::MetadataType => with_metadata(pair(b"k", 13, &[0; 8])),
        Code::MetadataNested => with_metadata(pair(b"k", 9, &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        Code::MetadataBool => with_metadata(pair(b"k", 7, &[2])),
        Code::MetadataNotUtf8 => with_metadata(pair(&[0xc3], 0, &[0])),
        Code::MetadataEmptyKey => with_metadata(pair(b"", 4, &[0; 4])),
        Code::MetadataDuplicateKey => with_metadata(string_area(&[("k", "v"), ("l", "v"), ("k", "w")])),
        Code::MetadataTrailing => with_metadata([string_area(&[("k", "v")]), vec![0]].concat()),
        Code::MetadataKeyNul => with_metadata(pair(b"k\0", 0, &[0])),
        Code::MetadataKeyTooLong => with_metadata(pair(&[b'k'; 65_536], 0, &[0])),

        Code::MetadataChecksum => {
            let mut file = Assembly::small().build();
            file[64 + 20] ^= 1;
            file
        }
        Code::TensorChecksum => {
            let mut file = Assembly::small().build();
            let at = first_blob(&file);
            file[at] ^= 1;
            file
        }
        Code::TernaryDigit => built(|a| {
            let mut tensor = TensorSpec::new("blk.1.ffn_up.weight", 5, 1158, 1, &[5], 5);
            tensor.bytes = vec![0, 0, 128, 63, 243];
            a.tensors.insert(5, tensor);
            a.flags |= 4;
        }),
        // Findings that no policy refuses: told as warnings.
        Code::UnknownRole => built(|a| {
            a.tensors[8].role = 0x1234;
            a.flags &= !0x10;
        }),
        Code::UnknownDType => built(|a| a.tensors[8].dtype = 4),
        Code::NeedlessVersion => changed(|f| put_u16(f, at::VERSION, 5)),
        Code::VersionThreeFlags => changed(|f| put_u16(f, at::VERSION, 3)),
        _ => return None,
    })
}
