"""Docstrings of all public names are complete according to numpydoc's checker; shared text is written once."""

import inspect
import re
from typing import Any

import pytest

import onnxpool
import onnxpool.dask
from onnxpool import docstrings, schemas
from onnxpool.operators import __all__ as operators

validate = pytest.importorskip("numpydoc.validate")

PUBLIC = [*(name for name in onnxpool.__all__ if name != "__version__"), *(f"dask.{n}" for n in onnxpool.dask.__all__)]
METHODS = [f"{name}.{method}" for name in ("Operator", "Plan")
           for method, value in vars(getattr(onnxpool, name)).items()
           if method[0] != "_" and (inspect.isfunction(value) or isinstance(value, property))]
CALLS = ["Operator.__call__", "Plan.__call__", "Part.__call__", "Share.__call__"]
# Not required of docstrings: an extended summary (the notes serve as one), and examples of methods shown by classes.
LEFT_OUT = {"ES01"}
OF_METHODS = {"ES01", "EX01", "SA01"}
FUNCTIONS = [name for name in operators if name.islower()]


@pytest.mark.parametrize("name", [*PUBLIC, *METHODS, *CALLS])
def test_docstring_is_complete(name: str) -> None:
    """numpydoc's checker has no complaints."""
    found = validate.validate(f"onnxpool.{name}")["errors"]
    assert [error for error in found if error[0] not in (OF_METHODS if name in (*METHODS, *CALLS) else LEFT_OUT)] == []


def test_calls_share_the_text_of_their_parameters() -> None:
    """It is written once; a share has its own text for the parameters that differ."""
    shared = [docstrings.entry(name, *texts) for name, texts in docstrings.OF_CALLS.items()]
    for name, count in (("Operator", 3), ("Plan", 3), ("Part", 3), ("Share", 1)):
        text = inspect.getdoc(getattr(onnxpool, name).__call__) or ""
        assert sum(one in text for one in shared) == count
        assert [text.count(f"\n{parameter} :") for parameter in docstrings.OF_CALLS] == [1, 1, 1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_says_what_the_table_of_versions_has(name: str) -> None:
    """Versions and dtypes are those of the table, and so is the version that introduced a parameter."""
    text = " ".join(getattr(onnxpool, name).__doc__.split())
    operator = next(known for known in schemas.SCHEMAS if known.lower() == name.replace("_", ""))
    rows = [row for row in onnxpool.supported() if row["operator"] == operator]

    assert re.findall(r"\d+", text.partition("[1]_, version")[2].partition(".")[0]) == [
        str(row["version"]) for row in rows]
    for dtype in rows[-1]["dtypes"]:
        assert dtype in text
    for attribute in rows[-1]["attributes"]:
        first = next(row["version"] for row in rows if attribute in row["attributes"])
        entry = re.search(rf"\b{attribute} : (.*?) \w+ : ", text)
        assert entry
        assert (f"Since version {first}." in entry[1]) == (first > rows[0]["version"])


@pytest.mark.parametrize("name", [name for name in operators if "pool" in name.lower()])
def test_links_and_sections(name: str) -> None:
    """Each operator links to its ONNX page, and its function and its class refer to each other."""
    text: Any = getattr(onnxpool, name).__doc__
    assert re.search(r"^\.\. \[1\] .*: https://\S+$", text, re.MULTILINE)
    twin = next(other for other in operators if other != name
                and other.lower().replace("_", "") == name.lower().replace("_", ""))
    assert re.search(rf"^{twin} : ", text, re.MULTILINE)


def test_source_with_or_without_margin_is_the_same() -> None:
    """Python 3.13 strips the indentation of docstrings, and older versions keep it."""
    source = "\n".join(("", "    First.", "", "    Notes", "    -----", "    One::", "", "        two", "",
                        "    Examples", "    --------", "    >>> 3", "    "))
    parts = ("\nFirst.", {"Notes": "One::\n\n    two", "Examples": ">>> 3"})

    assert docstrings.split(source) == docstrings.split(source.replace("\n    ", "\n")) == parts


def test_every_shared_text_is_used() -> None:
    """The tables of shared text contain nothing that no docstring uses."""
    everything = " ".join(" ".join(getattr(onnxpool, name).__doc__.split()) for name in operators)
    for name, text in docstrings.NOTES.items():
        assert " ".join(text.split()) in everything, name
    for name in docstrings.PARAMETERS:
        assert f" {name} : " in everything, name
    assert set(docstrings.SUMMARIES) == set(FUNCTIONS)
