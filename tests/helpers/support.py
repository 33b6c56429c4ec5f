"""Helpers of tests: paths, dtypes, layouts, instruction sets, comparisons of bits, and windows tap by tap in NumPy."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxpool_conformance.oracle import DTYPES as BY_NAME
from onnxpool_conformance.oracle import FORMATS, widened

from onnxpool import kernels

Array = NDArray[Any]

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent

BYTE_NAMES = ("int8", "uint8")
FLOAT_NAMES = tuple(name for name in ("float16", "bfloat16", "float32", "float64") if name in BY_NAME)
BYTES = [BY_NAME[name] for name in BYTE_NAMES]
FLOATS = [BY_NAME[name] for name in FLOAT_NAMES]
DTYPES = [*BYTES, *FLOATS]
LAYOUTS = {"channels first": False, "channels last": True}
INSTRUCTION_SETS = ("baseline", "x86_v3", "x86_v4")
FAR, FARTHEST = 15 << 19, 17 << 20  # bytes, slightly beyond the sizes that loops treat as near and as far


def built_solvers() -> set[str]:
    """The names of the solvers that are compiled for the instruction set in use."""
    names = {name.partition("_")[0] for name in kernels.pools.unit_names()}
    return {row["name"] for row in kernels.routes()} & names


def to_last(x: Array, last: bool = True) -> Array:
    """A channels-first array, converted to channels last if `last`."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x


def to_first(y: Array, last: bool = True) -> Array:
    """The channels-first view of an array, which is channels last if `last`."""
    return np.moveaxis(y, -1, 1) if last else y


def bits(y: Array) -> tuple[Array, Array]:
    """The bit patterns of all elements as integers, with 0 for every NaN, and a mask of the NaNs."""
    with np.errstate(invalid="ignore"):  # comparing signalling NaNs of bfloat16 warns
        nans = y != y
    return np.where(nans, 0, np.ascontiguousarray(y).view(f"u{y.itemsize}")), nans


def same_bits(first: Array, second: Array) -> bool:
    """Whether two arrays have the same shape, dtype and bits, where all NaNs count as equal."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    one, other = (np.ascontiguousarray(y).view(f"u{y.itemsize}") for y in (first, second))
    return np.array_equal(one, other) or all(map(np.array_equal, bits(first), bits(second)))


def assert_same_bits(first: Array, second: Array) -> None:
    """Assert that `same_bits` holds, and say how many elements differ."""
    assert first.dtype == second.dtype
    assert first.shape == second.shape
    first, second = np.ascontiguousarray(first), np.ascontiguousarray(second)
    differ = np.logical_or(*(one != other for one, other in zip(bits(first), bits(second), strict=True)))
    assert not differ.any(), f"{differ.sum()} of {differ.size} differ, first {first[differ][0]} and {second[differ][0]}"


def assert_same_values(first: Array, second: Array) -> None:
    """Assert that numbers are equal or both NaN, whatever the sign of a zero."""
    np.testing.assert_array_equal(widened(first), widened(second), strict=True)


def elements(shape: tuple[int, ...], dtype: np.dtype[Any], odd: bool = False) -> Array:
    """Integers of the whole range, or normal numbers among zeros of both signs, some non-finite if `odd`."""
    rng = np.random.default_rng(11)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    x: Array = rng.standard_normal(shape, np.float32).astype(dtype)
    x[rng.random(shape) < 0.3] = 0.0
    x[rng.random(shape) < 0.3] = -0.0
    if odd:
        form = FORMATS[dtype.name]
        for value in (np.nan, np.inf, -np.inf, (2.0 - 2.0 ** (1 - form.precision)) * 2.0 ** (form.top - 1)):
            x[rng.random(shape) < 0.004] = value
    return x


def taps(x: Array, kernel_shape: Sequence[int], strides: Sequence[int] | None = None,
         dilations: Sequence[int] | None = None, pads: Sequence[int] | None = None, *,
         value: Any = 0) -> Iterator[Array]:
    """For every tap of a window, in order, the elements that all windows have there, with `value` in the padding."""
    rank = len(kernel_shape)
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
    before = [(0, 0)] * (x.ndim - rank)
    padded = np.pad(x, [*before, *zip(pads[:rank], pads[rank:], strict=True)], constant_values=value)
    ends = [size - (k - 1) * d
            for size, k, d in zip(padded.shape[x.ndim - rank:], kernel_shape, dilations, strict=True)]
    for tap in itertools.product(*map(range, kernel_shape)):
        places = (slice(t * d, t * d + end, s) for t, d, end, s in zip(tap, dilations, ends, strides, strict=True))
        yield padded[(slice(None),) * (x.ndim - rank) + tuple(places)]


def largest(parts: Iterable[Array]) -> Array:
    """The elementwise maximum of arrays, one for each tap in order. NaNs are kept."""
    result: Array | None = None
    for part in parts:
        with np.errstate(invalid="ignore"):  # comparing bfloat16 with a NaN warns
            result = part if result is None else np.where((part > result) | (part != part), part, result)
    assert result is not None
    return result


def least(dtype: np.dtype[Any]) -> Any:
    """The value that a maximum sees in the padding."""
    return -np.inf if dtype.kind not in "iu" else np.iinfo(dtype).min
