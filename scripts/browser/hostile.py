#!/usr/bin/env python3
"""Writes a small GGUF whose names and keys try to become markup or script, and whose values include NaN and infinity.

usage: hostile.py OUT.gguf        (needs nothing but Python's own library)
"""

import random
import struct
import sys
from pathlib import Path

ATTACKS = [
    "</script><script>window.touched=1</script>",
    "<img src=x onerror=window.touched=2>",
    "\" onpointermove=\"window.touched=3",
    "' onload='window.touched=4",
    "</text></svg><svg onload=window.touched=5>",
    "</title></style><iframe srcdoc=\"<script>parent.touched=6</script>\">",
    "javascript:window.touched=7//",
    "&lt;script&gt;window.touched=8&lt;/script&gt;",
    "`${window.touched=9}`",
    "\u202egnp.efas",
    "line\nbreak\ttab\x1b[31m",
]


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source = random.Random(64)
    names = [f"blk.{layer}.{kind}.weight" for layer in range(3) for kind in ("attn_q", "ffn_down", "attn_norm")]
    names += [f"blk.1.{attack}" for attack in ATTACKS] + ATTACKS + ["output_norm.weight", "x" * 1000]
    keys = {"general.architecture": ATTACKS[0], "general.name": ATTACKS[1] + ATTACKS[5], ATTACKS[2]: ATTACKS[3]}
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(names), len(keys))
    for key, value in keys.items():
        head += string(key) + struct.pack("<I", 8) + string(value)
    data = b""
    for at, name in enumerate(names):
        values = [source.gauss(0, 0.05) for _ in range(8192 if at < 9 else 256)]
        if at == 1:
            values[7], values[8], values[9] = float("nan"), float("inf"), float("-inf")
        head += string(name) + struct.pack("<IQIQ", 1, len(values), 0, len(data))
        data += struct.pack(f"<{len(values)}f", *values)
    head += b"\0" * (-len(head) % 32)
    Path(sys.argv[1]).write_bytes(head + data)


if __name__ == "__main__":
    main()
