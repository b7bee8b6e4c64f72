#!/usr/bin/env python3
"""Runs our kernels and ggml's in turns, type by type, and prints GB/s of weights. See kernels.sh, which makes what it needs.

Each round starts both programs for every type and number of threads, ours first in even rounds. Figures are medians over the
passes of all rounds. "of memory's" is the part of the speed at which our program read memory, measured at the start of each
run. The ratio is our best level to ggml's better buffer, of the same blocks where ours have rows side by side; "long rows" is the rate of 4096x14336 to that of 14336x4096.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

OURS = {"scalar", "avx2", "avx512"}
SHAPES = [(4096, 4096), (14336, 4096), (4096, 14336)]


def run(command, threads):
    """The objects that a program prints, on as many CPUs as it has threads: the same for both."""
    cpus = sorted(os.sched_getaffinity(0))[:threads]
    pin = lambda: os.sched_setaffinity(0, cpus)  # noqa: E731
    done = subprocess.run([*command, "--threads", str(threads)], capture_output=True, text=True, preexec_fn=pin)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure(arguments):
    rates = {}
    memory = {}
    loads = []
    ours = [arguments.p64, "--lines"] + (["--levels", arguments.levels] if arguments.levels else [])
    commands = [ours, [arguments.ggml]]
    listed = arguments.types or subprocess.run([arguments.p64, "--list"], capture_output=True, text=True, check=True).stdout
    types = listed.replace(",", " ").split()
    for turn in range(arguments.rounds):
        for threads in map(int, arguments.threads.split(",")):
            for kind in types:
                for command in commands if turn % 2 == 0 else reversed(commands):
                    if command is commands[1] and kind.upper().endswith("_R16"):
                        continue
                    for found in run([*command, "--types", kind, "--passes", str(arguments.passes)], threads):
                        if "bandwidth_gb_s" in found:
                            memory.setdefault(threads, []).append(found["bandwidth_gb_s"])
                        else:
                            place = (found["type"].upper(), threads, found["rows"], found["cols"], found["code"])
                            rates.setdefault(place, []).extend(found["gb_s"])
                loads.append(os.getloadavg()[0])
        print(f"round {turn + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
    names = ("type", "threads", "rows", "cols", "code")
    measured = [{**dict(zip(names, place)), "gb_s": samples} for place, samples in rates.items()]
    return {"rounds": arguments.rounds, "load": [min(loads), max(loads)], "bandwidth_gb_s": memory, "measured": measured}


def table(report):
    memory = {threads: statistics.median(rates) for threads, rates in report["bandwidth_gb_s"].items()}
    low, high = report["load"]
    speeds = ", ".join(f"{rate:.1f} GB/s on {threads}" for threads, rate in memory.items())
    print(f"{report['rounds']} rounds, load {low:.1f} to {high:.1f}; read bandwidth by threads: {speeds}\n")
    medians = {}
    for one in report["measured"]:
        medians.setdefault((one["type"], one["threads"]), {})[one["rows"], one["cols"], one["code"]] = statistics.median(one["gb_s"])
    codes = [code for code in ("scalar", "avx2", "avx512") if any(code == one["code"] for one in report["measured"])]
    titles = " | ".join(codes)
    print(f"| type | threads | shape | {titles} | of memory's | ggml | repacked | ratio | long rows ours | ggml |")
    print("|---|---:|---|" + "---:|" * (len(codes) + 6))
    for (kind, threads), found in medians.items():
        # ggml's figures stand with the stock type.
        stock = medians.get((kind.removesuffix("_R16"), threads), {})
        found = {**{place: rate for place, rate in stock.items() if place[2] not in OURS}, **found}

        def best(shape, ours):
            values = [rate for (rows, cols, code), rate in found.items() if (rows, cols) == shape and (code in OURS) == ours]
            return max(values, default=None)

        def cell(rate):
            return f"{rate:.1f}" if rate else "-"

        for rows, cols in SHAPES:
            shape = (rows, cols)
            mine, other = best(shape, True), best(shape, False)
            row = [kind, str(threads), f"{rows}x{cols}", *(cell(found.get((*shape, code))) for code in codes)]
            row.append(f"{mine / memory[threads]:.0%}" if mine else "-")
            row += [cell(found.get((*shape, "cpu"))), cell(found.get((*shape, "CPU_REPACK")))]
            row.append(f"{mine / other:.2f}" if mine and other else "-")
            for ours in (True, False):
                pair = (best((4096, 14336), ours), best((14336, 4096), ours))
                row.append(f"{pair[0] / pair[1]:.2f}" if shape == (4096, 14336) and all(pair) else "")
            print("| " + " | ".join(row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--p64", required=True, help="the benchmark tests/benches/kernels.rs, built")
    parser.add_argument("--ggml", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--types", help="as q4_0,q8_0; all that we compute with without it")
    parser.add_argument("--levels", help="of ours, as scalar,avx2; all without it")
    parser.add_argument("--json", help="where all samples go")
    arguments = parser.parse_args()
    report = measure(arguments)
    table(report)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
