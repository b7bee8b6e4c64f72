"""Small real tokenizers: byte-level BPE with several pre-tokenizers, and a SentencePiece vocabulary with byte fallback."""

import json
import pathlib

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

# The text is made of itself: what the strings below need is words, digits, marks and a little of other scripts.
WORDS = """the of and a to in is was he for it with as his on be at by had not are but from or have an they which one you
were her all she there would their we him been has when who will more no if out so said what up its about into than them
can only other new some could time these two may then do first any my now such like our over man me even most made after
also did many before must through back years where much your way well down should because each just those people how too
little state good very make world still own see men work long get here between both life being under never day same another
know while last might us great old year off come since against go came right used take three""".split()
OTHER = ["naïve café", "Привет мир", "我想在家", "こんにちは", "مرحبا", "🚀 😶", "don't I'll we've", "3.14 1000 42", "x = y + 1;"]

TEXTS = [
    "",
    " ",
    "  two  spaces   three",
    "The first day was long, and the work was good.",
    "I've been told he's there, 'RE you sure? DON'T.",
    "line one\nline two\r\n\n\n  line five\t\ttabs",
    "numbers 3 33 333 3333 33333 3.14 1,000,000",
    "naïve café Привет мир 我想在家工作 こんにちは مرحبا ภาษาไทย",
    "🚀 (normal) 😶\u200d🌫️ ✅ 🦙🦙",
    "x = [y + 1 for y in range(10)]; // comment\n\treturn x != 0",
    "<|im_start|>user\nhello<|im_end|>\n",
    "a<extra>b <extra> c",
    "trailing space ",
    "\u00a0no-break\u2003em\u3000wide",
    "ﬁ ligature Å Å",
    "......!!!!!!??????------=====",
]

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def corpus():
    import random

    chance = random.Random(7)
    for i in range(3000):
        words = [chance.choice(WORDS) for _ in range(chance.randint(4, 14))]
        words[0] = words[0].capitalize()
        yield " ".join(words) + chance.choice([".", ",", "?", "!", ".\n"])
        if i % 10 == 0:
            yield chance.choice(OTHER)


def split(pattern):
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )


PRE = {
    "gpt-2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "llama-bpe": lambda: split(LLAMA3),
    "dbrx": lambda: split(LLAMA3),
    "qwen2": lambda: split(QWEN2),
    "tekken": lambda: split(TEKKEN),
    "smollm": lambda: pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    ),
}


def byte_level(pre, bos=None, eos="<|endoftext|>", extra=True, size=448):
    """A tokenizer of `tokenizers`; `bos` is put before a text where it is named."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=pre in ("llama-bpe", "tekken")))
    tokenizer.pre_tokenizer = PRE[pre]()
    tokenizer.normalizer = normalizers.NFC() if pre == "qwen2" else None
    tokenizer.decoder = decoders.ByteLevel()
    first = [token for token in (bos, eos) if token] + ["<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=first if pre in ("smollm", "gpt-2") else [],
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_special_tokens(list(dict.fromkeys(first)))
    if extra:
        tokenizer.add_tokens([AddedToken("<extra>", normalized=False, special=False)])
    if bos:
        tokenizer.post_processor = processors.Sequence(
            [
                processors.ByteLevel(trim_offsets=False),
                processors.TemplateProcessing(
                    single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, tokenizer.token_to_id(bos))]
                ),
            ]
        )
    else:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def sentence_piece(folder, size=512, **options):
    """Trains tokenizer.model in the folder."""
    text = folder / "corpus.txt"
    text.write_text("\n".join(corpus()), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.Train(
        input=str(text),
        model_prefix=str(folder / "tokenizer"),
        model_type="bpe",
        vocab_size=size,
        byte_fallback=True,
        character_coverage=0.995,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    text.unlink()
    (folder / "tokenizer.vocab").unlink()


def merges_of(model):
    """The merges that `tokenizers` takes in place of the scores: every pair whose join is a piece, by the piece's score."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    pieces = {processor.IdToPiece(i): i for i in range(processor.GetPieceSize())}
    score = {piece: processor.GetScore(i) for piece, i in pieces.items()}
    merges = []
    for piece, i in pieces.items():
        pairs = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        pairs = [pair for pair in pairs if pair[0] in pieces and pair[1] in pieces]
        merges += [(pair, score[piece]) for pair in sorted(pairs, key=lambda pair: (pieces[pair[0]], pieces[pair[1]]))]
    merges.sort(key=lambda merge: -merge[1])
    return pieces, [pair for pair, _ in merges]


def from_sentence_piece(model, bos, eos, prefix, unknown="<unk>"):
    """What transformers makes of a tokenizer.model: BPE with byte fallback."""
    pieces, merges = merges_of(model)
    tokenizer = Tokenizer(models.BPE(pieces, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
    replace = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace]) if prefix else replace
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if prefix else []))
    tokenizer.add_special_tokens([unknown, bos, eos])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
    return tokenizer


def write(tokenizer, folder: pathlib.Path, config):
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n")
