#!/usr/bin/env python3
"""Unpacks part of a Python package's source distribution, without pip.

    fetch_source.py --sha256 DIGEST --member FOLDER --keep NAME,... --to DIR PACKAGE VERSION

`pip download --no-binary` would first install the package's build backend, which can take longer than the build that
follows. So this asks the index that pip is configured with (PIP_INDEX_URL, pip's configuration files, pip's own default)
for the file, compares its SHA-256, and unpacks the files and folders NAME (with * and ?) of the distribution's FOLDER. DIR
appears whole or not at all; a DIR of the same digest is left alone. Needs Python 3.9 and pip, nothing else. Exit status 0: it is there.
"""

import argparse
import fnmatch
import hashlib
import html.parser
import io
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request

CHUNK = 1 << 20
STAMP = ".sha256"


class FetchError(Exception):
    """The source could not be put in place; the text says why."""


class Links(html.parser.HTMLParser):
    """The targets of a page's links."""

    def __init__(self):
        super().__init__()
        self.targets = []

    def handle_starttag(self, tag, attrs):
        self.targets += [value for name, value in attrs if tag == "a" and name == "href" and value]


def pip_setting(name):
    """What pip is configured with for `name`, or None. pip itself knows where its configuration lies."""
    command = [sys.executable, "-m", "pip", "config", "list", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = None
    for line in done.stdout.splitlines():
        key, _, value = line.partition("=")
        if key.rpartition(".")[2] == name:
            found = value.strip("'\"")
    return found


def index_url():
    if url := os.environ.get("PIP_INDEX_URL") or pip_setting("index-url"):
        return url.rstrip("/")
    try:
        from pip._internal.models.index import PyPI
    except ImportError as error:
        raise FetchError(f"pip names no default index ({error}); set PIP_INDEX_URL") from error
    return PyPI.simple_url.rstrip("/")


def read(url, tls):
    try:
        with urllib.request.urlopen(url, timeout=180, context=tls) as answer:
            body = io.BytesIO()
            shutil.copyfileobj(answer, body, CHUNK)
            return body.getvalue()
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        raise FetchError(f"cannot read {urllib.parse.urlsplit(url).path}: {error}") from error


def download(package, version, digest):
    """The bytes of the source distribution, digest checked."""
    certificates = os.environ.get("PIP_CERT") or pip_setting("cert")
    tls = ssl.create_default_context(cafile=certificates)
    page = f"{index_url()}/{package.lower().replace('_', '-')}/"
    links = Links()
    links.feed(read(page, tls).decode("utf-8", "replace"))
    wanted = f"{package.replace('-', '_')}-{version}.tar.gz"
    for target in links.targets:
        url = urllib.parse.urldefrag(urllib.parse.urljoin(page, target)).url
        if url.rpartition("/")[2] == wanted:
            body = read(url, tls)
            found = hashlib.sha256(body).hexdigest()
            if found != digest:
                raise FetchError(f"{wanted} has SHA-256 {found}, expected {digest}")
            return body
    raise FetchError(f"the index has no {wanted}")


def unpack(body, member, keep, folder):
    prefix = None
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
        for entry in archive:
            root = entry.name.split("/", 1)[0]
            prefix = prefix or f"{root}/{member.strip('/')}/"
            inside = entry.name[len(prefix):]
            first = inside.split("/", 1)[0]
            wanted = any(fnmatch.fnmatchcase(first, name) for name in keep)
            if entry.isfile() and entry.name.startswith(prefix) and wanted:
                target = folder / inside
                if folder.resolve() not in target.resolve().parents:
                    raise FetchError(f"{entry.name} would leave the destination")
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.extractfile(entry) as source, open(target, "wb") as out:
                    shutil.copyfileobj(source, out, CHUNK)
    if missing := [name for name in keep if not any(folder.glob(name))]:
        raise FetchError(f"the distribution has no {member}/{missing[0]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("package")
    parser.add_argument("version")
    parser.add_argument("--sha256", required=True, help="of the source distribution")
    parser.add_argument("--member", required=True, help="folder of the distribution to unpack")
    parser.add_argument("--keep", required=True, type=lambda names: names.split(","), help="what of that folder")
    parser.add_argument("--to", required=True, type=pathlib.Path, help="destination folder")
    args = parser.parse_args()

    stamp = args.to / STAMP
    if stamp.exists() and stamp.read_text().strip() == args.sha256:
        print(f"{args.to}: already there")
        return 0
    try:
        args.to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=args.to.parent) as temporary:
            folder = pathlib.Path(temporary) / "source"
            folder.mkdir()
            unpack(download(args.package, args.version, args.sha256), args.member, args.keep, folder)
            (folder / STAMP).write_text(args.sha256 + "\n")
            shutil.rmtree(args.to, ignore_errors=True)
            os.replace(folder, args.to)
    except (FetchError, OSError, tarfile.TarError) as error:
        print(f"fetch_source: {args.package} {args.version}: {error}", file=sys.stderr)
        return 1
    print(f"{args.to}: {args.member} of {args.package} {args.version}, SHA-256 {args.sha256}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
