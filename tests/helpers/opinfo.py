"""PyTorch's own samples of its pooling functions (its OpInfo records), translated into calls of onnxpool."""

import importlib.util
import math
import sys
import types
import unittest
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnxpool_conformance.oracle import DTYPES, FORMATS

import onnxpool

Array = NDArray[Any]

DEFAULTS = {"stride": None, "padding": 0, "dilation": 1, "ceil_mode": False, "count_include_pad": True,
            "divisor_override": None, "return_indices": False}
AVERAGE = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")


class Sample(NamedTuple):
    """A call of a pooling function, and why onnxpool has no such call; empty if it has."""

    function: str  # without its module, such as max_pool2d
    dtype: str
    x: Any
    arguments: dict[str, Any]
    torch: Any  # makes the call
    reason: str = ""


class UntranslatableError(Exception):
    """What a call does that no ONNX operator does."""


def installed() -> bool:
    """Whether there is a torch to take samples from."""
    return importlib.util.find_spec("torch") is not None


def records() -> Iterator[Any]:
    """The records about pools. Their module imports `expecttest`, which the samples do not need."""
    stub = types.ModuleType("expecttest")
    stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    instead = {"expecttest": stub} if "expecttest" not in sys.modules else {}
    sys.modules.update(instead)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.testing._internal.common_methods_invocations import op_db
    finally:
        for name in instead:
            del sys.modules[name]
    yield from (record for record in op_db if "pool" in record.name)


def all_samples() -> Iterator[Sample]:
    """Every sample of every record, in each dtype that torch and onnxpool have. Integers are for maxima only."""
    import torch

    torch.manual_seed(0)
    for record in records():
        function = record.name.rpartition(".")[2]
        for name in DTYPES:
            kind = getattr(torch, name)
            if kind not in record.dtypes:
                continue
            for sample in record.sample_inputs("cpu", kind):
                yield described(function, name, record, sample)


def described(function: str, dtype: str, record: Any, sample: Any) -> Sample:
    """A sample with named arguments."""
    names = ("output_size", "return_indices") if function.startswith("adaptive") else \
        ("indices",) if function.startswith("max_unpool") else AVERAGE
    given = dict(zip(names, sample.args, strict=False)) | sample.kwargs
    found = Sample(function, dtype, sample.input, given,
                   lambda: record.op(sample.input, *sample.args, **sample.kwargs))
    try:
        attributes(found)
    except UntranslatableError as reason:
        return found._replace(reason=str(reason))
    return found


def to_array(tensor: Any) -> Array:
    """A tensor as an array. NumPy has no bfloat16, so these are passed as their bits."""
    import torch

    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        array: Array = tensor.contiguous().view(torch.int16).numpy().view(DTYPES["bfloat16"])
        return array
    plain: Array = tensor.numpy()
    return plain


def per_axis(value: Any, rank: int) -> list[Any]:
    """An argument as a number for each axis."""
    several = list(value) if isinstance(value, (tuple, list)) else [value]
    return several * rank if len(several) == 1 else several


def attributes(sample: Sample) -> dict[str, Any]:
    """The attributes of ONNX; raises UntranslatableError if there are none."""
    function, rank = sample.function, int(sample.function.partition("pool")[2][:1])
    spatial = sample.x.shape[-rank:]
    if function.endswith("backward"):
        raise UntranslatableError("gradients")
    if function.startswith("fractional"):
        raise UntranslatableError("random windows")
    given = DEFAULTS | sample.arguments
    if function.startswith("adaptive"):
        sizes = [size if wanted is None else wanted
                 for size, wanted in zip(spatial, per_axis(given["output_size"], rank), strict=True)]
        if any(size % wanted for size, wanted in zip(spatial, sizes, strict=True)):
            raise UntranslatableError("windows of different sizes")
        kernel = [size // wanted for size, wanted in zip(spatial, sizes, strict=True)]
        return {"kernel_shape": kernel, "strides": kernel}
    if given["divisor_override"] is not None:
        raise UntranslatableError("a divisor of one's own")
    kernel = per_axis(given["kernel_size"], rank)
    strides = per_axis(given["stride"], rank) if given["stride"] not in (None, ()) else kernel
    made: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": per_axis(given["padding"], rank) * 2}
    if function.startswith("max_unpool"):
        return made
    made["ceil_mode"] = int(given["ceil_mode"])
    if function.startswith("max"):
        return made | {"dilations": per_axis(given["dilation"], rank)}
    return made | {"count_include_pad": int(given["count_include_pad"])}


def unpooled(sample: Sample, x: Array, given: dict[str, Any]) -> Array:
    """MaxUnpool with the indices of a sample, which address planes of the size of its result."""
    rank = x.ndim - 2
    outer = tuple(sample.arguments["output_size"])[-rank:]
    begins = given["pads"][:rank]
    reaches = [(size - 1) * stride + kernel - begin for size, stride, kernel, begin in zip(
        x.shape[2:], given["strides"], given["kernel_shape"], begins, strict=True)]
    inner = [min(reach, size) for reach, size in zip(reaches, outer, strict=True)]
    pads = begins + [reach - size for reach, size in zip(reaches, inner, strict=True)]
    planes = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * rank)
    places = np.unravel_index(to_array(sample.arguments["indices"]).reshape(x.shape), outer)
    indices = np.ravel_multi_index(places, inner) + planes * math.prod(inner)
    y: Array = onnxpool.MaxUnpool(**given | {"pads": pads})(x, indices, np.array([*x.shape[:2], *outer], np.int64))
    return y


def ours(sample: Sample) -> list[Array]:
    """The results of onnxpool, with the indices within each plane that torch returns."""
    given = attributes(sample)
    rank = len(given["kernel_shape"])
    x = to_array(sample.x)
    batched = x if x.ndim == rank + 2 else x[None]
    if sample.function.startswith("max_unpool"):
        return [unpooled(sample, batched, given)]
    if "avg" in sample.function:
        results = [onnxpool.AveragePool(**given)(batched)]
    elif sample.arguments.get("return_indices"):
        y, indices = onnxpool.MaxPool(**given, return_indices=True)(batched)
        results = [y, indices % math.prod(batched.shape[2:])]
    else:
        results = [onnxpool.MaxPool(**given)(batched)]
    return results if batched is x else [result[0] for result in results]


def allowed(sample: Sample, y: Array) -> Any:
    """The largest difference of two results: none between maxima, and the roundings of both sums between means."""
    if "avg" not in sample.function:
        return 0
    x = to_array(sample.x).astype(np.float64)
    taps = math.prod(attributes(sample)["kernel_shape"])
    unit = 2.0 ** -min(24, FORMATS[sample.dtype].precision) if sample.dtype != "float64" else 2.0**-53
    single = 2.0**-53 if sample.dtype == "float64" else 2.0**-24
    return taps * single * np.abs(x).max(initial=0) + 2 * unit * np.abs(y)


def compare(sample: Sample) -> str:
    """What differs between torch and onnxpool; empty if nothing does, or if the sample is not translatable."""
    if sample.reason:
        return ""
    where = f"{sample.function} {sample.dtype}{tuple(sample.x.shape)} {sample.arguments}"
    theirs = sample.torch()
    pairs = zip(ours(sample), map(to_array, theirs if isinstance(theirs, tuple) else (theirs,)), strict=True)
    for a, b in pairs:
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{where}: {a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
        wide, other = a.astype(np.float64), b.astype(np.float64)
        if not np.all((np.abs(wide - other) <= allowed(sample, other)) | ((wide != wide) & (other != other))):
            return f"{where}: other values"
    return ""
