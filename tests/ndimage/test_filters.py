"""Filters with the names of scipy.ndimage: results, modes, outputs and errors."""

import inspect
import itertools
import math
import tracemalloc
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import onnxpool
from onnxpool import ndimage
from onnxpool.ndimage import filters
from onnxpool.ndimage.borders import MODES, Fill, line_of_extrema

scipy = pytest.importorskip("scipy.ndimage")
calls = pytest.importorskip("tests.ndimage.calls")

NAMES = ndimage.__all__
EXTREMA = ["maximum_filter", "minimum_filter"]
rng = np.random.default_rng(0)


def both(name: str, *arguments: Any, **given: Any) -> tuple[Any, Any]:
    """The results of onnxpool and of SciPy."""
    return getattr(ndimage, name)(*arguments, **given), getattr(scipy, name)(*arguments, **given)


@pytest.mark.parametrize("seed", range(8))
def test_random_calls(seed: int) -> None:
    """Extrema equal SciPy's, and means are exact, or within their bound."""
    assert calls.run(50, 100 + seed) == 0


@pytest.mark.slow
def test_many_random_calls() -> None:
    """Many random calls have the expected results, as in the campaign."""
    assert calls.run(20_000, 1) == 0


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_scipy(name: str) -> None:
    """Parameters have SciPy's names, order, kinds and defaults. Keywords that SciPy lacks follow SciPy's parameters."""
    ours, theirs = (list(inspect.signature(getattr(module, name)).parameters.values()) for module in (ndimage, scipy))
    further = ("skipna", "num_threads", "truncate")
    assert [(one.name, one.kind, one.default) for one in ours if one.name not in further] == [
        (one.name, one.kind, one.default) for one in theirs]
    assert all(one.kind is one.KEYWORD_ONLY for one in ours[-2:])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_windows_are_clipped_only_where_this_loses_nothing(mode: str, size: int) -> None:
    """Where windows are clipped, each element beyond the end equals an element of the clipped window."""
    extend = MODES[mode]
    if extend is None:
        return
    for before, after in itertools.product(range(2 * size + 3), repeat=2):
        line = line_of_extrema(0, size, before, after, mode, Fill.READ)
        for i in range(size):
            places = np.arange(i - before, i + after + 1)
            read = np.arange(i - line.before, i + line.after + 1)
            kept = read[(read >= 0 if line.clipped[0] else read == read) & (read < size if line.clipped[1] else True)]
            assert set(extend(places, size)) == set(extend(kept, size))


@pytest.mark.one_in(6)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(600, 3), (3, 600), (1, 300, 5), (300, 301), (20, 30, 30)])
@pytest.mark.parametrize("size", [3, 6])
def test_arrays_that_are_cut_into_strips(mode: str, shape: tuple[int, ...], size: int) -> None:
    """Strips at the borders, and blocks of axes that are shorter than windows, fit together."""
    x = rng.integers(0, 60_000, shape).astype(np.uint16)
    for name in EXTREMA:
        ours, theirs = both(name, x, size, mode=mode, cval=30_000, origin=-1)
        assert np.array_equal(ours, theirs)
    call = calls.Call("uniform_filter", x, {"size": size, "mode": mode, "origin": -1, "cval": 5.0})
    calls.check(call)
    calls.check(call._replace(given={**call.given, "truncate": True}))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", MODES)
def test_windows_longer_than_the_array(name: str, mode: str) -> None:
    """Windows may be longer than the array, even with axes of one element and with windows that span many periods."""
    for shape, size in (((1,), 7), ((2,), 9), ((3,), 40), ((1, 4), 11), ((2, 3), (30, 2))):
        if name.endswith("1d") and isinstance(size, tuple):
            continue
        x = rng.standard_normal(shape)
        ours, theirs = both(name, x, size, mode=mode, cval=0.25)
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_empty_arrays_and_arrays_without_axes(name: str) -> None:
    """Empty arrays and arrays without axes keep their shapes and values."""
    for shape in ((0,), (0, 3), (3, 0)):
        assert getattr(ndimage, name)(np.zeros(shape), 3).shape == shape
    if not name.endswith("1d"):
        y = getattr(ndimage, name)(np.float32(2.5), 3)
        assert (y.shape, y.dtype, y.item()) == ((), np.float32, 2.5)


