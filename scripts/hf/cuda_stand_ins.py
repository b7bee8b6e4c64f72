"""Makes stand-ins for the CUDA libraries that torch's wheel is linked with, so that it loads for the CPU alone."""
import pathlib, re, subprocess, sys, tempfile
lib = pathlib.Path(sys.argv[1]) / "torch" / "lib"
libs = [p for p in sorted(lib.glob("*.so*")) if p.stat().st_size > 20000 or "global_deps" in p.name or "caffe2" in p.name]
run = lambda *a: subprocess.run(a, capture_output=True, text=True, check=True).stdout
CUDA = re.compile(r"lib(cu|nv|nccl)")
missing, owner, wanted, defined = set(), {}, {}, set()
for path in libs:
    for name in re.findall(r"\(NEEDED\).*\[(.+?)\]", run("readelf", "-dW", str(path))):
        if CUDA.match(name) and not (lib / name).exists(): missing.add(name)
    current = None
    for line in run("readelf", "-VW", str(path)).splitlines():
        if m := re.search(r"File: (\S+)", line): current = m[1]
        elif (m := re.search(r"Name: (\S+)", line)) and current in missing: owner[m[1]] = current
for path in libs:
    for line in run("nm", "-D", str(path)).splitlines():
        parts = line.split()
        name, _, version = parts[-1].partition("@")
        version = version.lstrip("@")
        if len(parts) == 2 and parts[0] == "U": wanted[name] = version
        elif len(parts) == 3: defined.add(name)
first = sorted(missing)[0]
by_lib = {name: {} for name in missing}
for name, version in wanted.items():
    if version in owner: by_lib[owner[version]].setdefault(version, []).append(name)
    elif not version and name not in defined and re.match(r"(cu|nv|nccl|__cuda|__nv|_ZN?K?\d*(cudnn|nccl|nv))", name): by_lib[first].setdefault("", []).append(name)
for soname, versions in by_lib.items():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        names = [n for group in versions.values() for n in group]
        asm = ".text\n" + "".join(f".globl {n}\n.type {n},@function\n{n}:\n" for n in names) + 'mov $100, %eax\nret\n.section .note.GNU-stack,"",@progbits\n'
        (folder / "s.s").write_text(asm)
        for v, so in owner.items():
            if so == soname: versions.setdefault(v, [])
        script = "".join((v + " " if v else "") + "{ " + ("global: " + "; ".join(g) + "; " if g else "") + "};\n" for v, g in versions.items() if v)
        args = ["gcc", "-shared", "-nostdlib", "-o", str(lib / soname), f"-Wl,-soname,{soname}", str(folder / "s.s")]
        if script:
            (folder / "v").write_text(script); args.append(f"-Wl,--version-script={folder / 'v'}")
        subprocess.run(args, check=True)
print(f"{len(missing)} libraries, {sum(map(len, wanted)) and len(wanted)} symbols")
