"""Faults that are put into the compiled code one by one: the campaign or the tests find each of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .builds import ROOT, Build, command, folder
from .figures import Figure, all_of, none

LIST = Path(__file__).with_name("faults.toml")
KERNELS = Path("src/onnxpool/kernels")
LIMIT = 900  # seconds after which a method counts as hanging, and so as finding the fault


class Fault(NamedTuple):
    """A fault, as faults.toml describes it."""

    name: str
    file: str
    before: str
    after: str
    rebuild: list[str]
    needs: str = ""
    tests: Sequence[str] = ()
    unseen: str = ""

    def occurrences(self, tree: Path = ROOT) -> int:
        """How often the fault's text occurs. The text must occur once."""
        return (tree / KERNELS / self.file).read_text(encoding="utf-8").count(self.before)

    def put_into(self, tree: Path) -> None:
        """Put the fault into a copy of the source tree."""
        path = tree / KERNELS / self.file
        path.write_text(path.read_text(encoding="utf-8").replace(self.before, self.after), encoding="utf-8")


def listed() -> list[Fault]:
    """All faults."""
    return [Fault(**fields) for fields in tomllib.loads(LIST.read_text(encoding="utf-8"))["fault"]]


def methods(fault: Fault | None, seed: int) -> dict[str, list[str]]:
    """The commands that look for a fault, cheapest first: random searches, and then tests."""
    oracle = ROOT / "tests" / "oracle"
    tests = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}"]
    found = {
        "fuzz, 1000 calls": [str(oracle / "campaign.py"), "--calls", "1000", "--seed", str(seed)],
        "malformed, 500 calls": [str(oracle / "corruption.py"), "--calls", "500", "--seed", str(seed)],
    }
    for file in fault.tests if fault else ():
        found[file] = [*tests, file]
    if fault is None or not fault.tests:
        found["fuzz, 8000 calls"] = [str(oracle / "campaign.py"), "--calls", "8000", "--seed", str(seed + 1)]
    for tested in ("kernels", "operators", "embedding") if fault else ():
        found[f"tests/{tested}"] = [*tests, f"tests/{tested}"]
    return found


def finding(build: Build, arguments: list[str], **variables: str) -> str:
    """How a method ends if it finds something, with these variables in its environment; empty if it finds nothing."""
    process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=build.environment(**variables), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"no end within {LIMIT} s"
    lines = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return (lines or [f"exit status {process.returncode}"])[0] if process.returncode else ""


def rebuild(build: Build, names: Iterable[str]) -> None:
    """Compile units or modules, and copy what was linked to the site. Other units that contain the fault stay as they
    are, because compiling all of them takes minutes."""
    targets = build.targets()
    modules = [target for target in targets if target.endswith(".so")]
    objects, linked = [], []
    for name in names:
        units = [target for target in targets if f".._{name}_" in target and target.endswith(".o")]
        objects += units
        own = [module for module in modules if Path(module).name.startswith((f"{name}.", f"{name}_"))]
        isas = {Path(unit).parent.name.split("_", 1)[1].rsplit("_", 1)[0] for unit in units}  # libunits_ISA_O2.a.p
        linked += [module for module in modules for isa in isas if Path(module).name.startswith(f"units_{isa}.")]
        if not units and not own:
            raise LookupError(f"nothing to rebuild is named {name}")
        objects += own if not units else []
    command("ninja", "-C", build.objects, *objects)
    for module in dict.fromkeys(linked):
        link = command("ninja", "-C", build.objects, "-t", "commands", module).splitlines()[-1]
        command("sh", "-c", link, cwd=build.objects)
    for module in modules:  # some are installed in another folder than they are built in
        (installed,) = build.site.rglob(Path(module).name)
        shutil.copyfile(build.objects / module, installed)


def search(build: Build, fault: Fault, methods: dict[str, list[str]], **variables: str) -> tuple[str, str]:
    """The method that finds a fault, and how it ends; both empty if no method finds the fault. Afterwards, the build is
    restored."""
    pristine = build.objects.with_name("pristine")
    for path in (build.tree, build.objects):
        shutil.copytree(path, pristine / path.name, symlinks=True)
    try:
        fault.put_into(build.tree)
        rebuild(build, fault.rebuild)
        for name, arguments in methods.items():
            found = finding(build, arguments, **variables)
            if found:
                return name, found
        return "", ""
    finally:
        for path in (build.tree, build.objects):
            shutil.rmtree(path)
            (pristine / path.name).rename(path)
        pristine.rmdir()


def table(rows: list[tuple[Fault, str, Any]]) -> Iterator[str]:
    """The rows of a table in Markdown."""
    for fault, method, found in rows:
        yield f"| {fault.name} | `{fault.file}` | {method or '**nothing**'} | {found} |"


def run(seed: int, quick: bool, chosen: slice = slice(None)) -> Iterator[Figure]:
    """Build the package, and look for each fault that this processor can show. `--quick` compares only texts."""
    faults = listed()
    yield all_of("texts that occur once", sum(fault.occurrences() == 1 for fault in faults), len(faults), "faults")
    if quick:
        return
    with folder("faults") as where:
        build = Build(where)
        isas = subprocess.run([sys.executable, "-c", "import onnxpool.kernels as k; print(*k.available())"], cwd=ROOT,
                              env=build.environment(), capture_output=True, text=True, check=True).stdout.split()
        alarms = [name for name, arguments in methods(None, seed).items() if finding(build, arguments)]
        yield none("false alarms", len(alarms), len(methods(None, seed)), "methods", ", ".join(alarms))
        faults = [fault for fault in faults if fault.needs in ("", *isas)][chosen]
        rows: list[tuple[Fault, str, Any]] = []
        for fault in faults:
            start = time.monotonic()
            rows.append((fault, *search(build, fault, methods(fault, seed))))
            print(f"  {next(table(rows[-1:]))} {time.monotonic() - start:.0f} s", flush=True)
    random = sum("calls" in method for _, method, _ in rows)
    yield all_of("faults found", sum(bool(method) for _, method, _ in rows), len(rows), "faults",
                 f"{random} of them by random calls")
