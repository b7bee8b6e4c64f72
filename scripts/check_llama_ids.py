#!/usr/bin/env python3
"""Compares the ids that examples/llama-cpp generates from a .p64 with those recorded of llama.cpp on the GGUF.

    check_llama_ids.py P64_LLAMA MODEL.p64 MODEL.gguf RECORDED.json

The recorded results (tests/data/llama, weights not repacked) also hold the prompts and their ids. The program itself compares
with what llama.cpp makes of the GGUF here and now. Exit status 0: all equal.
"""

import json
import subprocess
import sys


def main():
    program, container, gguf, recorded = sys.argv[1:]
    with open(recorded, encoding="utf-8") as stream:
        cases = json.load(stream)["cases"]
    prompts = [case["prompt"] for case in cases]
    # No prompt of the file begins with a dash.
    done = subprocess.run([program, container, "-g", gguf, *prompts], stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines()
    wanted = [f"{' '.join(map(str, case['prompt_ids']))} -> {' '.join(map(str, case['gen_ids']))}" for case in cases]
    for number, (line, want) in enumerate(zip(lines, wanted)):
        if line != want:
            print(f"prompt {number}: {line}\nrecorded: {want}", file=sys.stderr)
    equal = sum(line == want for line, want in zip(lines, wanted))
    ids = sum(len(case["gen_ids"]) for case in cases)
    print(f"{container}: {equal} of {len(cases)} prompts, {ids} ids: equal to the recorded ones", flush=True)
    return 0 if done.returncode == 0 and len(lines) == len(cases) == equal else 1


if __name__ == "__main__":
    sys.exit(main())
