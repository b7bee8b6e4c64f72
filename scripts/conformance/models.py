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
    ("olmo2", "OLMo 2 and 3: norms after, none before", ["olmo2"]),
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


BASE = {"L": 3, "V": 293}


def llama():
    base = {**BASE, "arch": "llama", "E": 192, "H": 6, "K": 2, "F": 224}
    wide = {**base, "E": 256, "L": 2, "H": 4, "K": 2, "F": 768}
    yield named("llama", "grouped heads", **base, caches=True)
    yield named("llama", "one key head, untied", **{**base, "E": 160, "H": 4, "K": 1, "F": 352, "untied": True})
    yield named("llama", "heads wider than the model", **{**base, "E": 96, "H": 3, "K": 3, "D": 80, "L": 5})
    yield named("llama", "rope_freqs", **base, freqs=True, base=500000.0)
    yield named("llama", "linear scaling", **base, keys=scaling("linear", 4.0))
    yield named("llama", "yarn", **base, keys=scaling("yarn", 4.0, 64))
    yield named("llama", "longrope, long", **base, factors=(2, 0), keys=(
        *scaling("longrope", 4.0, 64), ("rope.scaling.attn_factor", "f32", 1.25)))
    yield named("llama", "old key of linear scaling", **base, keys=(("rope.scale_linear", "f32", 4.0),))
    yield named("llama", "biases", **base, qkv_bias=True, out_bias=True, ffn_bias=True)
    few = ("attention.head_count_kv", "rope.dimension_count", "rope.freq_base")
    yield named("llama", "optional keys left out", **{**base, "K": 6}, without=few)
    yield named("llama", "f16", **base, types={"all": "F16"}, untied=True)
    yield named("llama", "bf16", **{**base, "D": 48}, types={"all": "BF16"})
    yield named("llama", "q4_0", **base, types={"all": "Q4_0", "embd": "Q8_0"})
    yield named("llama", "q2_0", **{**base, "F": 320}, types={"all": "Q2_0", "embd": "Q8_0"})
    mixed = {"all": "Q4_K", "v": "Q6_K", "down": "Q6_K", "output": "Q6_K"}
    yield named("llama", "q4_k mixed", **wide, untied=True, types=mixed)
    yield named("smollm3", "every fourth layer", **{**base, "arch": "smollm3", "L": 5})
    yield named("smollm3", "iq4_nl", **{**base, "arch": "smollm3", "L": 5, "D": 96}, types={"all": "IQ4_NL"})
    experts = {**base, "E": 160, "H": 5, "K": 1, "experts": 5,
               "keys": (("expert_count", "u32", 5), ("expert_used_count", "u32", 2))}
    yield named("mixtral", "two of five experts", **experts)
    yield named("mixtral", "q5_0", **experts, query_gain=1.0, types={"all": "Q5_0", "down": "Q8_0"})


def scaling(kind, factor, original=None):
    """Keys of a scaling of the rotary embedding."""
    keys = [("rope.scaling.type", "str", kind), ("rope.scaling.factor", "f32", factor)]
    if original:
        keys.append(("rope.scaling.original_context_length", "u32", original))
    return tuple(keys)


