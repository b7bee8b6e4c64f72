#!/usr/bin/env python3
"""Shows that the goldens notice: changes one thing of a model at a time, and asks llama.cpp how far its logits move.

    sensitivity.py --oracle PROGRAM [--only NAME,...] [--all]

Every number among the keys is changed a little, and every kind of tensor gets other values in one layer. What moves the
logits by less than LEAST of the largest could be wrong in P64 without its test failing, and fails here; what llama.cpp
does not read is listed in UNREAD.
"""

import argparse
import copy
import functools
import multiprocessing
import pathlib
import sys
import tempfile

import numpy as np

import recipe as recipes
from make import is_plain, logits
from models import all_models

# The bar of the exact path is 1e-4.
LEAST = 3e-4

# Shapes follow from these, or llama.cpp takes them from the tensors: a change of one is another model.
SHAPES = ("block_count", "embedding_length", "feed_forward_length", "head_count", "head_count_kv", "key_length",
          "value_length", "expert_count", "expert_feed_forward_length", "expert_shared_feed_forward_length")

# Where another rotated part of a head is still a model: llama.cpp refuses it elsewhere, or the divisors have its length.
PARTIAL = ("stablelm",)

# (part of a model's name, key): read by llama.cpp only in other cases, or not at all.
UNREAD = {
    ("", "context_length"): "a limit, not a constant, where nothing is scaled by it",
    ("", "use_parallel_residual"): "a missing ffn_norm says it",
    ("phi3-window", "attention.sliding_window"): "ignored for this family",
    ("granite-no-rotary", "rope.freq_base"): "nothing is turned",
    ("longrope-short", "rope_factors_long.weight"): "for longer sessions",
    ("longrope-long", "rope_factors_short.weight"): "for shorter sessions",
}


def changed_value(key, value, context):
    if key.endswith(("sliding_window", "expert_used_count")):
        return value + 1
    if key.endswith("original_context_length"):
        return value // 4 if value >= context else value * 4
    if key.endswith("dimension_count"):
        return value - 2
    return value * (2.0 if key.endswith("epsilon") else 1.25 if key.endswith("freq_base") else 1.02)


def unread(recipe, what):
    return any(what == other and name in recipe["name"] for name, other in UNREAD)


def variants(recipe):
    """Names of changes, and the changed recipes."""
    for row, (key, kind, value) in enumerate(recipe["keys"]):
        suffix = key.split(".", 1)[1]
        if kind in ("u32", "f32") and not suffix.endswith(SHAPES) and not unread(recipe, suffix):
            if suffix == "rope.dimension_count" and recipe["arch"] not in PARTIAL:
                continue
            other = copy.deepcopy(recipe)
            other["keys"][row][2] = changed_value(suffix, value, recipe["context"])
            yield suffix, other, None
    last = max(int(row[0].split(".")[1]) for row in recipe["tensors"] if row[0].startswith("blk."))
    for row in recipe["tensors"]:
        # One layer is enough: all are run alike. The last but one, where there are more than two.
        if unread(recipe, row[0]):
            continue
        if not row[0].startswith("blk.") or row[0].startswith(f"blk.{max(0, last - 1)}."):
            yield row[0], recipe, row[0]


def changes(oracle, recipe):
    """How far each change of a model moves its logits, relative to the largest."""
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        model = folder / "model.gguf"
        recipes.write(recipe, model)
        plain = logits(oracle, model, recipe, folder)
        for what, other, tensor in variants(recipe):
            recipes.write(other, model, other_values=tensor)
            moved = np.abs(logits(oracle, model, recipe, folder) - plain).max() / np.abs(plain).max()
            found.append((float(moved), f"{recipe['name']}: {what}"))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--only", type=lambda names: names.split(","))
    parser.add_argument("--all", action="store_true", help="print every change")
    args = parser.parse_args()
    chosen = [recipe for recipe in all_models() if is_plain(recipe) and (not args.only or recipe["name"] in args.only)]
    with multiprocessing.Pool() as pool:
        results = pool.map(functools.partial(changes, args.oracle), chosen, chunksize=1)
    found = [one for result in results for one in result]
    if args.all:
        print("\n".join(f"{moved:.1e}  {what}" for moved, what in found))
    least = min(found)
    print(f"{len(found)} changes, each moves llama.cpp's logits by at least {least[0]:.1e} of the largest ({least[1]})")
    blind = [f"{what} moves the logits by {moved:.1e}" for moved, what in found if not moved >= LEAST]
    print("\n".join(blind), end="\n" if blind else "")
    return 1 if blind else 0


if __name__ == "__main__":
    sys.exit(main())
