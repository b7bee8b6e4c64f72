"""Writes the text on which perplexities are compared: stories of the repository's own grammar, then its README.

    python3 scripts/perplexity/make_text.py 151807c tests/data/perplexity/text.txt

The README is that of the named revision, so the text stays what it is while the README changes.
"""

import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORIES, SEED = 6, 2026


def main(revision, output):
    sys.path.insert(0, str(ROOT / "scripts" / "tiny"))
    import stories

    source = random.Random(SEED)
    told = [stories.tell(source)[0] for _ in range(STORIES)]
    readme = subprocess.run(
        ["git", "-C", str(ROOT), "show", f"{revision}:README.md"], check=True, capture_output=True, encoding="utf-8"
    ).stdout
    Path(output).write_text("\n\n".join([*told, readme]), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