@pytest.mark.parametrize("name", NAMES)
def test_output_can_be_a_dtype(name: str) -> None:
    """Results are stored in the dtype after each axis, as in SciPy, even if results wrap around in the dtype."""
    x = rng.integers(-300, 300, (9, 8))
    for dtype in (np.float32, "float64", np.dtype(np.int16), np.uint8, bool):
        if dtype is bool and "uniform" in name:
            continue
        ours = getattr(ndimage, name)(x, 3, output=dtype)
        assert ours.dtype == dtype
        if "uniform" not in name:
            theirs = getattr(scipy, name)(x, 3, output=dtype)
            assert np.array_equal(ours, theirs != 0 if dtype is bool else theirs) or dtype in (bool,)
        elif np.dtype(dtype).kind == "f":
            np.testing.assert_allclose(ours, getattr(scipy, name)(x, 3, output=dtype), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_output_can_be_an_array(name: str) -> None:
    """An output array is returned, whatever its strides and byte order."""
    x = rng.integers(0, 200, (9, 8)).astype(np.uint8)
    expected = getattr(ndimage, name)(x, 3, mode="wrap")
    for y in (np.empty_like(x), np.empty((8, 9), np.uint8).T, np.empty((18, 8), np.uint8)[::2],
              np.empty((9, 8), ">u2"), np.empty((9, 8), np.float64)):
        assert getattr(ndimage, name)(x, 3, output=y, mode="wrap") is y
        assert np.array_equal(y, expected) or ("uniform" in name and y.dtype == np.float64)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [">i4", "<i4", np.dtype(">f8")])
def test_output_can_be_a_dtype_of_any_byte_order(name: str, dtype: Any) -> None:
    """The result has the byte order of the dtype, as in SciPy, even if nothing is filtered."""
    x = rng.integers(0, 200, (9, 8))
    for size in (3, 1):
        y = getattr(ndimage, name)(x, size, output=dtype)
        assert y.dtype == getattr(scipy, name)(x, size, output=dtype).dtype == dtype
        assert np.array_equal(y, getattr(ndimage, name)(x, size, output=np.dtype(dtype).newbyteorder("=")))


@pytest.mark.parametrize("name", ["maximum_filter", "minimum_filter1d", "uniform_filter", "grey_erosion"])
def test_results_that_overflow_float16(name: str) -> None:
    """Results that overflow become infinite without a warning."""
    assert np.isinf(getattr(ndimage, name)(np.full((5, 5), 100_000), 3, output=np.float16)).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [40, 200])
def test_output_may_overlap_the_input(name: str, size: int) -> None:
    """Output may be the input itself, or lie elsewhere in the same memory."""
    memory = rng.integers(0, 200, (size + 3, size)).astype(np.uint8)
    expected = getattr(ndimage, name)(memory[:-3].copy(), 3, mode="wrap")
    for shift in (0, 3):
        own = memory.copy()
        x, y = own[:-3], own[shift:shift + size]
        assert getattr(ndimage, name)(x, 3, output=y, mode="wrap") is y
        assert np.array_equal(y, expected)


def test_truncated_means_of_large_integers_are_exact() -> None:
    """Means are exact also beyond the integers that float64 represents, and where sums exceed 64 bits."""
    for dtype in (np.int64, np.uint64, np.int32, np.uint8, np.int8):
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, (30,), dtype, endpoint=True)
        x[3:9] = limits.max
        y = ndimage.uniform_filter1d(x, 3, mode="constant", cval=0, truncate=True)
        padded = [0, *map(int, x), 0]
        assert y.tolist() == [int(Fraction(sum(padded[i:i + 3]), 3)) for i in range(30)]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("bits", [0, 7, 30, 48, 50, 51, 52, 62, 64])
@pytest.mark.parametrize("truncate", [False, True])
def test_means_of_integers_are_exact(dtype: str, bits: int, truncate: bool) -> None:
    """Means are exact for any magnitude, below and beyond what float64 represents, even within one array."""
    low, high = (0, 1) if dtype == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    for shape, size, few, seed in (((40,), 3, 0.0, 0), ((40,), 7, 0.1, 1), ((9, 70), (2, 3), 0.01, 0),
                                   ((40, 30), 2, 0.002, 5)):
        large = rng.integers(max(low, -(1 << bits)), min(high, 1 << bits), shape, np.dtype(dtype), endpoint=True)
        small = rng.integers(max(low, -9), min(high, 9), shape, np.dtype(dtype), endpoint=True)
        x = np.where(rng.random(shape) < few, large, small) if few else large
        windows = calls.windows_of(calls.Call("uniform_filter", x, {"size": size, "mode": "wrap"})).astype(object)
        taps = int(np.prod(windows.shape[x.ndim:]))
        sums = windows.sum(tuple(range(x.ndim, windows.ndim))).ravel().tolist()
        with calls.cut(seed):
            y = ndimage.uniform_filter(x, size, mode="wrap", truncate=truncate)
        towards = math.trunc if truncate else round
        assert y.dtype == dtype
        assert y.ravel().tolist() == [towards(Fraction(int(total), taps)) for total in sums]
        means = ndimage.uniform_filter(x, size, mode="wrap", output=np.float64)
        assert means.ravel().tolist() == [int(total) / taps for total in sums]


