"""Options of the form NAME=VALUE, parsed and checked."""

import os
import re
from collections.abc import Iterable

from ..onnx.cases import RUNTIMES
from ..onnx.disagreements import TABLE
from ..onnx.protos import ModelError
from .operators import operator_of
from .text import sizes

SHAPE = "--shape NAME=SIZE,SIZE,..."
VERSION = re.compile(r"\d{1,9}(\.\d{1,9})*")


def enter(option: str, item: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that is given twice."""
    if name in known:
        raise ModelError(f"{option} {item}: {name!r} is given twice")


def read_model(text: str) -> str:
    """The path of a model, which must not name an operator."""
    operator = None if os.path.exists(text) else operator_of(text)
    if operator is not None:
        raise ModelError(f"{text} is an operator; pass an ONNX file, or see onnxpool explain {operator}")
    return text


def read_files(items: Iterable[str]) -> dict[str, str]:
    """The files given by --input."""
    files: dict[str, str] = {}
    for item in items:
        name, _, file = item.partition("=")
        if not name or not file:
            raise ModelError(f"--input {item}: pass --input NAME=FILE.npy")
        enter("--input", item, name, files)
        files[name] = file
    return files


def read_shapes(items: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The shapes given by --shape."""
    shapes: dict[str, tuple[int, ...]] = {}
    for item in items:
        name, _, text = item.rpartition("=")
        try:
            shape = sizes(text)
        except ValueError:
            shape = ()
        if not name or not shape:
            raise ModelError(f"--shape {item}: pass --shape NAME=1,3,224,224")
        enter("--shape", item, name, shapes)
        shapes[name] = shape
    return shapes


def read_runtimes(items: Iterable[str]) -> dict[str, tuple[int, ...]] | None:
    """The runtimes given by --runtime, each with its release; None for all."""
    runtimes: dict[str, tuple[int, ...]] = {}
    for item in items:
        name, given, version = item.partition("=")
        runtime = RUNTIMES.get(name.lower())
        if runtime is None:
            raise ModelError(f"--runtime {item}: {name!r} is not a runtime; pass one of {', '.join(RUNTIMES)}")
        if given and not VERSION.fullmatch(version):
            raise ModelError(f"--runtime {item}: {version!r} is not a version; pass --runtime {name}=1.32")
        enter("--runtime", item, runtime, runtimes)
        runtimes[runtime] = tuple(map(int, version.split("."))) if given else ()
    return runtimes or None


def read_ignored(names: Iterable[str]) -> set[str]:
    """The warnings given by --ignore."""
    ignored, known = set(names), [row.name for row in TABLE]
    for name in ignored:
        if name not in known:
            raise ModelError(f"--ignore {name}: there is no such warning; pass one of {', '.join(known)}")
    return ignored
