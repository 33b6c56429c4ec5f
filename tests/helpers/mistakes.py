"""The table of mistakes that other libraries made, data/mistakes.toml, and the tests that it names."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Case(NamedTuple):
    """A kind of input, what must happen, and its tests: names of functions, or of their cases with `*`."""

    says: str
    tests: list[str]


class Record(NamedTuple):
    """A mistake of another library."""

    ids: list[str]
    component: str
    cause: str
    cases: list[str]
    instead: str = ""  # what onnxpool has in place of an operator that it lacks


_table = tomllib.loads(Path(__file__).with_name("data").joinpath("mistakes.toml").read_text(encoding="utf-8"))
CASES = {key: Case(says, [f"tests/{name.replace('::', '.py::', 1)}" for name in names])
         for key, (says, *names) in _table["cases"].items()}
RECORDS = [Record(ids.split(", "), component, cause, cases.split(), *instead)
           for ids, component, cause, cases, *instead in _table["records"]]


def names_of(record: Record) -> list[str]:
    """The names of the tests of a record, each once."""
    return list(dict.fromkeys(name for case in record.cases for name in CASES[case].tests))


def chosen(names: Iterable[str], tests: Iterable[str]) -> list[str]:
    """The collected tests that match any of the names."""
    patterns = [re.compile(re.escape(name).replace(r"\*", ".*") + (r"" if "[" in name else r"(\[.*\])?"))
                for name in names]
    return [test for test in tests if any(pattern.fullmatch(test) for pattern in patterns)]
