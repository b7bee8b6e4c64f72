#!/usr/bin/env python3
"""Checks .p64 files against docs/spec/p64.md, strictly, without a line of the project's Rust.

    scripts/check_p64.py [--canonical] FILE...

Prints `FILE: OK`, or the first deviation with the clause it breaks; the exit code is 1 when any file deviates.
--canonical also asks for what only a writer promises: every section and blob at the first place alignment permits.
An independent second reading of the specification, for tests (tests/tests/independent_checker.rs): it is written from
the document's tables and needs nothing but Python's standard library.
"""
import math
import mmap
import os
import struct
import sys

# Type id: (elements of a block, bytes of a block), §7.2.
TYPES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
         10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66),
         17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136),
         24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54),
         35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18), 42: (64, 18), 112: (256, 160)}
TERNARY, SOA = 1158, 112
# Types with sixteen rows side by side, each with the blocks of a stock type, §7.2.2.
TILE_ROWS = 16
TILED = dict(zip(range(113, 128), [2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 23, 1, 30, 0]))
TYPES |= {tiled: TYPES[stock] for tiled, stock in TILED.items()}
# Role id: place in the layer, or from 100 on among the globals, §7.3.
PLACE = {7: 0, 2: 1, 0: 2, 1: 3, 3: 4, 8: 5, 4: 6, 5: 7, 6: 8, 12: 9, 13: 10, 0x20: 11, 0x21: 12, 0x22: 13, 0x23: 14,
         0x24: 15, 0x25: 16, 0x26: 17, 9: 100, 10: 101, 11: 102, 0x80: 110, 0x81: 111, 0x82: 112}
UNKNOWN = 0xFFFE
MAX_STRING = 65535


class Deviation(Exception):
    pass


def need(condition, clause, text):
    if not condition:
        raise Deviation(f"{text} (§{clause})")


def align(value, step):
    return (value + step - 1) // step * step


# ---- CRC-32C, §11 -----------------------------------------------------------------------------------------------------

def _table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = _table()
PLANES = [bytes(entry >> 8 * i & 255 for entry in TABLE) for i in range(4)]
LANES = 8192


def _after(state, data):
    for byte in data:
        state = state >> 8 ^ TABLE[(state ^ byte) & 255]
    return state


def _zeros(length):
    """Tables of what `length` zero bytes make of a state: it is linear, so its 32 bits decide."""
    power, result = [_after(1 << bit, b"\0") for bit in range(32)], [1 << bit for bit in range(32)]

    def apply(operator, state):
        out = 0
        for bit in range(32):
            if state >> bit & 1:
                out ^= operator[bit]
        return out
    while length:
        if length & 1:
            result = [apply(power, state) for state in result]
        power = [apply(power, state) for state in power]
        length >>= 1
    return [[apply(result, byte << 8 * i) for byte in range(256)] for i in range(4)]


ZEROS = bytes(1 << 26)
PAST_ZEROS = None


def crc32c(data, start=0, stop=None):
    """In pieces of 64 MiB, of which those of zeros (holes of a sparse file) are stepped over."""
    global PAST_ZEROS
    state, stop = 0xFFFFFFFF, len(data) if stop is None else stop
    while start < stop:
        piece = data[start:min(start + len(ZEROS), stop)]
        start += len(piece)
        if piece == ZEROS:
            PAST_ZEROS = PAST_ZEROS or _zeros(len(ZEROS))
            state = _through(PAST_ZEROS, state)
        else:
            state = _piece(state, piece)
    return state ^ 0xFFFFFFFF


def _through(tables, state):
    t0, t1, t2, t3 = tables
    return t0[state & 255] ^ t1[state >> 8 & 255] ^ t2[state >> 16 & 255] ^ t3[state >> 24]


