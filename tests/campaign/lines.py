"""Lines of the Python layer and of the compiled code that the tests run, and a list of the lines that they do not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from .builds import ROOT, Build, command, folder
from .figures import Figure

LEAST = 98  # percent
QUICK_LEAST = 95  # percent of the validator's lines that the tests below run
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
PLACE = re.compile(r'/\* "([^"]+)":(\d+)')  # Cython's comment before the C code of a line

Lines = dict[str, dict[int, bool]]  # for each file, its lines of code, and whether tests ran them


def origins(generated: Path, source: Path) -> dict[int, tuple[str, int]]:
    """The place in Cython code of each line of C in a function. Leaving a function, and initialising a module, which is
    done at every import or never, have none."""
    found: dict[int, tuple[str, int]] = {}
    files: dict[str, str | None] = {}
    place: tuple[str, int] | None = None
    main = next(source.rglob(f"{generated.name.partition('.')[0]}.pyx"))
    initialises = False
    for number, line in enumerate(generated.read_text(encoding="utf-8").splitlines(), 1):
        match = PLACE.search(line)
        if match and not initialises:
            name, at = match[1], int(match[2])
            if name not in files:
                files[name] = file_of(name, main, source)
            place = (files[name], at) if files[name] else None
        elif "__pyx_pymod_exec_" in line and not line.rstrip().endswith((";", ",")):
            initialises, place = True, None
        elif line.startswith("}"):
            initialises, place = False, None
        elif "/* function exit code */" in line:
            place = None
        elif place is not None:
            found[number] = place
    return found


def file_of(name: str, main: Path, source: Path) -> str | None:
    """The file of the source tree that a comment of Cython names, relative to the module `main` or a folder above it;
    None for files of other packages."""
    if "/src/" in name:
        name = name.partition("/src/")[2]
    for above in (source, *main.parents[:3]):
        if (above / name).is_file():
            return str((above / name).relative_to(source))
    return None


def compiled_lines(objects: Path, source: Path) -> Lines:
    """The lines of Cython and of headers in a source folder, over all units.

    The lines of an inlined function count where it is inlined. A separate copy that nothing calls is ignored, unless
    its lines run nowhere else, because then nothing calls the function.
    """
    lines: Lines = defaultdict(dict)
    uncalled: dict[str, set[tuple[str, int]]] = defaultdict(set)  # lines of such copies
    mapped: dict[Path, dict[int, tuple[str, int]]] = {}
    counts = sorted(objects.rglob("*.gcda"))
    for first in range(0, len(counts), 20):
        documents = command("gcov", "--json-format", "--stdout", *counts[first:first + 20], cwd=objects)
        for document in documents.splitlines():
            for file in json.loads(document)["files"]:
                path = (objects / file["file"]).resolve()
                if path.suffix == ".c" and path.is_relative_to(objects):
                    if path not in mapped:
                        mapped[path] = origins(path, source)
                    places = mapped[path]
                elif path.suffix == ".h" and path.is_relative_to(source):
                    places = {line["line_number"]: (str(path.relative_to(source)), line["line_number"])
                              for line in file["lines"]}
                else:
                    continue
                called = {function["name"] for function in file["functions"] if function["execution_count"]}
                own = {function["name"] for function in file["functions"]}
                for line in file["lines"]:
                    if line["line_number"] not in places:
                        continue
                    name, number = places[line["line_number"]]
                    function = line.get("function_name", "")
                    if function in own - called:
                        uncalled[function].add((name, number))
                    else:
                        lines[name][number] = lines[name].get(number, False) or line["count"] > 0
    for copies in uncalled.values():
        if not any(lines[name].get(number) for name, number in copies):
            for name, number in copies:
                lines[name].setdefault(number, False)
    return lines


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
    """Run tests, and return the Python layer's lines and the last line that pytest printed."""
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
    """The share of lines that tests ran. The other lines are printed."""
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
        build = Build(where, "-Db_coverage=true")
        for counts in build.objects.rglob("*.gcda"):
            counts.unlink()
        python, summary = measure(build, build.site / "onnxpool", where, ["tests", f"--hypothesis-seed={seed}"])
        yield figure("lines of Python that tests run", python, summary)
        compiled = compiled_lines(build.objects.resolve(), (build.tree / "src").resolve())
        yield figure("lines of Cython that tests run",
                     {name: lines for name, lines in compiled.items() if not name.endswith(".h")})
        yield figure("lines of C headers that tests run",
                     {name: lines for name, lines in compiled.items() if name.endswith(".h")})
