"""SmolLM2 as a Hugging Face folder, made of its GGUF: every weight decoded to f32, rows in transformers' order, the tokenizer
written anew. Then what transformers and llama.cpp make of the folder.

    smollm2.py --gguf FILE --llama-source FOLDER --oracle PROGRAM --to FOLDER

FOLDER/SmolLM2-135M/ is the folder, FOLDER/converted.gguf what llama.cpp's converter makes of it (its pre-tokenizer found by the
converter itself), FOLDER/prompt.json the tokens, FOLDER/transformers.f32 and FOLDER/llama.f32 logits after the last of them.
"""

import argparse
import json
import pathlib
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--gguf", type=pathlib.Path, required=True)
parser.add_argument("--llama-source", type=pathlib.Path, required=True)
parser.add_argument("--oracle", type=pathlib.Path, required=True)
parser.add_argument("--to", type=pathlib.Path, required=True)
arguments = parser.parse_args()
sys.path.insert(0, str(arguments.llama_source / "gguf-py"))

import gguf
import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

import make

reader = gguf.GGUFReader(str(arguments.gguf))
keys = {name: field.contents() for name, field in reader.fields.items()}
folder = arguments.to / "SmolLM2-135M"
folder.mkdir(parents=True, exist_ok=True)
heads, kv_heads = keys["llama.attention.head_count"], keys["llama.attention.head_count_kv"]

NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def halves(rows, count):
    """Neighbours that are turned together become the two halves of a head."""
    return rows.reshape(count, -1, 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


tensors = {}
for tensor in reader.tensors:
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    values = values.reshape([int(n) for n in reversed(tensor.shape)])
    parts = tensor.name.removesuffix(".weight").split(".")
    if parts[-1] == "attn_q":
        values = halves(values, heads)
    elif parts[-1] == "attn_k":
        values = halves(values, kv_heads)
    name = NAMES[parts[-1]]
    name = f"model.layers.{parts[1]}.{name}" if parts[0] == "blk" else name
    tensors[f"{name}.weight"] = np.ascontiguousarray(values)
save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})

config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": keys["llama.embedding_length"],
    "intermediate_size": keys["llama.feed_forward_length"],
    "num_hidden_layers": keys["llama.block_count"],
    "num_attention_heads": heads,
    "num_key_value_heads": kv_heads,
    "max_position_embeddings": keys["llama.context_length"],
    "rms_norm_eps": float(f"{keys['llama.attention.layer_norm_rms_epsilon']:.6g}"),
    "rope_theta": float(keys["llama.rope.freq_base"]),
    "rope_scaling": None,
    "rope_interleaved": False,
    "is_llama_config": True,
    "initializer_range": 0.041666666666666664,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "mlp_bias": False,
    "pretraining_tp": 1,
    "tie_word_embeddings": "output.weight" not in {tensor.name for tensor in reader.tensors},
    "torch_dtype": "float32",
    "use_cache": True,
    "vocab_size": len(keys["tokenizer.ggml.tokens"]),
    "bos_token_id": keys["tokenizer.ggml.bos_token_id"],
    "eos_token_id": keys["tokenizer.ggml.eos_token_id"],
    "transformers_version": "4.42.3",
}
(folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")

tokens, types = keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.token_type"]
merges = [tuple(merge.split(" ", 1)) for merge in keys["tokenizer.ggml.merges"]]
tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
    [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
control = [token for token, kind in zip(tokens, types) if kind == 3]
tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in control])
tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
named = {f"{role}_token": tokens[keys[f"tokenizer.ggml.{key}_token_id"]]
         for role, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
         if f"tokenizer.ggml.{key}_token_id" in keys}
(folder / "tokenizer_config.json").write_text(json.dumps(
    {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False, "chat_template": keys.get("tokenizer.chat_template")} | named,
    indent=2) + "\n")

prompt = tokenizer.encode("The three laws of thermodynamics, in plain words, are these:").ids
(arguments.to / "prompt.json").write_text(json.dumps(prompt))
make.logits(folder, prompt)[0][-1:].astype("<f4").tofile(arguments.to / "transformers.f32")
converted = arguments.to / "converted.gguf"
make.convert(folder, converted, "f32", "-", arguments.llama_source)
subprocess.run([str(arguments.oracle), str(converted), "--tokens", ",".join(map(str, prompt)), "--out", str(arguments.to / "llama.f32")],
               check=True)
print(f"{folder}: {len(tensors)} tensors, {sum(t.nbytes for t in tensors.values()) // 1000000} MB")
