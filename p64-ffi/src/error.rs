//! The error value of a call, and its sentence.

use crate::boundary::{Caller, Status};
use crate::status::{self, p64_status};
use core::ffi::c_char;
use core::fmt::{self, Write};
use p64_core::{Code, Error, Place, Section};

/// What kind of thing `p64_error.index` counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_place {
    /// The file as a whole, or an argument.
    P64_PLACE_FILE = 0,
    /// The section in `section`.
    P64_PLACE_SECTION = 1,
    /// A tensor.
    P64_PLACE_TENSOR = 2,
    /// A layer.
    P64_PLACE_LAYER = 3,
    /// A token of the vocabulary, or of the tokens passed.
    P64_PLACE_TOKEN = 4,
    /// A merge pair.
    P64_PLACE_MERGE = 5,
    /// A metadata key, by its position.
    P64_PLACE_KEY = 6,
}

/// A section of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum p64_section {
    /// None in particular.
    P64_SECTION_NONE = 0,
    /// The header.
    P64_SECTION_HEADER = 1,
    /// The hyperparameters.
    P64_SECTION_HPARAMS = 2,
    /// The layer schedule.
    P64_SECTION_SCHEDULE = 3,
    /// The tensor table.
    P64_SECTION_TENSOR_TABLE = 4,
    /// The string table.
    P64_SECTION_STRINGS = 5,
    /// The manifold table.
    P64_SECTION_MANIFOLD = 6,
    /// The tokenizer.
    P64_SECTION_TOKENIZER = 7,
    /// The checksum table.
    P64_SECTION_CHECKSUMS = 8,
    /// The blobs.
    P64_SECTION_BLOBS = 9,
    /// The metadata area.
    P64_SECTION_METADATA = 10,
}

/// What went wrong, where, what was expected and what was found. Every function that takes a `p64_error *error` fills it,
/// on success too; NULL means that only the status is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct p64_error {
    /// What the function returned.
    pub status: Status,
    /// The `p64_place` that `index` counts.
    pub place: u32,
    /// The `p64_section` at fault, when `place` is `P64_PLACE_SECTION`.
    pub section: u32,
    /// Number of the tensor, layer, token, merge pair or key.
    pub index: u32,
    /// File offset of the bytes at fault; `UINT64_MAX` when there is none.
    pub offset: u64,
    /// What would have passed; its meaning is the status'.
    pub expected: u64,
    /// What was there.
    pub found: u64,
}

const _: () = assert!(size_of::<p64_error>() == 40);

impl p64_error {
    pub(crate) const fn of(status: p64_status) -> Self {
        Self {
            status: status as i32,
            place: p64_place::P64_PLACE_FILE as u32,
            section: p64_section::P64_SECTION_NONE as u32,
            index: 0,
            offset: Error::NO_OFFSET,
            expected: 0,
            found: 0,
        }
    }

    pub(crate) const fn values(self, expected: usize, found: usize) -> Self {
        Self { expected: expected as u64, found: found as u64, ..self }
    }

    /// The error of core's that this is, when it is one.
    pub(crate) fn core(&self) -> Option<Error> {
        let code = Code::ALL.iter().find(|code| i32::from(code.number()) == self.status)?;
        let place = match self.place {
            1 => Place::Section(section(self.section)?),
            2 => Place::Tensor(self.index),
            3 => Place::Layer(self.index),
            4 => Place::Token(self.index),
            5 => Place::Merge(self.index),
            6 => Place::Key(self.index),
            _ => Place::File,
        };
        Some(Error::new(*code, place).at(self.offset).values(self.expected, self.found))
    }
}

/// The sections in the order of [`p64_section`], from 1.
const SECTIONS: [Section; 10] = [
    Section::Header,
    Section::HParams,
    Section::Schedule,
    Section::TensorTable,
    Section::Strings,
    Section::Manifold,
    Section::Tokenizer,
    Section::Checksums,
    Section::Blobs,
    Section::Metadata,
];

fn section(number: u32) -> Option<Section> {
    (1..).zip(SECTIONS).find(|(own, _)| *own == number).map(|(_, section)| section)
}

