"""Computes what the small model must answer, independently of everything else here: numpy, float64, from the GGUF.

    python golden.py MODEL.gguf OUT_DIR [--sample N]

Writes OUT_DIR/NAME.json (prompts, ids, greedy continuations, margins, a few tokenizer cases) and for every prompt N
OUT_DIR/NAME.pN.logits.f32: all logits after the prompt, little-endian f32. With --sample, prints N sampled texts
instead and writes nothing.
"""

import argparse
import json
import pathlib
import re

import gguf
import numpy as np

GREEDY = 64
PROMPTS = [
    "Once upon a time",
    "A little fox named Pip lived",
    "Once upon a time, there was a girl named Mia. She had a red kite.",
    '"Where is my blue boat?" asked Tom.',
    "Dot was a brave turtle who lived beside a blue lake. One day, it began to rain.",
]
CHATS = ["Tell me a story about a fox named Pip.", "I want to hear a story about Mia and a red kite."]
STRINGS = [
    "", " ", "Once upon a time", " Once", "once", "kites and boats", "  two  spaces", "a\n\nb", "tail \n", "It's Mia's!",
    "x = 12345;", "<|im_start|>user\nHi<|im_end|>", "Zoe said: \"No?!\"", "\t tab", "supercalifragilistic",
]
CHUNK = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")  # GPT-2's, for ASCII


class Model:
    """The GGUF's metadata and its weights, de-quantised to float64."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.meta = {name: field.contents() for name, field in reader.fields.items()}
        self.w = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}
        self.tokens = self.meta["tokenizer.ggml.tokens"]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.rank = {tuple(m.split(" ")): r for r, m in enumerate(self.meta["tokenizer.ggml.merges"])}
        self.special = [t for t, kind in zip(self.tokens, self.meta["tokenizer.ggml.token_type"]) if kind == 3]
        self.bos = self.meta["tokenizer.ggml.bos_token_id"]
        self.stops = {self.meta["tokenizer.ggml.eos_token_id"], self.meta["tokenizer.ggml.eot_token_id"]}
        self.char = gpt2_characters()
        self.byte = {c: b for b, c in self.char.items()}

    def encode(self, text, special=False):
        """Ids without BOS; `special` recognises special tokens in the text."""
        if special:
            pieces = re.split("(" + "|".join(map(re.escape, self.special)) + ")", text)
            return [i for p in pieces for i in ([self.ids[p]] if p in self.special else self.encode(p))]
        return [i for chunk in CHUNK.findall(text) for i in self.merge([self.char[b] for b in chunk.encode()])]

    def merge(self, symbols):
        while True:
            ranked = [(self.rank[p], i) for i, p in enumerate(zip(symbols, symbols[1:])) if p in self.rank]
            if not ranked:
                return [self.ids[s] for s in symbols]
            _, i = min(ranked)
            symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]

    def decode(self, ids):
        parts = [t.encode() if t in self.special else bytes(self.byte[c] for c in t) for t in (self.tokens[i] for i in ids)]
        return b"".join(parts).decode(errors="replace")

    def logits(self, ids):
        """Logits after the last of `ids`."""
        get = lambda key: self.meta["llama." + key]
        heads, kv_heads, eps = get("attention.head_count"), get("attention.head_count_kv"), get("attention.layer_norm_rms_epsilon")
        n, size = len(ids), get("rope.dimension_count")
        turn = np.exp(1j * np.arange(n)[:, None, None] * get("rope.freq_base") ** (-np.arange(0, size, 2) / size))
        mask = np.triu(np.full((n, n), -np.inf), 1)
        x = self.w["token_embd.weight"][ids]
        for layer in range(get("block_count")):
            w = {k.split(".", 2)[2]: v for k, v in self.w.items() if k.startswith(f"blk.{layer}.")}
            h = normalise(x, w["attn_norm.weight"], eps)
            q = rotate((h @ w["attn_q.weight"].T).reshape(n, heads, size), turn)
            k = rotate((h @ w["attn_k.weight"].T).reshape(n, kv_heads, size), turn)
            v = (h @ w["attn_v.weight"].T).reshape(n, kv_heads, size)
            mixed = np.empty((n, heads, size))
            for head in range(heads):
                source = head * kv_heads // heads
                score = q[:, head] @ k[:, source].T / np.sqrt(size) + mask
                score = np.exp(score - score.max(axis=1, keepdims=True))
                mixed[:, head] = score / score.sum(axis=1, keepdims=True) @ v[:, source]
            x = x + mixed.reshape(n, -1) @ w["attn_output.weight"].T
            h = normalise(x, w["ffn_norm.weight"], eps)
            gate = h @ w["ffn_gate.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ w["ffn_up.weight"].T)) @ w["ffn_down.weight"].T
        return normalise(x[-1], self.w["output_norm.weight"], eps) @ self.w["token_embd.weight"].T


def gpt2_characters():
    """Byte to character: printable Latin-1 stands for itself, the others follow from U+0100 in byte order."""
    shown = set(range(33, 127)) | set(range(161, 173)) | set(range(174, 256))
    hidden = [b for b in range(256) if b not in shown]
    return {b: chr(b) for b in shown} | {b: chr(256 + n) for n, b in enumerate(hidden)}


def normalise(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def rotate(x, turn):
    """Neighbouring elements as the real and imaginary part of a number, turned by the position's angle."""
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def greedy(model, ids):
    """GREEDY ids (end of text does not stop it) with the top logit and its lead at every step."""
    out, top, margin, first = [], [], [], None
    for _ in range(GREEDY):
        scores = model.logits(ids + out)
        first = scores if first is None else first
        second, best = np.sort(scores)[-2:]
        out.append(int(np.argmax(scores)))
        top.append(float(np.float32(best)))
        margin.append(float(np.float32(best - second)))
    return out, top, margin, first


