"""Which part of the campaign draws which argument of which public function, class and method: a table, and a recorder.

`tests/project/test_arguments_drawn.py` compares the table with all signatures, and with what the parts draw.
"""

from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

FUZZ, RELATIONS, GUARDS, SLOWEST = PARTS = ("fuzz", "relations", "guards", "slowest")
RESULTS = (FUZZ, RELATIONS, GUARDS)
METHODS = ("tile", "tiles", "partials", "combine", "tuned")  # methods of plans that decide how results are computed

DRAWN: dict[str, tuple[str, ...]] = {  # for each argument, the parts that draw it
    "x": RESULTS,
    "x_scale": RESULTS,
    "x_zero_point": RESULTS,
    "y_scale": RESULTS,
    "y_zero_point": RESULTS,
    "indices": RESULTS,
    "output_shape": RESULTS,
    "rois": RESULTS,
    "batch_indices": RESULTS,
    "kernel_shape": PARTS,
    "pooled_shape": RESULTS,
    "p": PARTS,
    "mode": RESULTS,
    "output_height": RESULTS,
    "output_width": RESULTS,
    "sampling_ratio": RESULTS,
    "spatial_scale": RESULTS,
    "coordinate_transformation_mode": RESULTS,
    "strides": PARTS,
    "pads": PARTS,
    "dilations": PARTS,
    "auto_pad": PARTS,
    "ceil_mode": PARTS,
    "count_include_pad": PARTS,
    "storage_order": PARTS,
    "return_indices": PARTS,
    "opset": PARTS,
    "channels_last": PARTS,
    "axes": PARTS,
    "keepdims": PARTS,
    "dtype": PARTS,
    "skipna": PARTS,
    "out": (FUZZ, GUARDS),
    "num_threads": RESULTS,
    "slices": (RELATIONS,),
    "n": (RELATIONS,),
    "max_bytes": (RELATIONS,),
    "partials": (RELATIONS,),
    "seconds": (RELATIONS,),
}


class Left(NamedTuple):
    """Arguments that parts leave out, and why. They belong to some functions, classes or methods, or to all."""

    parts: tuple[str, ...]
    names: tuple[str, ...]  # with * for any text
    argument: str
    reason: str


LEFT_OUT = (
    Left((SLOWEST,), ("*_*",), "*", "times objects, of which each function looks one up"),
    Left((SLOWEST,), ("*Roi*", "MaxUnpool"), "*", "values determine their work, which test_limits.py bounds"),
    Left((SLOWEST,), ("Plan.*",), "*", "times whole results"),
    Left((FUZZ, GUARDS), ("Plan.*",), "*", "make all parts of a result; `relations` draws their number and size"),
    Left((RELATIONS,), ("*",), "out", "compares results with each other; `fuzz` checks results in `out`"),
    Left(PARTS, ("NhwcMaxPool",), "channels_last", "only True is accepted"),
)
FLAGS = ("ceil_mode", "count_include_pad", "storage_order", "return_indices", "channels_last", "keepdims", "skipna")
REQUIRED: dict[str, tuple[str, ...]] = {  # values with which each function and class must have been called
    **dict.fromkeys(FLAGS, ("0", "1")),
    "auto_pad": ("'NOTSET'", "''", "'VALID'", "'SAME_UPPER'", "'SAME_LOWER'"),
    "mode": ("'avg'", "'max'"),
    "coordinate_transformation_mode": ("'half_pixel'", "'output_half_pixel'"),
    "dtype": ("None", "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32",
              "uint32", "int64", "uint64"),
}
Seen = dict[tuple[str, str], set[str]]  # the values of each argument of each name, in short


def signatures() -> dict[str, inspect.Signature]:
    """The signatures of all public functions and classes of operators, and of methods of plans."""
    import onnxpool
    from onnxpool import operators

    found = {name: inspect.signature(getattr(onnxpool, name)) for name in operators.__all__}
    for name in METHODS:
        signature = inspect.signature(getattr(onnxpool.Plan, name))
        found[f"Plan.{name}"] = signature.replace(parameters=[*signature.parameters.values()][1:])
    return found