impl From<Error> for p64_error {
    fn from(error: Error) -> Self {
        use p64_place::*;
        let (place, index) = match error.place {
            Place::Section(_) => (P64_PLACE_SECTION, 0),
            Place::Tensor(index) => (P64_PLACE_TENSOR, index),
            Place::Layer(index) => (P64_PLACE_LAYER, index),
            Place::Token(index) => (P64_PLACE_TOKEN, index),
            Place::Merge(index) => (P64_PLACE_MERGE, index),
            Place::Key(index) => (P64_PLACE_KEY, index),
            _ => (P64_PLACE_FILE, 0),
        };
        let section = match error.place {
            Place::Section(section) => (1..).zip(SECTIONS).find(|(_, own)| *own == section).map_or(0, |(own, _)| own),
            _ => 0,
        };
        let Error { offset, expected, found, .. } = error;
        Self { status: i32::from(error.code.number()), place: place as u32, section, index, offset, expected, found }
    }
}

/// Writes the sentence of an error, such as "tensor 7: blob offset 0x1f40 is not a multiple of 0x4000 (§14.12)", as a C
/// string of UTF-8. `needed`, which may be NULL, is set to the bytes of the whole sentence with its NUL. This is the only
/// function of tier 0 that formats text: a program that does not call it does not contain the code for that.
///
/// Owner: the caller's buffer. Threads: any. Errors: `P64_STATUS_BUFFER_TOO_SMALL`, after as much as fits has been
/// written. Cost: linear in the sentence.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p64_error_format(
    error: *const p64_error,
    buffer: *mut c_char,
    buffer_len: usize,
    needed: *mut usize,
) -> Status {
    // SAFETY: the caller keeps the rules of p64.h.
    let caller = unsafe { Caller::new(core::ptr::null_mut()) };
    caller.run(|c| {
        let error = c.get(error)?;
        let buffer = c.slice_mut(buffer.cast::<u8>(), buffer_len)?;
        let needed = if needed.is_null() { None } else { Some(c.out(needed)?) };
        let mut text = Text { buffer, needed: 0 };
        // Writing to `Text` cannot fail.
        let _ = match error.core() {
            Some(core) => write!(text, "{core}"),
            None => text.write_str(status::sentence(error.status)),
        };
        let (need, have) = text.finish();
        if let Some(needed) = needed {
            needed.set(need);
        }
        if have < need { Err(Error::buffer_too_small(need, have).into()) } else { Ok(()) }
    })
}

/// A C string that is cut off, between characters, where the buffer ends.
struct Text<'b> {
    buffer: &'b mut [u8],
    needed: usize,
}

impl Text<'_> {
    fn finish(self) -> (usize, usize) {
        let have = self.buffer.len();
        let mut end = self.needed.min(have.saturating_sub(1));
        // A byte 10xxxxxx continues a character that began before it.
        while self.needed > end && end > 0 && self.buffer[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        if let Some(nul) = self.buffer.get_mut(end) {
            *nul = 0;
        }
        (self.needed.saturating_add(1), have)
    }
}

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.buffer.get_mut(self.needed..).unwrap_or_default();
        let len = room.len().min(text.len());
        room[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.needed = self.needed.saturating_add(text.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_core_survives_the_way_to_c_and_back() {
        let places = [Place::File, Place::Tensor(7), Place::Layer(1), Place::Token(2), Place::Merge(3), Place::Key(4)];
        for place in places.into_iter().chain(SECTIONS.map(Place::Section)) {
            for code in Code::ALL {
                let error = Error::new(*code, place).at(9).values(1, 2);
                assert_eq!(p64_error::from(error).core(), Some(error));
            }
        }
    }

    #[test]
    fn a_sentence_is_cut_between_characters() {
        let error = p64_error::from(Error::new(Code::BlobAlignment, Place::Tensor(7)).values(0x4000, 0x1f40));
        let whole = "tensor 7: blob offset 0x1f40 is not a multiple of 0x4000 (§14.12)";
        for len in 0..=whole.len() + 4 {
            let (mut buffer, mut needed) = ([0xa5u8; 128], 0);
            // SAFETY: all of it is this test's own.
            let status = unsafe { p64_error_format(&error, buffer.as_mut_ptr().cast(), len, &raw mut needed) };
            assert_eq!(needed, whole.len() + 1);
            assert_eq!(status == 0, len >= needed, "{len}");
            assert!(buffer[len..].iter().all(|byte| *byte == 0xa5), "written past {len}");
            if len > 0 {
                let text = core::ffi::CStr::from_bytes_until_nul(&buffer[..len]).expect("a NUL");
                assert!(whole.starts_with(text.to_str().expect("UTF-8")));
            }
        }
    }
}