def test_means_of_integers_as_others() -> None:
    """Means that are negative wrap around in unsigned results, as conversions of integers do."""
    x = rng.integers(-99, 99, (30, 40))
    for dtype in (np.int32, np.int64, np.int16):
        for truncate in (False, True):
            means = ndimage.uniform_filter(x.astype(dtype), 3, truncate=truncate)
            y = ndimage.uniform_filter(x.astype(dtype), 3, truncate=truncate, output=np.uint8)
            assert np.array_equal(y, means.astype(np.uint8))


def test_means_of_bool_are_rounded() -> None:
    """A mean is True if more than half of the window is True, or with `truncate` if the whole window is."""
    x = np.array([0, 1, 1, 0, 0, 1, 1, 1, 1], bool)
    assert ndimage.uniform_filter(x, 3).tolist() == [False, True, True, False, False, True, True, True, True]
    assert ndimage.uniform_filter(x, 3, truncate=True).tolist() == scipy.uniform_filter(x, 3).tolist()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("mode", MODES)
def test_nan(dtype: Any, mode: str) -> None:
    """The result of a window with a NaN is NaN, unless NaNs are skipped."""
    x = np.arange(12).reshape(3, 4).astype(dtype)
    x[1, 3] = np.nan
    held = ndimage.maximum_filter(np.isnan(x), 3, mode=mode)
    for name in ("maximum_filter", "minimum_filter", "uniform_filter"):
        function: Callable[..., Any] = getattr(ndimage, name)
        with np.errstate(invalid="ignore"):
            assert np.array_equal(np.isnan(function(x, 3, mode=mode, cval=2)), held)
            assert not np.isnan(function(x, 3, mode=mode, cval=2, skipna=True)).any()
    assert np.isnan(ndimage.maximum_filter(x, 3, mode="constant", cval=np.nan)).sum() == 11
    assert ndimage.maximum_filter(x, 3, mode="constant", cval=np.nan, skipna=True)[0, 0] == 5


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("shape", "size"), [((9, 11), 3), ((9, 11), 30), ((150, 140), (4, 9))])
def test_nans_that_are_left_out(mode: str, shape: tuple[int, ...], size: Any) -> None:
    """Results that skip NaNs equal NumPy's for windows of an array that NumPy pads."""
    x = np.where(rng.random(shape) < 0.4, np.nan, rng.standard_normal(shape))
    call = calls.Call("uniform_filter", x, {"size": size, "mode": mode, "cval": 0.0 if size == 3 else 2.0})
    windows = calls.windows_of(call).astype(np.float64)
    for name, function in (("uniform_filter", np.nanmean), ("maximum_filter", np.nanmax)):
        y = getattr(ndimage, name)(x, skipna=True, **call.given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(y, function(windows, (2, 3)), rtol=1e-12, atol=1e-13)


def test_dates() -> None:
    """Extrema of dates treat NaT as NaN."""
    x = np.array(["2020-01-03", "NaT", "2020-01-01", "2020-01-02", "2020-01-05"], "M8[D]")
    assert ndimage.maximum_filter(x, 3, skipna=True).tolist()[0] == x[0].item()
    assert np.isnat(ndimage.minimum_filter(x, 3)).tolist() == [True, True, True, False, False]
    y = ndimage.maximum_filter(x, 3, mode="constant", cval=np.datetime64("2021-01-01"))
    assert y[-1] == np.datetime64("2021-01-01")


@pytest.mark.parametrize("cval", [np.int64(2), np.uint8(2), np.float32(2.5), np.float16(2), np.array(2), True, np.True_,
                                  ml_dtypes.bfloat16(2)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, bool])
def test_constants_of_any_type(cval: Any, dtype: Any) -> None:
    """Constants of any type have the same effect as equal Python numbers."""
    x = rng.integers(0, 2 if dtype is bool else 9, (6, 7)).astype(dtype)
    if dtype is bool and not isinstance(cval, (bool, np.bool_)):
        return
    for name in NAMES:
        y = getattr(ndimage, name)(x, 3, mode="constant", cval=cval)
        assert np.array_equal(y, getattr(ndimage, name)(x, 3, mode="constant", cval=float(cval)))


@pytest.mark.parametrize("output", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint64])
def test_constants_of_float_results(dtype: Any, output: Any) -> None:
    """Constants are not truncated to elements of the input."""
    x = rng.integers(0, 9, (6, 7)).astype(dtype)
    for name in EXTREMA:
        ours = getattr(ndimage, name)(x, 3, mode="constant", cval=2.5, output=output)
        assert np.array_equal(ours, getattr(scipy, name)(x, 3, mode="constant", cval=2.5, output=np.float64))


