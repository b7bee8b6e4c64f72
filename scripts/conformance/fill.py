"""Weights from nothing but names: what a tensor of a conformance model holds.

Every tensor is filled from a 64-bit hash of "MODEL/TENSOR", element by element, with values that its type holds exactly, so
that Python here and Rust in tests/src/conformance/fill.rs make the same bytes and only a recipe has to be kept. A recipe
names a rule and its scale, the power of two `e`:

    normal e    k * 2^-e             matrices, biases
    around e    (256 + k) * 2^(e-8)  norms, and scales of whole tensors: around 2^e
    factors e   (32 + |k|) * 2^(e-5) divisors of the rotary frequencies: from 2^e to 5 * 2^e
    blocks e    quantised types: hashed bytes; scales of 2^(e-15) to 2^(e-14), or what TYPES says

with k = (the sum of a hash's four lowest bytes - 508) / 4, rounded down: bell-shaped, from -127 to 128, deviation 37.
"""

import math

import numpy as np
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize

# In ggml, not yet in the pinned gguf-py.
Q2_0 = 42
GGML_QUANT_SIZES[Q2_0] = (64, 18)

GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
SCALE_STREAM = np.uint64(0x5CA1E5CA1E5CA1E5)
K_DEVIATION = 36.95

# Scale fields of a block: (offset, kind, what is added to e). Kinds: `half` an f16 with its sign positive, `minus` negative,
# `e8m0` a power of two in a byte, `ue4m3` a small float in a byte, `nibbles` an f16 in the top nibbles of four words.
FIELDS = {
    Type.Q1_0: [(0, "half", 0)],
    Q2_0: [(0, "half", 0)],
    Type.Q4_0: [(0, "half", 0)],
    Type.Q4_1: [(0, "half", 0), (2, "minus", 3)],
    Type.Q5_0: [(0, "half", 0)],
    Type.Q5_1: [(0, "half", 0), (2, "minus", 4)],
    Type.Q8_0: [(0, "half", 0)],
    Type.Q2_K: [(80, "half", 0), (82, "half", 0)],
    Type.Q3_K: [(108, "half", 0)],
    Type.Q4_K: [(0, "half", 0), (2, "half", 3)],
    Type.Q5_K: [(0, "half", 0), (2, "half", 4)],
    Type.Q6_K: [(208, "half", 0)],
    Type.IQ1_S: [(0, "half", 0)],
    Type.IQ1_M: [(48, "nibbles", 0)],
    Type.IQ2_XXS: [(0, "half", 0)],
    Type.IQ2_XS: [(0, "half", 0)],
    Type.IQ2_S: [(0, "half", 0)],
    Type.IQ3_XXS: [(0, "half", 0)],
    Type.IQ3_S: [(0, "half", 0)],
    Type.IQ4_NL: [(0, "half", 0)],
    Type.IQ4_XS: [(0, "half", 0)],
    Type.TQ1_0: [(52, "half", 0)],
    Type.TQ2_0: [(64, "half", 0)],
    Type.MXFP4: [(0, "e8m0", 0)],
    Type.NVFP4: [(at, "ue4m3", 0) for at in range(4)],
}

# The same bits of the exponent mean another power of two in each kind.
BIAS = {"half": 15, "minus": 15, "nibbles": 15, "e8m0": 128, "ue4m3": 8}
MOST = {"half": 30, "minus": 30, "nibbles": 30, "e8m0": 254, "ue4m3": 14}


def kind_of(name):
    """The element type of a name."""
    return Q2_0 if name == "Q2_0" else Type[name]


