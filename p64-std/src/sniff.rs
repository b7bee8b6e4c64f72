//! What a file is, told from its first bytes and never from its name (`docs/acceptance.md` §1).

use std::fmt;

/// Bytes of a file's beginning that [`Kind::of`] wants to see; fewer are fine when the file is shorter.
pub const SNIFF_LEN: usize = 512;

/// What the first bytes of a file say it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A P64 weight container.
    P64,
    /// A little-endian GGUF.
    Gguf,
    /// A GGUF written by a big-endian machine.
    GgufBigEndian,
    /// A safetensors file.
    Safetensors,
    /// The index of a model in several safetensors files.
    SafetensorsIndex,
    /// A Q42 graph volume.
    Q42,
    /// The text that stands in for a file that Git LFS has not fetched.
    LfsPointer,
    /// An HTML or XML page.
    Html,
    /// A ZIP archive, the form of PyTorch checkpoints.
    Zip,
    /// A bare Python pickle, the form of old PyTorch checkpoints.
    Pickle,
    /// A GGML file from before GGUF.
    OldGgml,
    /// No bytes at all.
    Empty,
    /// Readable text of no other kind.
    Text,
    /// None of the above; the first four bytes are kept.
    Unknown([u8; 4]),
}

impl Kind {
    /// The kind of a file that begins with `head` (up to [`SNIFF_LEN`] bytes; the whole file when it is shorter).
    #[must_use]
    pub fn of(head: &[u8]) -> Self {
        let first = |n: usize| head.get(..n).unwrap_or(head);
        match first(4) {
            [] => return Self::Empty,
            b"p64\0" => return Self::P64,
            b"GGUF" if head.get(4..6) == Some(&[0, 0]) => return Self::GgufBigEndian,
            b"GGUF" => return Self::Gguf,
            b"FUGG" => return Self::GgufBigEndian,
            b"Q42\0" => return Self::Q42,
            b"PK\x03\x04" => return Self::Zip,
            b"lmgg" | b"fmgg" | b"tjgg" => return Self::OldGgml,
            _ => {}
        }
        if head.starts_with(b"version https://git-lfs") {
            return Self::LfsPointer;
        }
        if is_safetensors(head) {
            return Self::Safetensors;
        }
        if is_index(head) {
            return Self::SafetensorsIndex;
        }
        if head.trim_ascii_start().starts_with(b"<") && is_text(head) {
            return Self::Html;
        }
        // Protocol 2 to 5, then the opcodes that begin a pickled mapping or a persistent reference.
        if matches!(head, [0x80, 2..=5, ..]) {
            return Self::Pickle;
        }
        if is_text(head) {
            return Self::Text;
        }
        let mut four = [0; 4];
        for (to, from) in four.iter_mut().zip(head) {
            *to = *from;
        }
        Self::Unknown(four)
    }

    /// Whether this build reads weights from the file.
    #[must_use]
    pub const fn is_model(self) -> bool {
        matches!(self, Self::P64 | Self::Gguf | Self::Safetensors | Self::SafetensorsIndex)
    }

    /// What to do about a file of this kind where a model is wanted; empty for kinds that are read.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::P64 | Self::Gguf | Self::Safetensors | Self::SafetensorsIndex => "",
            Self::GgufBigEndian => "swap it with llama.cpp's gguf_convert_endian.py, or fetch the little-endian file",
            Self::Q42 => "it holds a graph and no weights; the weights are in a .p64 beside it",
            Self::LfsPointer => "the model itself was not downloaded: run `git lfs pull`",
            Self::Html => "it is probably the error page of a download: fetch the model again",
            Self::Zip | Self::Pickle => "it is probably a PyTorch checkpoint: save it as safetensors first",
            Self::OldGgml => "convert it again from the original weights with a current llama.cpp",
            Self::Empty => "fetch the model again",
            Self::Text | Self::Unknown(_) => {
                "a model file begins with `p64\\0`, `GGUF` or the length of a safetensors header"
            }
        }
    }
}

