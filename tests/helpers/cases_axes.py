"""Random calls with named axes, and their expected results, which ONNX defines for transposed arrays."""

import math
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import onnxpool

Array = NDArray[Any]
WINDOWED = ("MaxPool", "MinPool", "AveragePool", "LpPool")
WHOLE = ("GlobalMaxPool", "GlobalMinPool", "GlobalAveragePool", "GlobalLpPool")
EXTREMA = ("MaxPool", "MinPool", "GlobalMaxPool", "GlobalMinPool")
FLOATS = tuple(map(np.dtype, (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)))
INTEGERS = tuple(np.dtype(name) for name in (
    "uint8", "int8", "bool", "int16", "uint16", "int32", "uint32", "int64", "uint64", "datetime64[s]",
    "timedelta64[ns]"))
ANY = (*FLOATS, *INTEGERS)


class Case(NamedTuple):
    """One call."""

    operator: str
    axes: tuple[int, ...]
    attributes: dict[str, Any]
    keepdims: bool
    indexed: bool
    x: Array

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of the call."""
        more = {"return_indices": True} if self.indexed else {} if self.keepdims else {"keepdims": False}
        return {**self.attributes, "axes": self.axes, **more}

    def make(self) -> Any:
        """The operator of the call."""
        return getattr(onnxpool, self.operator)(**self.given)


def elements(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Random elements, some of which are equal, and occasionally some not finite."""
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iumM":
        held = np.dtype(np.int64) if dtype.kind in "mM" else dtype
        low, high = np.iinfo(held).min, np.iinfo(held).max
        few = dtype.kind in "mM" and rng.random() < 0.5  # NaT, the least integer
        x = rng.integers(low, high, shape, held, endpoint=True)
        return np.where(rng.random(shape) < (0.02 if few else 0.5), low, x).astype(held).view(dtype)
    x = np.round(rng.standard_normal(shape) * 4, int(rng.choice([0, 1, 17])))
    if rng.random() < 0.2:
        x = np.where(rng.random(shape) < 0.1, rng.choice([math.nan, math.inf, -math.inf, -0.0]), x)
    return x.astype(dtype)


def laid(rng: np.random.Generator, x: Array) -> Array:
    """The same array in a different memory layout: permuted, cropped, reversed, or unchanged."""
    way = rng.integers(0, 5)
    if way == 0:
        order = rng.permutation(x.ndim)
        return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
    if way == 1:
        larger = np.zeros([size + 2 for size in x.shape], x.dtype)
        larger[tuple(slice(1, -1) for _ in x.shape)] = x
        return larger[tuple(slice(1, -1) for _ in x.shape)]
    if way == 2:
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    return x


