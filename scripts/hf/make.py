"""Makes tests/data/hf: folders as transformers saves them, with what transformers, `tokenizers` and llama.cpp make of them.

    make.py --llama-source FOLDER --oracle PROGRAM [--to FOLDER] [CASE ...]

For each case CASE/ is the folder; CASE.json has the texts and their ids, the prompt, and the keys and the tensors (with the
SHA-256 of their bytes) of the GGUF that llama.cpp's converter makes of the folder; CASE.f32 has transformers' logits after
the prompt's positions, in f32 (CASE.half.f32: with gelu rounded to f16, as ggml has it), and CASE.llama.f32 llama.cpp's of that
GGUF.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer

import models
import vocabularies

# There is no CUDA to ask, only what cuda_stand_ins.py put in its place.
torch.cuda.is_current_stream_capturing = lambda: False

HERE = pathlib.Path(__file__).parent
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"


def tokenizer_files(kind, folder):
    """Writes the tokenizer's files. Returns the pre-tokenizer's name for llama.cpp's converter, ids of BOS and EOS."""
    if kind in vocabularies.PRE:
        bos = "<|begin|>" if kind in ("llama-bpe", "tekken") else None
        tokenizer = vocabularies.byte_level(kind, bos)
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}
        config |= {"bos_token": bos} if bos else {}
        if kind == "smollm":
            config["chat_template"] = TEMPLATE
        elif kind == "qwen2":
            (folder / "chat_template.jinja").write_text(TEMPLATE)
        vocabularies.write(tokenizer, folder, config)
        return kind, bos, "<|endoftext|>"
    gemma = kind.startswith("gemma")
    options = dict(pad_id=0, eos_id=1, bos_id=2, unk_id=3, add_dummy_prefix=False) if gemma else dict(unk_id=0, bos_id=1, eos_id=2)
    names = dict(bos_piece="<bos>", eos_piece="<eos>") if gemma else {}
    more = dict(user_defined_symbols=["\n\n", "<start_of_turn>"]) if gemma else {}
    vocabularies.sentence_piece(folder, **options, **names, **more)
    bos, eos = ("<bos>", "<eos>") if gemma else ("<s>", "</s>")
    tokenizer = vocabularies.from_sentence_piece(folder / "tokenizer.model", bos, eos, prefix=not gemma)
    config = {"tokenizer_class": "GemmaTokenizerFast" if gemma else "LlamaTokenizerFast", "bos_token": bos, "eos_token": eos}
    config |= {"unk_token": "<unk>", "add_bos_token": True, "add_eos_token": False, "legacy": True}
    if gemma:
        tokenizer.add_special_tokens(["<pad>"])
        tokenizer.add_tokens(["\n\n", "<start_of_turn>"])
        config["pad_token"] = "<pad>"
        config["chat_template"] = [{"name": "default", "template": TEMPLATE}, {"name": "rag", "template": "x"}]
    decoder = json.loads(tokenizer.to_str())["added_tokens"]
    keep = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")
    config["added_tokens_decoder"] = {str(row["id"]): {key: row[key] for key in keep} for row in decoder}
    vocabularies.write(tokenizer, folder, config)
    if kind.endswith("-json"):
        (folder / "tokenizer.model").unlink()
    return "default", bos, eos


def fill(model, seed):
    """Weights that show: rows of unit gain, norms that scale, biases that shift."""
    generator = torch.Generator().manual_seed(seed)
    gemma = "Gemma" in type(model).__name__
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                wide = 1.0 if "embed" in name or "wte" in name else parameter.shape[-1] ** -0.5
                parameter.copy_(noise * wide)
            elif name.endswith("bias"):
                parameter.copy_(noise * 0.1)
            else:
                parameter.copy_(noise * 0.2 + (0.0 if gemma else 1.0))


def save(name, folder):
    config, kind, dtype, options = models.CASES[name]
    pre, bos, eos = tokenizer_files(kind, folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    size = tokenizer.get_vocab_size()
    # Room that no token fills, as many published models have.
    config.vocab_size = size + options.get("room", -size % 16 + 16)
    config.bos_token_id = tokenizer.token_to_id(bos or eos)
    config.eos_token_id = tokenizer.token_to_id(eos)
    config.pad_token_id = None
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    if model.config.tie_word_embeddings:
        model.tie_weights()
    fill(model, seed=len(name) * 1000 + sum(map(ord, name)))
    model = model.to(getattr(torch, dtype)).eval()
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=config.bos_token_id, eos_token_id=[config.eos_token_id], do_sample=True, temperature=0.75, top_k=40, top_p=0.9)
    model.save_pretrained(str(folder), max_shard_size=options.get("shard", "1GB"))
    return model, tokenizer, pre


def logits(folder, tokens):
    """transformers' logits in f32 of the weights as they were saved, and with gelu rounded where there is one."""
    model = transformers.AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        run = lambda: model(torch.tensor([tokens])).logits[0].to(torch.float32).numpy()
        own = run()
        return own, run() if round_gelu(model) else None


