#!/usr/bin/env python3
"""Runs `p64 bench` and llama.cpp in turns and prints their speeds and the ratios. See compare.sh, which makes what it needs.

Each round starts both programs anew on every model, ours first in even rounds; each warms up once and measures once. Figures
are medians over the rounds. What else the machine does meets both; its load is printed with the table.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

FOLDER = pathlib.Path("target/bench")
MODELS = ["smollm2-q4_1", "smollm2-q8_0", "smollm2-q4_0", "smollm2-q4_k_m", "smollm2-f16", "gemma3-q4_k_m"]


def run(command, threads):
    """What a program prints, on as many CPUs as it has threads: the same for both."""
    cpus = sorted(os.sched_getaffinity(0))[:threads]
    pin = lambda: os.sched_setaffinity(0, cpus)  # noqa: E731
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=pin)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def ours(p64, model, sizes, threads):
    text = run([p64, "bench", "--quiet", "--json", *sizes, "-t", str(threads), "-r", "1", f"{FOLDER / model}.p64"], threads)
    found = json.loads(text)
    return {"pp": found["pp_tok_s"], "tg": found["tg_tok_s"], "weights": found["weight_bytes_per_token"], "level": found["level"]}


def theirs(llama, model, sizes, threads):
    lines = run([llama, f"{FOLDER / model}.gguf", *sizes, "-t", str(threads), "-r", "1"], threads).splitlines()
    found = dict(line.split() for line in lines)
    return {name: float(found[name]) for name in ("pp", "tg") if name in found}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--p64", required=True)
    parser.add_argument("--llama", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--only", default="", help="models whose name has this text")
    parser.add_argument("-p", "--prompt", type=int, default=512)
    parser.add_argument("-n", "--tokens", type=int, default=128)
    parser.add_argument("--json", help="where all samples go")
    arguments = parser.parse_args()
    sizes = ["-p", str(arguments.prompt), "-n", str(arguments.tokens)]
    models = [model for model in MODELS if arguments.only in model]
    samples = {}
    loads = []
    for turn in range(arguments.rounds):
        for threads in map(int, arguments.threads.split(",")):
            for model in models:
                measures = [("p64", lambda: ours(arguments.p64, model, sizes, threads))]
                measures.append(("llama.cpp", lambda: theirs(arguments.llama, model, sizes, threads)))
                for name, measure in measures if turn % 2 == 0 else reversed(measures):
                    samples.setdefault((model, threads), {}).setdefault(name, []).append(measure())
                loads.append(os.getloadavg()[0])
        print(f"round {turn + 1} of {arguments.rounds}", file=sys.stderr, flush=True)

    first = next(iter(samples.values()))["p64"][0]
    print(f"{arguments.rounds} rounds, level {first['level']}, load {min(loads):.1f} to {max(loads):.1f}\n")
    pp, tg = f"pp{arguments.prompt}", f"tg{arguments.tokens}"
    print(f"| model | threads | {pp} ours | llama.cpp | ratio | {tg} ours | llama.cpp | ratio | GB/s of weights |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for (model, threads), by_name in samples.items():
        row = [model, str(threads)]
        for test in ("pp", "tg"):
            values = [[one[test] for one in by_name[name] if one.get(test)] for name in ("p64", "llama.cpp")]
            if not all(values):
                row += ["-", "-", "-"]
                continue
            mine, other = map(statistics.median, values)
            row += [f"{mine:.1f}", f"{other:.1f}", f"{mine / other:.2f}"]
        weights = by_name["p64"][0]["weights"]
        rates = [one["tg"] for one in by_name["p64"] if one["tg"]]
        row.append(f"{statistics.median(rates) * weights / 1e9:.1f}" if rates else "-")
        print("| " + " | ".join(row) + " |")
    if arguments.json:
        listed = [{"model": model, "threads": threads, **by_name} for (model, threads), by_name in samples.items()]
        pathlib.Path(arguments.json).write_text(json.dumps(listed, indent=1))


if __name__ == "__main__":
    main()
