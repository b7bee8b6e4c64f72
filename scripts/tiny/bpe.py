"""Byte-level BPE as GPT-2 defines it: trainer and encoder for ASCII text.

A token is written in GPT-2's alphabet, where every byte has one printable character (a space is "Ġ"). Ids: the special
tokens, then the 256 bytes in order of their character, then one token per merge in order of rank.
"""

import collections
import re

END, START, TURN, TURN_END = "<|endoftext|>", "<|startoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = [END, START, TURN, TURN_END]

# GPT-2's pre-tokenizer with its letter and digit classes narrowed to ASCII.
CHUNK = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


def byte_alphabet():
    """The printable character of each byte: itself where it is printable and not a space, else U+0100 upwards."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spare = (chr(0x100 + n) for n in range(256))
    return [chr(b) if b in printable else next(spare) for b in range(256)]


ALPHABET = byte_alphabet()


def chunks(text):
    if not text.isascii():
        raise ValueError("only ASCII text is encoded here")
    return ["".join(ALPHABET[b] for b in chunk.encode()) for chunk in CHUNK.findall(text)]


def join(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def train(texts, vocabulary):
    """The merges, most frequent pair first, ties to the pair that sorts first; fewer when no pair occurs twice."""
    counts = collections.Counter(chunk for text in texts for chunk in chunks(text))
    words = [(list(word), n) for word, n in counts.items()]
    merges = []
    while len(merges) < vocabulary - len(SPECIAL) - 256:
        pairs = collections.Counter()
        for symbols, n in words:
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += n
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[best] < 2:
            break
        merges.append(best)
        words = [(join(symbols, best) if best[0] in symbols else symbols, n) for symbols, n in words]
    return merges


class Tokenizer:
    """Encodes text with a list of merges."""

    def __init__(self, merges):
        self.merges = [tuple(pair) for pair in merges]
        self.ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self.tokens = SPECIAL + sorted(ALPHABET) + [a + b for a, b in self.merges]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.known = {}
        self.bytes = {char: b for b, char in enumerate(ALPHABET)}

    def encode(self, text):
        """Token ids of plain text; special tokens in it are not recognised, none is added."""
        return [i for chunk in chunks(text) for i in self._chunk(chunk)]

    def _chunk(self, chunk):
        if chunk not in self.known:
            symbols = list(chunk)
            while len(symbols) > 1:
                pair = min(zip(symbols, symbols[1:]), key=lambda p: self.ranks.get(p, len(self.ranks)))
                if pair not in self.ranks:
                    break
                symbols = join(symbols, pair)
            self.known[chunk] = [self.ids[s] for s in symbols]
        return self.known[chunk]

    def decode(self, ids):
        """Text of the ids, special tokens by name."""
        out = b"".join(
            self.tokens[i].encode() if i < len(SPECIAL) else bytes(self.bytes[c] for c in self.tokens[i]) for i in ids
        )
        return out.decode(errors="replace")