def qwen():
    base = {**BASE, "V": 301, "base": 1e6}
    two = {**base, "arch": "qwen2", "E": 160, "H": 5, "K": 1, "F": 288, "qkv_bias": True}
    yield named("qwen2", "biases", **two, caches=True)
    yield named("qwen2", "untied, heads of 56", **{**two, "E": 224, "H": 4, "K": 2}, untied=True)
    yield named("qwen2", "fused", **two, qkv="fused")
    yield named("qwen2", "yarn", **two, keys=(*scaling("yarn", 8.0, 32), ("rope.scaling.attn_factor", "f32", 1.25)))
    yield named("qwen2", "q4_1", **two, types={"all": "Q4_1"})
    yield named("qwen2", "iq4_xs", **{**two, "E": 256, "H": 8, "K": 2, "F": 256}, types={"all": "IQ4_XS", "embd": "Q5_K"})
    three = {**base, "arch": "qwen3", "E": 160, "H": 5, "K": 1, "F": 288, "D": 64, "head_norms": "head", "query_gain": 1.0}
    yield named("qwen3", "head norms", **three, caches=True)
    yield named("qwen3", "yarn by half", **three, keys=scaling("yarn", 0.5, 64))
    yield named("qwen3", "q5_0", **{**three, "E": 96, "H": 3, "K": 3, "D": 128}, types={"all": "Q5_0", "embd": "Q8_0"})
    yield named("qwen3", "q1_0", **{**three, "E": 128, "H": 4, "F": 384}, types={"all": "Q1_0", "embd": "Q8_0"})
    large = {**three, "E": 256, "H": 4, "K": 1, "F": 256, "L": 2}
    yield named("qwen3", "iq1_s, iq1_m", **large, types={"all": "IQ1_S", "down": "IQ1_M", "out": "IQ1_M", "embd": "Q4_K"})

    experts = (("expert_count", "u32", 7), ("expert_used_count", "u32", 3))
    moe = {**two, "arch": "qwen2moe", "L": 2, "untied": True, "experts": 7, "expert_width": 96, "shared_width": 160,
           "shared_gate": True, "keys": (*experts, ("expert_feed_forward_length", "u32", 96),
                                         ("expert_shared_feed_forward_length", "u32", 160))}
    yield named("qwen2moe", "three of seven, one shared", **moe)
    yield named("qwen2moe", "q5_1", **moe, types={"all": "Q5_1", "embd": "Q8_0", "output": "Q8_0"})
    moe = {**three, "arch": "qwen3moe", "L": 2, "experts": 7, "expert_width": 96,
           "keys": (*experts, ("expert_feed_forward_length", "u32", 96))}
    yield named("qwen3moe", "three of seven", **moe)
    yield named("qwen3moe", "mxfp4", **moe, types={"all": "Q8_0", "gate": "MXFP4", "up": "MXFP4", "down": "MXFP4"})


def gemma():
    base = {**BASE, "arch": "gemma", "E": 96, "L": 2, "H": 2, "K": 1, "D": 256, "F": 416, "V": 299}
    yield named("gemma", "heads of 256", **base, caches=True)
    yield named("gemma", "q5_1", **{**base, "D": 96, "L": 3}, types={"all": "Q5_1"})
    caps = [("attn_logit_softcapping", "f32", 5.0), ("final_logit_softcapping", "f32", 12.0)]
    local = ("attention.sliding_window", "u32", 8)
    two = {**base, "arch": "gemma2", "post_norms": True, "L": 4, "H": 4, "K": 2, "D": 80, "F": 224}
    yield named("gemma2", "soft-caps, window 8", **two, keys=(*caps, local))
    yield named("gemma2", "own local base, linear scaling", **two, keys=(
        *caps, local, ("rope.freq_base_swa", "f32", 700.0), *scaling("linear", 2.0)))
    yield named("gemma2", "q8_0", **{**two, "D": 32}, keys=(*caps, local), types={"all": "Q8_0"})
    yield named("gemma2", "q3_k", **{**two, "E": 256, "D": 64, "F": 256}, keys=(*caps, local), types={"all": "Q3_K"})
    three = {**two, "arch": "gemma3", "L": 7, "head_norms": "head", "query_gain": 1.0, "base": 1e6}
    yield named("gemma3", "window 8", **three, keys=(local,))
    yield named("gemma3", "linear scaling", **{**three, "K": 1, "D": 128}, keys=(local, *scaling("linear", 8.0)), caches=True)
    yield named("gemma3", "final soft-cap", **{**three, "L": 6}, keys=(local, caps[1]))
    own = ("rope.freq_base_swa", "f32", 700.0)
    yield named("gemma3", "untied, own local base", **{**three, "L": 6}, keys=(local, own), untied=True)
    yield named("gemma3", "no window", **{**three, "L": 3})
    yield named("gemma3", "yarn", **{**three, "L": 6}, keys=(local, *scaling("yarn", 4.0, 64)))
    large = {**three, "E": 256, "D": 256, "H": 2, "K": 1, "F": 256, "embd_deviation": 0.0625, "L": 6}
    yield named("gemma3", "q2_k, q5_k", **large, keys=(local,), types={"all": "Q2_K", "v": "Q5_K", "down": "Q5_K", "embd": "Q6_K"})


