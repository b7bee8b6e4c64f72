#!/usr/bin/env python3
"""Makes llama.cpp's logits of some conformance models with keys and values cached in f16 and q8_0, or checks those committed.

    kv.py --oracle PROGRAM [--to tests/data/kv]
    kv.py --check goldens --oracle PROGRAM

llama.cpp needs flash attention for values in q8_0. It rounds queries as it rounds keys, so that its results are farther from
those of an f32 cache than rounding the cache alone makes them.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import recipe as recipes
from make import noise
from models import all_models

# Without experts: there a rounding can turn a choice, and with it everything.
MODELS = ("llama-grouped-heads", "gemma3-linear-scaling", "qwen3-head-norms")
# Types of keys and of values, and whether flash attention is on.
TYPES = (("f16", "f16", "off"), ("q8_0", "f16", "off"), ("q8_0", "q8_0", "on"))


def logits(oracle, model, recipe, keys, values, flash, out):
    join = lambda numbers: ",".join(map(str, numbers))
    subprocess.run([oracle, model, "--tokens", join(recipe["prompt"]), "--at", join(recipe["at"]), "--out", out, "--ctx",
                    str(recipe["context"]), "--kv", keys, "--kv-v", values, "--flash", flash], check=True)
    return np.fromfile(out, np.float32).astype("<f4")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--oracle", required=True, help="the program that oracle.cpp makes")
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path("tests/data/kv"))
    parser.add_argument("--check", choices=["goldens"])
    args = parser.parse_args()

    args.to.mkdir(parents=True, exist_ok=True)
    chosen = {recipe["name"]: recipe for recipe in all_models() if recipe["name"] in MODELS}
    wrong = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in MODELS:
            model = folder / f"{name}.gguf"
            recipes.write(chosen[name], model)
            for keys, values, flash in TYPES:
                found = logits(args.oracle, model, chosen[name], keys, values, flash, folder / "logits.f32")
                path = args.to / f"{name}-{keys}-{values}.f32"
                if not args.check:
                    found.tofile(path)
                    continue
                # Rounding of the cache turns the noise of another CPU into steps: as far as half of what rounding does.
                golden = np.fromfile(path, "<f4")
                plain = np.fromfile(f"tests/data/conformance/{name}.f32", "<f4")
                allowed = max(noise(chosen[name]) * np.abs(plain).max(), 0.5 * np.abs(golden - plain).max())
                off = np.abs(golden - found).max()
                if not off <= allowed:
                    wrong.append(f"{path.name}: logits differ by {off:.1e}, up to {allowed:.1e} is noise")
    if args.check:
        print(f"{len(MODELS) * len(TYPES)} results with other caches compared: {len(wrong)} differences")
        print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