def _piece(state, data):
    """8192 stretches side by side, a byte of each at a time, then joined: a model takes seconds, not minutes."""
    rows = len(data) // LANES
    if rows >= 8:
        a, b, c, d = 0, 0, 0, 0  # the four bytes of every lane's state
        number, column_bytes = int.from_bytes, LANES
        for row in range(rows):
            index = (a ^ number(data[row:rows * LANES:rows], "little")).to_bytes(column_bytes, "little")
            p, q, r, s = (number(index.translate(plane), "little") for plane in PLANES)
            a, b, c, d = b ^ p, c ^ q, d ^ r, s
        lanes = zip(*(part.to_bytes(column_bytes, "little") for part in (a, b, c, d)))
        tables = _zeros(rows)
        for w, x, y, z in lanes:
            state = _through(tables, state) ^ (w | x << 8 | y << 16 | z << 24)
    return _after(state, data[rows * LANES if rows >= 8 else 0:])


def fnv1a(name):
    value = 0xCBF29CE484222325
    for byte in name:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


# ---- the parts of a file ----------------------------------------------------------------------------------------------

class Reader:
    def __init__(self, data, clause):
        self.data, self.at, self.clause = data, 0, clause

    def take(self, size):
        need(size <= len(self.data) - self.at, self.clause, f"{size} bytes at {self.at} run past the end")
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "little")

    def text(self, width):
        return utf8(self.take(self.number(width)), self.clause)


def utf8(data, clause):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Deviation(f"{data[:40]!r} is not UTF-8 (§{clause})") from None


def check_tokenizer(data):
    reader = Reader(data, "10")
    need(reader.take(4) == b"Q42T", "10", "the tokenizer does not begin with Q42T")
    version, flags = reader.number(2), reader.number(2)
    need(version in (1, 2) and flags == 0, "10", f"Q42T version {version}, flags {flags}")
    special = [reader.number(4), reader.number(4)]
    reader.take(1)  # add BOS: any value
    need(reader.take(3) == bytes(3), "10", "the padding behind the add-BOS byte is not zero")
    reader.text(4)
    vocabulary = reader.number(4)
    need(vocabulary <= 1_000_000, "10", f"{vocabulary} tokens")
    for _ in range(vocabulary):
        reader.text(4)
    merges = reader.number(4)
    need(merges <= 5_000_000, "10", f"{merges} merges")
    for _ in range(2 * merges):
        reader.text(4)
    special = [id for id in special if id != 0xFFFFFFFF]
    if version == 2:
        count = reader.number(1)
        need(count <= 8 and reader.take(3) == bytes(3), "10", f"{count} stop ids")
        special += [reader.number(4) for _ in range(8)][:count]
    need(all(id < vocabulary for id in special), "10", f"special ids {special} of {vocabulary} tokens")
    rest = data[reader.at:]
    need(len(rest) < 64 and not any(rest), "10", f"{len(rest)} bytes follow the tokenizer, or they are not zero")


