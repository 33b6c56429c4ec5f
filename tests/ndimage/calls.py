"""Random calls of filters, and their results according to SciPy, or to windows of arrays that NumPy pads.

    python -m tests.ndimage.calls [--calls 20000] [--seed 1] [--only SEED]
"""

import argparse
import contextlib
import math
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage
from ml_dtypes import bfloat16
from numpy.lib.stride_tricks import sliding_window_view

from onnxpool import ndimage
from onnxpool.ndimage import arguments, filters

PADDINGS = {"reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap",
            "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant"}
DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
LACKING = ["float16", "bfloat16"]  # dtypes that SciPy lacks
EXTREMA = ("maximum_filter", "minimum_filter", "maximum_filter1d", "minimum_filter1d", "grey_erosion", "grey_dilation",
           "grey_opening", "grey_closing")
MEANS = ("uniform_filter", "uniform_filter1d")


class Call(NamedTuple):
    """A call: the function, its input, and its other arguments."""

    name: str
    x: Any
    given: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({self.x.dtype} {self.x.shape}, {self.given})"


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype of a name."""
    return np.dtype(bfloat16 if name == "bfloat16" else name)


def elements(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], limit: int) -> Any:
    """Random elements of a dtype, integers of a magnitude up to `limit`; floats are often integers, for ties."""
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        low, high = max(np.iinfo(dtype).min, -limit), min(np.iinfo(dtype).max, limit)
        return rng.integers(low, high, shape, dtype, endpoint=True)
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)
    return (np.rint(x) if rng.random() < 0.3 else x).astype(dtype) + dtype.type(0)


def laid_out(rng: np.random.Generator, x: Any) -> Any:
    """The same array with other strides, or another byte order."""
    kind = rng.integers(6)
    if kind == 0:
        return np.asfortranarray(x)
    if kind == 1:
        return x[tuple([slice(None, None, -1)] * x.ndim)].copy()[tuple([slice(None, None, -1)] * x.ndim)]
    if kind == 2 and x.ndim:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if kind == 3 and x.dtype.isbuiltin == 1:
        return x.astype(x.dtype.newbyteorder())
    return x


def draw(seed: int) -> Call:
    """The call with this seed."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(EXTREMA + MEANS * 3))
    one = name.endswith("1d")
    ndim = int(rng.choice([1, 2, 2, 2, 3, 4]))
    longest = {1: 300, 2: 40, 3: 12, 4: 6}[ndim] if rng.random() < 0.97 else {1: 200_000, 2: 400, 3: 50, 4: 18}[ndim]
    shape = tuple(int(rng.choice([1, 2, rng.integers(1, longest + 1), rng.integers(1, longest + 1)]))
                  for _ in range(ndim))
    if rng.random() < 0.02:
        shape = (*shape[:-1], 0)
    dtype = dtype_of(str(rng.choice(DTYPES + LACKING)))
    x = laid_out(rng, elements(rng, dtype, shape, int(rng.choice([5, 200, 2**40, 2**63]))))
    axes = tuple(int(axis) for axis in rng.permutation(ndim)[:1 if one else rng.integers(0, ndim + 1)])
    if one or rng.random() < 0.5:
        axes = axes if one else tuple(range(ndim))
    windows = max(1, len(axes))

    def sizes() -> int:
        return int(rng.choice([1, 2, 3, 3, 4, 5, rng.integers(1, 12), rng.integers(1, 12 if windows > 2 else 90)]))

    size = [sizes() for _ in axes]
    if not one and (rng.random() < 0.5 or not axes):
        size = size[:1] * len(axes) if axes else [3]
        given: dict[str, Any] = {"size": size[0]}
    else:
        given = {"size": size[0] if one else tuple(size)}
    if rng.random() < 0.5:
        shifts = [int(rng.integers(-(k // 2), (k - 1) // 2 + 1)) for k in size[:len(axes)]]
        given["origin"] = shifts[0] if one else tuple(shifts)
    modes = [str(rng.choice(list(PADDINGS))) for _ in range(windows)]
    given["mode"] = modes[0] if one or rng.random() < 0.6 or not axes else tuple(modes[:len(axes)])
    if rng.random() < 0.5:
        high = min(100, np.iinfo(dtype).max) if dtype.kind in "iu" else 1 if dtype.kind == "b" else 100
        given["cval"] = float(rng.integers(0 if dtype.kind in ("b", "u") else -high, high + 1))
        if rng.random() < 0.3 and given["cval"] < high:
            given["cval"] += 0.5
    if one:
        given["axis"] = axes[0]
    elif axes != tuple(range(ndim)) or rng.random() < 0.2:
        given["axes"] = axes
    if name in MEANS and rng.random() < 0.5:
        given["truncate"] = True
    if rng.random() < 0.2:
        given["num_threads"] = int(rng.integers(1, 3))
    return Call(name, x, given)


def of_scipy(call: Call) -> Any:
    """The result of SciPy."""
    given = {name: value for name, value in call.given.items() if name not in ("truncate", "num_threads")}
    x = call.x
    if x.dtype.name in LACKING:
        return getattr(scipy.ndimage, call.name)(x.astype(np.float64), **given).astype(x.dtype.newbyteorder("="))
    return getattr(scipy.ndimage, call.name)(x, **given)


def windows_of(call: Call) -> Any:
    """The windows of a mean, as further axes, of an array that NumPy pads axis by axis."""
    x, given = call.x, call.given
    axes = (given["axis"],) if "axis" in given else given.get("axes", tuple(range(x.ndim)))
    per_axis = [[value] * len(axes) if not isinstance(value, tuple) else list(value)
                for value in (given["size"], given.get("origin", 0), given["mode"])]
    x = x.astype(object if x.dtype.kind in "iu" else np.int64 if x.dtype.kind == "b" else np.longdouble)
    if given.get("cval", 0.0) % 1 and x.dtype != np.longdouble and "constant" in str(per_axis):
        x = x.astype(np.longdouble)
    for axis, size, origin, mode in zip(axes, *per_axis, strict=True):
        if size > 1:
            widths = [(0, 0)] * x.ndim
            widths[axis] = (size // 2 + origin, size - 1 - size // 2 - origin)
            how: dict[str, Any] = {"constant_values": given.get("cval", 0.0)} if "constant" in mode else {}
            if x.dtype == object and how:
                how["constant_values"] = int(given.get("cval", 0.0))
            x = np.pad(x, widths, PADDINGS[mode], **how)
            x = np.frompyfunc(int, 1, 1)(x) if x.dtype == object else x
    return sliding_window_view(x, [max(1, size) for size in per_axis[0]], axes) if axes else x[..., None]


def check_means(call: Call, y: Any) -> None:
    """Compare means with exact means, and means along one axis also with SciPy's."""
    if not y.size:
        return
    windows = windows_of(call)
    along = tuple(range(call.x.ndim, windows.ndim))
    taps = math.prod(windows.shape[call.x.ndim:])
    if y.dtype.kind in "biu" and windows.dtype != np.longdouble:
        sums = windows.sum(along) if along else windows
        expected = [(math.trunc if call.given.get("truncate") else round)(Fraction(int(total), taps))
                    for total in np.asarray(sums, object).ravel()]
        assert [int(value) for value in y.ravel()] == expected
    elif y.dtype.kind in "biu":
        assert (np.abs(y.astype(np.longdouble) - windows.mean(along)) <= 1 + 2.0**-50 * np.abs(windows).max()).all()
    else:
        digits = {"bfloat16": 8, "float16": 11}.get(y.dtype.name) or np.finfo(y.dtype).nmant + 1
        coarse = digits < 20
        u = 2.0 ** -(24 if coarse else digits)
        bound = (2 * math.log2(taps) + 4) * u * np.abs(windows).mean(along)
        exact = windows.mean(along)
        if coarse:
            bound = bound + (np.abs(exact) + bound) * 2.0**-digits + 2.0**-25
        assert (np.abs(y.astype(np.longdouble) - exact) <= bound + 1e-45).all()
    drifts = y.dtype.kind != "f" or call.given.get("cval", 0.0) % 1
    small = not call.x.size or call.x.dtype.kind == "b" or np.abs(call.x.astype(np.float64)).max() < 2**45
    if call.name == "uniform_filter1d" and call.given.get("truncate") and y.dtype.kind in "iu" and small and (
            not call.given.get("cval", 0.0) % 1):
        assert np.array_equal(y, of_scipy(call))
    elif drifts is False and y.dtype.kind == "f" and y.size:
        np.testing.assert_allclose(y, of_scipy(call), rtol=0, atol=1e-4 * (float(np.abs(call.x).max()) + 100))


@contextlib.contextmanager
def cut(seed: int) -> Iterator[None]:
    """In every other call, cut small arrays like large ones: into strips, and into blocks of few elements."""
    usual = filters.SMALL, filters.BLOCK
    if seed % 2:
        filters.SMALL, filters.BLOCK = 0, 1 << 4 + seed % 10
    arguments.described.cache_clear()
    try:
        yield
    finally:
        filters.SMALL, filters.BLOCK = usual
        arguments.described.cache_clear()


def check(call: Call) -> None:
    """Call a function, and compare its result with the expected one."""
    y = getattr(ndimage, call.name)(call.x, **call.given)
    assert y.dtype == call.x.dtype.newbyteorder("=")
    assert y.shape == call.x.shape
    if call.name in MEANS:
        check_means(call, y)
        return
    exact = call.x.dtype.kind not in "iu" or all(abs(int(value)) < 2**53 for value in call.x.ravel())
    small = call if exact else call._replace(x=(call.x.astype(np.int64) >> 11).astype(call.x.dtype.newbyteorder("=")))
    if not exact:  # SciPy computes in float64
        y = getattr(ndimage, call.name)(small.x, **call.given)
    expected = of_scipy(small)
    assert y.dtype == expected.dtype
    bits = f"u{y.dtype.itemsize}"
    same = (y.view(bits) == expected.view(bits)) | ((y == expected) & (y == 0))
    assert same.all()


def run(calls: int, seed: int) -> int:
    """The number of calls with wrong results, which are printed."""
    wrong = 0
    for place in range(calls):
        try:
            call = draw(seed * 1_000_003 + place)
            with cut(seed * 1_000_003 + place):
                check(call)
        except Exception as error:
            wrong += 1
            print(f"seed {seed * 1_000_003 + place}: {call}\n{type(error).__name__}: {str(error)[:300]}", flush=True)
    return wrong


def main() -> int:
    """Run many calls, or one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    if given.only is not None:
        print(call := draw(given.only))
        with cut(given.only):
            check(call)
        return 0
    begin = time.perf_counter()
    wrong = run(given.calls, given.seed)
    print(f"seed {given.seed}: {given.calls} calls, {wrong} wrong, {time.perf_counter() - begin:.0f} s")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
