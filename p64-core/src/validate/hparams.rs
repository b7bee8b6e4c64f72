//! Spec §6: the hyperparameter record.
#![forbid(unsafe_code)]

use super::policy::{Checked, Report};
use super::sections::Sections;
use crate::error::{Code, Error, Place, Section};
use crate::layout::flags::Flags;
use crate::layout::header::RawHeader;
use crate::layout::hparams::RawHParams;
use zerocopy::{FromBytes, IntoBytes};

/// Checks the record `bytes` of a file of `len` bytes.
#[inline(never)]
pub(crate) fn check<'a>(
    bytes: &'a [u8],
    len: u64,
    header: &RawHeader,
    sections: &Sections,
    report: &mut Report<'_>,
) -> Checked<&'a RawHParams> {
    let start = sections.hparams.start();
    let error = |code, at: u64| Error::new(code, Place::Section(Section::HParams)).at(start.saturating_add(at));
    let Ok(hparams) = RawHParams::ref_from_bytes(bytes) else {
        return Err(report.refuse(error(Code::SectionBounds, 0).values(len, sections.hparams.end())));
    };

    let extension = bytes.get(RawHParams::EXTENSION_AT..56).unwrap_or_default();
    if let Some((at, byte)) = super::first_nonzero(extension, 28) {
        report.deviation(error(Code::HParamsExtension, at).values(0, byte))?;
    }
    if let Some((at, byte)) = super::first_nonzero(&hparams.reserved, 56) {
        return Err(report.refuse(error(Code::ReservedHParams, at).values(0, byte)));
    }
    for (at, value) in [(20, hparams.rope_freq_base), (24, hparams.rope_scale), (44, hparams.logit_softcap)] {
        if !value.get().is_finite() {
            let bits = value.as_bytes().first_chunk().copied().map_or(0, u32::from_le_bytes);
            report.deviation(error(Code::HParamsNotFinite, at).values(0, u64::from(bits)))?;
        }
    }
    if !header.flags().contains(Flags::RAW_TRANSCODE) {
        let needed =
            [hparams.n_layer, hparams.n_embd, hparams.n_head, hparams.n_kv_head, hparams.vocab_size].map(|v| v.get());
        if let Some((number, _)) = (0u64..).zip(needed).find(|(_, value)| *value == 0) {
            report.deviation(error(Code::HParamsMissing, number.saturating_mul(4)).values(number, 0))?;
        }
    }
    Ok(hparams)
}
