"""Mutants of the code that checks attributes and computes with indices: tests notice nearly all of them."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from .figures import Figure, none
from .mutants import Mutant, mutants_of, mutated

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "onnxpool"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
MODULES = ("attributes", "parts", "places", "schemas", "windows", "planning.cutting",
           "planning.integers", "planning.layout", "planning.orders", "planning.quantisation", "planning.ranges",
           "planning.regions", "planning.unpooling")
TESTS = ("tests/operators", "tests/oracle", "tests/kernels", "tests/embedding/test_limits.py")
QUICK_MODULES = ("windows",)
QUICK_TESTS = ("tests/operators/test_errors_of_attributes.py", "tests/oracle/test_windows_of_an_axis.py",
               "tests/operators/test_parts.py", "tests/kernels/test_choices.py", "tests/embedding/test_limits.py")
QUICK, FULL = 10, 200
LEAST, QUICK_LEAST = 90, 70  # percent; ten mutants say little
CONTROL = 50  # tests that are run without a mutant, to see that they pass in this way, too
SECONDS = 30  # of tests for each mutant, unless a single one takes longer
HANGING = 3600  # seconds after which a mutant that waits for something counts as killed
GIBIBYTES = 6  # of memory for each mutant, which may allocate without end


class Covering(NamedTuple):
    """Which tests run each line, and how long they take."""

    lines: dict[str, dict[int, set[str]]]  # for each module
    seconds: dict[str, float]

    def tests(self, module: str, line: int) -> list[str]:
        """Tests of a line, in SECONDS: first the fastest case of each test, then the second fastest, and so on. What
        runs at import is tested by all tests of the module."""
        lines = self.lines[module]
        found = lines.get(line) or set().union(*lines.values())
        cases: dict[str, int] = {}
        turns = []
        for test in sorted(found, key=lambda test: (self.seconds[test], test)):
            name = test.partition("[")[0]
            cases[name] = cases.get(name, -1) + 1
            turns.append((cases[name], self.seconds[test], test))
        chosen: list[str] = []
        spent = 0.0
        for _, seconds, test in sorted(turns):
            if chosen and spent + seconds > SECONDS:
                continue
            chosen.append(test)
            spent += seconds
        return chosen


def cover(modules: Sequence[str], tests: Sequence[str], folder: Path) -> Covering:
    """Run tests, and note the lines that each of them runs."""
    import onnxpool

    settings, data, outcomes = folder / "settings", folder / "data", folder / "outcomes.json"
    files = {module: Path(onnxpool.__file__).parent / f"{module.replace('.', '/')}.py" for module in modules}
    for module, file in files.items():
        if file.read_bytes() != (SOURCE / file.relative_to(Path(onnxpool.__file__).parent)).read_bytes():
            raise RuntimeError(f"onnxpool.{module} is not that of the source tree; install it")
    settings.write_text(f"[run]\ndata_file = {data}\nsource_pkgs = onnxpool\ndisable_warnings = module-not-measured\n",
                        encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q", "-p",
         "tests.campaign.contexts", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests], cwd=ROOT, text=True,
        env={**os.environ, "CAMPAIGN_OUTCOMES": str(outcomes)}, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return covering([data], [outcomes], files)


def covering(data: Sequence[Path], outcomes: Sequence[Path], files: dict[str, Path]) -> Covering:
    """Read what was noted. Only tests that passed count."""
    from coverage import CoverageData

    ends = {test: end for file in outcomes for test, end in json.loads(file.read_text(encoding="utf-8")).items()}
    seconds = {test: spent for test, (end, spent) in ends.items() if end == "passed"}
    lines: dict[str, dict[int, set[str]]] = {module: {} for module in files}
    for file in data:
        measured = CoverageData(str(file))
        measured.read()
        for module, path in files.items():
            for line, tests in measured.contexts_by_lineno(str(path)).items():
                lines[module].setdefault(line, set()).update(seconds.keys() & tests)
    return Covering(lines, seconds)


def equivalent() -> dict[tuple[str, str, str, str, int], str]:
    """The mutants that do the same as the code, with the reason: module, function, before, after and number of each."""
    listed = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    return {(fields["module"], fields["function"], fields["before"], after, number): fields["reason"]
            for fields in listed["mutant"] for after in fields["after"] for number in fields.get("numbers", [0])}


def candidates(modules: Sequence[str]) -> list[tuple[str, Mutant]]:
    """All mutants but those known to be equivalent."""
    known = equivalent()
    found = [(module, mutant) for module in modules for mutant in mutants_of(text_of(module))]
    return [(module, mutant) for module, mutant in found if (module, *mutant.key) not in known]


def text_of(module: str) -> str:
    """The source of a module."""
    return (SOURCE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")


class Mutated(importlib.machinery.SourceFileLoader):
    """Loads a module from another text."""

    text = ""

    def get_code(self, fullname: str) -> Any:
        """The code of that text."""
        return compile(self.text, self.path, "exec", dont_inherit=True)


class Finder:
    """Finds one module, ahead of all others that find it."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """The module with its mutated text."""
        if name != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None
        assert spec.origin is not None
        loader = Mutated(name, spec.origin)
        loader.text = self.text
        return importlib.util.spec_from_loader(name, loader, origin=spec.origin)


class Recorder:
    """A plugin of pytest that sends the name of the test that fails."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Send it."""
        if report.failed:
            self.connection.send(report.nodeid)


