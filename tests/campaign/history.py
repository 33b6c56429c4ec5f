"""Mistakes of other libraries: the tests that keep onnxpool from each of them (tests/helpers/mistakes.py)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .figures import Figure, all_of, none

ROOT = Path(__file__).parents[2]
SHOWN = 20  # failing tests


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep the tests of the table. This module is a plugin of the process that runs them."""
    from mistakes import CASES, chosen

    wanted = set(chosen([name for case in CASES.values() for name in case.tests], [item.nodeid for item in items]))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
    items[:] = [item for item in items if item.nodeid in wanted]


def outcome_of(test: ElementTree.Element) -> str:
    """The outcome of a test, of which only "passed" is good and "skipped" says nothing."""
    return next((child.tag for child in test if child.tag in ("failure", "error", "skipped")), "passed")


def outcomes(files: list[str], seed: int, quick: bool) -> dict[str, str]:
    """How each test of the table in these files ends. One that is expected to fail does not pass."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "tests.campaign.history", "-p", "no:cacheprovider",
             "--runxfail", f"--hypothesis-seed={seed}", f"--junit-xml={report}", "-m", "not slow" if quick else "",
             *files], cwd=ROOT, capture_output=True, text=True, check=False)
        if run.returncode not in (0, 1):  # all tests passed, or some failed
            raise RuntimeError(f"pytest ended with {run.returncode}: {run.stdout[-2000:]}{run.stderr[-2000:]}")
        tests = list(ElementTree.parse(report).iter("testcase"))
    return {f"{test.attrib['classname'].replace('.', '/')}.py::{test.attrib['name']}": outcome_of(test)
            for test in tests}


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Run the tests. A record counts if, for each of its cases, some tests pass and none fails."""
    from mistakes import CASES, RECORDS, chosen

    files = sorted({name.partition("::")[0] for case in CASES.values() for name in case.tests})
    ends = outcomes(files, seed, quick)
    failed = [test for test, end in ends.items() if end in ("failure", "error")]
    for test in failed[:SHOWN]:
        print(f"  {test}")
    good = set()
    for key, case in CASES.items():
        tests = chosen(case.tests, ends)
        if any(ends[test] == "passed" for test in tests) and not set(tests) & set(failed):
            good.add(key)
    yield all_of("records whose tests pass", sum(good.issuperset(record.cases) for record in RECORDS), len(RECORDS),
                 "records", note="mistakes that other libraries made")
    yield all_of("cases whose tests pass", len(good), len(CASES), "cases")
    yield none("failing tests", len(failed), len(ends), "tests")