def test_constants_that_are_no_elements() -> None:
    """Extrema of integers truncate constants, like SciPy. Constants that cannot be results may lie beyond the range."""
    x = rng.integers(0, 9, (6, 7)).astype(np.uint8)
    for cval in (2.7, -1.0, -np.inf, 255.9, 0.5):
        assert np.array_equal(*both("maximum_filter", x, 3, mode="constant", cval=cval))
    assert np.array_equal(*both("minimum_filter", x, 3, mode="constant", cval=1e300))
    assert np.array_equal(*both("maximum_filter", x, 3, mode="constant", cval=300.5, output=np.float32))
    assert ndimage.uniform_filter1d(np.uint8([1, 1, 1]), 3, mode="constant", cval=2.5).tolist() == [2, 1, 2]
    with pytest.raises(onnxpool.PoolError, match="cval=300 may be a result, but uint8 has only 0 to 255"):
        ndimage.maximum_filter(x, 3, mode="constant", cval=300)


def test_arguments_can_be_sequences_of_any_kind() -> None:
    """Arguments can be lists, arrays and tuples, and each axis has its own mode."""
    x = rng.standard_normal((7, 9, 5)).astype(np.float32)
    for given in ({"size": [3, 5], "axes": [0, 2], "mode": ["wrap", "mirror"], "origin": [1, -2]},
                  {"size": np.array([3, 5]), "axes": np.array([2, 1]), "origin": np.array([0, 1])},
                  {"size": np.int64(3), "axes": range(2)}, {"size": (3, 1, 4), "mode": ("constant", "wrap", "reflect")},
                  {"footprint": np.ones((2, 3, 4))}, {"size": 3.0, "axes": 1}, {"size": 0}):
        for name in EXTREMA:
            assert np.array_equal(*both(name, x, **given))
    for name in ("grey_opening", "grey_dilation"):
        assert np.array_equal(*both(name, x, structure=np.zeros((2, 3, 4))))
        assert np.array_equal(*both(name, x, footprint=np.ones((2, 3, 4)), structure=np.zeros((2, 3, 4)), origin=-1))
    assert np.array_equal(*both("maximum_filter", [[1, 2], [3, 4]], 2))
    with pytest.warns(UserWarning, match="ignoring size"):
        ndimage.maximum_filter(x, 5, np.ones((3, 3, 3)))