def reasons(part: str, name: str, argument: str) -> list[Left]:
    """Why a part leaves an argument out."""
    from fnmatch import fnmatchcase

    return [left for left in LEFT_OUT if part in left.parts and left.argument in ("*", argument)
            and any(fnmatchcase(name, pattern) for pattern in left.names)]


def drawn_by(part: str) -> Iterator[tuple[str, str]]:
    """Names and their arguments that a part draws, according to the table."""
    for name, signature in signatures().items():
        for argument in signature.parameters:
            if part in DRAWN.get(argument, ()) and not reasons(part, name, argument):
                yield name, argument


def gaps() -> Iterator[str]:
    """Arguments that the table lacks, and names in the table that do not exist."""
    known = {argument for signature in signatures().values() for argument in signature.parameters}
    yield from (f"no function has {argument}" for argument in DRAWN.keys() - known)
    used = set()
    for name, signature in signatures().items():
        for argument in signature.parameters:
            for part in PARTS:
                why = reasons(part, name, argument)
                used.update(why)
                if not why and part not in DRAWN.get(argument, ()) and not (
                        part == SLOWEST and argument in ("x", "out", "num_threads")):
                    yield f"{part} does not draw {argument} of {name}, and there is no reason"
    yield from (f"nothing is left out because it {left.reason}" for left in LEFT_OUT if left not in used)


def short(argument: str, value: Any) -> str:
    """A value in the form of the table `REQUIRED`: the dtype of an array, and any flag as 0 or 1."""
    if argument in ("x", "rois") and isinstance(value, np.ndarray):
        return value.dtype.newbyteorder("=").name if value.dtype.name != "bfloat16" else "bfloat16"
    if argument == "out":
        first = value[0] if isinstance(value, tuple) else value
        return "None" if first is None else f"{type(value).__name__}, {first.flags.aligned}, {first.strides}"
    if argument == "dtype":
        return "None" if value is None else np.dtype(value).name
    if argument == "partials":
        return str(len(value))
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return str(int(value)) if isinstance(value, bool) else repr(value)


class Nothing:
    """Stands for an operator, a plan or a result, none of which is computed."""

    def __call__(self, *args: Any, **given: Any) -> Nothing:
        """Compute nothing."""
        return self

    plan = __call__


class Recorder:
    """A record of arguments. It stands in for the library: the same functions and classes, which compute nothing."""

    def __init__(self) -> None:
        self.seen: Seen = defaultdict(set)
        self.signatures = signatures()

    def watched(self, name: str, call: Callable[..., Any], bound: bool = False) -> Callable[..., Any]:
        """A function that records its arguments, without `self` if it is a method."""
        signature = self.signatures[name]

        @functools.wraps(call, ("__doc__",), ())
        def watching(*args: Any, **given: Any) -> Any:
            arguments = signature.bind(*args[bound:], **given)
            arguments.apply_defaults()
            for argument, value in arguments.arguments.items():
                self.seen[name, argument].add(short(argument, value))
            return call(*args, **given)

        return watching

    def __getattr__(self, name: str) -> Any:
        return self.watched(name, Nothing())


@contextmanager
def recorded() -> Iterator[Recorder]:
    """Record the calls of onnxpool's functions, classes and methods of plans in the block."""
    import onnxpool

    recorder = Recorder()
    with mock.patch.multiple(onnxpool, **{name: recorder.watched(name, getattr(onnxpool, name))
                                          for name in recorder.signatures if "." not in name}):
        methods = {name: recorder.watched(f"Plan.{name}", getattr(onnxpool.Plan, name), bound=True)
                   for name in METHODS}
        with mock.patch.multiple(onnxpool.Plan, **methods):
            yield recorder