def seed_of(model, tensor):
    """FNV-1a over "MODEL/TENSOR"."""
    state = 0xCBF29CE484222325
    for byte in f"{model}/{tensor}".encode():
        state = ((state ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return np.uint64(state)


def words(seed, count):
    """The first hashes of a seed: SplitMix64's sequence."""
    with np.errstate(over="ignore"):
        z = seed + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN_RATIO
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def small(seed, count):
    """`count` values of k."""
    bytes_of = words(seed, count).view(np.uint8).reshape(count, 8)
    return (bytes_of[:, :4].astype(np.int64).sum(axis=1) - 508) >> 2


def floats(rule, e, seed, count):
    k = small(seed, count)
    if rule == "normal":
        return (k * 2.0**-e).astype(np.float32)
    if rule == "around":
        return ((256 + k) * 2.0 ** (e - 8)).astype(np.float32)
    if rule == "factors":
        return ((32 + np.abs(k)) * 2.0 ** (e - 5)).astype(np.float32)
    raise ValueError(f"no rule {rule}")


def blocks(kind, e, seed, count):
    """`count` blocks of a quantised type, one a row."""
    _, size = GGML_QUANT_SIZES[kind]
    stream = words(seed, -(-count * size // 8)).view(np.uint8)
    out = stream[: count * size].reshape(count, size).copy()
    if kind == Type.TQ2_0:  # four digits a byte, of which each is at most 2
        digits = out[:, :64]
        digits ^= digits & (digits >> 1) & 0x55
    mantissa = words(seed ^ SCALE_STREAM, count) & np.uint64(1023)
    for at, how, more in FIELDS[kind]:
        if how in ("half", "minus", "nibbles"):
            bits = (mantissa | np.uint64(e + more << 10) | np.uint64(0x8000 if how == "minus" else 0)).astype("<u2")
            if how == "nibbles":
                for i in range(4):
                    byte = out[:, at + 2 * i + 1]
                    byte &= 0x0F
                    byte |= ((bits >> (4 * i) & 15) << 4).astype(np.uint8)
            else:
                out[:, at : at + 2] = bits.view(np.uint8).reshape(count, 2)
        elif how == "e8m0":
            out[:, at] = (np.uint64(e + more) + (mantissa & np.uint64(1))).astype(np.uint8)
        else:
            out[:, at] = (np.uint64(e + more << 3) | (mantissa >> np.uint64(at * 2)) & np.uint64(7)).astype(np.uint8)
    return out


def tensor(model, name, kind, shape, rule, e):
    """What the tensor holds: floats of `shape`, or for quantised types the bytes of its rows."""
    seed, count = seed_of(model, name), math.prod(shape)
    if rule != "blocks":
        values = floats(rule, e, seed, count).reshape(shape)
        if kind == Type.F32:
            return values
        if kind == Type.F16:
            half = values.astype(np.float16)
            assert (half.astype(np.float32) == values).all(), f"{name}: not exact in f16"
            return half
        bits = values.view(np.uint32)
        assert kind == Type.BF16 and not (bits & 0xFFFF).any(), f"{name}: not exact in bf16"
        return (bits >> 16).astype(np.uint16).view(np.uint8).reshape(*shape[:-1], 2 * shape[-1])
    elements, size = GGML_QUANT_SIZES[kind]
    assert shape[-1] % elements == 0, f"{name}: rows of {shape[-1]} in blocks of {elements}"
    return blocks(kind, e, seed, count // elements).reshape(*shape[:-1], shape[-1] // elements * size)


def plain(kind, values):
    """The same in f32."""
    if kind == Type.F32:
        return values
    if kind in (Type.Q1_0, Q2_0):  # gguf-py has no decoder: an f16, then one or two bits an element, from the lowest up
        elements, size = GGML_QUANT_SIZES[kind]
        blocks = values.reshape(-1, size)
        bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little").astype(np.int32)
        whole = 2 * bits - 1 if kind == Type.Q1_0 else bits[:, 0::2] + 2 * bits[:, 1::2] - 1
        scaled = blocks[:, :2].copy().view("<f2").astype(np.float32) * whole.astype(np.float32)
        return np.ascontiguousarray(scaled.reshape(*values.shape[:-1], values.shape[-1] // size * elements))
    return np.ascontiguousarray(dequantize(values, kind), dtype=np.float32)


def scale(kind, deviation):
    """The rule and its `e` that come nearest to values of that deviation around zero."""
    if kind in (Type.F32, Type.F16, Type.BF16):
        return "normal", round(math.log2(K_DEVIATION / deviation))
    how = FIELDS[kind][0][1]
    middle = BIAS[how]
    values = plain(kind, blocks(kind, middle, np.uint64(1), 512))
    root = float(np.sqrt((values.astype(np.float64) ** 2).mean()))
    e = middle + round(math.log2(deviation / root))
    most = MOST[how] - max(more for _, _, more in FIELDS[kind])
    return "blocks", max(0, min(most, e))
