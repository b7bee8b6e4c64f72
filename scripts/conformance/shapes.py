"""Keys and tensors of a model, from what its family has: the same few switches for all of them.

Written from llama.cpp's loader (src/models/*.cpp, load_arch_hparams and load_arch_tensors), which refuses a model that lacks
one of them. Scales are chosen so that a wrong part shows: scores of a few units, so that attention is far from uniform,
and every branch about as large as the stream that it joins.
"""

import math

from gguf import GGMLQuantizationType as Type

import fill
import recipe as recipes

DEFAULTS = {
    "norm": "rms",  # or "layer", "layer+bias"
    "qkv": "split",  # or "fused"
    "qkv_bias": False,
    "out_bias": False,
    "ffn_bias": False,
    "ffn": "gated",  # or "fused" (gate and up in one tensor), "plain" (no gate)
    "pre_norms": True,
    "ffn_norm": True,  # False: attention and feed-forward side by side
    "post_norms": False,
    "sub_norms": False,
    "head_norms": None,  # "head", "each" (a weight for each head), "whole"
    "untied": False,
    "positions": 0,  # learned positions
    "scales": False,  # one factor for each projection
    "freqs": False,
    "factors": None,  # exponents of the short and the long divisors
    "base": 10000.0,
    "eps": 0.02,  # far larger than usual: one that is left out must show
    "query_gain": 2.0,
    "embd_deviation": None,
    "router_gain": 2.0,
    "keys": (),
    "without": (),  # keys that have a default
    "types": {},
    "context": 256,
    "train_context": 256,
    "prompt": 40,
    "caches": False,  # whether it is run with rounded caches too; heads are then whole blocks of 32
    "at": (1, 7, 23, 40),
}


