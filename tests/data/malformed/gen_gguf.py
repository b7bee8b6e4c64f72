"""Writes the malformed and borderline GGUF files of this folder: gen_gguf.py OUT_DIR [--large]."""

import pathlib
import struct
import sys

U64 = 2**64 - 1
U32, I32, BOOL, STRING, ARRAY, UINT64 = 4, 5, 7, 8, 9, 10
F32, Q8_K_BLOCK = 0, 24


def string(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def header(tensors, pairs, version=3, magic=b"GGUF"):
    return magic + struct.pack("<IQQ", version, tensors & U64, pairs & U64)


def pair(key, kind, value):
    return string(key) + struct.pack("<I", kind) + value


def u32(key, value):
    return pair(key, U32, struct.pack("<I", value))


def array(key, kind, items, count=None):
    n = len(items) if count is None else count
    return pair(key, ARRAY, struct.pack("<IQ", kind, n) + b"".join(items))


def tensor(name, dims, kind, offset):
    sizes = b"".join(struct.pack("<Q", d & U64) for d in dims)
    return string(name) + struct.pack("<I", len(dims)) + sizes + struct.pack("<IQ", kind & 0xFFFFFFFF, offset)


def pad(data, alignment=32):
    return data + bytes(-len(data) % alignment)


def floats(n):
    return struct.pack(f"<{n}f", *(i * 0.5 for i in range(n)))


def one_tensor(dims, kind, offset, data, name="t"):
    return pad(header(1, 0) + tensor(name, dims, kind, offset)) + data


def two_tensors(first, second, data):
    return pad(header(2, 0) + tensor(*first) + tensor(*second)) + data


def with_alignment(kind, value, alignment=32):
    head = header(1, 1) + pair("general.alignment", kind, value) + tensor("t", [8], F32, 0)
    return pad(head, alignment) + floats(8)


def nested(depth):
    """One key whose value is `depth` arrays of one array, innermost a single u8."""
    inner = struct.pack("<IQ", ARRAY, 1) * depth
    return header(0, 1) + string("n") + struct.pack("<I", ARRAY) + inner + struct.pack("<IQ", 0, 1) + b"\x07"


def counts_and_lengths():
    yield "01_nkv_max", header(0, U64)
    yield "01b_nkv_1e9_24B", header(0, 500_000_000)
    yield "02_nt_max", header(U64, 0)
    yield "02b_nt_15711", header(U64 // 400, 0)
    yield "03_keylen_max", header(0, 1) + struct.pack("<Q", U64) + b"abc"
    yield "03b_keylen_4G", header(0, 1) + struct.pack("<Q", 2**32) + b"abc"
    yield "04_arr_u32_2^62", header(0, 1) + array("a", U32, [bytes(16)], 2**62)
    yield "04b_arr_str_2^61", header(0, 1) + array("a", STRING, [bytes(16)], 2**61)
    yield "04c_arr_len_2^63", header(0, 1) + array("a", U32, [], 2**63)


def shapes():
    yield "05_ndims5", one_tensor([2] * 5, F32, 0, floats(32))
    yield "05b_ndims_max", header(1, 0) + string("t") + struct.pack("<I", 0xFFFFFFFF) + bytes(64)
    yield "06b_pyprod", one_tensor([4194305, 4194305, 211106198978564], Q8_K_BLOCK, 0, bytes(64))
    huge = 0x7FFFFFFFFFFFFFC0  # two of these wrap a running 64-bit sum of sizes
    yield "07_size_sum_wrap", two_tensors(("a", [huge], Q8_K_BLOCK, 0), ("b", [huge], Q8_K_BLOCK, huge), bytes(64))
    yield "10_zero_dim", one_tensor([4, 0], F32, 0, bytes(32))
    yield "10b_zero_dim0", one_tensor([0, 4], F32, 0, bytes(32))
    yield "26_q4k_128", one_tensor([128, 2], 12, 0, bytes(144))
    yield "26b_q4k_rows", one_tensor([128, 4], 12, 0, bytes(288))
    yield "27_ndims0", one_tensor([], F32, 0, floats(8))


def alignment():
    for value in (0, 1, 3, 13, 2**20, 2**31):
        yield f"12_align_{value}", with_alignment(U32, struct.pack("<I", value), 1 if value == 1 else 32)
    yield "12_align_i32", with_alignment(I32, struct.pack("<i", 32))
    yield "12_align_u64", with_alignment(UINT64, struct.pack("<Q", 64), 64)


def keys_and_names():
    yield "11_empty_key", header(0, 1) + pair("", 0, b"\x01")
    yield "16_nest1", nested(1)
    yield "16_nest50", nested(50)
    yield "16_nest3000", nested(3000)
    yield "17_dup_key", header(0, 2) + u32("a.b", 1) + u32("a.b", 2)
    yield "18_dup_tensor", two_tensors(("t", [8], F32, 0), ("t", [8], F32, 32), floats(8) * 2)
    yield "20_bool2", header(0, 1) + pair("b", BOOL, b"\x02")
    yield "21_name64", one_tensor([8], F32, 0, floats(8), "x" * 64)
    yield "21b_name0", one_tensor([8], F32, 0, floats(8), "")
    yield "21d_name_badutf8", one_tensor([8], F32, 0, floats(8), b"\xff\xfe")
    yield "28_key_badutf8", header(0, 1) + pair(b"\xff\xfe", 0, b"\x01")
    yield "28b_key_NUL", header(0, 1) + pair("a\0b", 0, b"\x01")
    yield "29_kvtype13", header(0, 1) + pair("k", 13, bytes(8))
    yield "30_arr0_type99", header(0, 1) + array("a", 99, [])


def types():
    yield "19_type36_i2s", one_tensor([256], 36, 0, bytes(96))
    yield "19b_type4", one_tensor([32], 4, 0, bytes(96))
    yield "19c_type_m1", one_tensor([32], -1, 0, bytes(128))
    yield "19d_type_1e6", one_tensor([32], 1_000_000, 0, bytes(128))


def extents(valid):
    yield "22_trunc_data", valid[:-5]
    yield "22b_trunc_none", valid[:-32]
    yield "23_gap_offset", two_tensors(("a", [8], F32, 0), ("b", [8], F32, 64), floats(24))
    yield "23b_overlap", two_tensors(("a", [8], F32, 0), ("b", [8], F32, 0), floats(16))
    yield "23c_misaligned", one_tensor([8], F32, 4, floats(16), "a")
    yield "23d_off_huge", one_tensor([8], F32, 2**64 - 32, floats(16), "a")
    yield "23e_reverse_order", two_tensors(("a", [8], F32, 32), ("b", [8], F32, 0), floats(16))
    yield "24_trailing", valid + b"TRAILING GARBAGE"


def headers(valid):
    for version in (0, 1, 4):
        yield f"25_v{version}", header(0, 0, version)
    yield "25_v2", valid[:4] + struct.pack("<I", 2) + valid[8:]
    yield "25_be_magicGGUF", b"GGUF" + struct.pack(">IQQ", 3, 0, 0)
    yield "25_be_FUGG", b"FUGG" + struct.pack(">IQQ", 3, 0, 0)
    yield "25_le_FUGG", header(0, 0, magic=b"FUGG")
    yield "31_empty", b""
    yield "31b_magic_only", b"GGUF"
    yield "31c_hdr23", header(0, 0)[:23]


def large():
    yield "16_nest200000", nested(200_000)
    yield "33_many_keys_20k", header(0, 20_000) + b"".join(u32(f"k{i:06d}", i) for i in range(20_000))
    infos = b"".join(tensor(f"t{i:06d}", [8], F32, 32 * i) for i in range(20_000))
    yield "34_many_tensors_20k", pad(header(20_000, 0) + infos) + bytes(32 * 20_000)


def cases(with_large):
    head = header(1, 1) + pair("general.architecture", STRING, string("llama")) + tensor("t", [8], F32, 0)
    valid = pad(head) + floats(8)
    yield "00_valid", valid
    for group in (counts_and_lengths(), shapes(), alignment(), keys_and_names(), types(), extents(valid), headers(valid)):
        yield from group
    if with_large:
        yield from large()


def main():
    folders = [a for a in sys.argv[1:] if a != "--large"]
    if len(folders) != 1:
        sys.exit(__doc__)
    out = pathlib.Path(folders[0])
    out.mkdir(parents=True, exist_ok=True)
    for name, data in cases("--large" in sys.argv):
        (out / f"{name}.gguf").write_bytes(data)


if __name__ == "__main__":
    main()
