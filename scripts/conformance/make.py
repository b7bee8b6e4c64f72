#!/usr/bin/env python3
"""Makes the conformance models' recipes and llama.cpp's logits for them, or checks those that are committed.

    make.py --oracle PROGRAM [--to tests/data/conformance] [--only NAME,...]
    make.py --check recipes           the committed recipes are those that models.py describes, digests included
    make.py --check goldens --oracle PROGRAM

Logits of the reference differ in rounding from one CPU to the next: a committed golden may differ from a new one by up to
NOISE of its largest value, and llama.cpp's own distance from it by SPREAD. Where gelu goes through ggml's table of f16, a
value on the other side of a rounding makes a larger step, so that HALF_GELU_NOISE counts there. Between ggml for SSE2 alone
and for a CPU with all that it knows, the largest differences were 6.7e-6 and 7.4e-5.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import recipe as recipes
from models import FAMILIES, all_models

NOISE = 2e-5
HALF_GELU_NOISE = 2e-4
SPREAD = 0.5
MEASURED = ("own_rms", "caches")


def logits(oracle, model, recipe, folder, more=()):
    out = folder / "logits.f32"
    join = lambda numbers: ",".join(map(str, numbers))
    subprocess.run([oracle, model, "--tokens", join(recipe["prompt"]), "--at", join(recipe["at"]), "--out", out,
                    "--ctx", str(recipe["context"]), *more], check=True)
    return np.fromfile(out, np.float32).reshape(len(recipe["at"]), recipe["vocabulary"]).astype("<f4")


def is_plain(recipe):
    return all(row[1] == "F32" for row in recipe["tensors"])


def noise(recipe):
    return HALF_GELU_NOISE if recipe["arch"].startswith(("gemma", "gpt2")) else NOISE


def rms(found, plain):
    return float(f"{np.sqrt(((found.astype(float) - plain) ** 2).mean()):.3g}")


def make(recipe, folder, oracle=None):
    """Completes the recipe with the model's digest and, given an oracle, with what it says. Answers with the plain logits."""
    model = folder / f"{recipe['name']}.gguf"
    recipes.write(recipe, model)
    recipe["sha256"] = recipes.digest(model)
    plain = None
    if oracle:
        source = model
        if not is_plain(recipe):
            source = folder / "plain.gguf"
            recipes.write(recipe, source, plain=True)
        plain = logits(oracle, source, recipe, folder)
        assert np.isfinite(plain).all(), f"{recipe['name']}: not all logits are finite"
        own = plain if is_plain(recipe) else logits(oracle, model, recipe, folder)
        recipe["own_rms"] = rms(own, plain)
        for cache in recipe.get("caches", ()):
            recipe["caches"][cache] = rms(logits(oracle, model, recipe, folder, recipes.CACHES[cache]), plain)
    model.unlink()
    return plain


def family_list(models):
    rows = []
    for name, text, archs in FAMILIES:
        rows.append({"family": name, "text": text, "arch": archs,
                     "models": [recipe["name"] for recipe in models if recipe["family"] == name]})
    return "[\n" + ",\n".join("  " + json.dumps(row) for row in rows) + "\n]\n"


def compare(recipe, plain, to):
    """What of the committed files is not what was made."""
    path, wrong = to / f"{recipe['name']}.json", []
    if not path.exists():
        return [f"{path} is missing"]
    committed = json.loads(path.read_text())
    for field, value in recipe.items():
        if field not in MEASURED and json.loads(json.dumps(value)) != committed.get(field):
            wrong.append(f"{recipe['name']}: {field} differs")
    if plain is not None:
        golden = np.fromfile(path.with_suffix(".f32"), "<f4").reshape(plain.shape)
        off = np.abs(golden - plain).max() / np.abs(plain).max()
        if not off <= noise(recipe):
            wrong.append(f"{recipe['name']}: logits differ by {off:.1e} of the largest")
        pairs = [("own", committed["own_rms"], recipe["own_rms"])]
        pairs += [(cache, committed["caches"][cache], now) for cache, now in recipe.get("caches", {}).items()]
        for what, then, now in pairs:
            if not abs(then - now) <= SPREAD * max(then, now):
                wrong.append(f"{recipe['name']}: llama.cpp's distance ({what}) was {then}, is {now}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--oracle", help="the program that oracle.cpp makes")
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path("tests/data/conformance"))
    parser.add_argument("--only", type=lambda names: names.split(","), help="these models")
    parser.add_argument("--check", choices=["recipes", "goldens"])
    parser.add_argument("--keep", type=pathlib.Path, help="write the models into this folder, and nothing else")
    args = parser.parse_args()

    models = all_models()
    chosen = [recipe for recipe in models if not args.only or recipe["name"] in args.only]
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
        for recipe in chosen:
            recipes.write(recipe, args.keep / f"{recipe['name']}.gguf")
            recipes.write(recipe, args.keep / f"{recipe['name']}.plain.gguf", plain=True)
        return 0
    if args.check != "recipes" and not args.oracle:
        parser.error("logits need --oracle")
    args.to.mkdir(parents=True, exist_ok=True)
    wrong = []
    with tempfile.TemporaryDirectory() as temporary:
        for recipe in chosen:
            plain = make(recipe, pathlib.Path(temporary), None if args.check == "recipes" else args.oracle)
            if args.check:
                wrong += compare(recipe, plain, args.to)
            else:
                recipes.save(recipe, args.to / f"{recipe['name']}.json")
                plain.tofile(args.to / f"{recipe['name']}.f32")
                print(f"{recipe['name']:40} largest {np.abs(plain).max():8.3f}  own distance {recipe['own_rms']:.2e}")
    listed = family_list(models)
    if args.check:
        names = {recipe["name"] for recipe in models} | {"families"}
        wrong += [f"{path.name}: no model of that name" for path in args.to.glob("*.json") if path.stem not in names]
        if (args.to / "families.json").read_text() != listed:
            wrong.append("families.json differs")
        print(f"{len(chosen)} models compared: {len(wrong)} differences")
        print("\n".join(wrong), end="\n" if wrong else "")
    else:
        (args.to / "families.json").write_text(listed)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
