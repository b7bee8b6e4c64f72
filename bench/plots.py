#!/usr/bin/env python3
"""Draws what kernels.py and compare.py measured, as two SVG files: GB/s of weights by type under the roof of the memory, and the ratio
to llama.cpp by model. See plots.sh.
"""

import argparse
import html
import json
import math
import pathlib
import statistics

WIDTH, LEFT, RIGHT, ROW, TOP = 860, 150, 30, 22, 92
# One style for a light and a dark page: what shows an SVG file tells it which it is.
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-size: 16px; font-weight: 600 }
.note { fill: #57606a; font-size: 12px }
.grid { stroke: #d0d7de } .band { stroke: #8c959f; stroke-width: 2 }
.roof { stroke: #9a6700; stroke-width: 2; stroke-dasharray: 6 4 } .roof-text { fill: #9a6700 }
.a { fill: #0969da; stroke: #0969da } .b { fill: #cf222e; stroke: #cf222e }
.hollow { fill: #fff }
.page { fill: #fff }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .note { fill: #9198a1 } .grid { stroke: #30363d } .band { stroke: #6e7681 }
.roof { stroke: #d29922 } .roof-text { fill: #d29922 }
.a { fill: #58a6ff; stroke: #58a6ff } .b { fill: #ff7b72; stroke: #ff7b72 } .hollow { fill: #0d1117 } .page { fill: #0d1117 }
}
"""


class Plot:
    """Rows with a name each, one horizontal axis from 0."""

    def __init__(self, title, note, axis, rows, largest):
        self.step = next(step for step in (0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100) if largest / step <= 10)
        self.end = math.ceil(largest * 1.02 / self.step) * self.step
        self.height = TOP + ROW * len(rows) + 58
        self.parts = []
        self.text(LEFT, 24, title, "title")
        self.text(LEFT, 44, note, "note")
        bottom = TOP + ROW * len(rows)
        digits = 0 if self.step >= 1 else 2 if self.step == 0.25 else 1
        for index in range(round(self.end / self.step) + 1):
            x = self.x(index * self.step)
            self.line(x, TOP - 6, x, bottom, "grid")
            self.text(x, bottom + 18, f"{index * self.step:.{digits}f}", anchor="middle")
        self.text((LEFT + WIDTH - RIGHT) / 2, bottom + 40, axis, anchor="middle")
        for index, row in enumerate(rows):
            self.text(LEFT - 12, self.y(index) + 4, row, anchor="end")

    def x(self, value):
        return LEFT + (WIDTH - RIGHT - LEFT) * value / self.end

    def y(self, row):
        return TOP + ROW * (row + 0.5)

    def text(self, x, y, text, kind="", anchor="start"):
        kind = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{html.escape(text)}</text>')

    def line(self, x1, y1, x2, y2, kind):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')

    def mark(self, x, y, kind, square=False):
        if square:
            self.parts.append(f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" stroke-width="2" class="{kind}"/>')
        else:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" stroke-width="2" class="{kind}"/>')

    def legend(self, entries):
        x = LEFT + 6
        for name, kind, square in entries:
            self.mark(x, 64, kind, square)
            self.text(x + 12, 68, name)
            x += 40 + 7.2 * len(name)

    def roof(self, value, name):
        x, bottom = self.x(value), self.height - 58
        self.line(x, TOP - 6, x, bottom, "roof")
        self.text(x - 6, TOP - 10, name, "roof-text", "end")

    def write(self, path):
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" height="{self.height}">'
        page = f'<rect width="{WIDTH}" height="{self.height}" class="page"/>'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([head, f"<style>{STYLE}</style>", page, *self.parts, "</svg>", ""]))
        print(f"{path}: {path.stat().st_size} bytes")


def kernels(report, shape, threads, path):
    """The best of our levels and the better of ggml's buffers, type by type."""
    ours, theirs = {}, {}
    for one in report["measured"]:
        if (one["rows"], one["cols"], one["threads"]) == (*shape, threads):
            best = theirs if one["code"] in ("cpu", "CPU_REPACK") else ours
            best[one["type"]] = max(best.get(one["type"], 0), statistics.median(one["gb_s"]))
    roof = statistics.median(report["bandwidth_gb_s"][str(threads)])
    # Rows side by side hold the blocks of the stock type.
    theirs |= {kind: theirs[kind.removesuffix("_R16")] for kind in ours if kind.removesuffix("_R16") in theirs}
    rows = sorted(ours, key=lambda kind: -ours[kind])
    note = f"{shape[0]}x{shape[1]}, weights from memory, medians; load {report['load'][0]:.1f} to {report['load'][1]:.1f}"
    title = f"One product with one position, {threads} thread{'s' * (threads > 1)}"
    plot = Plot(title, note, "GB/s of weights", rows, max(roof, *ours.values(), *theirs.values()))
    for index, kind in enumerate(rows):
        y = plot.y(index)
        if kind in theirs:
            plot.line(plot.x(ours[kind]), y, plot.x(theirs[kind]), y, "band")
            plot.mark(plot.x(theirs[kind]), y, "b hollow")
        plot.mark(plot.x(ours[kind]), y, "a")
    plot.roof(roof, f"the memory is read at {roof:.1f}")
    plot.legend([("P64, best level", "a", False), ("ggml, repacked where it can", "b hollow", False)])
    plot.write(path)


def models(report, path):
    """Our tokens a second over llama.cpp's: prompt and generation, by threads."""
    names = list(dict.fromkeys(one["model"] for one in report["samples"]))
    threads = sorted({one["threads"] for one in report["samples"]})
    ratios = {}
    for one in report["samples"]:
        for test in ("pp", "tg"):
            values = [[sample[test] for sample in one[name] if sample.get(test)] for name in ("p64", "llama.cpp")]
            if all(values):
                mine, other = map(statistics.median, values)
                ratios[one["model"], test, one["threads"]] = mine / other
    depth = f" behind {report['depth']} tokens" if report["depth"] else ""
    note = f"medians of rounds in turns ({report['rounds']}), layout {report['layout']}, our cache in {report['kv']}, level {report['level']}; load "
    note += f"{report['load'][0]:.1f} to {report['load'][1]:.1f}"
    title = f"Speed beside llama.cpp{depth}"
    plot = Plot(title, note, "tokens a second of P64 over llama.cpp's; right of 1 P64 has more", names, max([1, *ratios.values()]))
    plot.line(plot.x(1), TOP - 6, plot.x(1), TOP + ROW * len(names), "band")
    entries = []
    for test, kind, square, size in (("pp", "a", True, report["prompt"]), ("tg", "b", False, report["tokens"])):
        for count in threads:
            shown = kind if count == threads[0] else f"{kind} hollow"
            entries.append((f"{test}{size}, {count} thread{'s' * (count > 1)}", shown, square))
            for index, name in enumerate(names):
                if (name, test, count) in ratios:
                    plot.mark(plot.x(ratios[name, test, count]), plot.y(index), shown, square)
    plot.legend(entries)
    plot.write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=pathlib.Path, help="JSON of kernels.py")
    parser.add_argument("--models", type=pathlib.Path, help="JSON of compare.py")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/plots"))
    arguments = parser.parse_args()
    if arguments.kernels:
        report = json.loads(arguments.kernels.read_text())
        kernels(report, (4096, 4096), min(map(int, report["bandwidth_gb_s"])), arguments.out / "kernels.svg")
    if arguments.models:
        models(json.loads(arguments.models.read_text()), arguments.out / "models.svg")


if __name__ == "__main__":
    main()
