//! Reading a vocabulary from the key-value area, or from the parts of a Q42T section.

use p64_core::limits::{MAX_STRING, MAX_VOCABULARY};
use p64_core::metadata::{Array, Metadata, Value, ValueKind};
use p64_core::tokenizer::NO_TOKEN;

use super::marks::{self, Strips};
use super::{Kind, Model, Normalizer, TokenType, Vocabulary, parse_byte};
use crate::tokenizer::charsmap::CharsMap;
use crate::tokenizer::defaults::Defaults;
use crate::tokenizer::error::TokenizerError;
use crate::tokenizer::pre::Pre;
use crate::tokenizer::texts::Texts;

pub(in crate::tokenizer) const MODEL: &str = "tokenizer.ggml.model";
pub(in crate::tokenizer) const PRE: &str = "tokenizer.ggml.pre";
pub(in crate::tokenizer) const TOKENS: &str = "tokenizer.ggml.tokens";
pub(in crate::tokenizer) const MERGES: &str = "tokenizer.ggml.merges";
const SCORES: &str = "tokenizer.ggml.scores";
const TYPES: &str = "tokenizer.ggml.token_type";
const BOS: &str = "tokenizer.ggml.bos_token_id";
const EOS: &str = "tokenizer.ggml.eos_token_id";
const EOT: &str = "tokenizer.ggml.eot_token_id";
const EOM: &str = "tokenizer.ggml.eom_token_id";
const FIM_PRE: &str = "tokenizer.ggml.fim_pre_token_id";
const FIM_SUF: &str = "tokenizer.ggml.fim_suf_token_id";
const FIM_MID: &str = "tokenizer.ggml.fim_mid_token_id";
const UNKNOWN: &str = "tokenizer.ggml.unknown_token_id";
const SEPARATOR: &str = "tokenizer.ggml.seperator_token_id";
const PADDING: &str = "tokenizer.ggml.padding_token_id";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const ADD_EOS: &str = "tokenizer.ggml.add_eos_token";
const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
const REMOVE_EXTRA_WHITESPACES: &str = "tokenizer.ggml.remove_extra_whitespaces";
const CHARS_MAP: &str = "tokenizer.ggml.precompiled_charsmap";
const LOWERCASE: &str = "tokenizer.ggml.normalizer.lowercase";
const STRIP_ACCENTS: &str = "tokenizer.ggml.normalizer.strip_accents";
const NAME: &str = "general.name";
const ARCHITECTURE: &str = "general.architecture";
const CHAT_TEMPLATE: &str = "tokenizer.chat_template";

const ALL: [&str; 26] = [
    MODEL,
    PRE,
    TOKENS,
    MERGES,
    SCORES,
    TYPES,
    BOS,
    EOS,
    EOT,
    EOM,
    FIM_PRE,
    FIM_SUF,
    FIM_MID,
    UNKNOWN,
    SEPARATOR,
    PADDING,
    ADD_BOS,
    ADD_EOS,
    ADD_SPACE_PREFIX,
    REMOVE_EXTRA_WHITESPACES,
    CHARS_MAP,
    LOWERCASE,
    STRIP_ACCENTS,
    NAME,
    ARCHITECTURE,
    CHAT_TEMPLATE,
];

/// Bytes of the longest token of the models that walk a trie from every place of a text; those of public models are a tenth of
/// it. It bounds the work per byte of text.
const MAX_WALKED: usize = 1024;

type Result<T> = core::result::Result<T, TokenizerError>;

/// The tokenizer's values, picked out of the metadata in one walk.
#[derive(Debug)]
pub(in crate::tokenizer) struct Keys<'a> {
    values: [Option<Value<'a>>; ALL.len()],
}

impl<'a> Keys<'a> {
    pub(in crate::tokenizer) fn read(metadata: &Metadata<'a>) -> Self {
        let mut values = [None; ALL.len()];
        for (name, value) in metadata {
            if let Some((_, slot)) = ALL.iter().zip(&mut values).find(|(key, slot)| **key == name && slot.is_none()) {
                *slot = Some(value);
            }
        }
        Self { values }
    }

