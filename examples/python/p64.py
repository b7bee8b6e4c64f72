"""P64 files from Python: ctypes over the shared library, numpy views of the tensors without a copy.

    import p64
    with p64.File("model.p64") as file:
        for tensor in file.tensors():
            print(tensor.name, tensor.dtype, tensor.shape)
        print(file["output_norm.weight"].array())          # a view of the file's bytes, as F32
        print(file["token_embd.weight"].rows(0, 4))        # four rows of a quantised tensor, dequantised

The library is that of $P64_LIBRARY, or what the linker finds. On the command line: python3 p64.py MODEL.p64
"""

import ctypes as c
import ctypes.util
import os
import sys

import numpy

lib = c.CDLL(os.environ.get("P64_LIBRARY") or ctypes.util.find_library("p64") or "libp64.so")


class RawError(c.Structure):
    _fields_ = [("status", c.c_int32), ("place", c.c_uint32), ("section", c.c_uint32), ("index", c.c_uint32)]
    _fields_ += [("offset", c.c_uint64), ("expected", c.c_uint64), ("found", c.c_uint64)]


class RawTensor(c.Structure):
    _fields_ = [("name", c.c_void_p), ("name_len", c.c_size_t), ("index", c.c_uint32), ("role", c.c_uint32)]
    _fields_ += [("dtype", c.c_uint32), ("layer", c.c_uint32), ("rank", c.c_uint32), ("dims", c.c_uint32 * 4)]
    _fields_ += [("reserved", c.c_uint32), ("offset", c.c_uint64), ("size", c.c_uint64)]
    _fields_ += [("source_offset", c.c_uint64), ("source_name_hash", c.c_uint64)]


class Error(Exception):
    """A call failed; `status` is its number (p64_status of p64.h)."""

    def __init__(self, raw, message):
        super().__init__(message)
        self.status = raw.status


for name in ("p64_file_container", "p64_dtype_name", "p64_error_message"):
    getattr(lib, name).restype = c.c_void_p if name == "p64_file_container" else c.c_char_p
lib.p64_file_free.argtypes, lib.p64_file_free.restype = [c.c_void_p], None
lib.p64_file_container.argtypes = [c.c_void_p]
ABI = 1
if lib.p64_abi_version() != ABI:
    raise ImportError(f"libp64 speaks version {lib.p64_abi_version()} of its interface, this module {ABI}")


def call(function, *arguments):
    error = RawError()
    if getattr(lib, function)(*arguments, c.byref(error)) != 0:
        text = c.create_string_buffer(512)  # what does not fit is cut off
        lib.p64_error_format(c.byref(error), text, c.c_size_t(len(text)), None)
        raise Error(error, lib.p64_error_message().decode() if function == "p64_file_open" else text.value.decode())


class Tensor:
    """One tensor. Views of it are valid while the file is open."""

    def __init__(self, file, raw):
        self.file, self.raw = file, raw
        self.name = c.string_at(raw.name, raw.name_len).decode()
        self.dtype = lib.p64_dtype_name(c.c_uint32(raw.dtype)).decode()
        self.shape = tuple(raw.dims[: raw.rank][::-1])  # numpy's order: the contiguous dimension last

    def bytes(self):
        """The bytes as they lie in the file, verified, read-only."""
        data, size = c.c_void_p(), c.c_size_t()
        call("p64_tensor_data", self.file.container, c.c_uint32(self.raw.index), c.byref(data), c.byref(size))
        view = numpy.ctypeslib.as_array(c.cast(data, c.POINTER(c.c_uint8)), (size.value,)) if size.value else numpy.empty(0, "u1")
        view.flags.writeable = False
        return view

    def array(self):
        """The values of a tensor that is not quantised, a view in its shape."""
        types = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}
        if self.dtype not in types:
            raise TypeError(f"{self.name} is {self.dtype}: rows() dequantises it, bytes() has it as it is")
        return self.bytes().view(types[self.dtype]).reshape(self.shape)

    def rows(self, first, count):
        """Rows, dequantised to F32 (a copy)."""
        out = numpy.empty((count, self.shape[-1]), numpy.float32)
        call("p64_tensor_dequantize", self.file.container, c.c_uint32(self.raw.index), c.c_uint64(first),
             c.c_uint64(count), c.c_void_p(out.ctypes.data), c.c_size_t(out.size))
        return out


class File:
    """A `.p64`, mapped, and validated with all its checksums."""

    def __init__(self, path):
        self.handle = c.c_void_p()
        call("p64_file_open", os.fsencode(path), None, c.byref(self.handle))
        self.container = c.c_void_p(lib.p64_file_container(self.handle))

    def close(self):
        lib.p64_file_free(self.handle)
        self.handle = self.container = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __len__(self):
        count = c.c_uint32()
        call("p64_container_tensor_count", self.container, c.byref(count))
        return count.value

    def tensors(self):
        for index in range(len(self)):
            raw = RawTensor()
            call("p64_container_tensor", self.container, c.c_uint32(index), c.byref(raw))
            yield Tensor(self, raw)

    def __getitem__(self, name):
        raw, text = RawTensor(), name.encode()
        call("p64_container_find", self.container, text, c.c_size_t(len(text)), c.byref(raw))
        return Tensor(self, raw)


if __name__ == "__main__":
    with File(sys.argv[1]) as model:
        for tensor in model.tensors():
            print(f"{tensor.name:32} {tensor.dtype:6} {' x '.join(map(str, tensor.shape)):16} {tensor.raw.size:>12} bytes")
