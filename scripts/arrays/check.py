"""Compares what `p64 export` writes with the libraries' own reading: check.py P64 MODEL.gguf...

- an npz and a safetensors file of each GGUF's dequantised values, with gguf-py's, bit for bit
- a safetensors file of every type, written by the library: converted raw, exported, and the same bytes again
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

FLOATS = {"f32": np.float32, "f16": np.float16}


def run(p64, *args):
    subprocess.run([p64, *map(str, args)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def values(tensor):
    """What gguf-py reads, rows last; scalars and integers as they are."""
    data = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    return np.asarray(data).reshape(tuple(int(d) for d in reversed(tensor.shape)))


def same(name, ours, theirs):
    assert ours.shape == theirs.shape, f"{name}: {ours.shape}, gguf-py has {theirs.shape}"
    assert ours.dtype == theirs.dtype, f"{name}: {ours.dtype}, wanted {theirs.dtype}"
    assert ours.tobytes() == theirs.tobytes(), f"{name}: other values"


def check_gguf(p64, path, folder):
    tensors = gguf.GGUFReader(path).tensors
    kept = (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.F64)
    container = folder / "model.p64"
    run(p64, "convert", path, container)
    for source in (path, container):
        for kind, dtype in FLOATS.items():
            npz = folder / "model.npz"
            run(p64, "export", source, npz, "--dequantize", kind)
            arrays = np.load(npz)
            assert sorted(arrays.files) == sorted(t.name for t in tensors)
            for tensor in tensors:
                theirs = values(tensor)
                if tensor.tensor_type not in kept:
                    theirs = theirs.astype(dtype)
                same(tensor.name, arrays[tensor.name], theirs)
            print(f"{Path(source).name}: {len(tensors)} arrays of {npz.name} as {kind} are gguf-py's")
    some = folder / "some.npz"
    run(p64, "export", container, some, "--tensors", "*_norm*")
    names = np.load(some).files
    assert names and all("_norm" in name for name in names), names


def check_every_type(p64, folder):
    rng = np.random.default_rng(5)
    tensors = {
        "model.embed_tokens.weight": rng.normal(size=(7, 8)).astype(np.float32),
        "model.layers.0.self_attn.q_proj.weight": rng.normal(size=(8, 8)).astype(np.float16),
        "doubles": rng.normal(size=3),
        "scalar": np.array(3, dtype=np.int64),
        "i32": rng.integers(-5, 5, size=(2, 1, 3)).astype(np.int32),
        "i16": rng.integers(-5, 5, size=(4,)).astype(np.int16),
        "i8": rng.integers(-5, 5, size=(3, 3)).astype(np.int8),
        "empty": np.zeros((0, 4), dtype=np.float32),
    }
    source, container, again = folder / "in.safetensors", folder / "in.p64", folder / "out.safetensors"
    save_file(tensors, source, metadata={"format": "np", "note": 'a "quote", a line\nand é'})
    run(p64, "convert", source, container)
    run(p64, "export", container, again)
    assert source.read_bytes() == again.read_bytes(), "the file did not come back"
    npz = folder / "in.npz"
    run(p64, "export", container, npz)
    arrays = np.load(npz)
    with safe_open(again, framework="numpy") as opened:
        assert opened.metadata()["format"] == "np"
        for name, tensor in tensors.items():
            same(name, opened.get_tensor(name), tensor)
            same(name, arrays[name], tensor)
    print(f"{len(tensors)} tensors of every type came back, and as arrays")


def main():
    p64, *models = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        check_every_type(p64, Path(folder))
        for model in models:
            check_gguf(p64, model, Path(folder))


if __name__ == "__main__":
    main()
