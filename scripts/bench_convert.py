"""Times conversions, copies and llama-quantize in turns and prints a table. See bench_convert.sh."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TYPES = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl"]
# Rows of whole 256, which SmolLM2's of 576 are not.
K_TYPES = ["q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs", "tq1_0", "tq2_0"]
THREADS = os.cpu_count() or 1


def run(command):
    """Seconds and peak kilobytes of a process; its output is shown when it fails.

    `time` starts it, because a process inherits the peak of the one that it is forked from, which must not be this one's."""
    with tempfile.NamedTemporaryFile("r") as peak:
        start = time.monotonic()
        done = subprocess.run(["/usr/bin/time", "-q", "-f", "%M", "-o", peak.name, *command], capture_output=True, text=True)
        seconds = time.monotonic() - start
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return seconds, int(peak.read())


class Copy:
    """`cp`, then `fsync`: what any program must do at least that leaves the bytes on the disk."""

    name = "cp and fsync"

    def __init__(self, source, out):
        self.source, self.out = source, out

    def time(self):
        start = time.monotonic()
        _, peak = run(["cp", "--reflink=never", self.source, self.out])
        with open(self.out, "rb+") as file:
            os.fsync(file.fileno())
        return time.monotonic() - start, peak


class Tool:
    def __init__(self, name, source, out, command):
        self.name, self.source, self.out, self.command = name, source, out, command

    def time(self):
        return run(self.command)


def size(path):
    if os.path.isdir(path):
        return sum(size(entry.path) for entry in os.scandir(path))
    return os.path.getsize(path)


def measure(title, tools, rounds):
    print(f"\n| {title} | time | GB/s of source | of `cp` | peak memory | result |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    runs = {tool.name: [] for tool in tools}
    results = {}
    for _ in range(rounds):
        for tool in tools:
            if os.path.isdir(tool.out):
                shutil.rmtree(tool.out)
            elif os.path.exists(tool.out):
                os.remove(tool.out)
            # What earlier runs left unwritten is not this one's to wait for.
            os.sync()
            runs[tool.name].append(tool.time())
            results[tool.name] = size(tool.out)
    copy = statistics.median(seconds for seconds, _ in runs[Copy.name]) if Copy.name in runs else None
    for tool in tools:
        seconds = statistics.median(seconds for seconds, _ in runs[tool.name])
        peak = max(peak for _, peak in runs[tool.name])
        speed = size(tool.source) / seconds / 1e9
        ratio = f"{copy / seconds:.2f}" if copy else ""
        row = f"{tool.name} | {seconds:.3f} s | {speed:.2f} | {ratio} | {peak / 1000:.1f} MB | {results[tool.name] / 1e6:.1f} MB"
        print(f"| {row} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--p64", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="tables whose title has this text")
    arguments = parser.parse_args()
    p64, rounds = arguments.p64, arguments.rounds
    llama = os.environ.get("LLAMA_QUANTIZE")
    os.makedirs("target", exist_ok=True)
    with tempfile.TemporaryDirectory(dir="target", prefix="bench-convert-") as folder:
        at = lambda name: os.path.join(folder, name)

        def convert(name, source, *options):
            command = [p64, "convert", "--quiet", *options, source, at("out.p64")]
            return Tool(name, source, at("out.p64"), command)

        def f16(model):
            """The model with its matrices in F16, as GGUF and as safetensors."""
            subprocess.run([p64, "convert", "--quiet", "--layout", "f16", f"models/{model}.gguf", at("f16.p64")], check=True)
            subprocess.run([p64, "export", "--quiet", at("f16.p64"), at(f"{model}.gguf")], check=True)
            command = [p64, "export", "--quiet", "--to", "safetensors", "--dequantize", "f16", at("f16.p64"), at(f"{model}.safetensors")]
            made = subprocess.run(command, capture_output=True, text=True)
            if made.returncode != 0:
                print(f"no safetensors: {made.stderr.strip()}", file=sys.stderr)
            os.remove(at("f16.p64"))

        def quantize(source, types):
            tools = [Copy(source, at("copy"))]
            for name in types:
                tools.append(convert(f"`p64 convert --rule '*={name}'`", source, "--rule", f"*={name}"))
                if llama:
                    command = [llama, "--pure", source, at("llama.gguf"), name, str(THREADS)]
                    tools.append(Tool(f"`llama-quantize --pure` {name}", source, at("llama.gguf"), command))
            return tools

        tables = []
        for model in ["smollm2-135m-q4_1", "gemma3-270m-q4_k_m"]:
            f16(model)
            source, large, tensors = f"models/{model}.gguf", at(f"{model}.gguf"), at(f"{model}.safetensors")
            layouts = [Copy(source, at("copy")), convert("verbatim", source), convert("`--layout f16`", source, "--layout", "f16")]
            if "q4_k" in model:
                layouts.append(convert("`--layout soa`", source, "--layout", "soa"))
            tables.append((f"{model}, {size(source) / 1e6:.0f} MB", layouts))
            tables.append((f"{model} in F16, {size(large) / 1e6:.0f} MB", [Copy(large, at("copy")), convert("verbatim", large)]))
            if os.path.exists(tensors):
                source = tensors
                tables.append((f"{model} in safetensors, {size(source) / 1e6:.0f} MB", [Copy(source, at("copy")), convert("raw", source, "--raw")]))
        small = at("smollm2-135m-q4_1.gguf")
        tables.append((f"SmolLM2-135M from F16, {size(small) / 1e6:.0f} MB", quantize(small, TYPES)))
        profiles = [convert(f"`--profile {name}`", small, "--profile", name) for name in ["q4_k_m", "ffn-q4_0", "ffn-ternary"]]
        tables.append(("SmolLM2-135M from F16, profiles", [Copy(small, at("copy")), *profiles]))
        large = at("gemma3-270m-q4_k_m.gguf")
        tables.append((f"Gemma-3-270M from F16, {size(large) / 1e6:.0f} MB", quantize(large, K_TYPES)))
        for title, tools in tables:
            if arguments.only is None or arguments.only in title:
                # The page cache is warm for all of them.
                for tool in tools[:1]:
                    with open(tool.source, "rb") as file:
                        while file.read(1 << 24):
                            pass
                measure(title, tools, rounds)


if __name__ == "__main__":
    main()
