//! The patterns behind the names. They are the published ones (`tokenizer.json` of each model, as GGUF's converters know
//! them) with two changes: the look-ahead `\s+(?!\S)` is the stage's business ([`Spaces`]), and classes that llama.cpp matches
//! on text whose white space beyond ASCII was replaced leave that white space out here.
//!
//! llama.cpp has one class for all letters: where a published pattern tells upper from lower case by `\p{Lu}` and `\p{Ll}`,
//! both are `\p{L}` here, because the ids are to be llama.cpp's.

/// One step of splitting: it splits the pieces that the step before it left, matches and the text between them alike.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A pattern in the syntax of `regex`, none of which matches the empty string.
    Pattern(&'static str, Spaces),
    /// A pattern of [`words`](super::words), with its runs of white space.
    Words(Words),
    /// `\d{1,3}(?=(?:\d{3})*\b)`: groups of three from the right.
    DigitsFromTheRight,
    /// `(?=(\d{3})+(?!\d))`: a cut before every third ASCII digit from the right.
    Thousands,
}

/// The patterns that are code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Words {
    /// [`words::GPT2`](super::words::GPT2) with [`Spaces::LastGoesOn`].
    Gpt2,
    /// [`words::NUMBER`](super::words::NUMBER).
    Number,
    /// [`words::LLAMA3`](super::words::LLAMA3) with [`Spaces::LastGoesOnUnlessLineBreak`].
    Llama3,
    /// [`words::QWEN2`](super::words::QWEN2) with the same.
    Qwen2,
    /// `[^\n]+|\n+`.
    Lines,
}

/// What becomes of a run of white space (`\s+(?!\S)`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spaces {
    /// The pattern has no such alternative.
    Kept,
    /// The last character of a run goes to what follows.
    LastGoesOn,
    /// The same, unless it is a line break: `\s*[\r\n]+` comes first and keeps what it takes.
    LastGoesOnUnlessLineBreak,
    /// The same, and the run is cut into pieces of 512, 256 ... 4, 2 and 1 (`\s{512}(?!\S)|...|\s{1,2}(?!\S)|\s{1}`).
    ByPowersOfTwo,
}

use Spaces::{ByPowersOfTwo, Kept, LastGoesOn, LastGoesOnUnlessLineBreak};
use Step::{DigitsFromTheRight, Pattern, Thousands};

macro_rules! contraction {
    () => {
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    };
}

/// The end of most patterns since GPT-4: marks with their line breaks, line breaks, white space.
macro_rules! marks_and_spaces {
    () => {
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
    };
}

/// The same, with slashes.
macro_rules! marks_slashes_and_spaces {
    () => {
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+"
    };
}

/// Words that may change from upper to lower case once: `$upper` has no a-z, `$lower` no A-Z.
macro_rules! cased {
    ($upper:literal, $lower:literal, $tail:expr) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?",
            $upper,
            "*",
            $lower,
            "+",
            $tail,
            r"|[^\r\n\p{L}\p{N}]?",
            $upper,
            "+",
            $lower,
            "*",
            $tail
        )
    };
}

