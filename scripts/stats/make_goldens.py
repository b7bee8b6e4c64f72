#!/usr/bin/env python3
"""Writes what numpy says of the values of the test data: the figures that tests/tests/{stats,diff}.rs expect.

usage: make_goldens.py        (needs numpy and gguf; writes tests/data/stats)

Everything is computed in float64 from values that gguf-py decodes. Counts are exact; means and the like are compared to a
part in 10^12, because sums run in another order.
"""

import json
from pathlib import Path

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / "tests/data/tiny/tiny-stories-q8_0.gguf"
QUANT = ROOT / "tests/data/quant"
OUT = ROOT / "tests/data/stats"
BINS, SIGMAS = 64, 6.0


def figures(values):
    values = values.reshape(-1).astype(np.float64)
    finite = values[np.isfinite(values)]
    found = {
        "elements": len(values),
        "nan": int(np.isnan(values).sum()),
        "plus_infinity": int(np.isposinf(values).sum()),
        "minus_infinity": int(np.isneginf(values).sum()),
        "zeros": int((finite == 0).sum()),
        "min": finite.min(),
        "max": finite.max(),
        "mean": finite.mean(),
        "std": finite.std(),
    }
    low = max(found["min"], found["mean"] - SIGMAS * found["std"])
    high = min(found["max"], found["mean"] + SIGMAS * found["std"])
    inside = finite[(finite >= low) & (finite <= high)]
    bins = np.minimum(((inside - low) * (BINS / (high - low) if high > low else 0)).astype(np.int64), BINS - 1)
    found |= {
        "low": low,
        "high": high,
        "below": int((finite < low).sum()),
        "above": int((finite > high).sum()),
        "counts": np.bincount(bins, minlength=BINS).tolist(),
    }
    return found


def compared(a, b):
    a, b = a.reshape(-1).astype(np.float64), b.reshape(-1).astype(np.float64)
    d = b - a
    return {
        "compared": len(a),
        "equal": int((a == b).sum()),
        "rmse": np.sqrt((d * d).mean()),
        "relative": np.sqrt((d * d).sum() / (a * a).sum()),
        "mean_shift": d.mean(),
        "max": np.abs(d).max(),
        "max_at": int(np.abs(d).argmax()),
        "cosine": a @ b / (np.linalg.norm(a) * np.linalg.norm(b)),
    }


def write(name, content):
    rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in content.items())
    (OUT / name).write_text("{\n" + rows + "\n}\n")


def main():
    OUT.mkdir(exist_ok=True)
    tensors = {t.name: dequantize(t.data, t.tensor_type).astype(np.float32) for t in GGUFReader(TINY).tensors}
    write("tiny.json", {name: figures(values) for name, values in tensors.items()})
    quant = {path.stem: np.fromfile(path, "<f4") for path in sorted(QUANT.glob("*.f32"))}
    with np.errstate(all="ignore"):
        write("quant.json", {name: figures(values) for name, values in quant.items()})
    swapped = {}
    for name, values in tensors.items():
        other = name.replace("blk.0.", "blk.#.").replace("blk.1.", "blk.0.").replace("blk.#.", "blk.1.")
        if other != name:
            swapped[name] = compared(values, tensors[other])
    write("swapped.json", swapped)
    write("f16.json", {n: compared(v, v.astype(np.float16)) for n, v in tensors.items() if v.ndim == 2})


if __name__ == "__main__":
    main()
