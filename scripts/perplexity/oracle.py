"""Runs llama.cpp's perplexity tool over the fixed text and records its figures. Called by oracle.sh.

    python3 scripts/perplexity/oracle.py LLAMA_PERPLEXITY tests/data/perplexity/golden.json

Each model is evaluated as it is and with the tool's defaults ("default"), and with its weights de-quantised to F32 and
nothing else rounded ("plain").
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import gguf
import numpy
from gguf.quants import dequantize

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = ROOT / "tests/data/perplexity/text.txt"
PLAIN = ["-ctk", "f32", "-ctv", "f32", "-fa", "off"]
CASES = [
    ("tests/data/tiny/tiny-stories-q8_0.gguf", 512),
    ("tests/data/tiny/tiny-stories-q8_0.gguf", 128),
    ("models/smollm2-135m-q4_1.gguf", 512),
    ("models/gemma3-270m-q4_k_m.gguf", 512),
]


def dequantized(source, target):
    """Writes the model with every tensor in F32."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        element = field.types[1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), field.types[0], sub_type=element)
    for tensor in reader.tensors:
        values = numpy.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), dtype=numpy.float32)
        writer.add_tensor(tensor.name, values, raw_dtype=gguf.GGMLQuantizationType.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def evaluate(tool, model, context, options):
    command = [tool, "-m", model, "-f", TEXT, *(["-c", str(context)] if context != 512 else []), *options]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    output = done.stdout + done.stderr
    running = [float(value) for value in re.findall(r"\[\d+\](\d+\.\d+)", output)]
    perplexity, error = re.search(r"PPL = ([\d.]+) \+/- ([\d.]+)", output).groups()
    return {"options": options, "perplexity": float(perplexity), "error": float(error), "running": running}


def main(tool, output):
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for path, context in CASES:
            plain = pathlib.Path(folder) / (pathlib.Path(path).stem + "-f32.gguf")
            if not plain.exists():
                dequantized(ROOT / path, plain)
            results.append({
                "model": path,
                "context": context,
                "default": evaluate(tool, ROOT / path, context, []),
                "plain": evaluate(tool, plain, context, PLAIN),
            })
            print(path, context, results[-1]["default"]["perplexity"], results[-1]["plain"]["perplexity"])
    lines = ",\n".join(json.dumps(result) for result in results)
    pathlib.Path(output).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
