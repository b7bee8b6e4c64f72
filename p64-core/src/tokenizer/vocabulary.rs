//! The vocabulary as the metadata's keys describe it: texts, types, scores, merges, special tokens.
//!
//! Defaults for absent keys are llama.cpp's:
//!
//! | | `llama` (SPM) | `gpt2` (BPE) |
//! |---|---|---|
//! | bos, eos, unknown | 1, 2, 0 | 11, 11, none |
//! | add BOS / EOS | yes / no | no / no |
//! | space prefix | yes | never |
//!
//! A default id that the vocabulary does not reach counts as absent.

use super::lookup::{Index, Merges, Texts};
use super::pre::Pre;
use super::well_known::{ENDS, ENDS_IF_CONTROL};
use crate::error::{Code, Error, Place, Result, Section};
use crate::forward::Parameter;
use crate::limits::{MAX_MERGES, MAX_VOCABULARY};
use crate::metadata::{Array, Metadata, ValueKind};
use crate::num;

/// What a token is for; the codes of `tokenizer.ggml.token_type`, every one of which has its place here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenType {
    /// No type of its own (code 0, and codes past 6).
    Undefined,
    /// Text.
    Normal,
    /// Stands for what the vocabulary cannot spell.
    Unknown,
    /// Steers the model and is no text: begin, end, turns.
    Control,
    /// Text that is never split, matched before everything else.
    UserDefined,
    /// Kept free.
    Unused,
    /// One byte, written `<0xNN>`.
    Byte,
}

impl TokenType {
    /// The type of a code; any code is accepted.
    #[must_use]
    pub const fn from_code(code: i64) -> Self {
        match code {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => Self::Undefined,
        }
    }
}

/// How text becomes tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Model {
    /// Byte-level byte-pair encoding after a pre-tokenizer.
    Bpe(Pre),
    /// SentencePiece-style merging by score.
    Spm,
}

/// A vocabulary, read in place: a few words that borrow the metadata and, where the caller gave one, an index.
///
/// Without an index a look-up by text walks the vocabulary or the merges, one by id walks up to the id; with one it
/// takes log2 of their number in comparisons, or none.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary<'a> {
    pub(super) model: Model,
    pub(super) tokens: Texts<'a>,
    pub(super) merges: Merges<'a>,
    types: Option<Array<'a>>,
    scores: Option<Array<'a>>,
    bos: Option<u32>,
    eos: Option<u32>,
    eot: Option<u32>,
    eom: Option<u32>,
    pub(super) unknown: Option<u32>,
    add_bos: bool,
    add_eos: bool,
    pub(super) add_space_prefix: bool,
    pub(super) index: Option<Index<'a>>,
}

const PLACE: Place = Place::Section(Section::Metadata);

