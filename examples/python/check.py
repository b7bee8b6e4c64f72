#!/usr/bin/env python3
"""Checks p64.py on a file: check.py MODEL.p64. numpy alone is the oracle for what the library dequantises."""

import sys

import numpy
import p64


def q8_0(data, cols):
    """Rows of Q8_0 blocks: an F16 scale and 32 signed bytes each."""
    block = numpy.dtype([("scale", "<f2"), ("values", "i1", 32)])
    blocks = data.view(block)
    return (blocks["scale"].astype(numpy.float32)[:, None] * blocks["values"]).reshape(-1, cols)


def main():
    views = plain = packed = 0
    with p64.File(sys.argv[1]) as file:
        for tensor in file.tensors():
            data = tensor.bytes()
            assert data.nbytes == tensor.raw.size and not data.flags.owndata and not data.flags.writeable, tensor.name
            views += 1
            if tensor.dtype == "F32":
                array = tensor.array()
                assert numpy.shares_memory(array, data), f"{tensor.name}: the array is a copy"
                cols = tensor.shape[-1]
                assert numpy.array_equal(tensor.rows(0, array.size // cols), array.reshape(-1, cols)), tensor.name
                plain += 1
            if tensor.dtype == "Q8_0" and len(tensor.shape) == 2:
                assert numpy.array_equal(tensor.rows(0, tensor.shape[0]), q8_0(data, tensor.shape[1])), tensor.name
                packed += 1
        first = next(file.tensors())
        assert file[first.name].raw.offset == first.raw.offset
        for wrong in (lambda: file["no such tensor"], lambda: first.rows(2**40, 1), lambda: p64.File("no such file")):
            try:
                wrong()
            except p64.Error as error:
                assert error.status > 0 and str(error), "an error without a sentence"
            else:
                raise AssertionError("what is wrong passed")
    assert plain and packed, "nothing to compare in this file"
    print(f"{sys.argv[1]}: {views} views without a copy, {plain} F32 and {packed} Q8_0 tensors equal to numpy's reading")


if __name__ == "__main__":
    main()