X = np.zeros((4, 5), np.float32)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ndimage.maximum_filter(X, footprint=[[0, 1], [1, 1]]), RuntimeError, "use scipy.ndimage.maximum_filter"),
    (lambda: ndimage.grey_closing(X, structure=np.ones((2, 2))), RuntimeError, "use scipy.ndimage.grey_closing"),
    (lambda: ndimage.uniform_filter(X * 1j), TypeError, "use scipy.ndimage.uniform_filter"),
    (lambda: ndimage.uniform_filter(X, output=np.complex64), TypeError, "use scipy.ndimage.uniform_filter"),
    (lambda: ndimage.uniform_filter(np.zeros(3, "M8[s]")), TypeError, "use scipy.ndimage.uniform_filter"),
    (lambda: ndimage.maximum_filter(X.astype(np.longdouble), 3), TypeError, "input has dtype"),
    (lambda: ndimage.maximum_filter(X), RuntimeError, "no footprint provided: pass size"),
    (lambda: ndimage.maximum_filter(X, (3, 3, 3)), RuntimeError, "size has 3 values, but there are 2 axes"),
    (lambda: ndimage.maximum_filter(X, 3, mode="edge"), RuntimeError, "mode not supported: 'edge'; pass one of"),
    (lambda: ndimage.maximum_filter(X, 3, origin=2), ValueError, "invalid origin 2 along axis 0 .* pass -1 to 1"),
    (lambda: ndimage.maximum_filter(X, 3, axes=2), ValueError, "axis: 2 is out of range .* pass -2 to 1"),
    (lambda: ndimage.maximum_filter1d(X, 3, 2), IndexError, "axis: 2 is out of range .* pass -2 to 1"),
    (lambda: ndimage.uniform_filter1d(np.float32(1), 3), IndexError, "axis: -1 is out of range .* of 0 axes"),
    (lambda: ndimage.maximum_filter1d(X, 1, mode="edge"), RuntimeError, "mode not supported: 'edge'"),
    (lambda: ndimage.uniform_filter1d(X, 1, origin=1), ValueError, "invalid origin 1 along axis 1 for size 1"),
    (lambda: ndimage.maximum_filter(X, 3, axes=(0, -2)), ValueError, "axes must be unique"),
    (lambda: ndimage.maximum_filter(X, footprint=np.ones(3)), RuntimeError, "footprint.ndim .1. must match"),
    (lambda: ndimage.grey_erosion(X, structure=np.zeros((3, 3)), axes=0), ValueError, "structure.ndim .2. must match"),
    (lambda: ndimage.grey_opening(X, structure=np.zeros((0, 3))), ValueError, "All-zero structure is not supported"),
    (lambda: ndimage.maximum_filter(X, 3, mode=[["wrap"], "wrap"]), TypeError, "neither a value nor a sequence"),
    (lambda: ndimage.maximum_filter(X, 3, skipna="yes"), TypeError, "skipna must be 0 or 1, got 'yes'"),
    (lambda: ndimage.uniform_filter(X, 3, truncate="yes"), TypeError, "truncate must be 0 or 1, got 'yes'"),
    (lambda: ndimage.uniform_filter(X, 3, truncate=2), ValueError, "truncate must be 0 or 1, got 2"),
    (lambda: ndimage.uniform_filter1d(X, 3, None), TypeError, "axis is None, but this filter has one axis"),
    (lambda: ndimage.uniform_filter1d(X, 3, (0, 1)), TypeError, "axis is .0, 1., .* or use uniform_filter"),
    (lambda: ndimage.maximum_filter1d(X, [3]), TypeError, "size is .3,., but this filter has one axis"),
    (lambda: ndimage.maximum_filter1d(X, 3, mode=["wrap"]), TypeError, "mode is .'wrap',., but this filter has one"),
    (lambda: ndimage.minimum_filter1d(X, 3, 1.0), TypeError, "axis has 1.0: .* pass an int"),
    (lambda: ndimage.maximum_filter(X, 3, axes=0.5), TypeError, "cannot be interpreted as an integer"),
    (lambda: ndimage.maximum_filter(X, 2.5), TypeError, "size must be an integer, got 2.5"),
    (lambda: ndimage.maximum_filter(X, "3"), TypeError, "size must be an integer, got '3'"),
    (lambda: ndimage.maximum_filter1d(X, 0), RuntimeError, "incorrect filter size: 0; pass at least 1"),
    (lambda: ndimage.maximum_filter(X, 3, mode="constant", cval="0"), TypeError, "cval must be a real number"),
    (lambda: ndimage.uniform_filter(X, 3, mode="constant", cval=1j), TypeError, "cval must be a real number"),
    (lambda: ndimage.maximum_filter(X, 3, output=np.zeros((5, 4))), RuntimeError, "output shape not correct"),
    (lambda: ndimage.maximum_filter(X, 3, output=np.ma.masked_array(X)), TypeError, "output is a MaskedArray"),
    (lambda: ndimage.maximum_filter(X, 3, output=[0]), TypeError, "output is of type list"),
    (lambda: ndimage.uniform_filter1d(np.zeros(9, int), 1 << 26, truncate=True), ValueError, "lower size"),
    (lambda: ndimage.uniform_filter(X, 10**12), ValueError, "size of .* more than fit into this machine"),
    (lambda: ndimage.maximum_filter(np.ma.masked_array(X), 3), TypeError, "input is a MaskedArray"),
]


