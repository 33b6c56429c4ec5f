"""The table of mistakes that other libraries made names tests that exist."""

import re

import pytest
from mistakes import CASES, RECORDS, chosen, names_of
from programs import launch
from support import ROOT

FILES = sorted({name.partition("::")[0] for case in CASES.values() for name in case.tests})


@pytest.fixture(scope="module")
def collected() -> list[str]:
    """The tests that pytest collects from these files."""
    run = launch("-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", "", "--rootdir", str(ROOT),
                 *(str(ROOT / file) for file in FILES))
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return [line for line in run.stdout.splitlines() if "::" in line]


def test_every_named_test_is_defined() -> None:
    """Each named test is defined in its file, whatever its cases are."""
    for name in (name for case in CASES.values() for name in case.tests):
        file, _, function = name.partition("[")[0].partition("::")
        pattern = function.replace("*", r"\w*")
        assert re.search(rf"def {pattern}\(", (ROOT / file).read_text()), name


@pytest.mark.slow
def test_every_named_test_exists(collected: list[str]) -> None:
    """Every named test exists, whether its name is a function's or a pattern for its cases."""
    missing = [name for case in CASES.values() for name in case.tests if not chosen([name], collected)]
    assert not missing


def test_every_record_has_tests() -> None:
    """Records refer to cases, all of which have tests, and no mistake has two records."""
    for record in RECORDS:
        assert record.ids
        assert record.cases
        assert names_of(record)
        assert len(set(record.cases)) == len(record.cases)
    assert all(case.tests for case in CASES.values())
    ids = [name for record in RECORDS for name in record.ids]
    assert {name for name in ids if ids.count(name) > 1} <= {"OpenCV PR 23671"}  # about strides and about lengths


def test_names_are_those_of_the_case() -> None:
    """A name without brackets means all cases of a test, and a star stands for any part of a case's name."""
    tests = ["t.py::test_a", "t.py::test_a[x 1-first]", "t.py::test_ab[y]", "t.py::test_a[y (2, 3)-last]"]
    assert chosen(["t.py::test_a"], tests) == [tests[0], tests[1], tests[3]]
    assert chosen(["t.py::test_a[* (2, 3)-*]", "t.py::test_ab"], tests) == tests[2:]
    assert chosen(["t.py::test_a[x]", "t.py::test_"], tests) == []


def test_ids_can_be_looked_up() -> None:
    """IDs are advisories, issues, pull requests or commits of a project."""
    known = r"(CVE-\d{4}-\d+|PYSEC-\d{4}-\d+|[\w-]+#\d+|[\w-]+ PR \d+|[\w-]+ [0-9a-f]{7}|torch-xpu-ops \d+)"
    assert not [name for record in RECORDS for name in record.ids if not re.fullmatch(known, name)]
