"""Writes the malformed and borderline safetensors files of this folder: gen_safetensors.py OUT_DIR [--large]."""

import pathlib
import struct
import sys


def entry(name, dtype, shape, begin, end, extra=""):
    return f'"{name}":{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[{begin},{end}]{extra}}}'


def file(header, data_bytes, length=None):
    """Length word, header, zero data; `length` overrides what the length word says."""
    head = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(head) if length is None else length) + head + bytes(data_bytes)


def single(dtype="F32", shape="2,2", begin=0, end=16, data=16, extra=""):
    return file("{" + entry("t", dtype, shape, begin, end, extra) + "}", data)


def pair(first, second, data):
    return file("{" + entry(*first) + "," + entry(*second) + "}", data)


T = entry("t", "F32", "2,2", 0, 16)


def lengths():
    yield "01_hlen_max", file("{}", 0, 2**64 - 1)
    yield "02_hlen_100M1", file("{}", 0, 100_000_001)
    yield "03_hlen_past_eof", file("{}", 0, 50)
    yield "04_hlen0", file("", 0, 0)
    yield "05_7bytes", bytes(7)


def extents():
    a = ("a", "F32", "2", 0, 8)
    yield "07_overlap", pair(a, ("b", "F32", "2", 4, 12), 12)
    yield "07b_alias_tied", pair(a, ("b", "F32", "2", 0, 8), 8)
    yield "08_gap", pair(a, ("b", "F32", "2", 16, 24), 24)
    yield "09_trailing", single() + b"PK\x03\x04zip"
    yield "10_trunc", single(data=12)
    yield "13_rev_off", single(begin=16, end=0)
    yield "23_odd_unaligned", pair(("a", "U8", "3", 0, 3), ("b", "F32", "2", 3, 11), 11)


def shapes_and_types():
    yield "11_shape_ovf", single(shape="4294967296,4294967296", end=0, data=0)
    yield "11b_shape_mul_ovf_to16", single(shape="4611686018427387908")
    yield "12_neg_dim", single(shape="-2,2")
    yield "12b_float_dim", single(shape="2.0,2")
    yield "14_zero_shape", single(shape="0,4", end=0, data=0)
    yield "14b_scalar", single(shape="", end=4, data=4)
    yield "15_unknown_dtype", single(dtype="Q4_K", shape="4")
    yield "16_extra_field", single(extra=',"x":1')
    yield "24_F4_odd", file("{" + entry("a", "F4", "3", 0, 2) + "}", 2)
    yield "25_rank9", single(shape="1,1,1,1,1,1,1,1,4")


def json_and_names():
    twice = entry("t", "F32", "2", 0, 8) + "," + entry("t", "F32", "2", 8, 16)
    yield "06_dup_key_diff", file("{" + twice + "}", 16)
    yield "06c_dup_metadata", file('{"__metadata__":{"a":"1"},"__metadata__":{"a":"2"},' + T + "}", 16)
    yield "17_meta_nonstr", file('{"__metadata__":{"a":1},' + T + "}", 16)
    yield "17b_meta_empty", file('{"__metadata__":{},' + T + "}", 16)
    yield "18b_trailing_nul", file("{" + T + "}\0\0\0", 16)
    yield "20_bad_utf8", file(("{" + T + "}").encode().replace(b'"t"', b'"\xff"'), 16)
    yield "20b_surrogate", file("{" + T.replace('"t"', '"\\ud800"') + "}", 16)
    yield "21_empty_obj", file("{}", 0)
    yield "22_name_empty", file("{" + T.replace('"t"', '""') + "}", 16)
    yield "26_not_object", file("[1,2]", 0)
    yield "27_name_path", file("{" + T.replace('"t"', '"../../etc/passwd"') + "}", 16)


def cases(with_large):
    yield "00_valid", single()
    for group in (lengths(), extents(), shapes_and_types(), json_and_names()):
        yield from group
    if with_large:
        yield "19_deep_json", file('{"t":' + "[" * 100_000 + "]" * 100_000 + "}", 0)


def main():
    folders = [a for a in sys.argv[1:] if a != "--large"]
    if len(folders) != 1:
        sys.exit(__doc__)
    out = pathlib.Path(folders[0])
    out.mkdir(parents=True, exist_ok=True)
    for name, data in cases("--large" in sys.argv):
        (out / f"{name}.safetensors").write_bytes(data)


if __name__ == "__main__":
    main()
