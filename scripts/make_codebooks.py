#!/usr/bin/env python3
"""Writes the codebooks of the IQ formats, packed, as Rust constants.

usage: make_codebooks.py OUT_DIR        (needs numpy and gguf; OUT_DIR is p64-core/src/quant/codebook)

GGML stores an entry as eight or four bytes, each of a handful of values. Here an entry is 16 bits: the index of each value
among those that occur, 2 or 3 bits an element, the first element lowest. The entries come from gguf-py.
"""

import sys
from pathlib import Path

import numpy as np
from gguf import quants

# Name of the file, class in gguf-py, the values in the order of their indices, bits of an index, the formats.
CODEBOOKS = [
    ("iq1", quants.IQ1_S, (-1, 0, 1), 2, "IQ1_S and IQ1_M"),
    ("iq2_xxs", quants.IQ2_XXS, (8, 25, 43), 2, "IQ2_XXS"),
    ("iq2_xs", quants.IQ2_XS, (8, 25, 43), 2, "IQ2_XS"),
    ("iq2_s", quants.IQ2_S, (8, 25, 43), 2, "IQ2_S"),
    ("iq3_xxs", quants.IQ3_XXS, (4, 12, 20, 28, 36, 44, 52, 62), 3, "IQ3_XXS"),
    ("iq3_s", quants.IQ3_S, (1, 3, 5, 7, 9, 11, 13, 15), 3, "IQ3_S"),
]


def packed(grid, values, bits):
    indices = np.searchsorted(values, grid)
    assert (np.array(values)[indices] == grid).all()
    shifts = bits * np.arange(grid.shape[1])
    return (indices.astype(np.int64) << shifts).sum(axis=1)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, kind, values, bits, formats in CODEBOOKS:
        kind.init_grid()
        grid = kind.grid.reshape(kind.grid_shape)
        entries = packed(grid, values, bits)
        count, elements = grid.shape
        lines = [
            f"//! The codebook of {formats}: {count} entries of {elements} indices of {bits} bits, {2 * count} bytes.",
            "//!",
            "//! Written by scripts/make_codebooks.py.",
            "#![forbid(unsafe_code)]",
            "",
            f"/// Index `i` of an entry, from bit {bits} * i up, stands for one of {', '.join(map(str, values))}.",
            "#[rustfmt::skip]",
            f"pub(in crate::quant) static CODEBOOK: [u16; {count}] = [",
        ]
        for row in entries.reshape(-1, 16):
            lines.append("    " + " ".join(f"{int(entry):#06x}," for entry in row))
        lines += ["];", ""]
        (Path(sys.argv[1]) / f"{name}.rs").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
