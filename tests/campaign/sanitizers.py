"""gcc's sanitizers and valgrind: wrong addresses, undefined behaviour, data races, and uninitialised elements."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from .figures import Figure, none

ROOT = Path(__file__).parents[2]
QUICK, FULL = 40, 2000  # calls in valgrind
SHOWN = 10  # maximum reports, or failing tests, that are shown
LINES = 12  # maximum lines of a report
WITHOUT_AVX512 = ("baseline", "x86_v3")  # valgrind emulates no AVX-512
# CPython looks at the first digit of ints that have none, and then for small ints. The linker reads whole words of
# strings.
SUPPRESSED = """
{
    first digit
    Memcheck:Cond
    fun:maybe_small_long
}
{
    small int
    Memcheck:Value8
    obj:*python3*
}
{
    words
    Memcheck:Addr8
    obj:*/ld-linux*
}
"""
REPORT = re.compile(r"runtime error: |: \w+Sanitizer: ")
# The arguments of pytest. The sanitizer of addresses reserves terabytes, adds to allocations, makes calls slow, and is
# loaded into each process that tests start. It ends the process when OpenVINO loads a library with RTLD_DEEPBIND.
LIMITING = ("tests/oracle/test_corrupted_calls.py::test_corrupted_calls", "tests/operators/test_errors_of_arguments.py",
            "tests/kernels/test_memory_of_calls.py", "tests/embedding/test_caches.py", "tests/docs/test_streaming.py",
            "tests/docs/test_pyramid.py")
MEASURING = ("tests/embedding/test_audit.py", "tests/embedding/test_embedding.py::test_interrupts",
             "tests/docs/test_explorer.py")
WITH_OPENVINO = ("tests/onnx/test_disagreements.py", "tests/onnx/test_kernels_larger_than_the_input.py",
                 "tests/onnx/test_decision_files.py::test_the_table_on_the_page", "tests/project/test_benchmarks.py")
SUITES = {
    "address": ["tests", "-k", "not openvino",
                *(f"--deselect={name}" for name in (*LIMITING, *MEASURING, *WITH_OPENVINO))],
    "thread": ["tests/project/test_wheel.py", "tests/kernels/test_routes.py", "tests/embedding/test_free_threading.py"],
}


def outcome_of(test: ElementTree.Element) -> str:
    """The outcome of a test, of which only "passed" is good and "skipped" says nothing."""
    return next((child.tag for child in test if child.tag in ("failure", "error", "skipped")), "passed")


def sanitized(sanitizer: str, tests: list[str]) -> tuple[dict[str, str], list[str], list[str]]:
    """How each test ends with a sanitizer, the sanitizer's reports, and the seeded faults that it reported first."""
    with tempfile.TemporaryDirectory() as folder:
        results, files = Path(folder) / "results.xml", Path(folder) / "reports"
        done = subprocess.run([".ci/sanitize", sanitizer, "-q", f"--junit-xml={results}", *tests], cwd=ROOT, text=True,
                              env=os.environ | {"VENV": sys.prefix, "REPORTS": str(files)}, capture_output=True,
                              check=False)
        lines = [path.read_text(errors="replace").splitlines() for path in sorted(files.glob("*"))]
        reports = ["\n".join(file[i:i + LINES]) for file in lines for i, line in enumerate(file) if REPORT.search(line)]
        if not results.exists():  # the sanitizer ended the process
            raise RuntimeError("\n".join([f".ci/sanitize {sanitizer} exited with {done.returncode}", *reports[:1],
                                          *(file[-1] for file in lines if file), done.stdout[-2000:],
                                          done.stderr[-2000:]]))
        ends = {f"{test.attrib['classname']}::{test.attrib['name']}": outcome_of(test)
                for test in ElementTree.parse(results).iter("testcase")}
        faults = [line.removeprefix("reported: ") for line in done.stdout.splitlines() if line.startswith("reported: ")]
        return ends, reports, faults


def call_and_read(first: int, calls: int) -> None:
    """Make random calls, and let every byte of their results decide a branch. Runs in valgrind."""
    import campaign
    from calls import SeededChoices
    from calls_family import WEIGHTED, draw_call

    import onnxpool

    made = 0
    for seed in range(first, first + calls):
        call = draw_call(SeededChoices(seed), WEIGHTED)
        print(seed, file=sys.stderr, flush=True)
        try:
            with campaign.any_route(SeededChoices([seed, 1])):
                results = call.run(onnxpool)
        except onnxpool.PoolError:
            continue
        for y in results if isinstance(results, tuple) else (results,):
            y.tobytes().count(0)
        made += 1
    print(made)


def in_valgrind(level: str, first: int, calls: int) -> tuple[int, list[str]]:
    """How many results valgrind saw, and its reports."""
    with tempfile.NamedTemporaryFile("w", suffix=".supp") as suppressed:
        suppressed.write(SUPPRESSED)
        suppressed.flush()
        done = subprocess.run(
            ["valgrind", "--quiet", f"--suppressions={suppressed.name}", "--leak-check=no", sys.executable, "-c",
             f"from tests.campaign.sanitizers import call_and_read; call_and_read({first}, {calls})"],
            cwd=ROOT, env=os.environ | {"PYTHONMALLOC": "malloc", "ONNXPOOL_ISA": level}, text=True,
            capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"valgrind exited with {done.returncode}\n{done.stderr[-3000:]}")
    return int(done.stdout), reports_of(done.stderr)


def reports_of(text: str) -> list[str]:
    """The reports in valgrind's output, each with the seed of the call that was made last."""
    seed, reports = "", []
    for line in text.splitlines():
        if line.isdigit():
            seed = line
        elif re.match(r"==\d+== [A-Z]", line):
            reports.append(f"{seed}: {line}")
        elif reports and line.startswith("=="):
            reports[-1] += f"\n{line}"
    return ["\n".join(report.splitlines()[:LINES]) for report in reports]


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Build with each sanitizer, unless the run is quick; then run valgrind on the library that is installed."""
    from onnxpool.kernels import available

    if shutil.which("valgrind") is None:
        raise RuntimeError("valgrind is not installed")
    for sanitizer, tests in {} if quick else SUITES.items():
        ends, reports, faults = sanitized(sanitizer, tests)
        failed = [test for test, end in ends.items() if end in ("failure", "error")]
        for text in [*reports, *failed][:SHOWN]:
            print(f"  {text}")
        yield none(f"reports of -fsanitize={sanitizer}", len(reports), len(ends), "tests",
                   f"it reported {', '.join(faults)} before")
        yield none(f"tests that fail with -fsanitize={sanitizer}", len(failed), len(ends), "tests")
    calls = QUICK if quick else FULL
    for level in WITHOUT_AVX512[:1 if quick else None]:
        if level in available():
            made, reports = in_valgrind(level, seed * 10**7, calls)
            for text in reports[:SHOWN]:
                print(f"  {text}")
            yield none(f"reports of valgrind, {level}", len(reports), made, "results",
                       "nothing is built with sanitizers in a quick run" if quick else "")
