#!/usr/bin/env python3
"""Shows that the goldens notice: changes one thing of a model at a time, and asks llama.cpp how far its logits move.

    sensitivity.py --oracle PROGRAM [--only NAME,...] [--all]

Every number among the keys is changed a little, and every kind of tensor gets other values in one layer. What moves the
logits by less than LEAST of the largest could be wrong in P64 without its test failing, and fails here; what llama.cpp
does not read is listed in UNREAD.
"""

import argparse
import copy
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

# (key or part of a model's name, key): read by llama.cpp only in other cases, or not at all.
UNREAD = {
    ("", "context_length"): "a limit, not a constant, where nothing is scaled by it",
    ("", "use_parallel_residual"): "a missing ffn_norm says it",
    ("phi3-window", "attention.sliding_window"): "ignored for this family",
}


def changed_value(key, value):
    if key.endswith(("sliding_window", "expert_used_count")):
        return value + 1
    if key.endswith("original_context_length"):
        return value // 2
    if key.endswith("dimension_count"):
        return value - 2
    return value * (2.0 if key.endswith("epsilon") else 1.02)


def variants(recipe):
    """Names of changes, and the changed recipes."""
    for row, (key, kind, value) in enumerate(recipe["keys"]):
        suffix = key.split(".", 1)[1]
        unread = any(suffix == what and name in recipe["name"] for name, what in UNREAD)
        if kind in ("u32", "f32") and not suffix.endswith(SHAPES) and not unread:
            if recipe["arch"] == "llama" and suffix == "rope.dimension_count":
                continue  # llama.cpp refuses another
            other = copy.deepcopy(recipe)
            other["keys"][row][2] = changed_value(suffix, value)
            yield suffix, other, None
    last = max(int(row[0].split(".")[1]) for row in recipe["tensors"] if row[0].startswith("blk."))
    for row in recipe["tensors"]:
        # One layer is enough: all are run alike. The last but one, where there are more than two.
        if not row[0].startswith("blk.") or row[0].startswith(f"blk.{max(0, last - 1)}."):
            yield row[0], recipe, row[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--only", type=lambda names: names.split(","))
    parser.add_argument("--all", action="store_true", help="print every change")
    args = parser.parse_args()
    blind, count, least = [], 0, (np.inf, "")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        model = folder / "model.gguf"
        for recipe in all_models():
            if not is_plain(recipe) or args.only and recipe["name"] not in args.only:
                continue
            recipes.write(recipe, model)
            plain = logits(args.oracle, model, recipe, folder)
            for what, other, tensor in variants(recipe):
                recipes.write(other, model, other_values=tensor)
                moved = float(np.abs(logits(args.oracle, model, recipe, folder) - plain).max() / np.abs(plain).max())
                count += 1
                least = min(least, (moved, f"{recipe['name']}: {what}"))
                if args.all:
                    print(f"{recipe['name']:40} {what:44} {moved:.1e}")
                if not moved >= LEAST:
                    blind.append(f"{recipe['name']}: {what} moves the logits by {moved:.1e}")
    print(f"{count} changes, each moves llama.cpp's logits by at least {least[0]:.1e} of the largest ({least[1]})")
    print("\n".join(blind), end="\n" if blind else "")
    return 1 if blind else 0


if __name__ == "__main__":
    sys.exit(main())
