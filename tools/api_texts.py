"""Texts for the docstrings of the public API, from `api_texts.toml`."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple


class OfXarray(NamedTuple):
    """Texts about a function on labelled arrays."""

    summary: str
    example: str


class OfDask(NamedTuple):
    """Texts about a function on dask arrays."""

    note: str  # a key of NOTES
    example: str
    returns: str = ""


class Texts(NamedTuple):
    """Texts about an operator, and the hand-written classes whose behaviour it inherits."""

    bases: Sequence[str]
    summary: str  # of the function
    short: str  # for the See Also sections of other operators
    result: str  # a key of RESULTS
    notes: Sequence[str]  # keys of NOTES
    see: Sequence[str]
    example: str
    example_of_class: str
    own_notes: str = ""
    returns: str = ""  # replaces the usual section
    inputs: Sequence[str] = ()  # names of the inputs after `x`, if they differ from ONNX
    last: Sequence[str] = ()  # optional inputs, which follow the required attributes
    dask: OfDask | None = None
    xarray: OfXarray | None = None


def operator(texts: dict[str, Any]) -> Texts:
    """The texts about an operator."""
    kinds = {"dask": OfDask, "xarray": OfXarray}
    return Texts(**{key: kinds[key](**value) if key in kinds else value for key, value in texts.items()})


_read = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
OPERATORS = {name: operator(texts) for name, texts in _read.pop("OPERATORS").items()}
SPECIAL = {(name, parameter): text for name, own in _read.pop("SPECIAL").items() for parameter, text in own.items()}


def __getattr__(name: str) -> Any:
    """The other tables and texts of the file."""
    if name not in _read:
        raise AttributeError(f"api_texts.toml has no {name}")
    return _read[name]
