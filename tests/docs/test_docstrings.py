"""Docstrings of all public names are complete by numpydoc's checker, and agree with the table of versions."""

import inspect
import re
from typing import Any

import pytest

import onnxpool
import onnxpool.dask
import onnxpool.ndimage
import onnxpool.xarray
from onnxpool import schemas
from onnxpool.operators import __all__ as operators

validate = pytest.importorskip("numpydoc.validate")

PUBLIC = [*(name for name in onnxpool.__all__ if name != "__version__"), *(f"dask.{n}" for n in onnxpool.dask.__all__),
          *(f"xarray.{n}" for n in onnxpool.xarray.__all__), *(f"ndimage.{n}" for n in onnxpool.ndimage.__all__)]
METHODS = [f"{name}.{method}" for name in ("Operator", "Plan")
           for method, value in vars(getattr(onnxpool, name)).items()
           if method[0] != "_" and (inspect.isfunction(value) or isinstance(value, property))]
CALLS = ["Operator.__call__", "Plan.__call__", "Part.__call__", "Share.__call__"]
# Not required: an extended summary, which the notes replace, and examples of methods that a class's examples show.
LEFT_OUT = {"ES01"}
OF_METHODS = {"ES01", "EX01", "SA01"}
FUNCTIONS = [name for name in operators if name.islower()]


@pytest.mark.parametrize("name", [*PUBLIC, *METHODS, *CALLS])
def test_docstring_is_complete(name: str) -> None:
    """numpydoc's checker finds nothing wrong."""
    found = validate.validate(f"onnxpool.{name}")["errors"]
    assert [error for error in found if error[0] not in (OF_METHODS if name in (*METHODS, *CALLS) else LEFT_OUT)] == []


def test_calls_share_the_text_of_their_parameters() -> None:
    """Calls of operators, plans and parts describe parameters after X in the same words. Calls of shares describe two
    of these parameters in other words."""
    entries = {}
    for call in CALLS:
        text = inspect.getdoc(eval(call, vars(onnxpool).copy())) or ""
        found = re.findall(r"^(\*inputs|out|num_threads) : (.*(?:\n    .*)*)", text, re.MULTILINE)
        assert len(found) == len(dict(found)) == 3
        entries[call] = dict(found)
    share = entries.pop("Share.__call__")
    first, *others = entries.values()
    assert all(other == first for other in others)
    assert [name for name in share if share[name] == first[name]] == ["num_threads"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_says_what_the_table_of_versions_has(name: str) -> None:
    """Versions, dtypes and the version since which a parameter exists agree with the table."""
    text = " ".join(getattr(onnxpool, name).__doc__.split())
    operator = next(known for known in schemas.ALL_SCHEMAS if known.lower() == name.replace("_", ""))
    if operator in schemas.OWN_SCHEMAS:
        assert "This operator is not part of ONNX." in text
        return
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
    """Each operator links its page, and its function and its class name each other."""
    text: Any = inspect.getdoc(getattr(onnxpool, name))
    own = name.replace("_", "").lower() in (known.lower() for known in schemas.OWN_SCHEMAS)
    assert own != bool(re.search(r"^\.\. \[1\] .*: https://\S+$", text, re.MULTILINE))
    twin = next(other for other in operators if other != name
                and other.lower().replace("_", "") == name.lower().replace("_", ""))
    assert re.search(rf"^{twin} : ", text, re.MULTILINE)
