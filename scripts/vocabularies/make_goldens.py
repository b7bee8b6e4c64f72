#!/usr/bin/env python3
"""Writes tests/data/tokenizers/: what llama.cpp makes of the strings there with each vocabulary and pre-tokenizer.

    make_goldens.py TOKENIZE VOCABULARIES

TOKENIZE is the program of tokenize.cpp, VOCABULARIES the folder that setup_vocabularies.sh fills. make_goldens.sh does all
of it. Needs Python 3.9, nothing else.

A result file has a line of facts (tokens, BOS, EOS, separator, padding, whether BOS and EOS are added), one with the tokens
that end generation, then three lines per string: its ids; with special tokens added and parsed, `=` for the same; the ids
detokenised in hexadecimal, `=` for the string. A long line is told by its length and FNV-1a hash.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent.parent / "tests/data/tokenizers"
LONG = 240  # characters of a line
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY, BOOL = 8, 9, 7


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def string(text):
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(text)) + text


def value(item):
    """A key's type and value as GGUF writes them."""
    if isinstance(item, bool):
        return struct.pack("<IB", BOOL, item)
    if isinstance(item, int):
        return struct.pack("<II", 4, item)
    if isinstance(item, str):
        return struct.pack("<I", STRING) + string(item)
    kind, elements = item
    pack = {STRING: string, 5: lambda n: struct.pack("<i", n), 6: lambda n: struct.pack("<f", n)}[kind]
    return struct.pack("<IIQ", ARRAY, kind, len(elements)) + b"".join(map(pack, elements))


def pairs(body):
    """The keys of a GGUF with their values as bytes."""
    tensors, count = struct.unpack_from("<QQ", body, 8)
    assert body[:4] == b"GGUF" and tensors == 0
    at = 24

    def skip(kind, at):
        if kind == STRING:
            return at + 8 + struct.unpack_from("<Q", body, at)[0]
        if kind != ARRAY:
            return at + SIZES[kind]
        kind, length = struct.unpack_from("<IQ", body, at)
        at += 12
        if kind in SIZES:
            return at + length * SIZES[kind]
        for _ in range(length):
            at = skip(kind, at)
        return at

    for _ in range(count):
        length = struct.unpack_from("<Q", body, at)[0]
        key = body[at + 8:at + 8 + length].decode()
        at += 8 + length
        end = skip(struct.unpack_from("<I", body, at)[0], at + 4)
        yield key, body[at:end]
        at = end


def gguf(keys):
    """A GGUF without tensors."""
    body = b"".join(string(key) + item for key, item in keys.items())
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + body


def strings():
    for entry in json.loads((DATA / "strings.json").read_text()):
        if isinstance(entry, str):
            yield entry.encode("utf-8", "surrogatepass")
        elif "hex" in entry:
            yield bytes.fromhex(entry["hex"])
        else:
            yield (entry["repeat"] * entry["times"] + entry["tail"]).encode()


def tokenize(program, path, texts):
    lines = "".join(text.hex() + "\n" for text in texts)
    done = subprocess.run([program, path], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    lines = done.stdout.split("\n")[:-1]
    assert len(lines) == 2 + 3 * len(texts), (path, len(lines))
    return lines


def short(line):
    return line if len(line) <= LONG else f"#{len(line)} {fnv(line.encode()):016x}"


def results(lines, texts):
    out = lines[:2]
    for text, plain, special, back in zip(texts, lines[2::3], lines[3::3], lines[4::3]):
        out += [short(plain), "=" if special == plain else short(special), "=" if back == text.hex() else short(back)]
    return "\n".join(out) + "\n"


def main():
    program, vocabularies = sys.argv[1], pathlib.Path(sys.argv[2])
    texts = list(strings())
    names = json.loads((DATA / "names.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        edited = pathlib.Path(folder) / "edited.gguf"

        def load(name):
            return dict(pairs((vocabularies / f"ggml-vocab-{name}.gguf").read_bytes()))

        def run(keys):
            edited.write_bytes(gguf(keys))
            return tokenize(program, edited, texts)

        for path in sorted(vocabularies.glob("ggml-vocab-*.gguf")):
            name = path.stem.removeprefix("ggml-vocab-")
            (DATA / f"{name}.txt").write_text(results(tokenize(program, path, texts), texts))
            print(name, flush=True)
        for path in sorted(DATA.glob("*.gguf")):
            (DATA / f"{path.stem}.txt").write_text(results(tokenize(program, path, texts), texts))
            print(path.stem, flush=True)
        for variant, (base, edits) in names["variants"].items():
            keys = load(base) | {key: value(item) for key, item in edits.items()}
            (DATA / f"{variant}.txt").write_text(results(run(keys), texts))
            print(variant, flush=True)

        # Per name a line: BOS added, then a hash of each string's ids and of it detokenised. Equal lines are joined.
        rows = {}
        for base, every in names["pre"].items():
            keys = load(base) | {"tokenizer.ggml.model": value("gpt2")}
            for name in every:
                lines = run(keys | {"tokenizer.ggml.pre": value(name)})
                facts = lines[0].split()
                hashes = [f"{fnv((a + '|' + b).encode()) & 0xFFFFFFFF:08x}" for a, b in zip(lines[2::3], lines[4::3])]
                rows.setdefault((base, facts[5], " ".join(hashes)), []).append(name)
                print(base, name, flush=True)
        text = "".join(f"{base} {','.join(every)} {bos} {hashes}\n" for (base, bos, hashes), every in rows.items())
        (DATA / "pre-names.tsv").write_text(text)


if __name__ == "__main__":
    main()
