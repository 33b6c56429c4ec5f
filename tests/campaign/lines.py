"""Lines of the Python layer and of the compiled code that the tests run, and a list of those they do not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .builds import ROOT, Build, command, folder
from .figures import Figure

LEAST = 98  # percent
QUICK_LEAST = 95  # of the validator, by the tests below
QUICK_TESTS = ("tests/operators/test_schemas.py", "tests/operators/test_errors_of_attributes.py",
               "tests/operators/test_axes.py", "tests/oracle/test_windows_of_an_axis.py",
               "tests/operators/test_parts.py", "tests/embedding/test_limits.py")
QUICK_MODULES = ("attributes.py", "windows.py", "schemas.py")
SETTINGS = """[run]
data_file = {data}
source = {package}
parallel = true
patch = subprocess, _exit, fork
disable_warnings = no-data-collected, module-not-imported, module-not-measured, previously-imported, already-imported

[report]
exclude_also =
    raise NotImplementedError
"""
PLACES = "[binaries]\ncython = ['cython', '--line-directives']\n"  # so that counts of C are those of Cython

Lines = dict[str, dict[int, bool]]  # for each file, its lines of code, and whether tests ran them


def compiled_lines(build: Build, where: Path) -> Lines:
    """The lines of Cython and of headers, over all units. They run if they do in any copy of an inlined function."""
    report = where / "compiled.json"
    command("gcovr", "--root", build.tree / "src", "--gcov-ignore-errors=source_not_found",
            "--gcov-ignore-errors=no_working_dir_found", "--merge-mode-functions=merge-use-line-min",
            "--exclude-noncode-lines", "--json", report, build.objects)
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    return {file["file"]: {line["line_number"]: line["count"] > 0 for line in file["lines"]} for file in files}


def python_lines(data: Path, settings: Path, package: Path, folder: Path) -> Lines:
    """The lines of the Python layer."""
    report = folder / "report.json"
    arguments = [sys.executable, "-m", "coverage"]
    command(*arguments, "combine", f"--rcfile={settings}", "--keep", data)
    command(*arguments, "json", f"--rcfile={settings}", "-o", report, "-q")
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    return {str((ROOT / name).resolve().relative_to(package.parent)):
            {**dict.fromkeys(file["executed_lines"], True), **dict.fromkeys(file["missing_lines"], False)}
            for name, file in files.items()}


def measure(build: Build | None, package: Path, folder: Path, tests: list[str]) -> tuple[Lines, str]:
    """Run tests, and return the lines of the Python layer with the last line that pytest printed."""
    settings, data = folder / "settings", folder / "data"
    data.mkdir()
    settings.write_text(SETTINGS.format(data=data / "lines", package=package), encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q", "-p",
                           "no:cacheprovider", *tests], cwd=ROOT, text=True, stdout=subprocess.PIPE, check=False,
                          env=build.environment() if build else None)
    if done.returncode not in (0, 1):  # some tests are too slow or too large while they are measured
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}")
    for line in done.stdout.splitlines():
        if line.startswith("FAILED"):
            print(f"  {line}")
    return python_lines(data, settings, package, folder), done.stdout.splitlines()[-1]


def ranges(numbers: list[int]) -> str:
    """Line numbers, with neighbours as ranges."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def figure(name: str, lines: Lines, note: str = "", least: float = LEAST) -> Figure:
    """The share of lines that tests ran. Lists the others."""
    for file, known in sorted(lines.items()):
        missing = [number for number, ran in known.items() if not ran]
        if missing:
            print(f"  {file}: {ranges(missing)}")
    every = [ran for known in lines.values() for ran in known.values()]
    return Figure(name, 100 * sum(every) / max(1, len(every)), len(every), "lines", "%", least=least, note=note)


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Build with counters, run the default tests, and count. `--quick` runs tests of the validator without a build."""
    with folder("lines") as where:
        if quick:
            import onnxpool

            package = Path(onnxpool.__file__).parent
            python, summary = measure(None, package, where, [*QUICK_TESTS, f"--hypothesis-seed={seed}"])
            lines = {name: python[f"onnxpool/{name}"] for name in QUICK_MODULES}
            yield figure("lines of the validator that some of its tests run", lines, summary, QUICK_LEAST)
            return
        machine = where / "cython.ini"
        machine.write_text(PLACES, encoding="utf-8")
        build = Build(where, "-Db_coverage=true", f"--native-file={machine}")
        for counts in build.objects.rglob("*.gcda"):
            counts.unlink()
        python, summary = measure(build, build.site / "onnxpool", where, ["tests", f"--hypothesis-seed={seed}"])
        yield figure("lines of Python that tests run", python, summary)
        compiled = compiled_lines(build, where)
        yield figure("lines of Cython that tests run",
                     {name: lines for name, lines in compiled.items() if not name.endswith(".h")})
        yield figure("lines of C headers that tests run",
                     {name: lines for name, lines in compiled.items() if name.endswith(".h")})