class RoundedGelu(torch.nn.Module):
    """ggml's gelu: a table of f16 for f16."""

    def forward(self, x):
        half = torch.nn.functional.gelu(x.to(torch.float16).to(torch.float32), approximate="tanh")
        half = half.to(torch.float16).to(torch.float32)
        return torch.where(x <= -10, torch.zeros_like(x), torch.where(x >= 10, x, half))


def round_gelu(model):
    """Puts it in place of every gelu. Returns whether there was one."""
    count = 0
    for module in model.modules():
        for name in ("act", "act_fn"):
            if "gelu" in type(getattr(module, name, None)).__name__.lower():
                setattr(module, name, RoundedGelu())
                count += 1
    return count > 0


def convert(folder, out, outtype, pre, source):
    script = HERE / "llama_convert.py"
    run = subprocess.run([sys.executable, str(script), str(source), pre, str(folder), "--outfile", str(out), "--outtype", outtype],
                         capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stdout[-2000:] + run.stderr[-3000:])


def describe(path, source):
    sys.path.insert(0, str(source / "gguf-py"))
    import gguf

    reader = gguf.GGUFReader(str(path))
    keys = []
    for key, field in reader.fields.items():
        if key.startswith("GGUF."):
            continue
        kinds = [kind.name.lower() for kind in field.types]
        value = field.contents()
        if kinds[0] == "array" and len(value) > 16:
            text = json.dumps(value, ensure_ascii=False)
            value = {"len": len(value), "sha256": hashlib.sha256(text.encode()).hexdigest(), "first": value[:4]}
        keys.append([key, kinds, value])
    tensors = [[tensor.name, tensor.tensor_type.name, [int(n) for n in tensor.shape],
                hashlib.sha256(tensor.data.tobytes()).hexdigest()] for tensor in reader.tensors]
    return keys, tensors


def make(name, to, source, oracle):
    folder = to / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model, tokenizer, pre = save(name, folder)
    chance = random.Random(name)
    ids = [i for i in range(tokenizer.get_vocab_size())]
    tokens = [chance.choice(ids) for _ in range(24)]
    at = [1, 7, 24]
    own, rounded = logits(folder, tokens)
    with tempfile.TemporaryDirectory() as scratch:
        gguf_file = pathlib.Path(scratch) / "model.gguf"
        outtype = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}[models.CASES[name][2]]
        try:
            convert(folder, gguf_file, outtype, pre, source)
            keys, tensors = describe(gguf_file, source)
        except RuntimeError as error:
            print(f"  llama.cpp's converter: {str(error).strip().splitlines()[-1][:300]}")
            keys = tensors = None
        theirs = pathlib.Path(scratch) / "logits"
        command = [str(oracle), str(gguf_file), "--tokens", ",".join(map(str, tokens)), "--at", ",".join(map(str, at)), "--out", str(theirs)]
        ran = subprocess.run(command, capture_output=True, text=True)
        llama = np.fromfile(theirs, dtype="<f4").reshape(len(at), -1) if ran.returncode == 0 else None
        if llama is None:
            print(f"  llama.cpp: {ran.stderr.strip()[-300:]}")
    rows = own[[n - 1 for n in at]]
    rows.astype("<f4").tofile(to / f"{name}.f32")
    if rounded is not None:
        rounded[[n - 1 for n in at]].astype("<f4").tofile(to / f"{name}.half.f32")
    if llama is not None:
        llama.tofile(to / f"{name}.llama.f32")
        apart = float(np.abs(rows - llama).max() / np.abs(rows).max())
    else:
        apart = None
    texts = [[text, tokenizer.encode(text, add_special_tokens=False).ids, tokenizer.encode(text).ids] for text in vocabularies.TEXTS]
    golden = dict(prompt=tokens, at=at, vocabulary=int(rows.shape[1]), apart=apart, pre=pre, texts=texts, keys=keys, tensors=tensors)
    lines = ",\n".join(f"  {json.dumps(key)}: " + (json.dumps(value, ensure_ascii=False) if not isinstance(value, list) or key in ("prompt", "at")
            else "[\n" + ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in value) + "\n  ]") for key, value in golden.items())
    (to / f"{name}.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    total = sum(path.stat().st_size for path in folder.iterdir())
    shown = f"{apart:.1e} apart" if apart is not None else "llama.cpp does not load it"
    print(f"{name:28} {total // 1024:5} KiB, largest logit {np.abs(rows).max():.2f}, transformers and llama.cpp {shown}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--llama-source", type=pathlib.Path, required=True)
    parser.add_argument("--oracle", type=pathlib.Path, required=True)
    parser.add_argument("--to", type=pathlib.Path, default=HERE.parent.parent / "tests/data/hf")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in arguments.cases or models.CASES:
        try:
            make(name, arguments.to, arguments.llama_source.resolve(), arguments.oracle)
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}")
            if os.environ.get("TRACE"):
                raise
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
