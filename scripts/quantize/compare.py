#!/usr/bin/env python3
"""Compares our quantisers with llama-quantize on SmolLM2 in F16, and prints the table of whole models in docs/benchmarks.md.

  scripts/quantize/compare.sh [--windows N] [--context N] [--only PROFILE,PROFILE]

For each mix both tools make a file from the
same F16 source on one thread. Compared are the errors of every tensor that both gave the same type, the time, and the
perplexity of the two files, both by `p64 perplexity`, on the first windows of tests/data/perplexity/text.txt.
"""

import argparse
import json
import subprocess
import time

import common
import numpy as np

TEXT = common.ROOT / "tests/data/perplexity/text.txt"


def perplexity(binary: str, model, options) -> tuple[float, float]:
    command = [binary, "perplexity", "--json", "-f", str(TEXT), "-c", str(options.context), "--chunks", str(options.windows), str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return found["perplexity"], found["error"]


def convert(binary: str, source, to, profile: str) -> float:
    began = time.monotonic()
    subprocess.run([binary, "convert", "--threads", "1", "--profile", profile, str(source), str(to)], check=True, capture_output=True)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--only", help="profiles, with commas between them; all unless given")
    parser.add_argument("binary", nargs="?", default="p64")
    options = parser.parse_args()
    source = common.OUT / "smollm2-f16.gguf"
    if not source.exists():
        common.make_f16(source)
    original = common.matrices(source)
    everything = np.sqrt(np.mean(np.concatenate([data.ravel() for data in original.values()]).astype(np.float64) ** 2))
    base, off = perplexity(options.binary, source, options)
    print(f"F16 source: perplexity {base:.3f} +- {off:.3f}, root mean square of all matrices {everything:.4e}\n")
    print("| profile | ours: RMSE | theirs | largest ratio of a tensor | ours: perplexity | theirs | ours: time | theirs |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    mixes = [mix for mix in common.MIXES if mix not in ("f16", "bf16", "f32")]
    profiles = options.only.split(",") if options.only else [*mixes, "ffn-q4_0", "ffn-ternary"]
    for profile in profiles:
        container, exported, theirs = (common.OUT / f"compare{end}" for end in (".p64", ".ours.gguf", ".theirs.gguf"))
        seconds = convert(options.binary, source, container, profile)
        mine = perplexity(options.binary, container, options)[0]
        row = [profile, "", "", "", f"{mine:.3f}", "", f"{seconds:.2f} s", ""]
        if profile in mixes:
            began = time.monotonic()
            common.quantize(source, theirs, profile.upper())
            row[7] = f"{time.monotonic() - began:.2f} s"
            row[5] = f"{perplexity(options.binary, theirs, options)[0]:.3f}"
            subprocess.run([options.binary, "export", str(container), str(exported)], check=True, capture_output=True)
            kinds = [{t.name: common.type_name(t) for t in common.GGUFReader(path).tensors} for path in (exported, theirs)]
            ours, reference = (common.rmse(original, path) for path in (exported, theirs))
            sizes = {name: data.size for name, data in original.items()}
            total = lambda errors: np.sqrt(sum(errors[n] ** 2 * sizes[n] for n in sizes) / sum(sizes.values()))  # noqa: E731
            row[1:3] = [f"{total(ours):.3e}", f"{total(reference):.3e}"]
            differ = [name for name in sizes if kinds[0][name] != kinds[1][name]]
            if differ:
                raise SystemExit(f"{profile}: types differ: {differ}")
            row[3] = f"{max(ours[name] / reference[name] for name in sizes if reference[name] > 0):.3f}"
            for path in (exported, theirs):
                path.unlink()
        print("| " + " | ".join(row) + " |", flush=True)
        container.unlink()


if __name__ == "__main__":
    main()