/// The header length of a safetensors file is followed by a JSON object.
fn is_safetensors(head: &[u8]) -> bool {
    let Some((len, rest)) = head.split_first_chunk() else { return false };
    (2..=100_000_000).contains(&u64::from_le_bytes(*len)) && rest.first() == Some(&b'{')
}

/// A JSON object that maps weights to files, as far as its beginning tells.
fn is_index(head: &[u8]) -> bool {
    let key = b"\"weight_map\"";
    head.trim_ascii_start().starts_with(b"{") && is_text(head) && head.windows(key.len()).any(|window| window == key)
}

/// Whether `head` reads as text: UTF-8 (a character may be cut at the end) without control characters.
fn is_text(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(head.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\u{c}'))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P64 => "a P64 weight container",
            Self::Gguf => "a GGUF",
            Self::GgufBigEndian => "a big-endian GGUF",
            Self::Safetensors => "a safetensors file",
            Self::SafetensorsIndex => "the index of a model in several safetensors files",
            Self::Q42 => "a Q42 graph volume",
            Self::LfsPointer => "a Git LFS pointer",
            Self::Html => "an HTML or XML page",
            Self::Zip => "a ZIP archive",
            Self::Pickle => "a Python pickle",
            Self::OldGgml => "a GGML file from before GGUF",
            Self::Empty => "an empty file",
            Self::Text => "a text file",
            Self::Unknown([a, b, c, d]) => {
                return write!(f, "a file of unknown kind (it begins {a:02x} {b:02x} {c:02x} {d:02x})");
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_decide() {
        let safetensors = [&64u64.to_le_bytes()[..], b"{\"a\":"].concat();
        let cases: [(&[u8], Kind); 22] = [
            (b"p64\0\x04\0", Kind::P64),
            (b"GGUF\x03\0\0\0", Kind::Gguf),
            (b"GGUF", Kind::Gguf),
            (b"GGUF\0\0\0\x03", Kind::GgufBigEndian),
            (b"FUGG\0\0\0\x03", Kind::GgufBigEndian),
            (b"Q42\0", Kind::Q42),
            (&safetensors, Kind::Safetensors),
            (b"{\n \"metadata\": {},\n \"weight_map\": {}}", Kind::SafetensorsIndex),
            (b"{\"architectures\": []}", Kind::Text),
            (b"version https://git-lfs.example/spec/v1\noid sha256:00", Kind::LfsPointer),
            (b"\n <!DOCTYPE html><html>", Kind::Html),
            (b"<?xml version=\"1.0\"?>", Kind::Html),
            (b"PK\x03\x04\x00\x00", Kind::Zip),
            (b"\x80\x02}q\0", Kind::Pickle),
            (b"tjgg\x03\0\0\0", Kind::OldGgml),
            (b"", Kind::Empty),
            (b"Once upon a time", Kind::Text),
            // A two-byte character cut by the end of what was read.
            (b"caf\xc3", Kind::Text),
            (b"\xff\xfe\0\0", Kind::Unknown([0xff, 0xfe, 0, 0])),
            (b"\x01", Kind::Unknown([1, 0, 0, 0])),
            (b"<\0\0\0", Kind::Unknown([b'<', 0, 0, 0])),
            (&[0; 16], Kind::Unknown([0; 4])),
        ];
        for (head, kind) in cases {
            assert_eq!(Kind::of(head), kind, "{head:?}");
        }
    }

    #[test]
    fn every_kind_that_is_not_read_says_what_to_do() {
        for kind in [
            Kind::GgufBigEndian,
            Kind::Q42,
            Kind::LfsPointer,
            Kind::Html,
            Kind::Zip,
            Kind::Pickle,
            Kind::OldGgml,
            Kind::Empty,
            Kind::Text,
            Kind::Unknown([0; 4]),
        ] {
            assert!(!kind.is_model());
            assert!(!kind.advice().is_empty());
            assert!(kind.to_string().starts_with('a'));
        }
        for kind in [Kind::P64, Kind::Gguf, Kind::Safetensors, Kind::SafetensorsIndex] {
            assert!(kind.is_model() && kind.advice().is_empty());
        }
    }
}
