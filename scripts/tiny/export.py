"""Writes the trained model as a GGUF: matrices in Q8_0, norms in F32, with its tokenizer and chat template.

    python export.py RUN_DIR OUT.gguf
"""

import json
import pathlib
import sys

import gguf
import numpy as np

import bpe
import model

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def describe(writer, dims, n_params):
    writer.add_type("model")
    writer.add_name("Tiny Stories")
    writer.add_description("A story teller trained by scripts/tiny on text from its own grammar; no outside data.")
    writer.add_license("MIT OR Apache-2.0")
    writer.add_size_label(f"{n_params / 1000:.0f}K")
    writer.add_languages(["en"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(dims.n_ctx)
    writer.add_embedding_length(dims.n_embd)
    writer.add_block_count(dims.n_layer)
    writer.add_feed_forward_length(dims.n_ff)
    writer.add_head_count(dims.n_head)
    writer.add_head_count_kv(dims.n_head_kv)
    writer.add_layer_norm_rms_eps(dims.eps)
    writer.add_rope_freq_base(dims.rope_base)
    writer.add_rope_dimension_count(dims.head_dim)
    writer.add_vocab_size(dims.n_vocab)


def add_tokenizer(writer, tokenizer):
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokenizer.tokens)
    writer.add_token_types([control if t in bpe.SPECIAL else normal for t in tokenizer.tokens])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer.merges])
    writer.add_bos_token_id(tokenizer.ids[bpe.START])
    writer.add_eos_token_id(tokenizer.ids[bpe.END])
    writer.add_eot_token_id(tokenizer.ids[bpe.TURN_END])
    writer.add_pad_token_id(tokenizer.ids[bpe.END])
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    run = pathlib.Path(sys.argv[1])
    tokenizer = bpe.Tokenizer(json.loads((run / "merges.json").read_text()))
    weights = dict(np.load(run / "weights.npz"))
    dims = model.Dims(n_vocab=len(tokenizer.tokens))

    writer = gguf.GGUFWriter(sys.argv[2], "llama")
    describe(writer, dims, sum(w.size for w in weights.values()))
    add_tokenizer(writer, tokenizer)
    for name, weight in weights.items():
        kind = gguf.GGMLQuantizationType.Q8_0 if weight.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