def attributes(rng: np.random.Generator, operator: str, sizes: list[int]) -> dict[str, Any]:
    """Random attributes for windows along axes of these sizes."""
    if operator in WHOLE:
        return {"p": int(rng.integers(1, 4))} if operator == "GlobalLpPool" else {}
    dilations = [int(rng.choice([1, 1, 2, 3])) for _ in sizes]
    kernel = [max(1, min(int(rng.choice([1, 2, 3, 4, 10])), (size - 1) // d + 1))
              for size, d in zip(sizes, dilations, strict=True)]
    given: dict[str, Any] = {"kernel_shape": kernel, "strides": [int(rng.choice([1, 2, 3])) for _ in sizes],
                             "dilations": dilations, "ceil_mode": int(rng.integers(0, 2))}
    padding = rng.integers(0, 4)
    if padding == 0:
        given["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    elif padding > 1:
        given["pads"] = [int(rng.integers(0, k + 2)) for _ in range(2) for k in kernel]
    if operator == "AveragePool":
        given["count_include_pad"] = int(rng.integers(0, 2))
    if operator == "LpPool":
        given["p"] = int(rng.integers(1, 4))
    return given


def random_case(seed: int) -> Case:
    """The random call for a seed."""
    rng = np.random.default_rng(seed)
    operator = str(rng.choice([*WINDOWED, *WHOLE]))
    dtype = rng.choice(np.array(ANY if operator in EXTREMA else FLOATS, object))
    rank = int(rng.integers(1, 6))
    shape = tuple(int(rng.choice([1, 2, 3, 5, 9, 17])) if rng.random() > 0.1 or rank > 3 else 70 for _ in range(rank))
    axes = tuple(map(int, rng.permutation(rank)[:rng.integers(1, rank + 1)]))
    named = tuple(axis - rank if rng.random() < 0.3 else axis for axis in axes)
    x = laid(rng, elements(rng, shape, dtype))
    return Case(operator, named, attributes(rng, operator, [shape[axis] for axis in axes]),
                operator in WINDOWED or bool(rng.integers(0, 2)),
                operator in ("MaxPool", "MinPool") and rng.random() < 0.5, x)


def varied_case(seed: int, operators: tuple[str, ...] = (*WINDOWED, *WHOLE)) -> Case:
    """A random call of one of these operators that may also skip NaNs, or choose the dtype of means."""
    rng = np.random.default_rng(seed)
    case = next(case for case in map(random_case, range(seed * 100, seed * 100 + 99)) if case.operator in operators)
    x: Array = case.x
    more: dict[str, Any] = {}
    if "Average" in case.operator and rng.random() < 0.4:
        dtype = rng.choice(np.array([name for name in INTEGERS if name.kind in "biu"], object))
        x = laid(rng, elements(rng, x.shape, dtype))
        result = rng.choice(["float32", "float64", dtype.name])
        more = {} if result == "bool" else {"dtype": str(result)}
    elif x.dtype.kind not in "biu" and rng.random() < 0.6:
        more = {"skipna": True}
        if x.dtype in FLOATS:
            x = x.copy()
            x[rng.random(x.shape) < rng.choice([0.02, 0.3, 0.9])] = np.nan
    return case._replace(x=x, attributes={**case.attributes, **more})


def reordered(case: Case) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The pooled axes in the order of the array, and the attributes in that order."""
    places = [axis % case.x.ndim for axis in case.axes]
    order = np.argsort(places)
    rank = len(places)
    changed = dict(case.attributes)
    for name in ("kernel_shape", "strides", "dilations"):
        if name in changed:
            changed[name] = [changed[name][i] for i in order]
    if "pads" in changed:
        changed["pads"] = [changed["pads"][i + side * rank] for side in (0, 1) for i in order]
    return tuple(sorted(places)), changed


def ranked(x: Array, least: bool) -> tuple[Array, Array]:
    """Elements as floats in the same order, or in reverse order, and the values that these floats stand for. The first
    value stands for a window entirely in padding, and the last value is NaT."""
    held = x.view(np.int64 if x.dtype.kind in "mM" else np.uint8 if x.dtype.kind == "b" else x.dtype)
    low, high = (0, 1) if x.dtype.kind == "b" else (np.iinfo(held.dtype).min, np.iinfo(held.dtype).max)
    values, places = np.unique(held, return_inverse=True)
    ranks = places.reshape(x.shape).astype(np.float64)
    if least:
        values, ranks = values[::-1], len(values) - 1 - ranks
    if x.dtype.kind in "mM":
        ranks[np.isnat(x)] = np.nan
        low += 1
    numbers = np.array([high if least else low, *values.tolist(), np.iinfo(held.dtype).min], object)
    return ranks, numbers.astype(held.dtype).view(x.dtype)


def expected(case: Case) -> tuple[Array, Array | None]:
    """The expected result: the elements of all other axes become images of one channel."""
    places, given = reordered(case)
    kept = [axis for axis in range(case.x.ndim) if axis not in places]
    order = (*kept, *places)
    first = np.ascontiguousarray(case.x.transpose(order))
    images = first.reshape(-1, 1, *first.shape[len(kept):])
    pool = getattr(onnxpool, case.operator.replace("Min", "Max"))(
        **given, **({"return_indices": True} if case.indexed else {}))
    least = "Min" in case.operator
    if case.x.dtype.kind in "iubmM":
        wide, numbers = ranked(images, least)
        y, indices = pool(wide) if case.indexed else (pool(wide), None)
        y = numbers[np.where(y != y, -1, np.maximum(y, -1) + 1).astype(int)]
    else:
        y, indices = pool(-images if least else images) if case.indexed else (pool(-images if least else images), None)
        y = -y if least else y

    def restored(result: Array) -> Array:
        back = result.reshape(*first.shape[:len(kept)], *result.shape[2:]).transpose(np.argsort(order))
        return back if case.keepdims else back.squeeze(places)

    if indices is None:
        return restored(y), None
    numbers = np.arange(case.x.size).reshape(case.x.shape).transpose(order).ravel()
    return restored(y), restored(np.where(indices < 0, -1, numbers[indices]))


def bits(x: Array) -> Array:
    """The bits of an array in row-major order, where all NaNs count as equal."""
    x = np.ascontiguousarray(x)
    pattern = x.view(f"u{x.dtype.itemsize}")
    return pattern if x.dtype.kind in "iubmM" else np.where(x != x, 0, pattern)


def difference(case: Case, y: Array, indices: Array | None, truth: Array, places: Array | None) -> str | None:
    """What is wrong with a result, or None. Sums over whole channels may be added in another order."""
    if y.shape != truth.shape or y.dtype != truth.dtype or not y.flags.c_contiguous:
        return f"{y.dtype}{y.shape}, expected {truth.dtype}{truth.shape}"
    if places is not None and (indices is None or not np.array_equal(indices, places)):
        return "other indices"
    if case.operator in WINDOWED:
        if case.operator == "MinPool" and case.x.dtype in FLOATS:  # either zero is right
            y, truth = y + y.dtype.type(0), truth + truth.dtype.type(0)
        return None if np.array_equal(bits(y), bits(truth)) else "other bits"
    if case.operator in EXTREMA:
        return None if np.array_equal(y, truth, equal_nan=y.dtype.kind not in "iub") else "other extrema"
    pooled = tuple(axis % case.x.ndim for axis in case.axes)
    valid = case.x == case.x
    magnitudes = np.abs(np.where(valid, case.x, 0).astype(np.float64)).mean(pooled, keepdims=case.keepdims)
    magnitudes = magnitudes / np.maximum(valid.mean(pooled, keepdims=case.keepdims), 1 / case.x.size)
    unit = float(ml_dtypes.finfo(y.dtype if y.dtype in FLOATS else np.float64).eps)
    with np.errstate(invalid="ignore"):  # infinities may give NaN
        near = np.abs(y.astype(np.float64) - truth.astype(np.float64)) <= 32 * unit * np.maximum(
            magnitudes, np.abs(truth.astype(np.float64)))
    same = (y == truth) | ((y != y) & (truth != truth))
    return None if (near | same).all() else "too far off"