impl<'a> Vocabulary<'a> {
    /// Reads the keys `tokenizer.ggml.*` and checks every text, type, score and merge once. The result has no index.
    ///
    /// # Errors
    /// [`Code::UnsupportedFeature`] for a tokenizer model or a pre-tokenizer that this module does not do exactly,
    /// [`Code::MissingKey`]; both with the [`Parameter`] in `found`. [`Code::MetadataWrongType`],
    /// [`Code::MetadataRange`] for what contradicts the vocabulary (place: the token or merge at fault, where it is one),
    /// [`Code::TokenizerVocabulary`] and [`Code::TokenizerMerges`] past the limits.
    pub fn read(metadata: &Metadata<'a>) -> Result<Self> {
        let model = match need(metadata.str(Parameter::TokenizerModel.name())?, Parameter::TokenizerModel)? {
            // Special tokens of Phi-3 take the white space after them with them, which goes by this name.
            "llama" if ["phi-3", "phi3"].iter().any(|part| name_has(metadata, part)) => {
                return Err(Parameter::TokenizerModel.unsupported(PLACE));
            }
            "llama" => Model::Spm,
            "gpt2" => {
                let name = need(metadata.str(Parameter::TokenizerPre.name())?, Parameter::TokenizerPre)?;
                Model::Bpe(Pre::from_name(name).ok_or(Parameter::TokenizerPre.unsupported(PLACE))?)
            }
            _ => return Err(Parameter::TokenizerModel.unsupported(PLACE)),
        };
        let tokens = need(strings(metadata, Parameter::TokenizerTokens)?, Parameter::TokenizerTokens)?;
        let tokens = Texts::new(tokens, MAX_VOCABULARY, Code::TokenizerVocabulary)?;
        let count = tokens.count();
        if count == 0 {
            return Err(Error::new(Code::MetadataRange, PLACE).values(1, 0));
        }
        let (is_spm, merges) = match model {
            Model::Spm => (true, Merges::EMPTY),
            Model::Bpe(_) => {
                let merges = need(strings(metadata, Parameter::TokenizerMerges)?, Parameter::TokenizerMerges)?;
                (false, Merges::new(Texts::new(merges, MAX_MERGES, Code::TokenizerMerges)?)?)
            }
        };
        let scores = if is_spm { per_token(metadata, Parameter::TokenizerScores, count, is_score)? } else { None };
        if is_spm {
            need(scores, Parameter::TokenizerScores)?;
        }
        let default = |id| Some(id).filter(|_| is_spm);
        let id = |key, default| id(metadata, key, default, count);
        let flag = |key: Parameter, default| Ok::<_, Error>(metadata.bool(key.name())?.unwrap_or(default));
        let vocabulary = Self {
            model,
            tokens,
            merges,
            types: per_token(metadata, Parameter::TokenizerTypes, count, is_integer)?,
            scores,
            bos: id(Parameter::TokenizerBos, default(1).or(Some(11)))?,
            eos: id(Parameter::TokenizerEos, default(2).or(Some(11)))?,
            eot: id(Parameter::TokenizerEot, None)?,
            eom: id(Parameter::TokenizerEom, None)?,
            unknown: id(Parameter::TokenizerUnknown, default(0))?,
            add_bos: flag(Parameter::TokenizerAddBos, is_spm)?,
            add_eos: flag(Parameter::TokenizerAddEos, false)?,
            // Byte-level BPE spells its spaces; a prefix means nothing there.
            add_space_prefix: flag(Parameter::TokenizerAddSpacePrefix, true)? && is_spm,
            index: None,
        };
        vocabulary.check()?;
        Ok(vocabulary)
    }

    fn check(&self) -> Result<()> {
        if self.add_bos {
            need(self.bos, Parameter::TokenizerBos)?;
        }
        if self.add_eos {
            need(self.eos, Parameter::TokenizerEos)?;
        }
        for (id, text) in self.iter() {
            let is_byte = self.kind(id, text) == TokenType::Byte;
            if (is_byte && parse_byte(text).is_none()) || self.score(id).is_nan() {
                return Err(Error::new(Code::MetadataRange, Place::Token(id)));
            }
        }
        Ok(())
    }

    /// Number of tokens.
    #[must_use]
    pub const fn token_count(&self) -> u32 {
        self.tokens.count()
    }

    /// The token that begins a sequence.
    #[must_use]
    pub const fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The token that ends a sequence.
    #[must_use]
    pub const fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// BOS, where the model wants it before a text.
    pub(super) fn prefix(&self) -> Option<u32> {
        self.bos.filter(|_| self.add_bos)
    }

    /// EOS, where the model wants it after a text.
    pub(super) fn suffix(&self) -> Option<u32> {
        self.eos.filter(|_| self.add_eos)
    }

