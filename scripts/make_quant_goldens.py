#!/usr/bin/env python3
"""Writes golden blocks of every weight format and the values they decode to.

usage: make_quant_goldens.py OUT_DIR        (needs numpy and gguf)

For each type OUT_DIR/NAME.blocks holds raw blocks and OUT_DIR/NAME.f32 their values, little-endian. The values come
from gguf-py's `gguf.quants.dequantize`; Q1_0 and Q2_0, for which it has no decoder, are decoded here with numpy, and so are
Q4_K_SOA and the ternary format, from their definition in docs/spec/p64.md. The seeds are fixed: two runs write the same
bytes. scripts/check_ggml_types.sh compares them with what ggml's own code makes of the blocks.
"""

import sys
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import Q4_K, dequantize, quantize

# Not in every gguf-py that decodes the others.
Q1_0, Q2_0 = 41, 42
SIZES = {**GGML_QUANT_SIZES, Q1_0: (128, 18), Q2_0: (64, 18)}
NAMES = {Q1_0: "q1_0", Q2_0: "q2_0"}
# The one f16 that lies in four parts: the upper nibbles of every second byte from 49 on.
IQ1_M_SCALE = 49
# Byte offsets of the f16 fields of each block.
HALVES = {
    T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
    T.IQ2_XXS: [0], T.IQ2_XS: [0], T.IQ2_S: [0], T.IQ3_XXS: [0], T.IQ3_S: [0], T.IQ1_S: [0], T.IQ1_M: [IQ1_M_SCALE],
    T.IQ4_NL: [0], T.IQ4_XS: [0], T.TQ1_0: [52], T.TQ2_0: [64], Q1_0: [0], Q2_0: [0], T.MXFP4: [], T.NVFP4: [],
}
RANDOM_BLOCKS = {32: 96, 64: 48, 128: 32, 256: 24}
# Zero, -0, smallest and largest subnormal, largest, its negative, 1, -1, infinities, NaN.
EDGE_HALVES = [0x0000, 0x8000, 0x0001, 0x03FF, 0x7BFF, 0xFBFF, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00]


def with_halves(block, offsets, values):
    block = block.copy()
    for offset, value in zip(offsets, values):
        if offset == IQ1_M_SCALE:
            for part in range(4):
                block[offset + 2 * part] = block[offset + 2 * part] & 0x0F | (value >> 4 * part & 0x0F) << 4
        else:
            block[offset : offset + 2] = [value & 0xFF, value >> 8]
    return block


