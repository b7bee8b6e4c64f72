#!/usr/bin/env python3
"""Opens pages of `p64 stats --html` in a browser without a screen and uses them.

usage: check.py [--screenshots DIR] PAGE.html...

Of each page, at the width of a desk and of a telephone: the script runs to its end, the console holds no error, every
figure is there with a size and colours, tips, zoom, sorting, filter and themes work, and nothing of a name has run. Needs
Chromium (scripts/setup_browser.sh) and nothing but Python's own library.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

HARNESS = Path(__file__).with_name("harness.html")
WIDTHS = [1240, 400]
# What every page of a model with layers has.
FIGURES = ["strip", "axis", "rows", "columns", "bar", "grid-types", "grid-std", "grid-peaks", "panel", "scatter", "spark"]
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--disable-dev-shm-usage",
    "--enable-logging=stderr", "--log-level=0",
]
MAX_BYTES = 3_000_000


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    sys.exit("no Chromium is installed: run scripts/setup_browser.sh")


def run(profile, *arguments):
    command = [browser(), *FLAGS, f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def console_errors(log):
    """Lines that the page's console or its policy wrote."""
    lines = [line for line in log.splitlines() if "CONSOLE" in line]
    return [line for line in lines if re.search(r"Uncaught|Refused|Error|violates", line)]


def check(page, width, profile):
    query = urlencode({"page": page.resolve().as_uri(), "width": width})
    address = f"{HARNESS.resolve().as_uri()}?{query}"
    done = run(
        profile, "--allow-file-access-from-files", "--disable-web-security", "--virtual-time-budget=20000",
        f"--window-size={width + 40},1000", "--dump-dom", address,
    )
    faults = console_errors(done.stderr)
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    if not found or not found.group(1).strip():
        return [*faults, "the page did not load"], {}
    result = json.loads(unescape(found.group(1)))
    faults += result["faults"]
    figures = result["figures"]
    faults += [f"there is no figure {name}" for name in FIGURES if name not in figures]
    return faults, figures


def screenshot(page, width, folder, profile):
    for theme in ("light", "dark"):
        out = folder / f"{page.stem}-{width}-{theme}.png"
        flags = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if theme == "dark" else []
        run(profile, *flags, f"--window-size={width},{6400 if width > 800 else 9000}", f"--screenshot={out}", page.resolve().as_uri())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of each page, to look at")
    parser.add_argument("pages", nargs="+", type=Path)
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as profile:
        for page in arguments.pages:
            size = page.stat().st_size
            if size > MAX_BYTES:
                failed = True
                print(f"{page.name}: {size} bytes are more than {MAX_BYTES}", file=sys.stderr)
            for width in WIDTHS:
                faults, figures = check(page, width, profile)
                failed |= bool(faults)
                marks = sum(figure["marks"] for figure in figures.values())
                drawn = sum(figure["count"] for figure in figures.values())
                state = "FAILED" if faults else "ok"
                print(f"{page.name} at {width}: {state}, {drawn} figures, {marks} marks, {size} bytes")
                for fault in faults:
                    print(f"  {fault}", file=sys.stderr)
                if arguments.screenshots:
                    arguments.screenshots.mkdir(parents=True, exist_ok=True)
                    screenshot(page, width, arguments.screenshots, profile)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