def sample(model, ids, rng, temperature=0.8, limit=250):
    out = []
    while len(out) < limit and not (out and out[-1] in model.stops):
        scores = model.logits(ids + out) / temperature
        p = np.exp(scores - scores.max())
        out.append(int(rng.choice(len(p), p=p / p.sum())))
    return model.decode(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path, nargs="?")
    parser.add_argument("--sample", type=int, default=0)
    args = parser.parse_args()
    model = Model(args.model)
    cases = [(p, [model.bos] + model.encode(p)) for p in PROMPTS]
    for request in CHATS:
        text = f"<|im_start|>user\n{request}<|im_end|>\n<|im_start|>assistant\n"
        cases.append((text, [model.bos] + model.encode(text, special=True)))
    if args.sample:
        rng = np.random.default_rng(0)
        for n in range(args.sample):
            text, ids = cases[n % len(cases)]
            print(f"[{text}]{sample(model, ids, rng)}\n")
        return

    args.out.mkdir(parents=True, exist_ok=True)
    stem, records = args.model.stem, []
    for n, (text, ids) in enumerate(cases):
        out, top, margin, first = greedy(model, ids)
        name = f"{stem}.p{n}.logits.f32"
        first.astype("<f4").tofile(args.out / name)
        records.append({
            "prompt": text, "prompt_ids": ids, "first_logits_file": name, "gen_ids": out, "gen_text": model.decode(out),
            "top1_logit": top, "top1_top2_margin": margin,
        })  # fmt: skip
        print(f"{text}{records[-1]['gen_text']}\n")
    strings = [{"text": s, "ids": model.encode(s), "ids_parse_special": model.encode(s, special=True)} for s in STRINGS]
    how = "numpy float64 on the de-quantised weights; argmax, ties to the lowest id; BOS first; end of text does not stop"
    data = {"model": args.model.name, "how": how, "n_vocab": len(model.tokens), "cases": records, "strings": strings}
    text = json.dumps(data, indent=1)
    text = re.sub(r"\[\s+([-\d.e,\s]+?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text)
    (args.out / f"{stem}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
