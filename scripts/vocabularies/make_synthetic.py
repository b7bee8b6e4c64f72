#!/usr/bin/env python3
"""Writes tests/data/tokenizers/*.gguf: small vocabularies of the tokenizer models that llama.cpp ships none of.

Their tokens are pieces of the strings there, chosen by a fixed rule, so that texts split in more than one way. Needs Python
3.9, nothing else.
"""

import collections

from make_goldens import DATA, gguf, strings, value

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
T = "tokenizer.ggml."


def pieces(texts, longest, count):
    """The most frequent substrings of 2 to `longest` characters, most frequent first."""
    found = collections.Counter()
    for text in texts:
        for length in range(2, longest + 1):
            found.update(text[at:at + length] for at in range(len(text) - length + 1))
    ordered = sorted(found.items(), key=lambda item: (-item[1] * len(item[0]), item[0]))
    return [piece for piece, _ in ordered[:count]]


def write(name, model, tokens, types, scores=None, **more):
    keys = {"general.architecture": "llama", "general.name": name, T + "model": model}
    keys[T + "tokens"] = (8, tokens)
    keys[T + "token_type"] = (5, types)
    if scores:
        keys[T + "scores"] = (6, scores)
    keys |= {T + key: item for key, item in more.items()}
    (DATA / f"{name}.gguf").write_bytes(gguf({key: value(item) for key, item in keys.items()}))


def score(index):
    """Between -2 and -14, not in the order of the ids."""
    return -2.0 - (index * 7919 % 1201) / 100


def rwkv(texts):
    def escaped(data):
        names = {9: r"\t", 10: r"\n", 13: r"\r", 92: r"\\", 39: r"\'"}
        return "".join(names.get(b) or (chr(b) if 32 <= b < 127 else rf"\x{b:02x}") for b in data)

    # As in the World vocabulary: 0 is the end, then the bytes, then longer ones, some of them no whole characters.
    longer = [piece.encode() for piece in pieces(texts, 6, 300)] + ["é".encode()[:1] + b"\xa9 ", b"\xe6\xbc", b"\n\n\n"]
    longer = [piece for piece in dict.fromkeys(longer) if len(piece) > 1]
    tokens = ["<|rwkv_end|>"] + [escaped(bytes([b])) for b in range(256)] + [escaped(piece) for piece in longer]
    write("rwkv", "rwkv", tokens, [CONTROL] + [NORMAL] * (len(tokens) - 1), eos_token_id=0, unknown_token_id=0)


def plamo2(texts):
    special = ["<|plamo:unk|>", "<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:pad|>", "</s>"]
    singles = sorted({c for text in texts for c in text if ord(c) < 0x3100})[::2]
    tokens = special + [f"<0x{b:02X}>" for b in range(256)]
    types = [UNKNOWN, CONTROL, CONTROL, CONTROL, USER] + [BYTE] * 256
    for piece in dict.fromkeys(pieces(texts, 8, 400) + singles):
        tokens.append(piece)
        types.append(NORMAL)
    scores = [0.0] * 261 + [score(i) * len(tokens[i]) ** 0.5 for i in range(261, len(tokens))]
    scores[300] = float("-inf")
    write("plamo2", "plamo2", tokens, types, scores)


def t5(texts):
    escaped = [text.replace(" ", "▁") for text in texts]
    singles = sorted({c for text in escaped for c in text if ord(c) < 0x1000})[::2]
    tokens, types = ["<pad>", "</s>", "<unk>", "<|user|>", "Hello", "aB"], [CONTROL, CONTROL, UNKNOWN, CONTROL, USER, USER]
    for index, piece in enumerate(dict.fromkeys(pieces(escaped, 8, 400) + ["▁"] + singles)):
        tokens.append(piece)
        types.append(UNUSED if index % 50 == 7 else NORMAL)
    write("t5", "t5", tokens, types, [score(i) * len(tokens[i]) ** 0.5 for i in range(len(tokens))], add_space_prefix=True)


def merges(alphabet, words):
    """Merges that build each word from its left, and their tokens."""
    tokens, pairs = list(alphabet), []
    for word in words:
        left = word[0]
        for c in word[1:]:
            if f"{left} {c}" not in pairs:
                pairs.append(f"{left} {c}")
            left += c
            tokens += [left] if left not in tokens else []
    return tokens, pairs


def hybriddna():
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = [chr(b) for b in printed] + [chr(256 + n) for n in range(256 - len(printed))]
    tokens, pairs = merges(alphabet, ["CCCCCC", "ACGT", "Ġtext", "Ġthe"])
    mark = "\ue000"
    tokens += ["<s>", "<dna>", "</dna>", "<oov>", "ACGTAC" + mark, "CCCCCC" + mark, "TAAAAA" + mark, "GTNNAA" + mark]
    kinds = [NORMAL] * (len(tokens) - 8) + [CONTROL, USER, USER, CONTROL] + [NORMAL] * 4
    first = len(tokens) - 8
    write("hybriddna", "hybriddna", tokens, kinds, merges=(8, pairs), pre="gpt-2", bos_token_id=first, eos_token_id=first)


def whitespace(texts):
    characters = sorted({c for text in texts for c in text if not c.isspace() and ord(c) > 32})[::2]
    words = [w for text in texts for w in text.split() if 1 < len(w) < 9]
    alphabet = ["<s>", "</s>", "<unk>", *(f"<0x{b:02X}>" for b in range(0, 256, 3)), *characters]
    tokens, pairs = merges(alphabet, list(dict.fromkeys(words))[:120])
    # Some tokens are missing, so that merges lead over texts that are none.
    kept = [token for index, token in enumerate(tokens) if len(token) == 1 or token[0] == "<" or index % 5]
    kinds = [CONTROL, CONTROL, UNKNOWN] + [BYTE if token.startswith("<0x") else NORMAL for token in kept[3:]]
    common = dict(merges=(8, pairs), pre="whitespace", bos_token_id=0, eos_token_id=1, add_bos_token=True)
    write("whitespace", "whitespace", kept, kinds, **common)
    write("whitespace-lower", "whitespace", kept, kinds, **common, **{"normalizer.lowercase": True})


def main():
    texts = [text for text in (data.decode("utf-8", "ignore") for data in strings()) if "\0" not in text and len(text) < 400]
    rwkv(texts)
    plamo2(texts)
    t5(texts)
    hybriddna()
    whitespace(texts)


if __name__ == "__main__":
    main()