def check_area(data):
    """The key-value area of §17.1."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    reader, keys = Reader(data, "17.1"), set()

    def value(kind, nested=False):
        if kind == 8:
            reader.take(reader.number(8))
        elif kind == 9:
            need(not nested, "17.1", "an array of arrays")
            kind, count = reader.number(4), reader.number(8)
            need(kind in sizes or kind in (8, 9), "17.1", f"value type {kind}")
            if kind in sizes:
                elements = reader.take(count * sizes[kind])
                need(kind != 7 or max(elements, default=0) <= 1, "17.1", "a boolean above 1")
            else:
                need(kind != 9, "17.1", "an array of arrays")
                need(count * 8 <= len(data), "17.1", f"{count} strings in {len(data)} bytes")
                for _ in range(count):
                    value(kind, True)
        else:
            need(kind in sizes, "17.1", f"value type {kind}")
            found = reader.take(sizes[kind])
            need(kind != 7 or found[0] <= 1, "17.1", "a boolean above 1")
    for _ in range(reader.number(8)):
        key = reader.text(8)
        need(0 < len(key.encode()) <= MAX_STRING and "\0" not in key, "17.1", f"key {key[:40]!r}")
        need(key not in keys, "17.1", f"key {key!r} stands twice")
        keys.add(key)
        value(reader.number(4))
    need(reader.at == len(data), "17.1", f"{len(data) - reader.at} bytes follow the last pair")


def check_hparams(record, raw):
    integers, floats = struct.unpack_from("<5I", record), struct.unpack_from("<2f", record, 20)
    need(not any(record[28:]), "6", "bytes 28..63 of the hyperparameters are not zero")
    need(all(map(math.isfinite, floats)), "6", f"RoPE values {floats}")
    need(raw or all(integers), "6", f"a complete model with the hyperparameters {integers}")


def check_manifold(records, canonical):
    n_layer = len(records) // 64 - 1
    for layer in range(n_layer + 1):
        values = struct.unpack_from("<10f", records, 64 * layer)
        need(all(map(math.isfinite, values)), "9", f"manifold record {layer}: {values}")
        need(not any(records[64 * layer + 40:64 * layer + 64]), "9", f"reserved bytes of manifold record {layer}")
        depth = layer / max(n_layer, 1)
        projection = (depth, 1 - depth, 1, math.sin(depth * math.pi), 0.1, 0.5, math.cos(depth * math.tau), 1, 0.8, 0)
        near = all(abs(a - b) < 1e-6 for a, b in zip(values, projection))
        need(near or not canonical, "9", f"manifold record {layer} is not the projection: {values}")


class Entry:
    def __init__(self, record, index, version):
        (self.name_offset, self.role, self.dtype, self.layer, self.rank, *dims, self.start, self.size, self.source,
         self.hash, start_high, size_high) = struct.unpack("<IHHII4I2IQQ2I", record)
        what = f"tensor {index}"
        need(1 <= self.rank <= 4, "14.9", f"{what}: rank {self.rank}")
        self.dims, unused = dims[:self.rank], dims[self.rank:]
        need(not any(unused), "7", f"{what}: dimensions {dims} past rank {self.rank}")
        need(version == 5 or not start_high | size_high, "7", f"{what}: reserved bytes")
        self.start, self.size = self.start | start_high << 32, self.size | size_high << 32
        elements = math.prod(self.dims)
        need(elements < 2**64, "7", f"{what}: {elements} elements")
        if self.dtype == TERNARY:
            length = 4 + (elements + 4) // 5
        elif self.dtype in TYPES:
            block, size = TYPES[self.dtype]
            need(self.dims[0] % block == 0, "7", f"{what}: rows of {self.dims[0]} in blocks of {block}")
            if self.dtype in TILED:
                rows = self.dims[1] if len(self.dims) > 1 else 1
                need(rows % TILE_ROWS == 0, "7.2.2", f"{what}: {rows} rows in each matrix, {TILE_ROWS} are side by side")
            length = elements // block * size
        else:
            length = self.size
        need(self.size == length, "7", f"{what}: {self.size} bytes, type and shape need {length}")

    def key(self, n_layer):
        if self.role not in PLACE:
            return (n_layer + 1, 200, self.source)
        place = PLACE[self.role]
        return (self.layer if place < 100 else n_layer, place, 0)


def check_names(entries, table):
    need(table[:1] == b"\0", "8", "the string table does not begin with NUL")
    at, seen = 1, set()
    for index, entry in enumerate(entries):
        need(entry.name_offset == at, "8", f"tensor {index}: name at {entry.name_offset}, the one before ends at {at}")
        end = table.find(b"\0", at)
        need(end >= 0, "14.11", f"tensor {index}: the name has no NUL")
        entry.name = utf8(table[at:end], "8")
        need(0 < end - at <= MAX_STRING, "8", f"tensor {index}: a name of {end - at} bytes")
        need(entry.name not in seen, "8", f"tensor {index}: {entry.name!r} stands twice")
        hashes = (fnv1a(table[at:end]), fnv1a(table[at:end]) & 0x0FFFFFFFFFFFFFFF)
        need(entry.hash in hashes, "7", f"tensor {index}: hash {entry.hash:016x} is not of {entry.name!r}")
        seen.add(entry.name)
        at = end + 1
    need(not any(table[at:]), "8", "bytes after the last name are not zero")
    return at


def check_schedule(data, entries, version):
    for layer in range(len(data) // 64):
        own = [entry for entry in entries if entry.layer == layer]
        begin, end = min((e.start for e in own), default=0), max((e.start + e.size for e in own), default=0)
        mask = 0
        for entry in own:
            mask |= 1 << entry.role if entry.role < 16 else 0
        *found, high_begin, high_end = struct.unpack_from("<3I2H2I", data, 64 * layer)
        need(version == 5 or not high_begin | high_end, "7.4.2", f"reserved bytes of schedule record {layer}")
        found = (found[0], found[1] | high_begin << 32, found[2] | high_end << 32, *found[3:])
        wanted = (layer, begin, end, len(own), mask)
        need(found == wanted, "7.4.2", f"schedule of layer {layer}: {found}, the entries say {wanted}")
        need(not any(data[64 * layer + 24:64 * layer + 64]), "7.4.2", f"reserved bytes of schedule record {layer}")


def check(data, canonical):
    need(len(data) >= 64, "14.1", f"{len(data)} bytes are no header")
    (magic, version, flags, schedule_at, table_at, tokenizer_at, hparams_at, strings_at, checksums_at, manifold_at,
     count, page, reserved) = struct.unpack_from("<4s2H9I20s", data)
    need(magic == b"p64\0" and version in (4, 5), "14.2", f"magic {magic!r}, version {version}")
    need(version == (4 if len(data) < 2**32 else 5), "15.1", f"version {version} of {len(data)} bytes")
    need(flags & 1 and flags < 128, "5.1", f"flags {flags:#x}")
    need(reserved == bytes(20), "5", "reserved header bytes")
    need(page >= 256 and page & page - 1 == 0, "14.3", f"page size {page}")
    raw, ternary, soa, major, pack, scheduled = (bool(flags & 1 << bit) for bit in range(1, 7))
    need(scheduled or schedule_at == 0, "5", f"role_table_offset {schedule_at} without flag bit 6")

    need(64 <= hparams_at <= len(data) - 64, "14.4", f"hyperparameters at {hparams_at}")
    n_layer = int.from_bytes(data[hparams_at:hparams_at + 4], "little")
    need(n_layer <= 65535, "16", f"{n_layer} layers")
    sections = [(hparams_at, hparams_at + 64), (table_at, table_at + 64 * count), (strings_at, manifold_at),
                (manifold_at, manifold_at + 64 * (n_layer + 1)), (tokenizer_at, checksums_at),
                (checksums_at, checksums_at + 4 * (count + 1))]
    end = 64
    limit = min(len(data), 2**32)
    for start, stop in sections:
        need(end <= start <= stop <= limit, "14.6", f"a section at {start}..{stop} after one that ends at {end}")
        end = stop
    schedule = (schedule_at, schedule_at + 64 * n_layer) if scheduled else (64, 64)
    if scheduled:
        sections = sorted(sections + [schedule])
    end = 64
    for start, stop in sections:
        need(start >= end, "14.6", f"sections overlap at {start}")
        need(not any(data[end:start]), "4", f"padding between {end} and {start} is not zero")
        end = stop
    need(not any(at % 64 for at in (manifold_at, tokenizer_at, checksums_at)), "14.7", "a section is not on 64")
    crcs = struct.unpack_from(f"<{count + 1}I", data, checksums_at)
    need(crc32c(data[:checksums_at]) == crcs[0], "14.8", "the metadata checksum is wrong")

    check_hparams(data[hparams_at:hparams_at + 64], raw)
    check_manifold(data[manifold_at:manifold_at + 64 * (n_layer + 1)], canonical)
    table = range(table_at, table_at + 64 * count, 64)
    entries = [Entry(data[at:at + 64], index, version) for index, at in enumerate(table)]
    names_end = strings_at + check_names(entries, data[strings_at:manifold_at])
    need(ternary == any(e.dtype == TERNARY for e in entries), "5.1", "flag TERNARY disagrees with the types")
    need(soa == any(e.dtype == SOA for e in entries), "5.1", "flag Q4K_SOA disagrees with the types")
    for index, entry in enumerate(entries):
        place = PLACE.get(entry.role, 200)
        fits = entry.layer < n_layer if place < 100 else entry.layer == n_layer
        need(fits, "7", f"tensor {index}: role {entry.role} with manifold index {entry.layer} of {n_layer}")
    keys = [entry.key(n_layer) for entry in entries]
    need(not major or keys == sorted(keys), "7.3", "the entries are not in layer-major order")
    check_schedule(data[slice(*schedule)], entries, version)

    end, group, floor = sections[-1][1], None, align(sections[-1][1], page)
    for index, entry in enumerate(entries):
        step = 256 if pack and entry.layer == group else page
        what = f"tensor {index}: blob at {entry.start}"
        need(entry.start % step == 0 and entry.start >= floor, "14.12", f"{what}, step {step}, floor {floor}")
        need(end <= entry.start and entry.start + entry.size <= len(data), "14.12", f"{what} after {end}")
        need(not any(data[end:entry.start]), "12", f"padding before {entry.start} is not zero")
        need(not canonical or entry.start == align(end, step), "12", f"{what}, {align(end, step)} would do")
        end, group = entry.start + entry.size, entry.layer
        need(crc32c(data, entry.start, end) == crcs[index + 1], "14.13", f"tensor {index}: the checksum is wrong")
        digits = data[entry.start + 4:end] if entry.dtype == TERNARY else b""
        need(max(digits, default=0) <= 242, "7.4.3", f"tensor {index}: a byte above 242")
    need(not any(data[end:]) and len(data) == align(end, 64), "12", f"{len(data)} bytes, the last blob ends at {end}")

    if tokenizer_at < checksums_at:
        check_tokenizer(data[tokenizer_at:checksums_at])
    need(raw or tokenizer_at < checksums_at, "10", "a complete model without a tokenizer")
    for entry in entries:
        if entry.name in ("p64.metadata", "p64.provenance"):
            check_area(data[entry.start:entry.start + entry.size])
    if canonical:
        check_canonical(hparams_at, schedule, table_at, strings_at, names_end, manifold_at, entries)


def check_canonical(hparams_at, schedule, table_at, strings_at, names_end, manifold_at, entries):
    """§4's second table, and §17's rules for what a converter adds."""
    tables = 128 + schedule[1] - schedule[0]
    need(hparams_at == 64 and schedule[0] in (64, 128) and table_at == tables, "4", "a table is not in its place")
    need(strings_at == table_at + 64 * len(entries) and manifold_at == align(names_end, 64), "4", "padding of names")
    added = [entry for entry in entries if entry.name.startswith("p64.")]
    need(entries[len(entries) - len(added):] == added, "17", "what the converter added does not come last")
    for entry in added:
        right = (entry.role, entry.dtype, entry.rank, entry.source) == (UNKNOWN, 24, 1, 2**64 - 1)
        need(right, "17", f"{entry.name} is not described as what a converter adds")
    for entry in entries:
        need(entry.dtype in TYPES or entry.dtype == TERNARY, "7.2", f"{entry.name}: type {entry.dtype}")


def main(arguments):
    vectors = {b"123456789": 0xE3069283, b"": 0, b"a": 0xC1D04330, bytes(32): 0x8A9136AA, bytes(range(32)): 0x46DD794E}
    assert all(crc32c(data) == crc for data, crc in vectors.items())
    canonical, failed = "--canonical" in arguments, 0
    paths = [path for path in arguments if path != "--canonical"]
    for path in paths:
        try:
            with open(path, "rb") as file:
                large = os.fstat(file.fileno()).st_size >= 2**30
                check(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if large else file.read(), canonical)
            print(f"{path}: OK")
        except Deviation as deviation:
            print(f"{path}: {deviation}")
            failed = 1
    return failed if paths else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
