"""A recipe: the keys and tensors of a conformance model, and how to make the GGUF of it with gguf-py."""

import hashlib
import json
import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

import fill

SPACE = "\u2581"
# Types of a rounded cache, and what the oracle needs for it: values of blocks want flash attention.
CACHES = {"f16": ["--kv", "f16"], "q8_0": ["--kv", "q8_0", "--flash", "on"]}
PLAIN_TOKENS = 3 + 256 + 1 + 26


def vocabulary(count):
    """A SentencePiece vocabulary that every engine loads: control tokens, bytes, a space, letters, and words on top."""
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    words += [SPACE] + [chr(ord("a") + i) for i in range(26)]
    words += [f"t{i}" for i in range(count - PLAIN_TOKENS)]
    assert len(words) == count, f"a vocabulary has at least {PLAIN_TOKENS} tokens"
    return words, [-float(i) for i in range(count)], [2, 3, 3] + [6] * 256 + [1] * (count - 259)


def add_vocabulary(writer, count):
    words, scores, types = vocabulary(count)
    writer.add_string("tokenizer.ggml.model", "llama")
    writer.add_string("tokenizer.ggml.pre", "default")
    writer.add_array("tokenizer.ggml.tokens", words)
    writer.add_array("tokenizer.ggml.scores", scores)
    writer.add_array("tokenizer.ggml.token_type", types)
    for name, token in (("bos", 1), ("eos", 2), ("unknown", 0)):
        writer.add_uint32(f"tokenizer.ggml.{name}_token_id", token)


ADD = {"u32": "add_uint32", "f32": "add_float32", "bool": "add_bool", "str": "add_string"}


def write(recipe, path, plain=False, other_values=None):
    """Writes the model; `plain` with every tensor as f32, and with other values in the tensor `other_values`."""
    writer = gguf.GGUFWriter(path, recipe["arch"])
    for key, kind, value in recipe["keys"]:
        if kind == "bools":
            writer.add_array(key, [bool(one) for one in value])
        else:
            getattr(writer, ADD[kind])(key, value)
    add_vocabulary(writer, recipe["vocabulary"])
    for name, kind, dims, rule, e in recipe["tensors"]:
        kind = fill.kind_of(kind)
        model = recipe["name"] + ("/other" if name == other_values else "")
        values = fill.tensor(model, name, kind, dims[::-1], rule, e)
        if plain:
            values, kind = fill.plain(kind, values), Type.F32
        writer.add_tensor(name, values, raw_dtype=None if kind in (Type.F32, Type.F16) else kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def tokens(name, count, vocabulary_size):
    """The prompt: a start token and hashed ones."""
    hashed = fill.words(fill.seed_of(name, "prompt"), count - 1) % np.uint64(vocabulary_size - 3)
    return [1] + [int(one) + 3 for one in hashed]


def save(recipe, path):
    """One line a key and a tensor, so that a change shows as what it is."""
    lines = []
    for field, value in recipe.items():
        if field in ("keys", "tensors"):
            rows = ",\n    ".join(json.dumps(row) for row in value)
            lines.append(f'  "{field}": [\n    {rows}\n  ]')
        else:
            lines.append(f'  "{field}": {json.dumps(value)}')
    pathlib.Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n")
