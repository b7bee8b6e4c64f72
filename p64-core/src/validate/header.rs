//! Spec §5, §14.1 to §14.3: the header by itself.
#![forbid(unsafe_code)]

use super::policy::{Checked, Policy, Report};
use crate::error::{Code, Error, Place, Section};
use crate::layout::flags::Flags;
use crate::layout::header::{MAGIC, RawHeader, VERSION, VERSION_3, VERSION_LARGE};
use crate::layout::{MIN_PAGE_SIZE, RECORD};
use crate::limits::MAX_FILE_V4;
use crate::num;
use zerocopy::FromBytes;

const PLACE: Place = Place::Section(Section::Header);
/// Flag bits that container version 3 does not have (Q4K_SOA, LAYER_MAJOR, LAYER_PACK, LAYER_SCHEDULE).
const SINCE_4: u16 = 0b0111_1000;

fn error(code: Code, offset: u64) -> Error {
    Error::new(code, PLACE).at(offset)
}

/// Checks the header that `file`, a file of `len` bytes or its first 64, begins with.
#[inline(never)]
pub(crate) fn check<'a>(file: &'a [u8], len: u64, report: &mut Report<'_>) -> Checked<&'a RawHeader> {
    let Ok((header, _)) = RawHeader::ref_from_prefix(file) else {
        return Err(report.refuse(error(Code::TooShort, 0).values(num::wide(RECORD), len)));
    };
    if header.magic != MAGIC {
        let [expected, found] = [MAGIC, header.magic].map(|magic| u64::from(u32::from_be_bytes(magic)));
        return Err(report.refuse(error(Code::BadMagic, 0).values(expected, found)));
    }
    let version = header.version.get();
    let wrong_version = error(Code::BadVersion, 4).values(u64::from(VERSION), u64::from(version));
    match (version, report.policy()) {
        (VERSION, _) | (VERSION_LARGE, _) => {}
        (VERSION_3, Policy::Compatible) => report.warn(wrong_version),
        _ => return Err(report.refuse(wrong_version)),
    }
    match (len < MAX_FILE_V4, version == VERSION_LARGE) {
        (false, false) => return Err(report.refuse(error(Code::FileTooLarge, 0).values(MAX_FILE_V4, len))),
        (true, true) => report.deviation(error(Code::NeedlessVersion, 4).values(MAX_FILE_V4, len))?,
        _ => {}
    }

    let flags = header.flags();
    if !flags.contains(Flags::LITTLE_ENDIAN) {
        return Err(report.refuse(error(Code::NotLittleEndian, 6).values(1, u64::from(flags.0))));
    }
    if version == VERSION_3 && flags.0 & SINCE_4 != 0 {
        return Err(report.refuse(error(Code::VersionThreeFlags, 6).values(0, u64::from(flags.0 & SINCE_4))));
    }
    if flags.reserved() != 0 {
        report.deviation(error(Code::ReservedFlags, 6).values(0, u64::from(flags.reserved())))?;
    }
    let role_table = header.role_table_offset.get();
    if role_table != 0 && !flags.contains(Flags::LAYER_SCHEDULE) {
        report.deviation(error(Code::RoleTableOffset, 8).values(0, u64::from(role_table)))?;
    }
    let page_size = header.page_size.get();
    if !page_size.is_power_of_two() || page_size < MIN_PAGE_SIZE {
        return Err(report.refuse(error(Code::BadPageSize, 40).values(u64::from(MIN_PAGE_SIZE), u64::from(page_size))));
    }
    if let Some((at, byte)) = super::first_nonzero(&header.reserved, 44) {
        report.deviation(error(Code::ReservedHeader, at).values(0, byte))?;
    }
    Ok(header)
}