    fn value(&self, key: &'static str) -> Option<Value<'a>> {
        ALL.iter().zip(&self.values).find(|(name, _)| **name == key).and_then(|(_, value)| *value)
    }

    fn typed<T>(
        &self,
        key: &'static str,
        expected: &'static str,
        read: impl FnOnce(Value<'a>) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        read(value).map(Some).ok_or(TokenizerError::wrong_type(key, expected, value.kind()))
    }

    fn str(&self, key: &'static str) -> Result<Option<&'a str>> {
        self.typed(key, "UTF-8 text", Value::as_str)
    }

    fn bool(&self, key: &'static str) -> Result<Option<bool>> {
        self.typed(key, "bool", Value::as_bool)
    }

    /// A stated id, or the default where the vocabulary reaches it.
    fn id(&self, key: &'static str, default: Option<u32>, vocab: usize) -> Result<Option<u32>> {
        match self.typed(key, "an unsigned integer", Value::as_u64)? {
            Some(id) => check_id(key, id, vocab).map(Some),
            None => Ok(default.filter(|&id| (id as usize) < vocab)),
        }
    }

    /// An array of strings.
    pub(in crate::tokenizer) fn strings(&self, key: &'static str) -> Result<Option<Array<'a>>> {
        self.array(key, "an array of strings", |kind| kind == ValueKind::String)
    }

    fn array(
        &self,
        key: &'static str,
        expected: &'static str,
        passes: impl FnOnce(ValueKind) -> bool,
    ) -> Result<Option<Array<'a>>> {
        let Some(array) = self.typed(key, expected, Value::as_array)? else { return Ok(None) };
        if passes(array.kind()) {
            Ok(Some(array))
        } else {
            Err(TokenizerError::wrong_type(key, expected, array.kind()))
        }
    }

    /// An array with one element per token.
    fn per_token(
        &self,
        key: &'static str,
        expected: &'static str,
        passes: impl FnOnce(ValueKind) -> bool,
        vocab: usize,
    ) -> Result<Option<Array<'a>>> {
        let Some(array) = self.array(key, expected, passes)? else { return Ok(None) };
        if array.len() == vocab as u64 {
            Ok(Some(array))
        } else {
            Err(TokenizerError::Length { key, expected: vocab, found: array.len() })
        }
    }

    /// The pre-tokenizer that the file names.
    fn pre(&self) -> Result<Pre> {
        // llama.cpp goes on with "default" and warns of degraded text; text that may be wrong is refused here.
        const WHY: &str = "it says how text is split before merging, and a guess would give wrong tokens";
        Pre::from_name(self.str(PRE)?.ok_or(TokenizerError::Missing { key: PRE, why: WHY })?)
    }

    fn model(&self) -> Result<(Model, Defaults)> {
        const WHY: &str = "it says how text becomes tokens";
        let name = self.str(MODEL)?.ok_or(TokenizerError::Missing { key: MODEL, why: WHY })?;
        let model = match name {
            "llama" => Model::Spm,
            "gpt2" => Model::Bpe(self.pre()?, Kind::Plain),
            "hybriddna" => Model::Bpe(self.pre()?, Kind::HybridDna),
            "whitespace" => Model::Bpe(self.pre()?, Kind::Whitespace),
            // The model's name stands for its pre-tokenizer too.
            "gemma4" => Model::Bpe(Pre::from_name(name)?, Kind::Plain),
            "bert" => Model::WordPiece,
            "t5" => Model::Unigram,
            "rwkv" => Model::Rwkv,
            "plamo2" => Model::Plamo,
            other => return Err(TokenizerError::UnknownModel { found: TokenizerError::shown(other) }),
        };
        let pre = if let Model::Bpe(pre, _) = model { Some(pre) } else { None };
        Ok((model, Defaults::of(name, pre)))
    }

    /// The vocabulary that the keys describe.
    pub(in crate::tokenizer) fn vocabulary(&self) -> Result<Vocabulary> {
        let (model, defaults) = self.model()?;
        let tokens =
            self.strings(TOKENS)?.ok_or(TokenizerError::Missing { key: TOKENS, why: "it is the vocabulary" })?;
        let texts = checked_texts(TOKENS, tokens.len(), || Texts::of_array(&tokens))?;
        if matches!(model, Model::WordPiece | Model::Unigram | Model::Rwkv | Model::Plamo)
            && texts.longest() > MAX_WALKED
        {
            let (limit, found) = (MAX_WALKED as u64, texts.longest() as u64);
            return Err(TokenizerError::Limit { key: TOKENS, what: "the longest token's length", limit, found });
        }
        let vocab = texts.len();
        let mut types = match self.per_token(TYPES, "an array of i32", is_integer, vocab)? {
            Some(array) => types(&array),
            None => vec![TokenType::Normal; vocab],
        };
        let scored = matches!(model, Model::Spm | Model::Unigram | Model::Plamo);
        for (key, texts_of_kind) in [(FIM_PRE, marks::FIM_PRE), (FIM_SUF, marks::FIM_SUF), (FIM_MID, marks::FIM_MID)] {
            if self.id(key, None, vocab)?.is_none() {
                marks::mark_first(texts_of_kind, &texts, &mut types);
            }
        }
        let lowercase = self.bool(LOWERCASE)?.unwrap_or(!matches!(model, Model::Bpe(pre, _) if pre.drops_spaces()));
        let draft = Draft {
            model,
            scores: if scored { self.scores(vocab)? } else { Vec::new() },
            types,
            bos: self.id(BOS, defaults.bos, vocab)?,
            eos: self.id(EOS, defaults.eos, vocab)?,
            eot: self.id(EOT, None, vocab)?,
            unknown: self.id(UNKNOWN, defaults.unknown, vocab)?,
            separator: self.id(SEPARATOR, defaults.separator, vocab)?,
            padding: self.id(PADDING, defaults.padding, vocab)?,
            add_bos: defaults.adds_bos(self.bool(ADD_BOS)?),
            add_eos: self.bool(ADD_EOS)?.unwrap_or(defaults.add_eos),
            // The others spell their spaces; a prefix means nothing there.
            add_space_prefix: self.bool(ADD_SPACE_PREFIX)?.unwrap_or(defaults.space_prefix)
                && matches!(model, Model::Spm | Model::Unigram),
            normalizer: Normalizer { lowercase, strip_accents: self.bool(STRIP_ACCENTS)?.unwrap_or(lowercase) },
            ends: self.id(EOM, None, vocab)?.into_iter().collect(),
            chat_template: self.str(CHAT_TEMPLATE)?.map(str::to_owned),
            texts,
        };
        let strips = marks::Source {
            mask: matches!(model, Model::Bpe(pre, _) if pre.strips_before_mask()),
            name: self.str(NAME)?.unwrap_or(""),
            architecture: self.str(ARCHITECTURE)?.unwrap_or(""),
        };
        draft.finish(&strips)
    }

    /// SentencePiece's normalisation: the map, empty without one, and whether runs of spaces become one.
    pub(in crate::tokenizer) fn normalization(&self) -> Result<(CharsMap, bool)> {
        let is_byte = |kind| matches!(kind, ValueKind::U8 | ValueKind::I8);
        let map = match self.array(CHARS_MAP, "an array of u8", is_byte)? {
            Some(array) => {
                #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "i8 and u8 are bytes here")]
                let bytes: Vec<u8> = array.iter().map(|v| v.as_i64().unwrap_or(0) as u8).collect();
                let what =
                    "the map's double array does not end before the map, or a replacement has more than 128 bytes";
                CharsMap::parse(&bytes).ok_or(TokenizerError::Element { key: CHARS_MAP, index: 0, what })?
            }
            None => CharsMap::default(),
        };
        Ok((map, self.bool(REMOVE_EXTRA_WHITESPACES)?.unwrap_or(false)))
    }

    fn scores(&self, vocab: usize) -> Result<Vec<f32>> {
        const WHY: &str = "the model chooses tokens by score";
        let passes = |kind| matches!(kind, ValueKind::F32 | ValueKind::I32);
        let array = self.per_token(SCORES, "an array of f32", passes, vocab)?;
        let array = array.ok_or(TokenizerError::Missing { key: SCORES, why: WHY })?;
        if array.kind() == ValueKind::F32 {
            let (scores, _) = array.bytes().as_chunks();
            let scores: Vec<f32> = scores.iter().map(|score| f32::from_le_bytes(*score) + 0.0).collect();
            if !scores.iter().any(|score| score.is_nan()) {
                return Ok(scores);
            }
        }
        let score = |(index, value): (usize, Value<'_>)| {
            #[expect(clippy::cast_precision_loss, reason = "old files hold small integers")]
            let score = value.as_f32().or_else(|| value.as_i64().map(|v| v as f32)).unwrap_or(0.0);
            if score.is_nan() {
                return Err(TokenizerError::Element { key: SCORES, index, what: "the score is not a number" });
            }
            // Minus zero becomes zero, so that the total order of merging is the numbers' own.
            Ok(score + 0.0)
        };
        array.iter().enumerate().map(score).collect()
    }
}

const fn is_integer(kind: ValueKind) -> bool {
    !matches!(kind, ValueKind::F32 | ValueKind::F64 | ValueKind::Bool | ValueKind::String | ValueKind::Array)
}

fn check_id(key: &'static str, id: u64, vocab: usize) -> Result<u32> {
    let range = TokenizerError::IdRange { key, id, vocab };
    if id < vocab as u64 { u32::try_from(id).map_err(|_| range) } else { Err(range) }
}

/// The types of an array of integers; files have `i32`.
fn types(array: &Array<'_>) -> Vec<TokenType> {
    if array.kind() == ValueKind::I32 {
        let (codes, _) = array.bytes().as_chunks();
        return codes.iter().map(|code| TokenType::from_code(i32::from_le_bytes(*code).into())).collect();
    }
    array.iter().map(|v| TokenType::from_code(v.as_i64().unwrap_or(0))).collect()
}

/// Collects at most [`MAX_VOCABULARY`] texts of at most [`MAX_STRING`] bytes.
pub(in crate::tokenizer) fn collect_texts<'a>(
    key: &'static str,
    count: u64,
    texts: impl Iterator<Item = &'a [u8]>,
) -> Result<Texts> {
    checked_texts(key, count, || Texts::collect(texts))
}

fn checked_texts(key: &'static str, count: u64, collect: impl FnOnce() -> Option<Texts>) -> Result<Texts> {
    let limit = |what, limit: u32, found| TokenizerError::Limit { key, what, limit: limit.into(), found };
    if count > u64::from(MAX_VOCABULARY) {
        return Err(limit("the number of tokens", MAX_VOCABULARY, count));
    }
    let texts = collect().ok_or(limit("the number of tokens or of their bytes", u32::MAX, count))?;
    if texts.longest() as u64 > u64::from(MAX_STRING) {
        return Err(limit("the longest token's length", MAX_STRING, texts.longest() as u64));
    }
    if texts.len() == 0 {
        return Err(TokenizerError::Element { key, index: 0, what: "the vocabulary has no token" });
    }
    Ok(texts)
}

/// A vocabulary's parts before they are checked against each other.
#[derive(Debug)]
pub(in crate::tokenizer) struct Draft {
    pub(in crate::tokenizer) model: Model,
    pub(in crate::tokenizer) texts: Texts,
    pub(in crate::tokenizer) types: Vec<TokenType>,
    pub(in crate::tokenizer) scores: Vec<f32>,
    pub(in crate::tokenizer) bos: Option<u32>,
    pub(in crate::tokenizer) eos: Option<u32>,
    pub(in crate::tokenizer) eot: Option<u32>,
    pub(in crate::tokenizer) unknown: Option<u32>,
    pub(in crate::tokenizer) separator: Option<u32>,
    pub(in crate::tokenizer) padding: Option<u32>,
    pub(in crate::tokenizer) add_bos: bool,
    pub(in crate::tokenizer) add_eos: bool,
    pub(in crate::tokenizer) add_space_prefix: bool,
    pub(in crate::tokenizer) normalizer: Normalizer,
    /// Tokens known to end generation besides EOS, EOT and the well-known.
    pub(in crate::tokenizer) ends: Vec<u32>,
    pub(in crate::tokenizer) chat_template: Option<String>,
}

impl Draft {
    /// Checks what the parts promise each other and finds the tokens that end generation.
    pub(in crate::tokenizer) fn finish(mut self, strips: &marks::Source<'_>) -> Result<Vocabulary> {
        if self.add_bos && self.bos.is_none() {
            return Err(TokenizerError::NoToken { flag: ADD_BOS, id: BOS });
        }
        if self.add_eos && self.eos.is_none() {
            return Err(TokenizerError::NoToken { flag: ADD_EOS, id: EOS });
        }
        if self.model == Model::WordPiece && self.separator.is_none() {
            const WHY: &str = "WordPiece puts it after a text";
            return Err(TokenizerError::Missing { key: SEPARATOR, why: WHY });
        }
        for ((index, id), _) in (0..).zip(0..).zip(&self.types).filter(|(_, kind)| **kind == TokenType::Byte) {
            if self.texts.get(id).and_then(parse_byte).is_none() {
                let what = "the token is of type byte but its text is not <0xNN>";
                return Err(TokenizerError::Element { key: TOKENS, index, what });
            }
        }
        let stated = self.ends.iter().copied().chain(self.eos).chain(self.eot).collect();
        let ends = marks::mark_ends(&self.texts, &mut self.types, stated);
        let strips = Strips::find(strips, &self.texts, &self.types);
        let cleans_spaces = match self.model {
            Model::Bpe(pre, _) => pre.cleans_spaces(),
            Model::WordPiece => true,
            _ => false,
        };
        Ok(Vocabulary {
            model: self.model,
            texts: self.texts,
            types: self.types,
            scores: self.scores,
            bos: self.bos,
            eos: self.eos,
            eot: self.eot,
            unknown: self.unknown,
            separator: self.separator,
            padding: self.padding,
            add_bos: self.add_bos,
            add_eos: self.add_eos,
            add_space_prefix: self.add_space_prefix,
            cleans_spaces,
            normalizer: self.normalizer,
            strips,
            ends,
            chat_template: self.chat_template,
        })
    }