def test_mutant(module: str, text: str, tests: list[str], limit: int, connection: Any) -> None:
    """Run tests of a mutant, or of the code itself if there is no text. For a process of its own."""
    import pytest

    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    resource.setrlimit(resource.RLIMIT_AS, (GIBIBYTES << 30, GIBIBYTES << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))  # of the processor, which others may keep busy
    if text:
        sys.meta_path.insert(0, Finder(f"onnxpool.{module}", text))
    early = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
    os._exit(pytest.main(["-x", "-q", "-W", early, "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0",
                          *tests], plugins=[Recorder(connection)]))


def attempt(job: dict[str, Any]) -> str:
    """What killed a mutant; empty if it survived."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=test_mutant, args=(job["module"], job["text"], job["tests"], job["limit"], there))
    process.start()
    there.close()
    process.join(HANGING)
    if process.is_alive():
        process.kill()
        process.join()
        return "no end"
    try:
        failed = here.recv()
    except EOFError:  # it ended before any test could fail
        failed = ""
    return "" if process.exitcode == 0 else failed or f"exit status {process.exitcode}"


def serve(file: str) -> None:
    """Run the jobs of a file, and print what killed each. For a process that has not imported onnxpool, but all that
    takes long to import: jobs are forks of it."""
    import hypothesis
    import ml_dtypes  # noqa: F401
    import numpy.testing  # noqa: F401
    import pytest  # noqa: F401

    # A failing example need not be small.
    hypothesis.settings.register_profile("mutants", phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
                                         database=None, report_multiple_bugs=False)
    hypothesis.settings.load_profile("mutants")
    jobs = json.loads(Path(file).read_text(encoding="utf-8"))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for killer in pool.map(attempt, jobs):
            print(json.dumps(killer), flush=True)


def killers(jobs: list[dict[str, Any]], folder: Path) -> Iterator[str]:
    """What killed the mutant of each job."""
    file = folder / "jobs.json"
    file.write_text(json.dumps(jobs), encoding="utf-8")
    program = f"from tests.campaign.mutation import serve; serve({str(file)!r})"
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise RuntimeError(f"the process that runs mutants exited with {process.returncode}")


def compare(covered: Covering, modules: Sequence[str], seed: int, count: int, folder: Path) -> Iterator[Figure]:
    """Run a sample of the mutants whose lines are run by tests."""
    drawn = random.Random(seed).sample(candidates(modules), count)
    jobs = []
    for module, mutant in drawn:
        tests = covered.tests(module, mutant.line)
        jobs.append({"module": module, "text": mutated(text_of(module), mutant), "tests": tests,
                     "limit": int(60 + 10 * sum(covered.seconds[test] for test in tests))})
    every = sorted({test for job in jobs for test in job["tests"]})
    some = random.Random(seed).sample(every, min(CONTROL, len(every)))
    control = {"module": "", "text": "", "tests": some, "limit": HANGING}
    survivors = 0
    for mutant, end in zip([None, *drawn], killers([control, *jobs], folder), strict=True):
        if mutant is None:
            yield none("false alarms", int(bool(end)), len(some), "tests of the code itself", end)
        elif not end:
            survivors += 1
            module, change = mutant
            print(f"  survived: {module}:{change.line} {change.function} [{change.number}]: {change.before} -> "
                  f"{change.after}", flush=True)
    least = LEAST if count > QUICK else QUICK_LEAST
    yield Figure("mutants killed", 100 * (1 - survivors / count), count, "mutants", "%", least=least,
                 note=f"of {len(candidates(modules)):,} that are not equivalent")


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Find out which tests run each line, and run mutants of a sample of lines against the tests of each."""
    modules, tests, count = (QUICK_MODULES, QUICK_TESTS, QUICK) if quick else (MODULES, TESTS, FULL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from compare(cover(modules, tests, folder), modules, seed, count, folder)