macro_rules! any_case {
    () => {
        concat!(r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+", contraction!(), "?")
    };
}

const GPT2_WORDS: Step = Step::Words(Words::Gpt2);
const EACH_DIGIT: Step = Step::Words(Words::Number);
const THREE_DIGITS: Step = Pattern(r"\p{N}{1,3}", Kept);
const LINES: Step = Step::Words(Words::Lines);

pub(super) const DEFAULT: &[Step] =
    &[Pattern(r"[\p{P}$+<=>^~|]+", Kept), GPT2_WORDS, Pattern(r"\p{N}+", Kept), Pattern("[0-9][0-9][0-9]", Kept)];
pub(super) const GPT2: &[Step] = &[GPT2_WORDS];
pub(super) const SMOLLM: &[Step] = &[EACH_DIGIT, GPT2_WORDS];
pub(super) const FALCON: &[Step] = &[Pattern(r"[\p{P}$+<=>^~|`]+", Kept), GPT2_WORDS, Pattern("[0-9][0-9][0-9]", Kept)];

pub(super) const LLAMA3: &[Step] = &[Step::Words(Words::Llama3)];
pub(super) const JAIS2: &[Step] = &[Pattern(super::words::LLAMA3, ByPowersOfTwo)];
pub(super) const QWEN2: &[Step] = &[Step::Words(Words::Qwen2)];
pub(super) const LAGUNA: &[Step] = &[LINES, Step::Words(Words::Qwen2)];
pub(super) const UFAKZEKA: &[Step] =
    &[Pattern(concat!(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}", marks_and_spaces!()), LastGoesOnUnlessLineBreak)];
pub(super) const MINICPM5: &[Step] = &[
    THREE_DIGITS,
    Pattern(
        concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+", marks_and_spaces!()),
        LastGoesOnUnlessLineBreak,
    ),
];
pub(super) const QWEN35: &[Step] = &[Pattern(
    concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"),
    LastGoesOnUnlessLineBreak,
)];
pub(super) const BAILING: &[Step] = &[Pattern(
    concat!(
        r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+"
    ),
    LastGoesOnUnlessLineBreak,
)];
pub(super) const SEED_CODER: &[Step] = &[Pattern(
    concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+"),
    LastGoesOnUnlessLineBreak,
)];
pub(super) const EXAONE_MOE: &[Step] = &[Pattern(
    concat!(
        contraction!(),
        r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}",
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+"
    ),
    LastGoesOnUnlessLineBreak,
)];

pub(super) const TEKKEN: &[Step] = &[Pattern(
    concat!(cased!(r"[\p{L}--a-z]", r"[\p{L}--A-Z]", ""), r"|\p{N}", marks_slashes_and_spaces!()),
    LastGoesOnUnlessLineBreak,
)];
pub(super) const GPT4O: &[Step] = &[Pattern(
    concat!(
        cased!(r"[\p{L}--a-z]", r"[\p{L}--A-Z]", concat!(contraction!(), "?")),
        r"|\p{N}{1,3}",
        marks_slashes_and_spaces!()
    ),
    LastGoesOnUnlessLineBreak,
)];
pub(super) const GRANITE_EMBEDDING: &[Step] = &[Pattern(
    concat!(
        cased!(r"[\p{L}\p{M}--a-z]", r"[\p{L}\p{M}--A-Z]", concat!(contraction!(), "?")),
        r"|\p{N}{1,3}",
        marks_slashes_and_spaces!()
    ),
    LastGoesOnUnlessLineBreak,
)];
pub(super) const TINY_AYA: &[Step] = &[
    DigitsFromTheRight,
    Pattern(concat!(any_case!(), r"|\p{N}{1,3}", marks_slashes_and_spaces!()), LastGoesOnUnlessLineBreak),
];
pub(super) const YOUTU: &[Step] = &[
    Pattern(
        concat!(
            r"[\u{ac00}-\u{d7a3}\u{3131}-\u{318e}]+",
            r"|[！…“”‘’—：；，、-\u{303f}\u{fe30}-\u{fe4f}]+|[\u{3105}-\u{312f}]+|[\u{4e00}-\u{9fa5}\u{3040}-\u{30ff}]+"
        ),
        Kept,
    ),
    Pattern(concat!(any_case!(), r"|\p{N}", marks_slashes_and_spaces!()), LastGoesOnUnlessLineBreak),
];

/// Han, Hiragana and Katakana, up to where Unicode 1.1 went.
const HAN_AND_KANA: Step = Pattern(r"[\u{4e00}-\u{9fa5}\u{3040}-\u{30ff}]+", Kept);
/// Words after a mark or a space, then marks; what follows differs.
macro_rules! deepseek_words {
    () => {
        concat!(
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"##
        )
    };
}
const DEEPSEEK3_WORDS: Step = Pattern(concat!(deepseek_words!(), r"[\r\n]*|\s*[\r\n]+|\s+"), LastGoesOnUnlessLineBreak);

pub(super) const DEEPSEEK3: &[Step] = &[THREE_DIGITS, HAN_AND_KANA, DEEPSEEK3_WORDS];
pub(super) const SPARK: &[Step] =
    &[THREE_DIGITS, HAN_AND_KANA, Pattern(concat!(deepseek_words!(), r"|[\r\n]|\s+"), LastGoesOn), EACH_DIGIT];
pub(super) const AFMOE: &[Step] = &[
    DigitsFromTheRight,
    Pattern(
        concat!(
            r"[\u{4e00}-\u{9fff}\u{3400}-\u{4dbf}\u{8c48}-\u{faff}\u{3040}-\u{30ff}\u{ff65}-\u{ff9f}\u{2f00}-\u{2fdf}",
            r"\u{e40}-\u{eff}\u{1780}-\u{17ff}\u{1000}-\u{109f}\u{aa60}-\u{aa7f}\u{a9e0}-\u{a9ff}\u{ac00}-\u{d7af}",
            r"\u{1100}-\u{11ff}]+"
        ),
        Kept,
    ),
    DEEPSEEK3_WORDS,
];
const HAN_TO_HANGUL: Step = Pattern(r"[[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]--\s]+", Kept);
pub(super) const DEEPSEEK_CODER: &[Step] =
    &[Pattern(r"[\r\n]", Kept), Pattern(r"\s?\p{L}+", Kept), Pattern(r"\s?\p{P}+", Kept), HAN_TO_HANGUL, EACH_DIGIT];
pub(super) const DEEPSEEK_LLM: &[Step] = &[
    Pattern(r"[\r\n]", Kept),
    Pattern(DEEPSEEK_LETTERS, Kept),
    // The published class ends in U+3000 to U+3002; the first of them is white space.
    Pattern(r"\s?[!-/:-~！-／：-～‘-‟\u{3001}\u{3002}]+", Kept),
    Pattern(r"\s+$", Kept),
    HAN_TO_HANGUL,
    Pattern(r"\p{N}+", Kept),
];
/// Letters that have case, of the Unicode version of its day.
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[",
    r"A-Za-z\u{b5}\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{1ba}\u{1bc}-\u{1bf}\u{1c4}-\u{293}\u{295}-\u{2af}",
    r"\u{370}-\u{373}\u{376}\u{377}\u{37b}-\u{37d}\u{37f}\u{386}\u{388}-\u{38a}\u{38c}\u{38e}-\u{3a1}",
    r"\u{3a3}-\u{3f5}\u{3f7}-\u{481}\u{48a}-\u{52f}\u{531}-\u{556}\u{10a0}-\u{10c5}\u{13a0}-\u{13f5}",
    r"\u{13f8}-\u{13fd}\u{1c90}-\u{1cba}\u{1cbd}-\u{1cbf}\u{1d00}-\u{1d2b}\u{1d6b}-\u{1d77}\u{1d79}-\u{1d9a}",
    r"\u{1e00}-\u{1f15}\u{1f18}-\u{1f1d}\u{1f20}-\u{1f45}\u{1f48}-\u{1f4d}\u{1f50}-\u{1f57}\u{1f59}\u{1f5b}",
    r"\u{1f5d}\u{1f5f}-\u{1f7d}\u{1f80}-\u{1fb4}\u{1fb6}-\u{1fbc}\u{1fbe}\u{1fc2}-\u{1fc4}\u{1fc6}-\u{1fcc}",
    r"\u{1fd0}-\u{1fd3}\u{1fd6}-\u{1fdb}\u{1fe0}-\u{1fec}\u{1ff2}-\u{1ff4}\u{1ff6}-\u{1ffc}\u{2102}\u{2107}",
    r"\u{210a}-\u{2113}\u{2115}\u{2119}-\u{211d}\u{2124}\u{2126}\u{2128}\u{212a}-\u{212d}\u{212f}-\u{2134}",
    r"\u{2139}\u{213c}-\u{213f}\u{2145}-\u{2149}\u{214e}\u{2183}\u{2184}\u{2c00}-\u{2c7b}\u{2c7e}-\u{2ce4}",
    r"\u{2ceb}-\u{2cee}\u{2cf2}\u{2cf3}\u{a640}-\u{a66d}\u{a680}-\u{a69b}\u{a722}-\u{a76f}\u{a771}-\u{a787}",
    r"\u{a78b}-\u{a78e}\u{ab70}-\u{abbf}\u{fb00}-\u{fb06}\u{fb13}-\u{fb17}\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}",
    r"\u{10400}-\u{1044f}\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}",
    r"\u{118a0}-\u{118df}\u{1e900}-\u{1e943}",
    "]+"
);

const SENTENCES: Step = Pattern(r" ?[^(\s|.,!?…。，、।۔،)]+", Kept);
pub(super) const BLOOM: &[Step] = &[SENTENCES];
pub(super) const VIKING: &[Step] = &[SENTENCES, EACH_DIGIT];
pub(super) const CHAMELEON: &[Step] = &[
    Pattern("<sentinel:[0-9]+>", Kept),
    Pattern("IMGIMG[A-I]{1,4}Z", Kept),
    Pattern(r"[\t\n]|    |  ", Kept),
    EACH_DIGIT,
    Pattern(r"[\p{P}!-/:-@\[-`{-~]", Kept),
    GPT2_WORDS,
];
pub(super) const SUPERBPE: &[Step] = &[Pattern(r"\p{N}+", Kept), Thousands];

/// Unified and compatibility ideographs by their blocks.
macro_rules! han {
    () => {
        concat!(
            r"\u{4e00}-\u{9fff}\u{3400}-\u{4dbf}\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}",
            r"\u{2b820}-\u{2ceaf}\u{2ceb0}-\u{2ebef}\u{f900}-\u{faff}\u{2f800}-\u{2fa1f}"
        )
    };
}
pub(super) const KIMI: &[Step] = &[Pattern(
    concat!(
        "[",
        han!(),
        r"]+|[^\r\n\p{L}\p{N}]?[\p{L}--[",
        han!(),
        "]]+",
        contraction!(),
        r"?|\p{N}{1,3}",
        marks_and_spaces!()
    ),
    LastGoesOnUnlessLineBreak,
)];

pub(super) const WHOLE_LINES: &[Step] = &[LINES];
pub(super) const WHITESPACE: &[Step] = &[Pattern(r"\S+", Kept)];
