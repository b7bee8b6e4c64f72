#!/usr/bin/env python3
"""Runs `p64 bench` and llama.cpp in turns and prints their speeds, peak memories and the ratios. See compare.sh, which makes what it
needs.

Each round starts both programs anew on every model, ours first in even rounds; each warms up once and measures once. Figures
are medians over the rounds. What else the machine does meets both; its load is printed with the table, and so is the speed at
which it reads memory, measured once a round. The peak memory of a program is what it mapped and allocated at most, the same
context for both.
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


def ours(arguments, path, sizes, threads):
    # The buffer on which bandwidth is measured would be the peak of the memory.
    fixed = ["bench", "--quiet", "--json", "--no-bandwidth", "-r", "1", "--kv", arguments.kv]
    found = json.loads(run([arguments.p64, *fixed, *sizes, "-t", str(threads), path], threads))
    names = {"pp": "pp_tok_s", "tg": "tg_tok_s", "weights": "weight_bytes_per_token", "level": "level", "peak": "peak_memory"}
    return {name: found[field] for name, field in names.items()}


def theirs(llama, path, sizes, threads):
    lines = run([llama, path, *sizes, "-t", str(threads), "-r", "1"], threads).splitlines()
    found = {name: float(value) for name, value in map(str.split, lines)}
    return {"peak": found.pop("rss") * 1024, **found}


def bandwidth(p64, threads):
    """GB/s at which the machine is read now."""
    return json.loads(run([p64, "bench", "--bandwidth", "--json", "-t", str(threads)], threads))["median_gb_s"]


def measure(arguments, models, sizes):
    samples = {}
    loads = []
    memory = {}
    suffix = "" if arguments.layout == "verbatim" else f".{arguments.layout}"
    for turn in range(arguments.rounds):
        for threads in map(int, arguments.threads.split(",")):
            memory.setdefault(threads, []).append(bandwidth(arguments.p64, threads))
            for model in models:
                measures = [
                    ("p64", lambda: ours(arguments, f"{FOLDER / model}{suffix}.p64", sizes, threads)),
                    ("llama.cpp", lambda: theirs(arguments.llama, f"{FOLDER / model}.gguf", sizes, threads)),
                ]
                for name, one in measures if turn % 2 == 0 else reversed(measures):
                    samples.setdefault((model, threads), {}).setdefault(name, []).append(one())
                loads.append(os.getloadavg()[0])
        print(f"round {turn + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
    listed = [{"model": model, "threads": threads, **by_name} for (model, threads), by_name in samples.items()]
    return {
        "rounds": arguments.rounds,
        "prompt": arguments.prompt,
        "tokens": arguments.tokens,
        "depth": arguments.depth,
        "layout": arguments.layout,
        "kv": arguments.kv,
        "level": listed[0]["p64"][0]["level"],
        "load": [min(loads), max(loads)],
        "bandwidth_gb_s": memory,
        "samples": listed,
    }


def median(samples, name):
    """Of the rounds; None where that was not measured."""
    values = [one[name] for one in samples if one.get(name)]
    return statistics.median(values) if values else None


def table(report):
    low, high = report["load"]
    memory = {threads: statistics.median(rates) for threads, rates in report["bandwidth_gb_s"].items()}
    speeds = ", ".join(f"{rate:.1f} GB/s on {threads}" for threads, rate in memory.items())
    print(f"{report['rounds']} rounds, layout {report['layout']}, our cache in {report['kv']}, level {report['level']}, load {low:.1f} to {high:.1f}")
    print(f"read bandwidth by threads: {speeds}\n")
    depth = f" @ d{report['depth']}" if report["depth"] else ""
    pp, tg = f"pp{report['prompt']}{depth}", f"tg{report['tokens']}{depth}"
    tests = f"{pp} ours | llama.cpp | ratio | {tg} ours | llama.cpp | ratio | GB/s of weights | of memory's"
    print(f"| model | threads | {tests} | peak memory ours | llama.cpp | ratio |")
    print("|---|" + "---:|" * 12)
    for sample in report["samples"]:
        mine, other = sample["p64"], sample["llama.cpp"]
        row = [sample["model"], str(sample["threads"])]
        pairs = {name: (median(mine, name), median(other, name)) for name in ("pp", "tg", "peak")}
        for name in ("pp", "tg"):
            a, b = pairs[name]
            row += [f"{a:.1f}", f"{b:.1f}", f"{a / b:.2f}"] if a and b else ["-", "-", "-"]
        rate = pairs["tg"][0]
        speed = rate * mine[0]["weights"] / 1e9 if rate else None
        row += [f"{speed:.1f}", f"{speed / memory[sample['threads']]:.0%}"] if speed else ["-", "-"]
        a, b = pairs["peak"]
        row += [f"{a / 1e6:.0f} MB", f"{b / 1e6:.0f} MB", f"{a / b:.2f}"] if a and b else ["-", "-", "-"]
        print("| " + " | ".join(row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--p64", required=True)
    parser.add_argument("--llama", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--only", default="", help="models whose name has this text")
    parser.add_argument("--layout", default="verbatim", help="of our containers: NAME.LAYOUT.p64")
    parser.add_argument("-p", "--prompt", type=int, default=512)
    parser.add_argument("-n", "--tokens", type=int, default=128)
    parser.add_argument("--depth", type=int, default=0, help="tokens that stand in the cache before each test")
    parser.add_argument("--kv", default="f32", help="type of our keys and values; llama.cpp's are f16")
    parser.add_argument("--json", help="where all samples go")
    arguments = parser.parse_args()
    sizes = ["-p", str(arguments.prompt), "-n", str(arguments.tokens)]
    if arguments.depth:
        sizes += ["-d", str(arguments.depth)]
    report = measure(arguments, [model for model in MODELS if arguments.only in model], sizes)
    table(report)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