def build(name, family, **given):
    """The recipe of a model. Needed: arch, E (width), L (layers), H and K (heads of queries, of keys and values), F (width of
    the feed-forward), V (vocabulary); D (a head's length) where it is not E / H."""
    c = {**DEFAULTS, "D": given["E"] // given["H"], **given}
    arch, E, L, H, K, D, F, V = (c[key] for key in ("arch", "E", "L", "H", "K", "D", "F", "V"))
    rotated = c.get("R", D)
    keys, tensors = [], []

    def key(suffix, kind, value):
        if suffix in c["without"]:
            return
        keys.append([f"{arch}.{suffix}", kind, value])

    def vector(tensor, length, rule="around", e=0):
        tensors.append([tensor, "F32", [length], rule, e])

    def bias(tensor, length, deviation=0.25):
        vector(tensor, length, *fill.scale(Type.F32, deviation))

    def matrix(tensor, dims, deviation, part, kind=None):
        types = c["types"]
        kind = kind or types.get(part, types.get("all", "F32"))
        tensors.append([tensor, kind, dims, *fill.scale(fill.kind_of(kind), deviation)])

    def norm(tensor, length=E, e=0):
        vector(f"{tensor}.weight", length, e=e)
        if c["norm"] == "layer+bias":
            bias(f"{tensor}.bias", length)

    def factor(tensor):
        if c["scales"]:
            vector(f"{tensor}.scale", 1, e=-1)

    key("block_count", "u32", L)
    key("context_length", "u32", c["train_context"])
    key("embedding_length", "u32", E)
    if F:
        key("feed_forward_length", "u32", F)
    key("attention.head_count", "u32", H)
    key("attention.head_count_kv", "u32", K)
    if D * H != E:
        key("attention.key_length", "u32", D)
        key("attention.value_length", "u32", D)
    key("attention.layer_norm_rms_epsilon" if c["norm"] == "rms" else "attention.layer_norm_epsilon", "f32", c["eps"])
    if not c["positions"]:
        key("rope.dimension_count", "u32", rotated)
        key("rope.freq_base", "f32", c["base"])
    for suffix, kind, value in c["keys"]:
        key(suffix, kind, value)

    matrix("token_embd.weight", [E, V], c["embd_deviation"] or 3 / math.sqrt(E), "embd")
    if c["positions"]:
        matrix("position_embd.weight", [E, c["positions"]], 0.25, "positions", "F32")
    if c["freqs"]:
        vector("rope_freqs.weight", rotated // 2, "factors")
    if c["factors"]:
        for length, e in zip(("long", "short"), c["factors"], strict=True):
            vector(f"rope_factors_{length}.weight", rotated // 2, "factors", e)

    for i in range(L):
        p = f"blk.{i}."
        if c["pre_norms"]:
            norm(p + "attn_norm")
        qkv = [("q", H * D, c["query_gain"]), ("k", K * D, c["query_gain"]), ("v", K * D, 1.0)]
        if c["qkv"] == "fused":
            matrix(p + "attn_qkv.weight", [E, (H + 2 * K) * D], c["query_gain"] / math.sqrt(E), "qkv")
            if c["qkv_bias"]:
                bias(p + "attn_qkv.bias", (H + 2 * K) * D)
        else:
            for part, rows, gain in qkv:
                matrix(p + f"attn_{part}.weight", [E, rows], gain / math.sqrt(E), part)
                factor(p + f"attn_{part}")
                if c["qkv_bias"]:
                    bias(p + f"attn_{part}.bias", rows)
        if c["head_norms"]:
            for part, heads in (("q", H), ("k", K)):
                dims = {"head": [D], "each": [D, heads], "whole": [heads * D]}[c["head_norms"]]
                tensors.append([p + f"attn_{part}_norm.weight", "F32", dims, "around", 1])
        if c["sub_norms"]:
            norm(p + "attn_sub_norm", H * D)
        matrix(p + "attn_output.weight", [H * D, E], 1.5 / math.sqrt(H * D), "out")
        factor(p + "attn_output")
        if c["out_bias"]:
            bias(p + "attn_output.bias", E)
        if c["post_norms"]:
            norm(p + "post_attention_norm")
        if c["pre_norms"] and c["ffn_norm"]:
            norm(p + "ffn_norm")
        feed_forward(c, p, matrix, vector, bias, norm, factor)
        if c["post_norms"]:
            norm(p + "post_ffw_norm")

    norm("output_norm")
    if c["untied"]:
        matrix("output.weight", [E, V], 3 / math.sqrt(E), "output")
    return {
        "name": name,
        "family": family,
        "arch": arch,
        "variant": c["variant"],
        "vocabulary": V,
        "context": c["context"],
        "prompt": recipes.tokens(name, c["prompt"], V),
        "at": list(c["at"]),
        **({"caches": dict.fromkeys(recipes.CACHES)} if c["caches"] else {}),
        "keys": keys,
        "tensors": tensors,
    }


def feed_forward(c, p, matrix, vector, bias, norm, factor):
    E, F = c["E"], c["F"]
    gate_or_up, down = 1 / math.sqrt(E), 1.5

    def gated(suffix, width, experts=()):
        matrix(p + f"ffn_gate{suffix}.weight", [E, width, *experts], gate_or_up, "gate")
        matrix(p + f"ffn_up{suffix}.weight", [E, width, *experts], gate_or_up, "up")
        matrix(p + f"ffn_down{suffix}.weight", [width, E, *experts], down / math.sqrt(width), "down")

    if "experts" in c:
        matrix(p + "ffn_gate_inp.weight", [E, c["experts"]], c["router_gain"] / math.sqrt(E), "router", "F32")
        gated("_exps", c.get("expert_width", F), [c["experts"]])
        if c.get("shared_width"):
            if c.get("shared_gate"):
                vector(p + "ffn_gate_inp_shexp.weight", E, *fill.scale(Type.F32, 1 / math.sqrt(E)))
            gated("_shexp", c["shared_width"])
        return
    if c["ffn"] == "gated":
        matrix(p + "ffn_gate.weight", [E, F], gate_or_up, "gate")
        factor(p + "ffn_gate")
        if c["ffn_bias"]:
            bias(p + "ffn_gate.bias", F)
    width = 2 * F if c["ffn"] == "fused" else F
    matrix(p + "ffn_up.weight", [E, width], gate_or_up, "up")
    factor(p + "ffn_up")
    if c["ffn_bias"]:
        bias(p + "ffn_up.bias", width)
    if c["sub_norms"]:
        norm(p + "ffn_sub_norm", F)
    matrix(p + "ffn_down.weight", [F, E], down / math.sqrt(F), "down")
    factor(p + "ffn_down")
    if c["ffn_bias"]:
        bias(p + "ffn_down.bias", E)
