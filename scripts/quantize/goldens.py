#!/usr/bin/env python3
"""Makes tests/data/quantize/*.json: what llama-quantize does with SmolLM2 in F16, and with the conformance models.

  scripts/quantize/build.sh && PYTHON scripts/quantize/goldens.py FOLDER [errors | types]

PYTHON has the packages gguf and numpy. FOLDER holds the conformance models de-quantised to F32 (`NAME.plain.gguf`), as
`make conformance` leaves them.

rmse.json    type -> tensor -> root of the mean squared error of the file that `llama-quantize --pure` writes
types.json   model -> mix -> type -> the tensors that get it, of those whose type changes; "*" is the type of all others of them
"""

import json
import pathlib
import sys

import common

DATA = common.ROOT / "tests/data/quantize"
# A few of each shape and depth: all of them are compared by compare.py.
SAMPLED = [
    "blk.0.attn_q.weight",
    "blk.0.ffn_down.weight",
    "blk.7.attn_v.weight",
    "blk.14.ffn_gate.weight",
    "blk.21.attn_output.weight",
    "blk.29.attn_k.weight",
    "blk.29.ffn_up.weight",
    "blk.29.ffn_down.weight",
]
CONFORMANCE = [
    "bitnet-sub-norms", "command-r-64-layers-head-norms", "gemma-heads-of-256", "gpt2-tied", "granitemoe-one-shared",
    "llama-grouped-heads", "llama-one-key-head-untied", "mixtral-two-of-five-experts", "phi3-fused",
    "qwen2moe-three-of-seven-one-shared", "qwen3-head-norms",
]  # fmt: skip


def grouped(before: dict[str, str], after: dict[str, str]) -> dict[str, object]:
    changed = {name: kind for name, kind in after.items() if kind != before[name]}
    groups: dict[str, list[str]] = {}
    for name, kind in changed.items():
        groups.setdefault(kind, []).append(name)
    most = max(groups, key=lambda kind: len(groups[kind]), default="")
    rest = {kind: sorted(names) for kind, names in groups.items() if kind != most}
    return {"*": most, **rest}


def make_errors(source: pathlib.Path) -> None:
    original = {name: data for name, data in common.matrices(source).items() if name in SAMPLED}
    errors = {}
    for name, file_type in common.TYPES.items():
        target = common.OUT / "golden.gguf"
        common.quantize(source, target, file_type, "--pure", "--token-embedding-type", "f16")
        kinds = {tensor.name: common.type_name(tensor) for tensor in common.GGUFReader(target).tensors}
        found = common.rmse(original, target)
        # Tensors whose rows are no whole blocks of the type got another one: they are that one's to compare.
        errors[name] = {tensor: found[tensor] for tensor in SAMPLED if kinds[tensor] == name}
        target.unlink()
    (DATA / "rmse.json").write_text(json.dumps(errors, indent=1) + "\n")


def make_types(models: dict[str, pathlib.Path]) -> None:
    types = {}
    for name, model in models.items():
        before = {tensor.name: common.type_name(tensor) for tensor in common.GGUFReader(model).tensors}
        mixes = {mix: common.quantize(model, None, mix.upper()) for mix in common.MIXES}
        types[name] = {mix: grouped(before, common.planned(printed)) for mix, printed in mixes.items()}
    (DATA / "types.json").write_text(json.dumps(types, indent=0, sort_keys=True) + "\n")


def main() -> None:
    folder, *what = sys.argv[1:]
    DATA.mkdir(parents=True, exist_ok=True)
    source = common.OUT / "smollm2-f16.gguf"
    if not source.exists():
        common.make_f16(source)
    if what in ([], ["errors"]):
        make_errors(source)
    if what in ([], ["types"]):
        models = {name: pathlib.Path(folder) / f"{name}.plain.gguf" for name in CONFORMANCE}
        make_types({"smollm2": source} | models)


if __name__ == "__main__":
    main()
