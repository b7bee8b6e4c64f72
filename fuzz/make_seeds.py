#!/usr/bin/env python3
"""Writes the hand-made seeds of fuzz/corpus; run it after a change of a format, and commit what it writes.

Findings that became regressions stand in the same folders under names of their own and are left alone.
"""

import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def scalar(kind, value):
    return string(value) if kind == 8 else struct.pack("<" + SCALARS[kind], value)


def pair(key, kind, value):
    return string(key) + struct.pack("<I", kind) + scalar(kind, value)


def array(key, kind, values):
    head = string(key) + struct.pack("<IIQ", 9, kind, len(values))
    return head + b"".join(scalar(kind, value) for value in values)


def metadata(*pairs):
    return struct.pack("<Q", len(pairs)) + b"".join(pairs)


SEEDS = {
    "metadata": {
        "no_pairs": metadata(),
        "every_scalar": metadata(
            *(pair(f"k.{kind}", kind, 1) for kind in SCALARS), pair("general.name", 8, "a tiny model")
        ),
        "arrays": metadata(
            array("strings", 8, ["", "<s>", "▁the"]),
            array("scores", 6, [0.0, -1.5]),
            array("types", 5, [1, 3, 6]),
            array("bools", 7, [True, False]),
            array("empty", 8, []),
        ),
        "duplicate_key": metadata(pair("a", 4, 1), pair("a", 4, 2)),
        "string_not_utf8": metadata(pair("a", 8, b"\xff\xfe")),
        "bool_of_two": metadata(string("a") + struct.pack("<IB", 7, 2)),
        "nested_array": metadata(string("a") + struct.pack("<IIQ", 9, 9, 0)),
        "count_past_the_end": struct.pack("<Q", 1 << 40) + pair("a", 4, 1),
        "string_length_wraps": metadata(string("a") + struct.pack("<IQ", 8, (1 << 64) - 4)),
    },
}


def main():
    for target, seeds in SEEDS.items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            (folder / name).write_bytes(data)
        print(f"{target}: {len(seeds)} seeds")


if __name__ == "__main__":
    main()