def edge_blocks(kind, rng):
    """All payload bits clear, set, alternating, one byte different, and random, under every edge value of the scales."""
    size = SIZES[kind][1]
    payloads = [np.full(size, value, np.uint8) for value in (0x00, 0xFF, 0x55, 0xAA, 0x80)]
    outlier = np.full(size, 0x88, np.uint8)
    outlier[size // 2] = 0x0F
    payloads += [outlier, rng.integers(0, 256, size, np.uint8)]
    offsets = HALVES[kind]
    for i, half in enumerate(EDGE_HALVES):
        chosen = payloads if SIZES[kind][0] == 32 else [payloads[i % 7], payloads[(i + 3) % 7]]
        # Where there is a minimum, each scale meets two that differ from it in sign and size.
        for shift in (5, 9)[: len(offsets)]:
            other = EDGE_HALVES[(i + shift) % len(EDGE_HALVES)]
            for payload in chosen:
                yield with_halves(payload, offsets, [half, other])


def quantised_blocks(kind):
    """Rows that stress a quantiser: zero, equal, one outlier, alternating extremes, all above zero."""
    equal = np.full(32, 0.37, np.float32)
    outlier = np.linspace(-0.01, 0.01, 32, dtype=np.float32)
    outlier[5] = -900.0
    alternating = np.where(np.arange(32) % 2 == 0, 3.0, -3.0).astype(np.float32)
    above = np.linspace(5.0, 6.0, 32, dtype=np.float32)
    rows = np.stack([np.zeros(32, np.float32), equal, -equal, outlier, -outlier, alternating, above])
    return quantize(rows, kind).reshape(len(rows), -1)


def every_entry(kind, rng):
    """Blocks with random signs and scales that take every entry of the codebook once, in order."""
    size = SIZES[kind][1]
    count, per_block = {
        T.IQ2_XXS: (256, 32), T.IQ2_XS: (512, 32), T.IQ2_S: (1024, 32), T.IQ3_XXS: (256, 64), T.IQ3_S: (512, 64),
        T.IQ1_S: (2048, 32), T.IQ1_M: (2048, 32),
    }.get(kind, (0, 1))
    for first in range(0, count, per_block):
        block = rng.integers(0, 256, size, np.uint8)

        def field(bit, width, value):
            """Writes `width` bits from bit `bit` of the block on."""
            for i in range(width):
                byte, mask = (bit + i) // 8, 1 << (bit + i) % 8
                block[byte] = block[byte] | mask if value >> i & 1 else block[byte] & (0xFF - mask)

        for k in range(per_block):
            entry, group, l = first + k, k // 4, k % 4
            if kind == T.IQ2_XXS:
                field(16 + 64 * group + 8 * l, 8, entry)
            elif kind == T.IQ2_XS:
                field(16 + 16 * k, 9, entry)
            else:
                field((0 if kind == T.IQ1_M else 16) + 8 * k, 8, entry & 0xFF)
            if kind == T.IQ2_S:
                field(8 * 66 + 2 * k, 2, entry >> 8)
            elif kind == T.IQ3_S:
                field(8 * 66 + k, 1, entry >> 8)
            elif kind == T.IQ1_S:
                field(8 * 34 + 16 * group + 3 * l, 3, entry >> 8)
            elif kind == T.IQ1_M:
                field(8 * 32 + 4 * k, 3, entry >> 8)
        yield with_halves(block, HALVES[kind], [0x3800 + first % 1024])


def every_scale(kind):
    """Each 4-bit float under each 8-bit scale, for the formats that have these."""
    nibbles = np.arange(0x10, 0x110, 0x22, dtype=np.uint8)
    if kind == T.MXFP4:
        return [np.concatenate([[e], nibbles, nibbles[::-1]]).astype(np.uint8) for e in range(256)]
    if kind == T.NVFP4:
        return [np.concatenate([np.arange(e, e + 4), *[nibbles] * 4]).astype(np.uint8) for e in range(0, 256, 4)]
    return []


def blocks_of(kind, rng):
    elements, size = SIZES[kind]
    blocks = [*edge_blocks(kind, rng), *every_scale(kind), *every_entry(kind, rng)]
    if elements == 32 and kind not in (T.IQ4_NL, T.MXFP4):
        blocks += list(quantised_blocks(kind))
    for _ in range(RANDOM_BLOCKS[elements]):
        halves = rng.normal(0, 1, 2).astype(np.float16).view(np.uint16)
        blocks.append(with_halves(rng.integers(0, 256, size, np.uint8), HALVES[kind], [int(half) for half in halves]))
    return np.stack(blocks)


def decoded(kind, blocks):
    if kind not in (Q1_0, Q2_0):
        return dequantize(blocks, kind)
    d = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    if kind == Q1_0:
        bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little")
        return np.where(bits == 1, d, -d)
    pairs = blocks[:, 2:, None] >> np.array([0, 2, 4, 6], np.uint8) & 3
    return (pairs.reshape(len(blocks), -1).astype(np.float32) - np.float32(1)) * d


def half_pairs(values):
    return values.astype(np.float16).view(np.uint8).reshape(len(values), -1)


def q4_k_soa(blocks):
    """The conversion of Q4_K blocks, and the values of the result."""
    d = blocks[:, 0:2].copy().view(np.float16).astype(np.float32)
    dmin = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
    scales, mins = Q4_K.get_scale_min(blocks[:, 4:16].copy())
    d_sub = half_pairs(d * scales.astype(np.float32))
    m_sub = half_pairs(dmin * mins.astype(np.float32))
    packed = np.concatenate([blocks[:, 16:144], d_sub, m_sub], axis=1)
    runs = blocks[:, 16:144].reshape(-1, 4, 1, 32)
    nibbles = np.concatenate([runs & 15, runs >> 4], axis=2).reshape(-1, 8, 32).astype(np.float32)
    scale = d_sub.copy().view(np.float16).astype(np.float32).reshape(-1, 8, 1)
    minimum = m_sub.copy().view(np.float16).astype(np.float32).reshape(-1, 8, 1)
    return packed, (scale * nibbles - minimum).reshape(-1, 256)


def ternary(rng, elements):
    trits = rng.integers(-1, 2, elements)
    scale = np.float32(0.0371)
    digits = np.concatenate([trits + 1, np.zeros(-elements % 5, np.int64)]).reshape(-1, 5)
    packed = (digits * np.array([1, 3, 9, 27, 81])).sum(axis=1).astype(np.uint8)
    return np.concatenate([np.array([scale]).view(np.uint8), packed]), scale * trits.astype(np.float32)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)

    def write(name, blocks, values):
        (out / f"{name}.blocks").write_bytes(np.ascontiguousarray(blocks).tobytes())
        (out / f"{name}.f32").write_bytes(np.ascontiguousarray(values, dtype="<f4").tobytes())

    with np.errstate(all="ignore"):
        for kind in HALVES:
            rng = np.random.default_rng(int(kind))
            blocks = blocks_of(kind, rng)
            name = NAMES[kind] if kind in NAMES else kind.name.lower()
            write(name, blocks, decoded(kind, blocks))
            if kind == T.Q4_K:
                write("q4_k_soa", *q4_k_soa(blocks))
        # Every 41st bit pattern meets each exponent with many mantissas.
        patterns = np.arange(0, 65536, 41, dtype=np.uint16)
        write("f16", patterns, patterns.view(np.float16).astype(np.float32))
        write("bf16", patterns, dequantize(patterns.view(np.uint8).reshape(-1, 2), T.BF16))
        pairs = patterns[: len(patterns) // 2 * 2]
        write("f32", pairs, pairs.view(np.float32))
        write("ternary", *ternary(np.random.default_rng(1158), 1003))


if __name__ == "__main__":
    main()
