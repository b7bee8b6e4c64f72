//! Reading a vocabulary from the key-value area, or from the parts of a Q42T section.

use p64_core::limits::{MAX_STRING, MAX_VOCABULARY};
use p64_core::metadata::{Array, Metadata, Value, ValueKind};
use p64_core::tokenizer::NO_TOKEN;
use p64_core::tokenizer::well_known::{ENDS, ENDS_IF_CONTROL};

use super::{Model, TokenType, Vocabulary, parse_byte};
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
const UNKNOWN: &str = "tokenizer.ggml.unknown_token_id";
const PADDING: &str = "tokenizer.ggml.padding_token_id";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const ADD_EOS: &str = "tokenizer.ggml.add_eos_token";
const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
const CHAT_TEMPLATE: &str = "tokenizer.chat_template";

const ALL: [&str; 16] = [
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
    UNKNOWN,
    PADDING,
    ADD_BOS,
    ADD_EOS,
    ADD_SPACE_PREFIX,
    CHAT_TEMPLATE,
];

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

    fn model(&self) -> Result<Model> {
        const WHY: &str = "it says how text becomes tokens";
        match self.str(MODEL)?.ok_or(TokenizerError::Missing { key: MODEL, why: WHY })? {
            "llama" => Ok(Model::Spm),
            "gpt2" => {
                // llama.cpp goes on with "default" and warns of degraded text; text that may be wrong is refused here.
                const WHY: &str = "it says how text is split before merging, and a guess would give wrong tokens";
                let name = self.str(PRE)?.ok_or(TokenizerError::Missing { key: PRE, why: WHY })?;
                Pre::from_name(name).map(Model::Bpe)
            }
            other => Err(TokenizerError::UnknownModel { found: other.to_owned() }),
        }
    }

    /// The vocabulary that the keys describe.
    pub(in crate::tokenizer) fn vocabulary(&self) -> Result<Vocabulary> {
        let model = self.model()?;
        let tokens =
            self.strings(TOKENS)?.ok_or(TokenizerError::Missing { key: TOKENS, why: "it is the vocabulary" })?;
        let texts = collect_texts(TOKENS, tokens.len(), tokens.strings())?;
        let vocab = texts.len();
        let types = match self.per_token(TYPES, "an array of i32", is_integer, vocab)? {
            Some(array) => array.iter().map(|v| TokenType::from_code(v.as_i64().unwrap_or(0))).collect(),
            None => vec![TokenType::Normal; vocab],
        };
        let (bos, eos, unknown) =
            if model == Model::Spm { (Some(1), Some(2), Some(0)) } else { (Some(11), Some(11), None) };
        let add_bos = match model {
            Model::Spm => true,
            Model::Bpe(pre) => pre.adds_bos(),
        };
        let draft = Draft {
            model,
            scores: if model == Model::Spm { self.scores(vocab)? } else { Vec::new() },
            types,
            bos: self.id(BOS, bos, vocab)?,
            eos: self.id(EOS, eos, vocab)?,
            eot: self.id(EOT, None, vocab)?,
            unknown: self.id(UNKNOWN, unknown, vocab)?,
            padding: self.id(PADDING, None, vocab)?,
            add_bos: self.bool(ADD_BOS)?.unwrap_or(add_bos),
            add_eos: self.bool(ADD_EOS)?.unwrap_or(false),
            // Byte-level BPE spells its spaces; a prefix means nothing there.
            add_space_prefix: self.bool(ADD_SPACE_PREFIX)?.unwrap_or(true) && model == Model::Spm,
            ends: self.id(EOM, None, vocab)?.into_iter().collect(),
            chat_template: self.str(CHAT_TEMPLATE)?.map(str::to_owned),
            texts,
        };
        draft.finish()
    }

    fn scores(&self, vocab: usize) -> Result<Vec<f32>> {
        const WHY: &str = "SPM merges by score";
        let passes = |kind| matches!(kind, ValueKind::F32 | ValueKind::I32);
        let array = self.per_token(SCORES, "an array of f32", passes, vocab)?;
        let array = array.ok_or(TokenizerError::Missing { key: SCORES, why: WHY })?;
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

/// Collects at most [`MAX_VOCABULARY`] texts of at most [`MAX_STRING`] bytes.
pub(in crate::tokenizer) fn collect_texts<'a>(
    key: &'static str,
    count: u64,
    texts: impl Iterator<Item = &'a [u8]>,
) -> Result<Texts> {
    let limit = |what, limit: u32, found| TokenizerError::Limit { key, what, limit: limit.into(), found };
    if count > u64::from(MAX_VOCABULARY) {
        return Err(limit("the number of tokens", MAX_VOCABULARY, count));
    }
    let texts = Texts::collect(texts).ok_or(limit("the number of tokens or of their bytes", u32::MAX, count))?;
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
    pub(in crate::tokenizer) padding: Option<u32>,
    pub(in crate::tokenizer) add_bos: bool,
    pub(in crate::tokenizer) add_eos: bool,
    pub(in crate::tokenizer) add_space_prefix: bool,
    /// Tokens known to end generation besides EOS, EOT and the well-known.
    pub(in crate::tokenizer) ends: Vec<u32>,
    pub(in crate::tokenizer) chat_template: Option<String>,
}

impl Draft {
    /// Checks what the parts promise each other and finds the tokens that end generation.
    pub(in crate::tokenizer) fn finish(mut self) -> Result<Vocabulary> {
        if self.add_bos && self.bos.is_none() {
            return Err(TokenizerError::NoToken { flag: ADD_BOS, id: BOS });
        }
        if self.add_eos && self.eos.is_none() {
            return Err(TokenizerError::NoToken { flag: ADD_EOS, id: EOS });
        }
        for (index, ((_, text), kind)) in self.texts.iter().zip(&self.types).enumerate() {
            if *kind == TokenType::Byte && parse_byte(text).is_none() {
                let what = "the token is of type byte but its text is not <0xNN>";
                return Err(TokenizerError::Element { key: TOKENS, index, what });
            }
        }
        self.mark_ends();
        Ok(Vocabulary {
            model: self.model,
            texts: self.texts,
            types: self.types,
            scores: self.scores,
            bos: self.bos,
            eos: self.eos,
            eot: self.eot,
            unknown: self.unknown,
            padding: self.padding,
            add_bos: self.add_bos,
            add_eos: self.add_eos,
            add_space_prefix: self.add_space_prefix,
            ends: self.ends,
            chat_template: self.chat_template,
        })
    }

    fn mark_ends(&mut self) {
        let slot = |id: u32| usize::try_from(id).unwrap_or(usize::MAX);
        for id in ENDS.iter().filter_map(|text| self.texts.find(text.as_bytes())) {
            // Some converters mark them as text; then they would be spelled out and never matched in a prompt.
            if let Some(kind) = self.types.get_mut(slot(id)) {
                *kind = TokenType::Control;
            }
            self.ends.push(id);
        }
        let control = |id: &u32| self.types.get(slot(*id)) == Some(&TokenType::Control);
        self.ends.extend(ENDS_IF_CONTROL.iter().filter_map(|text| self.texts.find(text.as_bytes())).filter(control));
        self.ends.extend(self.eos.into_iter().chain(self.eot));
        self.ends.sort_unstable();
        self.ends.dedup();
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
            model: Model::Bpe(pre),
            texts,
            types,
            scores: Vec::new(),
            bos,
            eos,
            eot: None,
            unknown: None,
            padding: None,
            add_bos,
            add_eos: false,
            add_space_prefix: false,
            ends: stops?,
            chat_template: None,
        })
    }
}
