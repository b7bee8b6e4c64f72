"""What the scripts here share: the F16 source, runs of llama-quantize, errors of a quantised file."""

import pathlib
import re
import subprocess

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "target/quantize"
MODEL = ROOT / "models/smollm2-135m-q4_1.gguf"
TOOL = OUT / "llama-quantize"

# Types that both quantise to, by GGML's names, and the file type that gives each when mixes are off.
TYPES = {
    "q8_0": "Q8_0",
    "q6_k": "Q6_K",
    "q5_k": "Q5_K_S",
    "q5_1": "Q5_1",
    "q5_0": "Q5_0",
    "q4_k": "Q4_K_S",
    "iq4_nl": "IQ4_NL",
    "iq4_xs": "IQ4_XS",
    "q4_1": "Q4_1",
    "q4_0": "Q4_0",
    "q3_k": "Q3_K_S",
    "q2_k": "Q2_K",
    "tq2_0": "TQ2_0",
    "tq1_0": "TQ1_0",
}
# Mixes, by our profiles' names; llama.cpp's are the same in capitals.
MIXES = [
    "q8_0", "q6_k", "q5_k_m", "q5_k_s", "q4_k_m", "q4_k_s", "q3_k_l", "q3_k_m", "q3_k_s", "q2_k",
    "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "iq4_xs", "tq1_0", "tq2_0", "f16", "bf16", "f32",
]  # fmt: skip


def values(tensor) -> np.ndarray:
    """A tensor of a GGUF as float32."""
    return dequantize(tensor.data, tensor.tensor_type).astype(np.float32)


def make_f16(path: pathlib.Path) -> None:
    """SmolLM2 with its matrices de-quantised and rounded to F16; keys and all else as they are."""
    reader = GGUFReader(MODEL)
    writer = GGUFWriter(path, reader.get_field("general.architecture").contents())
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        if field.types[0] == GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            value = 1 if key == "general.file_type" else field.contents()
            writer.add_key_value(key, value, field.types[0])
    for tensor in reader.tensors:
        data = values(tensor)
        writer.add_tensor(tensor.name, data if data.ndim == 1 else data.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def quantize(source: pathlib.Path, to: pathlib.Path | None, file_type: str, *options: str) -> str:
    """Runs llama-quantize on one thread, without writing where `to` is None, and answers with what it printed."""
    output = [] if to is None else [str(to)]
    dry = ["--dry-run"] if to is None else []
    command = [str(TOOL), *options, *dry, str(source), *output, file_type, "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def planned(printed: str) -> dict[str, str]:
    """The type that each tensor gets, from what a dry run printed."""
    line = re.compile(r"\]\s+(\S+)\s+- \[[^\]]*\], type =\s*(\w+), .*?(?:-> +[\d.]+ MiB \((\w+)\))?$")
    found = {}
    for text in printed.splitlines():
        if match := line.search(text.split("warning:")[0].rstrip()):
            found[match[1]] = (match[3] or match[2]).lower()
    return found


def rmse(original: dict[str, np.ndarray], path: pathlib.Path) -> dict[str, float]:
    """Root of the mean squared error of every matrix of a quantised file."""
    errors = {}
    for tensor in GGUFReader(path).tensors:
        if tensor.name in original:
            off = values(tensor).astype(np.float64) - original[tensor.name]
            errors[tensor.name] = float(np.sqrt(np.mean(off * off)))
    return errors


def matrices(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The matrices of a GGUF as float32."""
    return {tensor.name: values(tensor) for tensor in GGUFReader(path).tensors if len(tensor.shape) > 1}


def type_name(tensor) -> str:
    """A tensor's type, in small letters."""
    return GGMLQuantizationType(tensor.tensor_type).name.lower()