    /// The draft of a Q42T section: byte-level BPE with neither types nor scores. BOS and EOS become control tokens.
    pub(in crate::tokenizer) fn from_q42t(
        pre: Pre,
        texts: Texts,
        bos: u32,
        eos: u32,
        add_bos: bool,
        stops: &[u32],
    ) -> Result<Self> {
        let vocab = texts.len();
        let special = |key, id| if id == NO_TOKEN { Ok(None) } else { check_id(key, u64::from(id), vocab).map(Some) };
        let (bos, eos) = (special("Q42T BOS id", bos)?, special("Q42T EOS id", eos)?);
        let stops: Result<Vec<u32>> = stops.iter().map(|&id| check_id("Q42T stop id", id.into(), vocab)).collect();
        let mut types = vec![TokenType::Normal; vocab];
        for id in [bos, eos].into_iter().flatten() {
            if let Some(kind) = types.get_mut(id as usize) {
                *kind = TokenType::Control;
            }
        }
        Ok(Self {
            model: Model::Bpe(pre, Kind::Plain),
            texts,
            types,
            scores: Vec::new(),
            bos,
            eos,
            eot: None,
            unknown: None,
            separator: None,
            padding: None,
            add_bos,
            add_eos: false,
            add_space_prefix: false,
            normalizer: Normalizer { lowercase: false, strip_accents: false },
            ends: stops?,
            chat_template: None,
        })
    }
}