def phi3():
    base = {**BASE, "arch": "phi3", "E": 192, "H": 6, "K": 2, "F": 224, "V": 289, "qkv": "fused", "ffn": "fused", "untied": True}
    yield named("phi3", "fused", **base, caches=True)
    yield named("phi3", "not fused, biases", **{**base, "qkv": "split"}, qkv_bias=True)
    # The short divisors up to the original context, the long ones for a session that has room for more.
    longrope = {**base, "R": 24, "factors": (2, 0)}
    factor = ("rope.scaling.attn_factor", "f32", 1.1875)
    yield named("phi3", "longrope, short", **longrope, keys=(
        ("rope.scaling.original_context_length", "u32", 256), factor), train_context=1024)
    yield named("phi3", "longrope, long", **longrope, keys=(
        ("rope.scaling.original_context_length", "u32", 128), factor), train_context=1024)
    # llama.cpp ignores the window of this family, and so does the golden.
    yield named("phi3", "window that llama.cpp ignores", **base, keys=(("attention.sliding_window", "u32", 8),))
    yield named("phi3", "iq3_s", **{**base, "E": 256, "H": 4, "K": 4, "F": 256}, types={"all": "IQ3_S", "output": "Q6_K"})


def granite():
    base = {**BASE, "arch": "granite", "E": 160, "H": 5, "K": 1, "F": 352, "V": 303}
    keys = (("logit_scale", "f32", 1.5), ("residual_scale", "f32", 0.75), ("embedding_scale", "f32", 6.0),
            ("attention.scale", "f32", 0.25))
    yield named("granite", "multipliers", **base, keys=keys)
    yield named("granite", "biases", **base, keys=keys[:1], qkv_bias=True, out_bias=True, ffn_bias=True)
    yield named("granite", "no rotary", **base, keys=(keys[0], ("rope.scaling.finetuned", "bool", False)))
    yield named("granite", "iq3_xxs", **{**base, "E": 256, "H": 8, "K": 2, "F": 256}, keys=keys, types={"all": "IQ3_XXS", "embd": "Q6_K"})
    experts = (("expert_count", "u32", 6), ("expert_used_count", "u32", 2))
    moe = {**base, "arch": "granitemoe", "F": 96, "experts": 6}
    yield named("granitemoe", "two of six", **moe, keys=(*keys, *experts))
    shared = ("expert_shared_feed_forward_length", "u32", 160)
    yield named("granitemoe", "one shared", **moe, shared_width=160, keys=(*keys, *experts, shared))
    large = {**moe, "E": 256, "H": 4, "K": 2, "F": 256, "L": 2}
    yield named("granitemoe", "iq2_s", **large, keys=(*keys, *experts), types={"all": "IQ2_S", "embd": "Q6_K"})


def olmo2():
    base = {**BASE, "arch": "olmo2", "E": 192, "H": 4, "K": 2, "F": 288, "V": 297, "pre_norms": False, "post_norms": True,
            "head_norms": "whole", "untied": True, "base": 500000.0, "embd_deviation": 0.5}
    yield named("olmo2", "norms after", **base)
    # OLMo 3 has this architecture too: local layers, which are not scaled.
    local = ("attention.sliding_window", "u32", 8)
    yield named("olmo2", "window 8, yarn", **{**base, "L": 4}, keys=(local, *scaling("yarn", 4.0, 64)))
    pattern = ("attention.sliding_window_pattern", "bools", [True, True, False, True, True])
    yield named("olmo2", "pattern as a list", **{**base, "L": 5}, keys=(local, pattern, *scaling("linear", 4.0)))
    large = {**base, "E": 256, "H": 4, "F": 256}
    yield named("olmo2", "iq2_xxs, iq2_xs", **large, types={"all": "IQ2_XXS", "k": "IQ2_XS", "down": "IQ2_XS", "embd": "Q6_K", "output": "Q6_K"})


