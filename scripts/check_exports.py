"""llama.cpp loads and runs what `p64 export` makes of containers whose payloads were replaced.

    python3 scripts/check_exports.py P64 ORACLE

P64 is the program, ORACLE the one of scripts/conformance. Each model is converted, exported, and run by p64 from the
container; llama.cpp reads the same tokens from the exported GGUF and has to choose the same next token at each step, unless
its own first two are a near-tie. Needs about 1 GB below target/.
"""

import array
import json
import os
import subprocess
import sys
import tempfile

# Margin below which two engines may choose differently; the tests against llama.cpp's goldens have the same.
NEAR_TIE = 0.4
PROMPT = "The capital of France is"
STEPS = 16

# Not the ternary Gemma: what it writes is noise, in which the rounding of activations decides.
CASES = [
    ("smollm2-135m-q4_1", ["--profile", "q8_0"]),
    ("smollm2-135m-q4_1", ["--profile", "ffn-q4_0"]),
    ("smollm2-135m-q4_1", ["--profile", "ffn-ternary"]),
    ("gemma3-270m-q4_k_m", ["--layout", "soa"]),
    ("gemma3-270m-q4_k_m", ["--layout", "f16"]),
    ("gemma3-270m-q4_k_m", ["--profile", "q4_k_s"]),
]


def main():
    p64, oracle = sys.argv[1:3]
    os.makedirs("target", exist_ok=True)
    failed = False
    with tempfile.TemporaryDirectory(dir="target", prefix="check-exports-") as folder:
        container, gguf, out = (os.path.join(folder, name) for name in ["a.p64", "a.gguf", "logits"])
        for model, options in CASES:
            run = lambda *command: subprocess.run(command, check=True, capture_output=True, text=True).stdout
            run(p64, "convert", "--quiet", *options, f"models/{model}.gguf", container)
            report = json.loads(run(p64, "export", "--json", container, gguf))
            assert report["identical"] is None, "this is not the source"
            tokens = json.loads(run(p64, "tokenize", "--json", "--add-special", container, PROMPT))["ids"]
            text = run(p64, "run", container, "-p", PROMPT, "--temp", "0", "-n", str(STEPS), "--ids", "--ignore-eos",
                       "--activations", "f32", "--quiet")
            ids = [int(word) for word in text.split()]
            assert len(ids) == STEPS, text
            read = tokens + ids[:-1]
            at = range(len(tokens), len(read) + 1)
            run(oracle, gguf, "--tokens", ",".join(map(str, read)), "--at", ",".join(map(str, at)), "--out", out)
            logits = array.array("f")
            with open(out, "rb") as file:
                logits.frombytes(file.read())
            width = len(logits) // STEPS
            ties = wrong = 0
            for step, ours in enumerate(ids):
                row = logits[step * width : (step + 1) * width]
                best = max(row)
                if row[ours] < best:
                    ties += best - row[ours] < NEAR_TIE
                    wrong += not best - row[ours] < NEAR_TIE
            verdict = "ok" if wrong == 0 else "FAILED"
            failed |= wrong > 0
            replaced = "; ".join(report["replaced"]) or "types as they are"
            print(f"{model} {' '.join(options):24} {STEPS} steps, {ties} near-ties, {wrong} others: {verdict} ({replaced})", flush=True)
            os.remove(container), os.remove(gguf)
    sys.exit(failed)


if __name__ == "__main__":
    main()