    /// The text of a token as the file writes it (BPE: in the [byte alphabet](super::alphabet); SPM: `▁` for a space).
    #[must_use]
    pub fn text(&self, id: u32) -> Option<&'a [u8]> {
        match &self.index {
            Some(index) => self.tokens.at(index.offset(id)?),
            None => self.tokens.iter().nth(num::index(id)).map(|(_, text)| text),
        }
    }

    /// The type of a token; `None` past the vocabulary. The [well-known ends](ENDS) are control tokens, whatever the file
    /// says of them.
    #[must_use]
    pub fn token_type(&self, id: u32) -> Option<TokenType> {
        self.text(id).map(|text| self.kind(id, text))
    }

    /// The lowest id with this text, as the file writes it.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        self.find_bytes(text.iter().copied())
    }

    /// Whether generation ends at this token: EOS, EOT, EOM, and the tokens whose text is one of the well-known ends.
    #[must_use]
    pub fn is_end_of_generation(&self, id: u32) -> bool {
        if [self.eos, self.eot, self.eom].contains(&Some(id)) {
            return true;
        }
        let Some(text) = self.text(id) else { return false };
        let lowest = || self.find(text) == Some(id);
        let control = || self.kind(id, text) == TokenType::Control;
        (is_one_of(ENDS, text) && lowest()) || (is_one_of(ENDS_IF_CONTROL, text) && control() && lowest())
    }

    /// The tokens with their ids, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a> {
        (0u32..).zip(self.tokens.iter().map(|(_, text)| text))
    }

    /// The type of token `id`, whose text is `text`.
    pub(super) fn kind(&self, id: u32, text: &[u8]) -> TokenType {
        if is_one_of(ENDS, text) && self.find(text) == Some(id) {
            return TokenType::Control;
        }
        let code = |types: &Array<'_>| types.get(id)?.as_i64();
        self.types.as_ref().map_or(TokenType::Normal, |types| TokenType::from_code(code(types).unwrap_or(0)))
    }

    /// The score of a token; 0 where there are none.
    pub(super) fn score(&self, id: u32) -> f32 {
        let value = self.scores.as_ref().and_then(|scores| scores.get(id));
        // Minus zero becomes zero, so that the total order of merging is the numbers' own.
        value.and_then(|value| value.as_f32().or_else(|| Some(to_f32(value.as_i64()?)))).unwrap_or(0.0) + 0.0
    }
}

/// Reads `<0xNN>`.
pub(super) fn parse_byte(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let ok = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
    ok.then(|| u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()).flatten()
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "old files hold small integers as scores")]
const fn to_f32(value: i64) -> f32 {
    value as f32
}

/// Whether `general.name` has `part` in it, in either case.
fn name_has(metadata: &Metadata<'_>, part: &str) -> bool {
    let name = metadata.get("general.name").and_then(|value| value.as_str()).unwrap_or_default();
    name.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

fn is_one_of(texts: &[&str], text: &[u8]) -> bool {
    texts.iter().any(|one| one.as_bytes() == text)
}

const fn is_integer(kind: ValueKind) -> bool {
    !matches!(kind, ValueKind::F32 | ValueKind::F64 | ValueKind::Bool | ValueKind::String | ValueKind::Array)
}

const fn is_score(kind: ValueKind) -> bool {
    matches!(kind, ValueKind::F32 | ValueKind::I32)
}

fn need<T>(value: Option<T>, key: Parameter) -> Result<T> {
    value.ok_or(Error::new(Code::MissingKey, PLACE).values(0, u64::from(key.number())))
}

fn strings<'a>(metadata: &Metadata<'a>, key: Parameter) -> Result<Option<Array<'a>>> {
    array(metadata, key, ValueKind::String, |kind| kind == ValueKind::String)
}

/// An array with one element for each token.
fn per_token<'a>(
    metadata: &Metadata<'a>,
    key: Parameter,
    count: u32,
    passes: impl FnOnce(ValueKind) -> bool,
) -> Result<Option<Array<'a>>> {
    let found = array(metadata, key, ValueKind::I32, passes)?;
    match found.filter(|array| array.len() != u64::from(count)) {
        Some(array) => Err(Error::new(Code::MetadataRange, PLACE).values(u64::from(count), array.len())),
        None => Ok(found),
    }
}

fn array<'a>(
    metadata: &Metadata<'a>,
    key: Parameter,
    wanted: ValueKind,
    passes: impl FnOnce(ValueKind) -> bool,
) -> Result<Option<Array<'a>>> {
    let Some(array) = metadata.array(key.name())? else { return Ok(None) };
    let wrong = Error::new(Code::MetadataWrongType, PLACE);
    let wrong = wrong.values(u64::from(wanted.id()), u64::from(array.kind().id()));
    passes(array.kind()).then_some(Some(array)).ok_or(wrong)
}

/// A stated id, or the default where the vocabulary reaches it.
fn id(metadata: &Metadata<'_>, key: Parameter, default: Option<u32>, count: u32) -> Result<Option<u32>> {
    match metadata.u32(key.name())? {
        Some(id) if id >= count => Err(Error::new(Code::MetadataRange, PLACE).values(u64::from(count), u64::from(id))),
        Some(id) => Ok(Some(id)),
        None => Ok(default.filter(|&id| id < count)),
    }
}