def layernorm():
    base = {**BASE, "norm": "layer+bias", "E": 160, "H": 5, "K": 5, "F": 224, "V": 295}
    stable = {**base, "arch": "stablelm", "R": 8, "untied": True}
    yield named("stablelm", "partial rotary", **stable)
    yield named("stablelm", "biases", **stable, qkv_bias=True)
    yield named("stablelm", "side by side, head norms", **{**stable, "K": 1}, ffn_norm=False, head_norms="each",
                keys=(("use_parallel_residual", "bool", True),))
    yield named("stablelm", "yarn, head norms", **{**stable, "K": 1, "R": 16}, head_norms="each", keys=scaling("yarn", 4.0, 64))
    yield named("stablelm", "nvfp4", **{**stable, "E": 192, "H": 6, "K": 2, "F": 320}, types={"all": "NVFP4", "embd": "Q8_0"})
    gpt = {**base, "arch": "gpt2", "E": 192, "H": 4, "K": 4, "F": 416, "qkv": "fused", "qkv_bias": True, "out_bias": True,
           "ffn": "plain", "ffn_bias": True, "positions": 256}
    yield named("gpt2", "tied", **gpt)
    yield named("gpt2", "untied", **{**gpt, "E": 160, "H": 2, "K": 2, "L": 4}, untied=True)
    yield named("gpt2", "q6_k", **{**gpt, "E": 256, "F": 768}, types={"all": "Q6_K"})


def bitnet():
    base = {**BASE, "arch": "bitnet", "E": 192, "H": 6, "K": 2, "F": 352, "sub_norms": True}
    large = {**base, "E": 256, "H": 4, "F": 512, "scales": True}
    yield named("bitnet", "sub-norms", **base)
    yield named("bitnet", "tq1_0", **large, types={"all": "TQ1_0", "embd": "F16"})
    yield named("bitnet", "tq2_0", **large, types={"all": "TQ2_0", "embd": "Q6_K"})


def cohere():
    base = {**BASE, "norm": "layer", "E": 192, "H": 6, "K": 2, "F": 288, "V": 307, "ffn_norm": False}
    scale = ("logit_scale", "f32", 0.625)
    command = {**base, "arch": "command-r", "base": 8e6}
    yield named("command-r", "side by side", **command, keys=(scale,))
    # Head norms belong to the large model, which is known by its 64 layers.
    plus = {**command, "E": 64, "H": 2, "K": 1, "F": 64, "L": 64, "head_norms": "each", "query_gain": 1.0}
    yield named("command-r", "64 layers, head norms", **plus, keys=(scale,))
    yield named("command-r", "q8_0", **command, keys=(scale,), types={"all": "Q8_0"})
    two = {**base, "arch": "cohere2", "L": 5, "base": 50000.0}
    local = ("attention.sliding_window", "u32", 8)
    yield named("cohere2", "window 8", **two, keys=(scale, local), caches=True)
    yield named("cohere2", "yarn", **two, keys=(scale, local, *scaling("yarn", 4.0, 64)))
    yield named("cohere2", "q4_0", **{**two, "E": 160, "H": 5, "K": 1}, keys=(scale, local), types={"all": "Q4_0", "embd": "Q8_0"})


def all_models():
    parts = (llama, qwen, gemma, phi3, granite, olmo2, layernorm, bitnet, cohere)
    models = [recipe for part in parts for recipe in part()]
    order = [name for name, _, _ in FAMILIES]
    return sorted(models, key=lambda recipe: order.index(recipe["family"]))