@pytest.mark.parametrize(("refused", "kind", "text"), REFUSED)
def test_errors(refused: Callable[[], Any], kind: type[Exception], text: str) -> None:
    """Each error names the function, and is also an instance of the type that SciPy raises."""
    with pytest.raises(kind, match=text) as caught:
        refused()
    assert isinstance(caught.value, (onnxpool.PoolError, onnxpool.PoolTypeError))
    assert caught.value.operator in NAMES
    assert str(caught.value).startswith(f"{caught.value.operator}: ")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", MODES)
def test_many_axes_of_one_element(name: str, mode: str) -> None:
    """Axes of one element cost nothing, unless constants lie beyond their ends."""
    if name.endswith("1d") or "constant" in mode:
        return
    x = rng.integers(0, 9, (1,) * 20 + (4, 1, 5) + (1,) * 9)
    for dtype in (np.int64, np.float32):
        y = getattr(ndimage, name)(x.astype(dtype), 5, mode=mode)
        expected = getattr(ndimage, name)(x.reshape(4, 5).astype(dtype), 5, mode=mode)
        assert np.array_equal(y.reshape(4, 5), expected)


def test_windows_that_exceed_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows that exceed memory are refused before their elements are listed, because the list would take more memory
    than the elements."""
    monkeypatch.setattr(filters, "machine_memory", lambda: 1 << 20)
    for mode in MODES:
        if mode not in ("constant", "grid-constant", "nearest"):
            with pytest.raises(onnxpool.PoolError, match=r"uniform_filter1d: size of .* reads"):
                ndimage.uniform_filter1d(X, 100_000, mode=mode)


def test_output_is_not_written_if_a_call_is_refused() -> None:
    """A refused call does not write to `output`, and a read-only `output` is refused."""
    y = np.full_like(X, 7)
    with pytest.raises(onnxpool.PoolError):
        ndimage.maximum_filter(X, 3, output=y, mode="edge")
    assert (y == 7).all()
    y.flags.writeable = False
    with pytest.raises(onnxpool.PoolError, match="output is read-only"):
        ndimage.maximum_filter(X, 3, output=y)


def test_limits() -> None:
    """Limits in force count the whole call, and nothing is written by a refused call."""
    x = rng.standard_normal((300, 300))
    y = np.zeros_like(x)
    with onnxpool.limits(max_output_bytes=x.nbytes, max_work=10 * x.size):
        ndimage.uniform_filter(x, 3, output=y)
    for limit in ({"max_output_bytes": x.nbytes - 1}, {"max_work": 10 * x.size - 1}):
        y[...] = 7
        with onnxpool.limits(**limit), pytest.raises(onnxpool.PoolError, match="uniform_filter: input of shape"):
            ndimage.uniform_filter(x, 3, output=y)
        assert (y == 7).all()


def test_caches_are_cleared() -> None:
    """Filters are cached like operators, and clearing caches forgets them."""
    from onnxpool.ndimage import arguments

    ndimage.maximum_filter(X, 3)
    assert arguments.described.cache_info().currsize
    onnxpool.clear_caches()
    assert not arguments.described.cache_info().currsize


@pytest.mark.parametrize("given", [
    {"mode": "wrap"}, {"mode": "constant", "cval": 1.0}, {"mode": "mirror", "axes": (0, 1)}, {"output": np.float64},
    {"mode": ["wrap", "constant", "mirror"], "cval": 3.5}])
@pytest.mark.parametrize("name", ["maximum_filter", "uniform_filter", "grey_dilation"])
def test_memory(name: str, given: dict[str, Any]) -> None:
    """No copy of the array is made, whatever its borders and memory layout."""
    x = rng.integers(0, 200, (700, 400, 24)).astype(np.int16)
    for array in (x, x[::-1, ::-1], x.transpose(1, 0, 2)):
        getattr(ndimage, name)(array[:9], 3, **given)
        tracemalloc.start()
        y = getattr(ndimage, name)(array, 3, **given)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < y.nbytes + (6 << 20)


@pytest.mark.parametrize("name", ["maximum_filter", "uniform_filter", "grey_opening"])
def test_threads_do_not_change_results(name: str) -> None:
    """One thread and two threads give the same results."""
    x = rng.standard_normal((500, 700)).astype(np.float32)
    one, two = (getattr(ndimage, name)(x, 5, mode="wrap", num_threads=n) for n in (1, 2))
    assert np.array_equal(one, two)
