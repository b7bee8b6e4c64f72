"""The conformance models: for each family a few, which together have every quantised type that this build computes with.

Sizes are odd on purpose: widths that are no multiple of what a vector register holds, heads of 32 to 256, several queries to
a key or one key for all.
"""

from shapes import build

# Families in the order of the README's table: name, what is in it, architecture names.
FAMILIES = [
    ("llama", "LLaMA 1 to 3, Mistral, TinyLlama, SmolLM2, Vicuna", ["llama"]),
    ("smollm3", "SmolLM3: every fourth layer without rotary embedding", ["smollm3"]),
    ("mixtral", "Mixtral: llama with experts", ["llama"]),
    ("qwen2", "Qwen 2 and 2.5", ["qwen2"]),
    ("qwen2moe", "Qwen 1.5 and 2 MoE: experts, and one that all share", ["qwen2moe"]),
    ("qwen3", "Qwen 3", ["qwen3"]),
    ("qwen3moe", "Qwen 3 MoE", ["qwen3moe"]),
    ("gemma", "Gemma, CodeGemma", ["gemma"]),
    ("gemma2", "Gemma 2: soft-caps, every second layer local", ["gemma2"]),
    ("gemma3", "Gemma 3, text", ["gemma3"]),
    ("phi3", "Phi 3, 3.5 and 4: fused projections, longrope", ["phi3"]),
    ("granite", "Granite 3: multipliers", ["granite"]),
    ("granitemoe", "Granite 3 MoE", ["granitemoe"]),
    ("olmo2", "OLMo 2: norms after, none before", ["olmo2"]),
    ("stablelm", "StableLM 2", ["stablelm"]),
    ("gpt2", "GPT-2: learned positions", ["gpt2"]),
    ("bitnet", "BitNet b1.58: ternary weights, sub-norms", ["bitnet"]),
    ("command-r", "Command R: attention and feed-forward side by side", ["command-r"]),
    ("cohere2", "Command R7B: the same, three of four layers local", ["cohere2"]),
]


def named(family, variant, **given):
    """The name of a model is its family and its variant."""
    slug = "".join(c if c.isalnum() or c == "_" else "-" for c in variant.lower())
    while "--" in slug:
        slug = slug.replace("--", "-")
    return build(f"{family}-{slug.strip('-')}", family, variant=variant, **given)


def llama():
    base = {"arch": "llama", "E": 192, "L": 3, "H": 6, "K": 2, "F": 224, "V": 293}
    wide = {**base, "E": 256, "L": 2, "H": 4, "K": 2, "F": 768}
    yarn = (("rope.scaling.type", "str", "yarn"), ("rope.scaling.factor", "f32", 4.0),
            ("rope.scaling.original_context_length", "u32", 64))
    yield named("llama", "grouped heads", **base)
    yield named("llama", "one key head, untied", **{**base, "E": 160, "H": 4, "K": 1, "F": 352, "untied": True})
    yield named("llama", "heads wider than the model", **{**base, "E": 96, "H": 3, "K": 3, "D": 80, "L": 5})
    yield named("llama", "rope_freqs", **base, freqs=True, base=500000.0)
    yield named("llama", "linear scaling", **base,
                keys=(("rope.scaling.type", "str", "linear"), ("rope.scaling.factor", "f32", 4.0)))
    yield named("llama", "yarn", **base, keys=yarn)
    yield named("llama", "biases", **base, qkv_bias=True, out_bias=True, ffn_bias=True)
    yield named("llama", "f16", **base, types={"all": "F16"}, untied=True)
    yield named("llama", "bf16", **{**base, "D": 48}, types={"all": "BF16"})
    yield named("llama", "q4_0", **base, types={"all": "Q4_0", "embd": "Q8_0"})
    yield named("llama", "q4_k mixed", **wide, untied=True, types={"all": "Q4_K", "v": "Q6_K", "down": "Q6_K", "output": "Q6_K"})


def qwen():
    base = {"arch": "qwen2", "E": 160, "L": 3, "H": 5, "K": 1, "F": 288, "V": 301, "eps": 1e-6, "base": 1e6, "qkv_bias": True}
    yield named("qwen2", "biases", **base)
    yield named("qwen2", "untied", **{**base, "E": 224, "H": 4, "K": 2}, untied=True)
    yield named("qwen2", "q4_1", **base, types={"all": "Q4_1"})
    base = {**base, "arch": "qwen3", "qkv_bias": False, "D": 64, "head_norms": "head", "query_gain": 1.0}
    yield named("qwen3", "head norms", **base)
    yield named("qwen3", "q5_0", **{**base, "E": 96, "H": 3, "K": 3, "D": 128}, types={"all": "Q5_0", "embd": "Q8_0"})


def gemma():
    base = {"arch": "gemma", "E": 96, "L": 2, "H": 2, "K": 1, "D": 256, "F": 416, "V": 299, "eps": 1e-6}
    yield named("gemma", "heads of 256", **base)
    yield named("gemma", "q5_1", **{**base, "D": 96, "L": 3}, types={"all": "Q5_1"})
    base = {**base, "arch": "gemma2", "post_norms": True, "L": 4, "H": 4, "K": 2, "D": 80, "F": 224}
    caps = [("attn_logit_softcapping", "f32", 5.0), ("final_logit_softcapping", "f32", 12.0)]
    local = ("attention.sliding_window", "u32", 8)
    yield named("gemma2", "soft-caps, window 8", **base, keys=(*caps, local))
    yield named("gemma2", "q8_0", **{**base, "D": 32}, keys=(*caps, local), types={"all": "Q8_0"})
    base = {**base, "arch": "gemma3", "L": 7, "head_norms": "head", "query_gain": 1.0, "base": 1e6}
    yield named("gemma3", "window 8", **base, keys=(local,))
    yield named("gemma3", "linear scaling", **{**base, "K": 1, "D": 128}, keys=(
        local, ("rope.scaling.type", "str", "linear"), ("rope.scaling.factor", "f32", 8.0)))
    yield named("gemma3", "final soft-cap", **{**base, "L": 2}, keys=(local, caps[1]))


def all_models():
    models = [*llama(), *qwen(), *gemma()]
    order = [name for name, _, _ in FAMILIES]
    return sorted(models, key=lambda recipe: order.index(recipe["family"]))
