//! The metadata keys of one architecture, gathered in one walk.
#![forbid(unsafe_code)]

use crate::error::{Code, Error, Place, Result};
use crate::forward::arch::{ALL_FAMILIES, Architecture, AttentionScale, Block, EmbeddingScale, LogitScale, Softcap};
use crate::forward::parameter::Parameter;
use crate::metadata::{Metadata, Value, ValueKind};

/// Numbers below this are keys, those above tensors.
const COUNT: usize = 64;
const _: () = assert!(Parameter::RopeFreqs.number() == 64);

/// First values of the keys that [`Parameter`] knows, by its number, with their positions in the file.
pub(super) struct Keys<'a> {
    found: [Option<(u32, Value<'a>)>; COUNT],
}

/// A key that must be absent or hold one of the values that change nothing, unless the family follows it.
const NEUTRAL: &[(Parameter, &[f32])] = &[
    (Parameter::RopeSections, &[]),
    (Parameter::ExpertCount, &[0.0]),
    (Parameter::ExpertWeightsScale, &[0.0, 1.0]),
    // 1 is softmax, 0 what stands for none said.
    (Parameter::ExpertGatingFunction, &[0.0, 1.0]),
    (Parameter::ExpertGroupCount, &[0.0, 1.0]),
    (Parameter::AttentionCausal, &[1.0]),
    (Parameter::AttentionScale, &[0.0]),
    (Parameter::AttentionSoftcap, &[0.0]),
    (Parameter::FinalSoftcap, &[0.0]),
    (Parameter::LogitScale, &[0.0, 1.0]),
    (Parameter::ResidualScale, &[0.0, 1.0]),
    (Parameter::EmbeddingScale, &[0.0, 1.0]),
    (Parameter::ClampKqv, &[0.0]),
    (Parameter::AlibiBias, &[0.0]),
    (Parameter::ParallelResidual, &[0.0]),
    (Parameter::SharedKvLayers, &[0.0]),
    (Parameter::DeepstackMapping, &[]),
];

/// Whether a family follows a key of [`NEUTRAL`], or is right to pass it over.
fn follows(architecture: Architecture, parameter: Parameter) -> bool {
    let family = architecture.family();
    match parameter {
        Parameter::ExpertCount => family.experts.is_some(),
        Parameter::AttentionScale => family.attention_scale == AttentionScale::FromFile,
        Parameter::AttentionSoftcap => family.attention_softcap != Softcap::Never,
        Parameter::FinalSoftcap => family.final_softcap != Softcap::Never,
        Parameter::LogitScale => family.logit_scale != LogitScale::One,
        Parameter::ResidualScale => family.residual_scale,
        Parameter::EmbeddingScale => family.embedding_scale == EmbeddingScale::FromFile,
        // Such families tell by the tensors that are there; converters write the key whatever they are.
        Parameter::ParallelResidual => family.block == Block::ParallelWithoutNorm,
        _ => false,
    }
}

impl<'a> Keys<'a> {
    /// Gathers `<architecture>.<parameter>` for every parameter; of a repeated key the first counts.
    pub(super) fn collect(metadata: &Metadata<'a>, architecture: &str) -> Self {
        let mut found = [None; COUNT];
        for (position, (key, value)) in (0..).zip(metadata) {
            let suffix = key.strip_prefix(architecture).and_then(|rest| rest.strip_prefix('.'));
            let parameter = suffix.and_then(|suffix| Parameter::ALL.iter().find(|p| p.name() == suffix));
            let slot = parameter.and_then(|parameter| found.get_mut(usize::from(parameter.number())));
            if let Some(slot) = slot {
                slot.get_or_insert((position, value));
            }
        }
        Self { found }
    }

    pub(super) fn get(&self, parameter: Parameter) -> Option<(u32, Value<'a>)> {
        self.found.get(usize::from(parameter.number())).copied().flatten()
    }

    pub(super) fn place(&self, parameter: Parameter) -> Place {
        self.get(parameter).map_or(Place::File, |(position, _)| Place::Key(position))
    }

    pub(super) fn missing(&self, parameter: Parameter) -> Error {
        Error::new(Code::MissingKey, Place::File).values(0, u64::from(parameter.number()))
    }

    /// The key asks for what this build does not do.
    pub(super) fn unsupported(&self, parameter: Parameter) -> Error {
        parameter.unsupported(self.place(parameter))
    }

    /// The key's number is not what `limit` permits.
    pub(super) fn out_of_range(&self, parameter: Parameter, limit: usize) -> Error {
        let value = self.get(parameter).and_then(|(_, value)| value.as_u64()).unwrap_or(0);
        Error::new(Code::MetadataRange, self.place(parameter)).values(u64::try_from(limit).unwrap_or(u64::MAX), value)
    }

    /// A number up to `most`; 0 passes.
    fn number(&self, parameter: Parameter, most: usize) -> Result<Option<usize>> {
        let Some((position, value)) = self.get(parameter) else { return Ok(None) };
        if value.as_array().is_some() {
            // One value a layer: layers of different shapes.
            return Err(self.unsupported(parameter));
        }
        let kinds = (u64::from(ValueKind::U32.id()), u64::from(value.kind().id()));
        let wrong = Error::new(Code::MetadataWrongType, Place::Key(position)).values(kinds.0, kinds.1);
        let number = value.as_u64().ok_or(wrong)?;
        let fits = usize::try_from(number).ok().filter(|number| *number <= most);
        fits.map(Some).ok_or(self.out_of_range(parameter, most))
    }

    /// A number from 1 to `most`.
    pub(super) fn length(&self, parameter: Parameter, most: usize) -> Result<Option<usize>> {
        match self.number(parameter, most)? {
            Some(0) => Err(self.out_of_range(parameter, most)),
            number => Ok(number),
        }
    }

    /// A number up to `most`; 0 is the same as none.
    pub(super) fn length_or_zero(&self, parameter: Parameter, most: usize) -> Result<Option<usize>> {
        Ok(self.number(parameter, most)?.filter(|number| *number != 0))
    }

    /// Of how many layers the last is global: a number (0 for no layer), or for each layer whether it is local.
    pub(super) fn period(&self, parameter: Parameter, n_layer: usize, most: usize) -> Result<Option<usize>> {
        let none = usize::MAX;
        let layers = self.get(parameter).and_then(|(_, value)| value.as_array()).filter(|_| ALL_FAMILIES);
        let Some(layers) = layers else {
            return Ok(self.number(parameter, most)?.map(|period| if period == 0 { none } else { period }));
        };
        let local = |value: Value<'_>| value.as_bool().or(value.as_u64().map(|local| local != 0));
        let follows = |period: usize| {
            let pattern = (1..).map(|layer: usize| !layer.is_multiple_of(period));
            layers.iter().map(local).zip(pattern).all(|(local, pattern)| local == Some(pattern))
        };
        if layers.iter().count() < n_layer {
            return Err(self.unsupported(parameter));
        }
        [none].into_iter().chain(1..=n_layer).find(|p| follows(*p)).map(Some).ok_or(self.unsupported(parameter))
    }

    /// A number from 1 to `most` that the model cannot do without.
    pub(super) fn need(&self, parameter: Parameter, most: usize) -> Result<usize> {
        self.length(parameter, most)?.ok_or(self.missing(parameter))
    }

    /// A second statement of a length that other layers or the values could have differently.
    pub(super) fn same_if_there(&self, parameter: Parameter, length: usize) -> Result<()> {
        match self.number(parameter, usize::MAX)? {
            Some(other) if other != length => Err(self.unsupported(parameter)),
            _ => Ok(()),
        }
    }

    /// A float as [`Keys::positive`] has it; 0, as converters write it, is the same as none.
    pub(super) fn positive_or_zero(&self, parameter: Parameter) -> Result<Option<f32>> {
        let zero = self.get(parameter).and_then(|(_, value)| value.as_f32()) == Some(0.0);
        if zero { Ok(None) } else { self.positive(parameter) }
    }

    /// A float above zero that is finite, and so is one over it.
    pub(super) fn positive(&self, parameter: Parameter) -> Result<Option<f32>> {
        let Some((position, value)) = self.get(parameter) else { return Ok(None) };
        let kinds = (u64::from(ValueKind::F32.id()), u64::from(value.kind().id()));
        let wrong = Error::new(Code::MetadataWrongType, Place::Key(position)).values(kinds.0, kinds.1);
        let number = value.as_f32().ok_or(wrong)?;
        let range = Error::new(Code::MetadataRange, Place::Key(position)).values(0, u64::from(number.to_bits()));
        if number.is_normal() && number > 0.0 { Ok(Some(number)) } else { Err(range) }
    }

    /// Refuses a switch that is not as the family has it.
    pub(super) fn same_switch_if_there(&self, parameter: Parameter, on: bool) -> Result<()> {
        match self.get(parameter) {
            Some((_, value)) if value.as_bool() != Some(on) => Err(self.unsupported(parameter)),
            _ => Ok(()),
        }
    }

    /// Refuses models whose keys ask for what the forward pass does not do.
    pub(super) fn refuse_unsupported(&self, architecture: Architecture) -> Result<()> {
        for (parameter, neutral) in NEUTRAL.iter().filter(|(parameter, _)| !follows(architecture, *parameter)) {
            let Some((_, value)) = self.get(*parameter) else { continue };
            let number = match value.as_u64() {
                Some(number) => u8::try_from(number).ok().map(f32::from),
                None => value.as_bool().map(|on| f32::from(u8::from(on))).or(value.as_f32()),
            };
            if !number.is_some_and(|number| neutral.contains(&number)) {
                return Err(self.unsupported(*parameter));
            }
        }
        Ok(())
    }
}
