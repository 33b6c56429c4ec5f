"""Pools of labelled arrays: values equal those of NumPy functions, and labels belong to the elements of each window."""

import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import cases_axes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnxpool_conformance.oracle import axis_windows
from programs import program

import onnxpool

xr = pytest.importorskip("xarray")
import onnxpool.xarray as pools  # noqa: E402

Array = NDArray[Any]
NAMES = {operator: re.sub("(?<=[a-z])(?=[A-Z])", "_", operator).lower()
         for operator in (*cases_axes.WINDOWED, *cases_axes.WHOLE)}
DIMS = ("t", "z", "y", "x", "w")


def taps(size: int, kernel: int, stride: int = 1, dilation: int = 1, pads: tuple[int, int] = (0, 0), ceil: int = 0,
         auto: str = "NOTSET") -> list[list[int]]:
    """The elements of each window along an axis, one by one."""
    return [list(window) for window in axis_windows(size, kernel, stride, dilation, pads, auto, ceil).taps]


def by_windows(values: Array, windows: dict[int, list[list[int]]], function: Any, dtype: Any = None) -> Array:
    """Call a function on each window's elements, window by window. Without elements, the value is None."""
    shape = [len(windows[axis]) if axis in windows else size for axis, size in enumerate(values.shape)]
    y = np.empty(shape, dtype or object)
    for place in np.ndindex(*shape):
        picked = [windows[axis][i] if axis in windows else [i] for axis, i in enumerate(place)]
        y[place] = function(values[np.ix_(*picked)].ravel())
    return y


def mean(values: Array) -> float:
    """The mean of the values that are not NaN. Integers are added as Python integers."""
    held = [value for value in values.tolist() if value == value]
    return sum(held) / len(held) if held else float("nan")


def moment(values: Array) -> Any:
    """The exact mean of dates as an integer, rounded to even."""
    numbers = values.astype(np.int64).tolist()
    if not numbers:
        return np.iinfo(np.int64).min
    whole, rest = divmod(sum(numbers), len(numbers))
    return whole + (2 * rest > len(numbers) or (2 * rest == len(numbers) and whole % 2))


def same(got: Any, truth: Array) -> bool:
    """Whether the bits are the same, where all NaNs count as equal."""
    return got.dtype == truth.dtype and np.array_equal(cases_axes.bits(got.values), cases_axes.bits(truth))


def named(rng: np.random.Generator, dims: list[str], values: list[int], name: str) -> Any:
    """The values of an attribute by name, in one of the forms that are allowed."""
    if name != "kernel_shape" and len(set(values)) == 1 and rng.random() < 0.5:
        return values[0]
    default = {"kernel_shape": 0, "pads": 0}.get(name, 1)  # a kernel has no default
    found: dict[str, Any] = {}
    for i in rng.permutation(len(dims)):
        sides = tuple(values[i::len(dims)])
        one = sides if len(set(sides)) > 1 or (name == "pads" and rng.random() < 0.5) else sides[0]
        if one != default or rng.random() < 0.5:
            found[dims[i]] = one
    return found


def check(seed: int) -> None:
    """Check a random call by name on a NumPy array and on a dask array, and the coordinates of its windows."""
    rng = np.random.default_rng(seed)
    case = cases_axes.random_case(seed)
    dims = DIMS[-case.x.ndim:]
    pooled = [dims[axis] for axis in case.axes]
    coords = {dim: np.sort(rng.integers(-50, 50, size)) * (0.5 if rng.random() < 0.5 else 1)
              for dim, size in zip(dims, case.x.shape, strict=True) if rng.random() < 0.8}
    points = np.where(rng.random(case.x.shape[-2:]) < 0.2, np.nan, rng.standard_normal(case.x.shape[-2:]))
    x = xr.DataArray(case.x, dims=dims, coords={**coords, "point": (dims[-2:], points.astype(np.float32))}, name="a",
                     attrs={"units": "K"})
    given = {name: named(rng, pooled, value, name) if name in ("kernel_shape", "strides", "dilations", "pads")
             else value for name, value in case.attributes.items()}
    function, own = getattr(pools, NAMES[case.operator]), getattr(onnxpool, NAMES[case.operator])
    if case.operator in cases_axes.WINDOWED:
        more = {"return_indices": True} if case.indexed else {}
        truth = own(case.x, **case.attributes, axes=case.axes, **more)
    else:
        more = {"dim": pooled, "keepdims": case.keepdims}
        truth = own(case.x, **case.attributes, axes=case.axes, keepdims=case.keepdims)
    for lazy in (False, True):
        chunks = {dim: int(rng.integers((size + 1) // 2, size + 1)) for dim, size in x.sizes.items()}
        got = function(x.chunk(chunks) if lazy else x, **given, **more)
        results = got if case.indexed else (got,)
        for y, wanted in zip(results, truth if case.indexed else (truth,), strict=True):
            assert (y.chunks is not None) == lazy
            assert y.dims == tuple(dim for dim in dims if case.keepdims or dim not in pooled), seed
            if case.operator in cases_axes.WINDOWED or not lazy:
                assert same(y, wanted), (seed, given)
            assert y.name == "a"
        assert results[0].attrs == {"units": "K"}
        labels = results[0].coords
        if case.operator in cases_axes.WHOLE:
            assert set(labels) == {name for name, one in x.coords.items() if not set(pooled) & set(one.dims)}
            continue
        rank = len(pooled)
        pads = case.attributes.get("pads", [0] * 2 * rank)
        windows = {dim: taps(x.sizes[dim], case.attributes["kernel_shape"][i], case.attributes["strides"][i],
                             case.attributes["dilations"][i], (pads[i], pads[i + rank]), case.attributes["ceil_mode"],
                             case.attributes.get("auto_pad", "NOTSET")) for i, dim in enumerate(pooled)}
        assert set(labels) == set(x.coords)
        for name, coordinate in x.coords.items():
            along = {axis: windows[dim] for axis, dim in enumerate(coordinate.dims) if dim in windows}
            if not along:
                assert labels[name].variable.identical(coordinate.variable)
                continue
            wanted = by_windows(coordinate.values.astype(np.float64), along, mean, np.float64)
            assert labels[name].dims == coordinate.dims
            assert labels[name].dtype == (np.float32 if name == "point" else np.float64)
            near = 1e-7 if name == "point" else 1e-14
            assert np.allclose(labels[name].values, wanted, rtol=near, atol=near, equal_nan=True), (seed, name)
        assert {name for name in labels if name in results[0].xindexes} == set(coords)


@pytest.mark.smoke
def test_random_calls() -> None:
    """200 random calls of all operators, dtypes and forms of arguments are right, on NumPy and dask arrays."""
    pytest.importorskip("dask.array")
    for seed in range(200):
        check(seed)


@pytest.mark.slow
def test_many_random_calls() -> None:
    """3,000 random calls return the expected values and coordinates."""
    pytest.importorskip("dask.array")
    for seed in range(1000, 4000):
        check(seed)


def field(**sizes: int) -> Any:
    """Random float64 with coordinates of several kinds."""
    rng = np.random.default_rng(7)
    dims = sizes or {"time": 7, "lat": 13, "lon": 22}
    x = xr.DataArray(rng.standard_normal(list(dims.values())), dims=list(dims), name="t2m", attrs={"units": "K"})
    coords: dict[str, Any] = {dim: (dim, np.linspace(-40, 60, size), {"axis": dim}) for dim, size in dims.items()}
    if "time" in dims:
        coords["time"] = ("time", np.datetime64("2001-01-01", "ns") + np.arange(dims["time"]) * np.timedelta64(6, "h"))
    if {"lat", "lon"} <= set(dims):
        coords["area"] = (("lat", "lon"), rng.random((dims["lat"], dims["lon"])), {"units": "km2"})
    return x.assign_coords(coords).assign_coords(run=3, kind=("time", list("abcdefg"))) if "time" in dims else (
        x.assign_coords(coords))


def with_holes(x: Any, holes: bool) -> Any:
    """The array, of which some elements may be missing."""
    return x.where(np.random.default_rng(2).random(x.shape) > 0.2) if holes else x


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("boundary", ["trim", "pad"])
@pytest.mark.parametrize("function", ["mean", "max", "min"])
@pytest.mark.parametrize("coord_func", ["mean", "min", "max", "median", np.sum])
def test_blocks_are_those_of_coarsen(holes: bool, boundary: str, function: str, coord_func: Any) -> None:
    """Values, names, attributes and coordinates equal coarsen's, whether incomplete blocks are dropped or kept."""
    pool = {"mean": pools.average_pool, "max": pools.max_pool, "min": pools.min_pool}[function]
    x = with_holes(field(), holes)
    by_name = dict.fromkeys(x.coords, coord_func)  # coarsen applies one function to coordinates of dimensions only
    if coord_func is np.sum and boundary == "pad":
        by_name = {"lat": np.nansum, "lon": np.nansum, "area": np.nansum}  # coarsen pads with NaN
    for dims in ({"lat": 4, "lon": 5}, {"lon": 3, "lat": 2}, {"lon": 22}):
        truth = getattr(x.coarsen(dims, boundary=boundary, coord_func=dict(by_name)), function)()
        y = pool(x, dims, strides=dims, ceil_mode=boundary == "pad", coord_func=by_name, skipna=holes)
        xr.testing.assert_allclose(y, truth, rtol=1e-13)
        assert (y.name, y.attrs, set(y.xindexes)) == (truth.name, truth.attrs, set(truth.xindexes))
        for name in truth.coords:
            assert (y[name].dtype, y[name].attrs, y[name].dims) == (
                truth[name].dtype, truth[name].attrs, truth[name].dims), name
        if function != "mean":
            assert y.variable.identical(truth.variable)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("function", ["mean", "max"])
@pytest.mark.parametrize(("sizes", "strides"), [((3, 5), (1, 1)), ((4, 2), (2, 3)), ((5, 22), (3, 7))])
def test_windows_are_those_of_rolling(center: bool, function: str, sizes: tuple[int, int],
                                      strides: tuple[int, int]) -> None:
    """Windows equal rolling's if they end at an element or have it in the middle, with and without strides."""
    x = field().drop_vars("kind")
    kernel, steps = dict(zip(("lat", "lon"), sizes, strict=True)), dict(zip(("lat", "lon"), strides, strict=True))
    pads = {dim: (size // 2, size - 1 - size // 2) if center else (size - 1, 0) for dim, size in kernel.items()}
    windows = x.rolling(kernel, center=center).construct({"lat": "i", "lon": "j"}, stride=steps)
    truth = getattr(windows, function)(["i", "j"])
    pool = pools.average_pool if function == "mean" else pools.max_pool
    y = pool(x, kernel, strides=steps, pads=pads, coord_func="max")
    assert y.dims == truth.dims
    np.testing.assert_allclose(y.values, truth.values, rtol=0, atol=1e-14)
    if not center:
        assert y.lat.equals(truth.lat)
        assert y.lon.equals(truth.lon)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("dim", ["lon", ["lat", "lon"], ("time", "lon"), {"lon"}, None, ...])
@pytest.mark.parametrize("keepdims", [False, True])
def test_whole_dimensions_are_those_of_reductions(holes: bool, dim: Any, keepdims: bool) -> None:
    """Values, attributes and coordinates are the same as from xarray's reductions."""
    x = with_holes(field(), holes)
    for pool, function in ((pools.global_average_pool, "mean"), (pools.global_max_pool, "max"),
                           (pools.global_min_pool, "min")):
        truth = getattr(x, function)(dim, keepdims=keepdims, keep_attrs=True)  # by default since xarray 2025.11
        y = pool(x, dim, keepdims=keepdims, skipna=holes)
        xr.testing.assert_allclose(y, truth, rtol=1e-13)
        assert (y.name, y.attrs, list(y.coords)) == (truth.name, truth.attrs, list(truth.coords))
    norms = pools.global_lp_pool(x, dim, keepdims=keepdims, skipna=holes)
    xr.testing.assert_allclose(norms, (x**2).sum(dim, keepdims=keepdims)**0.5, rtol=1e-13)


def line(values: Any, name: str = "x") -> Any:
    """An array with a coordinate of these values."""
    return xr.DataArray(np.arange(float(len(values))), dims="x", coords={name: ("x", values)})


def labels_of(values: Any, name: str = "x", **given: Any) -> Any:
    """The coordinate of windows of 2 with a stride of 2."""
    return pools.max_pool(line(values, name), {"x": 2}, **{"strides": 2, **given})[name]


NAT = np.datetime64("NaT", "ns")
ODD = 946_684_800_000_000_001  # nanoseconds, more than float64 holds
CALENDAR = np.array(["2000-02-29", "2000-03-01"], "M8[D]").astype("M8[s]")
KINDS: dict[str, tuple[Any, dict[str, Any], Any]] = {  # values, arguments, and the wanted labels
    "integers": (np.arange(4), {}, np.array([0.5, 2.5])),
    "large integers": (np.array([2**62, 2**62 + 2**10], np.int64), {}, np.array([2.0**62 + 2**9])),
    "float32": (np.array([0.1, 0.3, 0.5, 0.7], np.float32), {}, np.array([0.2, 0.6], np.float32)),
    "bool": (np.array([True, False, True, True]), {}, np.array([0.5, 1.0])),
    "complex": (np.array([1j, 3, 1, 1]), {}, np.array([1.5 + 0.5j, 1])),
    "NaN": (np.array([1.0, np.nan, np.nan, np.nan, 4.0, 6.0]), {}, np.array([1.0, np.nan, 5.0])),
    "dates": (np.array([ODD, ODD + 2, ODD + 4, ODD + 7, ODD, ODD + 3]).view("M8[ns]"), {},
              np.array([ODD + 1, ODD + 5, ODD + 1]).view("M8[ns]")),
    "dates in padding": (np.array([ODD, ODD + 2]).view("M8[ns]"), {"pads": {"x": (3, 4)}},
                         np.array([NAT, np.datetime64(ODD, "ns"), np.datetime64(ODD + 2, "ns"), NAT])),
    "NaT": (np.array([0, NAT.astype(int), NAT.astype(int), NAT.astype(int), 4, 6]).view("M8[ns]"), {},
            np.array([0, NAT.astype(int), 5]).view("M8[ns]")),
    "seconds": (CALENDAR, {}, np.array(["2000-02-29T12"], "M8[s]")),
    "durations": (np.array([-7, -2, 0, 3], "m8[ns]"), {}, np.array([-4, 2], "m8[ns]")),
    "padding": (np.array([3, 5]), {"pads": 3}, np.array([np.nan, 3, 5, np.nan])),
    "integers in padding": (np.array([3, 5]), {"pads": 3, "coord_func": "min"}, np.array([np.nan, 3, 5, np.nan])),
    "integers without padding": (np.array([3, 5]), {"coord_func": "min"}, np.array([3])),
    "all": (np.array([True, False, True, True]), {"coord_func": "all"}, np.array([False, True])),
    "first": (np.array([3, 1, 2, 5]), {"coord_func": "first"}, np.array([3, 2])),
    "last": (np.array([3, 1, 2, 5]), {"coord_func": "last"}, np.array([1, 5])),
    "first in padding": (np.array([3, 5]), {"pads": 3, "coord_func": "first"}, np.array([np.nan, 3, 5, np.nan])),
    "last strings": (np.array(list("badc")), {"pads": {"x": (1, 0)}, "coord_func": "last"}, np.array(["b", "d"])),
    "first strings in padding": (np.array(list("ba")), {"pads": {"x": (2, 0)}, "coord_func": "first"},
                                 np.array([np.nan, "b"], object)),
    "last dates": (np.array([ODD, ODD + 2, ODD + 1]).view("M8[ns]"), {"pads": {"x": (2, 1)}, "coord_func": "last"},
                   np.array([NAT, np.datetime64(ODD + 2, "ns"), np.datetime64(ODD + 1, "ns")])),
    "earliest dates": (np.array([ODD + 2, ODD, ODD + 1, NAT.astype(int), *[NAT.astype(int)] * 2]).view("M8[ns]"),
                       {"coord_func": "min"}, np.array([ODD, ODD + 1, NAT.astype(int)]).view("M8[ns]")),
    "maxima without NaN": (np.array([1.0, np.nan, np.nan, np.nan]), {"coord_func": "max"}, np.array([1, np.nan])),
    "bool minima in padding": (np.array([True, False]), {"pads": 2, "coord_func": "min"},
                               np.array([np.nan, False, np.nan], object)),
    "bool in padding": (np.array([True, False]), {"pads": 2, "coord_func": "any"},
                        np.array([np.nan, True, np.nan], object)),
    "strings": (np.array(list("badc")), {"coord_func": "min"}, np.array(["a", "c"], object)),
    "joined strings": (np.array(list("abcd")), {"pads": 1, "coord_func": lambda v, axis: np.apply_along_axis(
        "".join, axis[0], v)}, np.array(["a", "bc", "d"])),
    "only padding": (np.array(["a"]), {"pads": {"x": (2, 0)}, "coord_func": "min"}, np.array([np.nan], object)),
}


@pytest.mark.parametrize("name", ["x", "label"])
@pytest.mark.parametrize("kind", KINDS)
def test_coordinates_of_each_kind(kind: str, name: str) -> None:
    """Labels of each kind have the expected values, with an index or without."""
    values, given, wanted = KINDS[kind]
    got = labels_of(values, name, **given)
    assert got.dtype == wanted.dtype
    assert got.dims == ("x",)
    if wanted.dtype.kind == "O":
        assert [value if value == value else None for value in got.values] == [
            value if value == value else None for value in wanted]
    else:
        np.testing.assert_array_equal(got.values, wanted)


@pytest.mark.parametrize("holes", [0, 0.3])
@pytest.mark.parametrize("unit", ["s", "ns"])
def test_dates_are_exact(unit: str, holes: float) -> None:
    """Means of random dates equal means of Python integers, for coordinates and variables, also in dask arrays."""
    pytest.importorskip("dask.array")
    rng = np.random.default_rng(3)
    for limit in (4, 2**61):  # small numbers have many ties
        numbers = np.where(rng.random((9, 11)) < holes, np.iinfo(np.int64).min, rng.integers(-limit, limit, (9, 11)))
        dates = numbers.view(f"M8[{unit}]")
        x = xr.Dataset({"bounds": (("y", "x"), dates)}, coords={"seen": (("y", "x"), dates)})
        windows = {0: taps(9, 3, 1, 2, (2, 2)), 1: taps(11, 4, 2, 1, (2, 2))}
        valid = by_windows(dates, windows, lambda own: moment(own[~np.isnat(own)]), np.int64)
        full = by_windows(dates, windows, lambda own: moment(own[:0] if np.isnat(own).any() else own), np.int64)
        whole = moment(dates[~np.isnat(dates)])
        for source in (x, x.chunk(y=5, x=6)):
            for skipna in (False, True):
                y = pools.average_pool(source, {"y": 3, "x": 4}, strides={"x": 2}, pads=2, dilations={"y": 2},
                                       skipna=skipna)
                assert (y.seen.chunks is None) == (source is x)
                np.testing.assert_array_equal(y.seen.values.view(np.int64), valid)
                np.testing.assert_array_equal(y.bounds.values.view(np.int64), valid if skipna else full)
                z = pools.global_average_pool(source, skipna=skipna).bounds.values
                assert int(z.view(np.int64)) == (whole if skipna or not holes else np.iinfo(np.int64).min)


@pytest.mark.parametrize("function", ["first", "last", "min", "max"])
def test_elements_of_windows_are_their_labels(function: str) -> None:
    """A window's label can be its first, last, least or greatest element, also in dask arrays."""
    pytest.importorskip("dask.array")
    pick = {"first": lambda own: own[0], "last": lambda own: own[-1], "min": np.nanmin, "max": np.nanmax}[function]
    rng = np.random.default_rng(11)
    for seed in range(100):
        size, kernel, stride, dilation = (int(rng.integers(1, high)) for high in (12, 5, 4, 5))
        pads = tuple(rng.integers(0, 9, 2).tolist())
        if (kernel - 1) * dilation >= size + sum(pads):
            continue
        values = rng.integers(-99, 99, (3, size)) * 1.0
        values[rng.random(values.shape) < 0.2] = np.nan
        x = xr.DataArray(np.zeros((3, size)), dims=("y", "x"), coords={"p": (("y", "x"), values)})
        given: dict[str, Any] = {"strides": stride, "dilations": dilation, "pads": {"x": pads},
                                 "ceil_mode": seed % 2, "coord_func": function}
        windows = {1: taps(size, kernel, stride, dilation, pads, seed % 2)}
        wanted = by_windows(values, windows, lambda own: np.nan if not own.size or np.isnan(own).all() else pick(own),
                            np.float64)
        np.testing.assert_array_equal(pools.max_pool(x, {"x": kernel}, **given).p.values, wanted, err_msg=str(seed))
        z = pools.max_pool(x.assign_coords(p=x.p.chunk(x=4)), {"x": kernel}, **given).p
        assert z.chunks is not None
        np.testing.assert_array_equal(z.values, wanted, err_msg=str(seed))


def test_labels_of_pandas() -> None:
    """First and last elements keep the dtypes and indexes of pandas. Dates with a time zone are not reduced."""
    pd = pytest.importorskip("pandas")
    zoned = pd.date_range("2000-03-25", periods=4, tz="Europe/Berlin")
    for values in (zoned, pd.period_range("2000-01", periods=4, freq="M"), pd.CategoricalIndex(list("abca"))):
        for name in ("x", "label"):
            last = labels_of(values, name, coord_func="last")
            assert last.to_index().equals(values[[1, 3]])
            assert last.dtype == values.dtype
            padded = labels_of(values, name, coord_func="first", pads={"x": (2, 0)})
            assert padded.dtype == values.dtype
            assert padded.to_index().isna().tolist() == [True, False, False]
    for function in ("mean", "min", np.max):
        with pytest.raises(onnxpool.PoolTypeError, match="time zone") as caught:
            labels_of(zoned, coord_func=function)
    x = line(zoned)
    (way,) = re.findall(r"or (x\.assign_coords\(.*\)) \(coordinate", str(caught.value))
    y = pools.max_pool(eval(way, {"x": x}), {"x": 2}, strides=2)
    np.testing.assert_array_equal(y.x.values, np.array(["2000-03-25T11", "2000-03-27T10"], "M8[h]"))


def test_functions_are_called_for_few_windows_at_a_time() -> None:
    """A function that copies its argument does not need all windows in memory."""
    sizes: list[int] = []

    def median(values: Array, axis: tuple[int, ...]) -> Array:
        sizes.append(values.size)
        return np.median(values, axis)

    points = np.random.default_rng(0).random((400, 300))
    x = xr.DataArray(np.zeros((400, 300)), dims=("y", "x"), coords={"p": (("y", "x"), points)})
    y = pools.max_pool(x, {"y": 5, "x": 6}, coord_func=median)
    assert max(sizes) <= 2**20 < sum(sizes)
    wanted = np.median(np.lib.stride_tricks.sliding_window_view(points, (5, 6)), (2, 3))
    np.testing.assert_array_equal(y.p.values, wanted)


@pytest.mark.parametrize("function", ["mean", "first", "min", "median", np.max])
def test_coordinates_without_elements(function: Any) -> None:
    """A dimension that is not pooled may be empty."""
    dates = np.zeros((0, 6), "M8[s]")
    x = xr.DataArray(np.zeros((0, 6)), dims=("y", "x"), coords={"p": (("y", "x"), np.zeros((0, 6)))})
    assert pools.max_pool(x, {"x": 2}, coord_func=function).p.shape == (0, 5)
    if function in ("mean", "first", "min"):
        y = pools.max_pool(x.assign_coords(p=(("y", "x"), dates)), {"x": 2}, coord_func=function)
        assert (y.p.shape, y.p.dtype) == ((0, 5), dates.dtype)


def test_nothing_to_pool() -> None:
    """Arrays without dimensions and datasets without variables are returned, as in reductions of xarray."""
    for pool in (pools.global_max_pool, pools.global_average_pool):
        for dim in (None, ..., ()):
            assert pool(X[0, 0], dim).identical(X[0, 0])
            assert pool(xr.Dataset(attrs={"a": 1}), dim).identical(xr.Dataset(attrs={"a": 1}))


def test_dates_of_other_calendars() -> None:
    """Dates of cftime keep their calendar, and their index."""
    pytest.importorskip("cftime")
    time = xr.date_range("2000-02-29", periods=6, calendar="360_day", use_cftime=True)
    y = pools.average_pool(line(time), {"x": 2}, strides=2, pads=1)
    truth = line(time).isel(x=slice(1, 5)).coarsen(x=2).mean()
    assert y.x[1:3].equals(truth.x)
    assert (y.x.values[0], y.x.values[-1]) == (time[0], time[-1])
    assert type(y.indexes["x"]) is type(line(time).indexes["x"])


def test_functions_see_each_element_once() -> None:
    """A function is called for all windows, and sees each window's elements in order."""
    rng = np.random.default_rng(5)
    for seed in range(60):
        sizes = rng.integers(4, 9, 2)
        kernel, stride, dilation = rng.integers(1, 4, 2), rng.integers(1, 4, 2), rng.integers(1, 3, 2)
        pads = rng.integers(0, 4, (2, 2))
        values = np.arange(sizes.prod() * 2).reshape(2, *sizes)
        x = xr.DataArray(values, dims=("t", "y", "x"), coords={"p": (("t", "y", "x"), values)})
        try:
            windows = {axis + 1: taps(int(sizes[axis]), int(kernel[axis]), int(stride[axis]), int(dilation[axis]),
                                      tuple(pads[axis].tolist()), 1) for axis in (0, 1)}
            got = pools.min_pool(
                x, {"y": int(kernel[0]), "x": int(kernel[1])}, strides={"y": int(stride[0]), "x": int(stride[1])},
                dilations={"x": int(dilation[1]), "y": int(dilation[0])}, ceil_mode=1,
                pads={"y": tuple(map(int, pads[0])), "x": tuple(map(int, pads[1]))},
                coord_func=lambda v, axis: (v * v).sum(axis) + v.min(axis) * 10_000_000).p
        except onnxpool.PoolError:
            continue
        wanted = by_windows(values, windows, lambda v: (v * v).sum() + v.min() * 10_000_000 if v.size else np.nan,
                            np.float64)
        np.testing.assert_array_equal(got.values, wanted, err_msg=str(seed))


def test_a_function_for_some_coordinates() -> None:
    """Coordinates without a function keep the mean."""
    y = pools.max_pool(field(), {"lat": 4, "lon": 2}, strides=2, coord_func={"area": np.max, "lat": "min"})
    x = field()
    np.testing.assert_array_equal(y.lat, x.lat[:10:2])
    np.testing.assert_allclose(y.lon, (x.lon.values[::2] + x.lon.values[1::2]) / 2, atol=1e-13)
    assert y.area.values[1, 2] == x.area.values[2:6, 4:6].max()


def test_indexes() -> None:
    """A pooled coordinate has an index, whatever its name, if the original coordinate has one."""
    x = line(np.arange(6.0))
    assert list(pools.max_pool(x, {"x": 2}).xindexes) == ["x"]
    assert float(pools.max_pool(x, {"x": 2}).sel(x=2.4, method="nearest").x) == 2.5
    assert list(pools.max_pool(x.drop_indexes("x"), {"x": 2}).xindexes) == []
    other = line(np.arange(6.0), "km").set_xindex("km")
    assert float(pools.max_pool(other, {"x": 2}).sel(km=2.5)) == 3
    grid = xr.DataArray(np.zeros((4, 6)), dims=("y", "x"), coords={"x": np.arange(6)})
    assert pools.max_pool(grid, {"y": 2}).xindexes["x"] is grid.xindexes["x"]


class Points(xr.Index):
    """An index of several coordinates."""

    @classmethod
    def from_variables(cls, variables: Any, *, options: Any) -> "Points":
        """The index, whatever the values."""
        return cls()


def test_indexes_of_several_coordinates() -> None:
    """An index of several coordinates is kept as long as none of its coordinates changes."""
    values = np.arange(24.0).reshape(4, 6)
    x = xr.DataArray(np.zeros((2, 4, 6)), dims=("t", "y", "x"),
                     coords={"p": (("y", "x"), values), "q": (("y", "x"), -values), "r": ("x", values[0])})
    x = x.set_xindex(["p", "q"], Points)
    assert list(pools.max_pool(x, {"t": 2}).xindexes) == ["p", "q"]
    assert list(pools.max_pool(x, {"y": 2}).xindexes) == []
    assert list(pools.global_max_pool(x, "t").xindexes) == ["p", "q"]
    assert list(pools.global_max_pool(x, "y").coords) == ["r"]
    both = x.drop_vars(["p", "q"]).assign_coords(s=("y", values[:, 0])).set_xindex(["r", "s"], Points)
    assert {name: type(index).__name__ for name, index in pools.max_pool(both, {"y": 2}).xindexes.items()} == {
        "r": "PandasIndex", "s": "PandasIndex"}


def test_multi_indexes() -> None:
    """Levels of a MultiIndex have no mean until they are separate coordinates. If other dimensions are pooled, the
    MultiIndex is kept."""
    pd = pytest.importorskip("pandas")
    levels = pd.MultiIndex.from_product([[1, 2], [3, 4, 5]], names=("p", "q"))
    x = xr.DataArray(np.arange(24).reshape(4, 6), dims=("y", "x"),
                     coords=xr.Coordinates.from_pandas_multiindex(levels, "x"))
    y = pools.max_pool(x, {"y": 2})
    assert y.indexes["x"].equals(levels)
    assert y.sel(p=2, q=4).values.tolist() == [10, 16, 22]
    with pytest.raises(onnxpool.PoolTypeError, match=r"MultiIndex.*reset_index\('x'\)"):
        pools.max_pool(x, {"x": 2})
    assert pools.max_pool(x.reset_index("x"), {"x": 2}, strides=2).p.values.tolist() == [1, 1.5, 2]
    assert list(pools.global_max_pool(x, "x").coords) == []


def dataset() -> Any:
    """Variables with all of the dimensions, some and none."""
    x = field(lat=6, lon=8)
    return xr.Dataset({"t": x, "row": ("lat", np.arange(6), {"a": 1}), "other": ("member", list("ab")), "one": 5},
                      attrs={"title": "test"}, coords={"member": [1, 2]})


def test_datasets() -> None:
    """Variables are pooled along the dimensions that they have. Variables without such dimensions are kept, as in
    coarsen."""
    x = dataset()
    y = pools.max_pool(x, {"lat": 2, "lon": 3}, strides=2)
    assert y.t.identical(pools.max_pool(x.t, {"lat": 2, "lon": 3}, strides=2))
    assert y.row.equals(pools.max_pool(x.row, {"lat": 2}, strides=2))
    assert y.other.identical(x.other)
    assert y.one.identical(x.one)
    assert list(y.data_vars) == list(x.data_vars)
    assert (y.attrs, y.row.attrs, y.lat.attrs) == (x.attrs, x.row.attrs, x.lat.attrs)
    xr.testing.assert_allclose(pools.average_pool(x.drop_vars("other"), {"lat": 3}, strides=3),
                               x.drop_vars("other").coarsen(lat=3).mean())
    xr.testing.assert_allclose(pools.global_average_pool(x, ["lat", "lon"]), x.drop_vars("other").mean(
        ["lat", "lon"]).assign(other=x.other))
    everything = pools.global_max_pool(x.drop_vars("other"))
    assert (float(everything.t), int(everything.row), int(everything.one)) == (x.t.max(), 5, 5)
    values, indices = pools.max_pool(x, {"lat": 2}, return_indices=True)
    assert list(indices.data_vars) == ["t", "row"]
    assert values.identical(pools.max_pool(x, {"lat": 2}))


def test_indices_are_positions_in_the_whole_variable() -> None:
    """Indices select the extrema. They have no attributes, and have the coordinates of the windows."""
    x = field()
    for pool in (pools.max_pool, pools.min_pool):
        y, indices = pool(x.drop_vars("kind"), {"lat": 3, "time": 2}, strides={"lat": 2}, return_indices=True)
        np.testing.assert_array_equal(x.values.ravel()[indices.values], y.values)
        assert (indices.dtype, indices.attrs, indices.name) == (np.int64, {}, "t2m")
        assert indices.coords.equals(y.coords)


def test_a_coordinate_is_pooled_with_itself() -> None:
    """A pooled coordinate is its own coordinate in the result, as with coarsen."""
    x = line(np.arange(6)).x
    y = pools.max_pool(x, {"x": 2}, strides=2)
    assert y.values.tolist() == y.x.values.tolist() == [1, 3, 5]
    assert y.identical(x.coarsen(x=2).max())
    other = xr.DataArray(np.zeros((2, 6)), dims=("y", "x"), coords={"x": x}, name="x")
    assert pools.max_pool(other, {"x": 2}, strides=2).x.values.tolist() == [0.5, 2.5, 4.5]


def test_an_array_that_is_computed_from_a_coordinate_keeps_its_labels() -> None:
    """xarray keeps names in arithmetic, so 2 * x has the name of x. Its labels are nevertheless the labels of x."""
    x = 2 * line(np.arange(6)).x
    assert x.name == "x"
    y = pools.max_pool(x, {"x": 2}, strides=2)
    assert (y.values.tolist(), y.x.values.tolist()) == ([2, 6, 10], [0.5, 2.5, 4.5])


def test_attributes_are_kept_unless_an_option_drops_them() -> None:
    """Arrays, coordinates and datasets keep their attributes. The input stays unchanged."""
    x, many = field().drop_vars("kind"), dataset()
    with xr.set_options(keep_attrs=False):
        y = pools.max_pool(x, {"lat": 2})
        assert (y.attrs, y.lat.attrs) == ({}, {})
        assert pools.global_max_pool(many, "lat").attrs == {}
    y = pools.max_pool(x, {"lat": 2})
    assert (y.attrs, y.lat.attrs, y.area.attrs) == (x.attrs, x.lat.attrs, x.area.attrs)
    y.attrs["units"] = y.lat.attrs["axis"] = "changed"
    assert (x.attrs, x.lat.attrs) == ({"units": "K"}, {"axis": "lat"})


def test_encodings_describe_files_and_are_not_those_of_results() -> None:
    """Results have no encodings, as in xarray's reductions. Variables that are kept keep their encodings."""
    x = dataset()
    for name in ("t", "lat", "member"):
        x[name].encoding = {"chunksizes": (3,)}
    y = pools.max_pool(x, {"lat": 2})
    assert [y[name].encoding for name in ("t", "lat", "member")] == [{}, {}, {"chunksizes": (3,)}]


@pytest.mark.parametrize("order", [("lon", "lat", "time"), ("time", "lon", "lat")])
def test_the_order_of_dimensions_is_kept(order: tuple[str, ...]) -> None:
    """Results keep the order of dimensions, whatever the order of names in arguments."""
    x = field().drop_vars("kind").transpose(*order)
    y = pools.average_pool(x, {"lat": 3, "time": 2}, strides={"time": 2}, pads={"lat": (1, 0)})
    z = pools.average_pool(x, {"time": 2, "lat": 3}, strides={"time": 2}, pads={"lat": (1, 0)})
    assert y.dims == order
    assert y.identical(z)
    wanted = onnxpool.average_pool(field().values, (2, 3), strides=(2, 1), pads=(0, 1, 0, 0), axes=(0, 1))
    np.testing.assert_allclose(y.transpose("time", "lat", "lon").values, wanted, rtol=1e-13)


def refusing(block: Array) -> Array:
    """A task that must not run."""
    raise AssertionError("computed")


def lazy(x: Any) -> Any:
    """The array as a dask array whose tasks fail."""
    da = pytest.importorskip("dask.array")
    return da.from_array(x, chunks=3).map_blocks(refusing, meta=np.empty((0,) * x.ndim, x.dtype))


def test_arrays_with_the_name_of_a_coordinate_are_not_computed() -> None:
    """onnxpool sees whether an array is its own coordinate without looking at elements."""
    area = field(lat=8, lon=12).area
    source = xr.DataArray(lazy(area.values), dims=area.dims, coords={"area": (area.dims, lazy(area.values))})
    other = source.area + 1
    assert other.name == "area"
    for x in (source.area, other):
        y = pools.max_pool(x, {"lat": 3}, strides=2)
        assert y.chunks is not None
        assert (y.area.data.name == y.data.name) == (x is not other)


@pytest.mark.parametrize("coord_func", ["mean", "median", "min", "first", np.max])
def test_nothing_is_computed(coord_func: Any) -> None:
    """Neither data nor coordinates are computed, whatever function pools them."""
    x = field(lat=8, lon=12)
    dates = np.arange(96).reshape(8, 12).view("M8[ns]")
    coords = {"area": (("lat", "lon"), lazy(x.area.values)), "lon": x.lon, "seen": (("lat", "lon"), lazy(dates)),
              "letter": ("lat", lazy(np.array(list("abcdefgh"), object)))}
    if coord_func == "median":
        del coords["seen"]
    source = xr.DataArray(lazy(x.values), dims=x.dims, coords=coords)
    y, indices = pools.max_pool(source, {"lat": 3, "lon": 2}, strides=2, return_indices=True, coord_func=coord_func)
    whole = pools.global_average_pool(source, "lon")
    for one in (y, indices, whole, y.area, y.letter):
        assert one.chunks is not None
        with pytest.raises(AssertionError, match="computed"):
            one.compute()
    assert y.lon.values.shape == (6,)


@pytest.mark.parametrize("coord_func", ["mean", "min", lambda v, axis: v.max(axis)])
def test_lazy_coordinates_are_those_of_arrays(coord_func: Any) -> None:
    """Lazy coordinates have the same values and dtypes, with missing values, in padding, and in small chunks."""
    pytest.importorskip("dask.array")
    rng = np.random.default_rng(2)
    shape = (9, 10)
    given = {"strides": {"y": 2, "x": 3}, "pads": {"y": (3, 2), "x": 1}}
    coords = {"f": rng.standard_normal(shape), "g": rng.random(shape).astype(np.float32),
              "i": rng.integers(0, 9, shape), "b": rng.random(shape) < 0.5,
              "d": rng.integers(0, 2**60, shape).view("M8[ns]")}
    coords["f"][2:6, 3:7] = np.nan
    x = xr.DataArray(rng.random(shape), dims=("y", "x"), coords={name: (("y", "x"), c) for name, c in coords.items()})
    y = pools.average_pool(x, {"y": 2, "x": 3}, **given, coord_func=coord_func)
    z = pools.average_pool(x.chunk(y=2, x=3), {"y": 2, "x": 3}, **given, coord_func=coord_func)
    for name in coords:
        assert z[name].chunks is not None
        assert z[name].dtype == y[name].dtype
    assert z.compute().identical(y)


def test_coordinates_of_lazy_objects() -> None:
    """Dates of cftime in a dask array are pooled."""
    pytest.importorskip("dask.array")
    pytest.importorskip("cftime")
    time = np.array(xr.date_range("2000-02-28", periods=6, calendar="noleap", use_cftime=True))
    x = line(time, "seen").chunk(x=2)
    y = pools.max_pool(x, {"x": 2})
    assert y.seen.chunks is not None
    assert y.compute().identical(pools.max_pool(line(time, "seen"), {"x": 2}))


def test_numbers_of_threads_are_passed_on() -> None:
    """The number of threads reaches the call, or the tasks, whose default is 1."""
    pytest.importorskip("dask.array")
    x = line(np.arange(6))
    for call in (lambda x, n: pools.max_pool(x, {"x": 2}, num_threads=n),
                 lambda x, n: pools.global_max_pool(x, num_threads=n)):
        with pytest.raises(onnxpool.PoolError, match="num_threads"):
            call(x, 0)
        with pytest.raises(onnxpool.PoolError, match="num_threads"):
            call(x.chunk(x=3), 0).compute()
        assert call(x.chunk(x=3), None).data.name == call(x.chunk(x=3), 1).data.name
        assert call(x.chunk(x=3), 2).data.name != call(x.chunk(x=3), 1).data.name


X = xr.DataArray(np.zeros((4, 6)), dims=("y", "x"), coords={"x": range(6), "s": ("x", list("abcdef"))})
NUMBERS = X.drop_vars("s")
SET = xr.Dataset({"a": NUMBERS, "s": ("x", list("abcdef"))})
REFUSED: dict[str, tuple[Any, str, tuple[Any, ...]]] = {
    "numpy": (lambda: pools.max_pool(X.values, {"x": 2}), "ndarray, not an xarray.DataArray", ("X", None, "ndarray")),
    "whole numpy": (lambda: pools.global_max_pool(X.values, "x"), r"pass xarray.DataArray\(x", ("X", None, "ndarray")),
    "unknown": (lambda: pools.max_pool(X, {"z": 2}), "names 'z', but X has 'y', 'x'", ("kernel_shape", None, "z")),
    "unknown of a dataset": (lambda: pools.max_pool(SET, {"z": 2}), "X has '.', '.'", ("kernel_shape", None, "z")),
    "kernel": (lambda: pools.max_pool(X, 3), r"mapping from dimensions.*\{'y': 3\}", ("kernel_shape", None, 3)),
    "no kernel": (lambda: pools.max_pool(X, {}), "names no dimension, and X has 'y', 'x'", ("kernel_shape", None, {})),
    "zero": (lambda: pools.max_pool(X, {"x": 0}), r"kernel_shape\['x'\].*at least 1", ("kernel_shape", None, 0)),
    "float": (lambda: pools.max_pool(X, {"x": 2.0}), r"kernel_shape\['x'\].*integer", ("kernel_shape", None, 2.0)),
    "large": (lambda: pools.max_pool(X, {"x": 9}), r"spans 9.*\(axis 1 is 'x'\)", ("kernel_shape", 1, 9)),
    "large in a dataset": (lambda: pools.max_pool(SET, {"x": 9}), r"\(axis 1 is 'x' of variable 'a'\)",
                           ("kernel_shape", 1, 9)),
    "strides": (lambda: pools.max_pool(X, {"x": 2}, strides={"y": 2}), "names 'y', but kernel_shape has 'x'",
                ("strides", None, "y")),
    "sequence": (lambda: pools.max_pool(X, {"x": 2}, strides=(2, 2)), r"mapping.*pass one such as \{'x': 1\}",
                 ("strides", None, (2, 2))),
    "negative": (lambda: pools.max_pool(X, {"x": 2}, dilations=-1), "dilations must be in", ("dilations", None, -1)),
    "pads": (lambda: pools.max_pool(X, {"x": 2}, pads={"x": (1, 2, 3)}), r"pads\['x'\].*\(before, after\)",
             ("pads", None, (1, 2, 3))),
    "pad": (lambda: pools.max_pool(X, {"x": 2}, pads={"x": (1, -2)}), r"pads\['x'\].*at least 0", ("pads", None, -2)),
    "both": (lambda: pools.max_pool(X, {"x": 2}, pads=1, auto_pad="SAME_UPPER"), "given together", ("pads",)),
    "strings": (lambda: pools.max_pool(X, {"x": 2}), r"no mean.*drop_vars\('s'\).*\(coordinate 's'\)",
                ("coord_func", None, "mean")),
    "variable": (lambda: pools.max_pool(SET, {"x": 2}), r"\(variable 's'; x.drop_vars\('s'\) leaves", ("X", None)),
    "name": (lambda: pools.max_pool(NUMBERS, {"x": 2}, coord_func="average"), "one of mean, median",
             ("coord_func", None, "average")),
    "function": (lambda: pools.max_pool(NUMBERS, {"x": 2}, coord_func={"x": 3}), "like numpy.mean",
                 ("coord_func", None, 3)),
    "coordinate": (lambda: pools.max_pool(X, {"x": 2}, coord_func={"q": "min"}), "coordinates of X are 'x', 's'",
                   ("coord_func", None, "q")),
    "shape": (lambda: pools.max_pool(NUMBERS, {"x": 2}, coord_func=lambda v, axis: v), r"instead of \(5,\)",
              ("coord_func", None, (5, 2))),
    "argument": (lambda: pools.max_pool(X, {"x": 2}, stride=2), "pass strides", ("stride", None, 2)),
    "dim": (lambda: pools.global_max_pool(X, "z"), "names 'z', but X has 'y', 'x'", ("dim", None, "z")),
    "dims": (lambda: pools.global_max_pool(X, ["x", "x"]), "name each dimension once", ("dim", None, ("x", "x"))),
    "no dim": (lambda: pools.global_max_pool(X, []), "names no dimension", ("dim", None, ())),
    "dim of a scalar": (lambda: pools.global_max_pool(X[0, 0], "x"), "X has no dimensions", ("dim", None, "x")),
    "kernel of a scalar": (lambda: pools.max_pool(X[0, 0], {"x": 2}), "no dimensions", ("kernel_shape", None, "x")),
    "flag": (lambda: pools.max_pool(NUMBERS, {"x": 2}, skipna="yes"), "skipna must be True or False, got 'yes'",
             ("skipna", None, "yes")),
    "whole flag": (lambda: pools.global_max_pool(X, keepdims=2), "keepdims must be True or False",
                   ("keepdims", None, 2)),
    "empty windows": (lambda: pools.max_pool(X[:, :0], {"x": 2}), r"pass an array with elements.*\(axis 1 is 'x'\)",
                      ("X", 1, 0)),
    "xarray's own": (lambda: pools.max_pool(X.variable, {"x": 2}), "of type xarray.*Variable, not an xarray.DataArray",
                     ("X", None, "Variable")),
    "functions of dates": (lambda: labels_of(CALENDAR, coord_func=np.mean), r"raised UFuncTypeError.*coordinate 'x'",
                           ("coord_func", None, np.mean)),
    "padded dates": (lambda: pools.average_pool(line(CALENDAR).x, {"x": 2}, pads=1, count_include_pad=1),
                     "datetime64", ("X", None, "datetime64[s]")),
    "unhashable": (lambda: pools.global_max_pool(X, [["x"]]), r"names \['x'\]", ("dim", None, ["x"])),
    "empty": (lambda: pools.global_max_pool(X[:, :0], "x"), r"empty.*\(axis 1 is 'x'\)", ("X", 1, 0)),
    "integers": (lambda: pools.lp_pool(NUMBERS.astype(int), {"x": 2}), "int64", ("X", None, "int64")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """Errors name what was wrong, what there is, and what to do."""
    call, text, fields = REFUSED[name]
    with pytest.raises((onnxpool.PoolError, onnxpool.PoolTypeError), match=text) as caught:
        call()
    error: Any = caught.value
    assert (error.attribute, error.axis, error.value)[:len(fields)] == fields
    assert "; " in str(error)


class Foreign(np.lib.mixins.NDArrayOperatorsMixin):
    """An array type that xarray wraps."""

    def __init__(self, array: Array) -> None:
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented

    def __array_function__(self, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented

    def __getitem__(self, key: Any) -> Any:
        return Foreign(self.array[key])


def test_other_arrays_are_refused() -> None:
    """Arrays of other libraries in data or coordinates are not converted, because conversions could lose units or need
    much memory."""
    data = xr.DataArray(Foreign(np.zeros(6)), dims="x")
    assert type(data.data) is Foreign
    for x, where in ((data, ""), (xr.DataArray(np.zeros(6), dims="x", coords={"c": data}), r"\(coordinate 'c'\)"),
                     (data.to_dataset(name="d"), r"\(variable 'd'; x.drop_vars\('d'\)")):
        with pytest.raises(onnxpool.PoolTypeError, match=rf"Foreign, but only NumPy and dask.*as_numpy\(\).*{where}"):
            pools.max_pool(x, {"x": 2})


PAGE = (Path(__file__).parents[2] / "docs" / "xarray.md").read_text(encoding="utf-8")
CALLS = re.findall(r"^\| [^|]* \| `(x\..*)` \| `(.*)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("theirs", "ours"), CALLS)
def test_calls_of_the_page_are_equivalent(theirs: str, ours: str) -> None:
    """The two columns of the table have the same results, with the same coordinates."""
    x = field(time=7, lat=13, lon=22).drop_vars("kind")
    given = {name: getattr(pools, name) for name in pools.__all__} | {"x": x}
    xr.testing.assert_allclose(eval(ours, given), eval(theirs, given), rtol=1e-13)


def test_the_page_has_equivalent_calls() -> None:
    """The test of equivalent calls finds every row of the page's table."""
    lines = PAGE.partition("## Equivalent calls")[2].partition("\n## ")[0].splitlines()
    assert len(CALLS) == sum(line.startswith("| ") for line in lines) - 1 > 5


def test_what_xarray_does() -> None:
    """Weighted means, wrapped windows and calendar blocks work in xarray as the page shows."""
    x = field(time=7, lat=6, lon=8).drop_vars("kind")
    rows = re.findall(r"`(.*)` \|$", PAGE.partition("## What xarray does")[2].partition("```")[0], re.MULTILINE)
    weighted, wrapped, months = (eval(row, {"x": x, "np": np, "max_pool": pools.max_pool}) for row in rows)
    weights = np.cos(np.deg2rad(x.lat)) * xr.ones_like(x)
    whole = pools.global_average_pool(x * weights, ["lat", "lon"]) / pools.global_average_pool(weights, ["lat", "lon"])
    xr.testing.assert_allclose(weighted, whole)
    rolled = [np.roll(x.values, shift, -1) for shift in (-1, 0, 1)]
    np.testing.assert_array_equal(wrapped.values, np.max(rolled, axis=0))
    assert wrapped.coords.equals(x.coords)
    assert months.time.values.tolist() == [x.time.values[0].astype("M8[M]").astype("M8[ns]").astype(int)]


def test_files_that_are_not_loaded(tmp_path: Any) -> None:
    """Variables of an open file are read by pooling."""
    pytest.importorskip("scipy")
    x = dataset().drop_vars(["other", "member"])
    x.to_netcdf(tmp_path / "x.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "x.nc", engine="scipy") as stored:
        y = pools.average_pool(stored, {"lat": 2, "lon": 2}, strides=2)
    xr.testing.assert_equal(y, pools.average_pool(x, {"lat": 2, "lon": 2}, strides=2))


def test_imports() -> None:
    """onnxpool does not import xarray, and pools of NumPy arrays work without dask."""
    assert program("import sys, onnxpool; print('xarray' in sys.modules)") == "False"
    text = ("import sys; sys.modules['dask'] = sys.modules['dask.array'] = None\n"
            "import numpy as np, xarray as xr, onnxpool.xarray as pools\n"
            "x = xr.DataArray(np.zeros(6), dims='x', coords={'x': np.arange(6)})\n"
            "pools.average_pool(x, {'x': 2}, coord_func=np.max), pools.global_max_pool(x)\n"
            "print('onnxpool.dask' in sys.modules)")
    assert program(text) == "False"


def test_the_oracle_of_windows() -> None:
    """The oracle of these tests has as many windows as onnxpool."""
    for size, kernel, stride, dilation, before, after, ceil in product((1, 5, 8), (1, 2, 3), (1, 2, 3), (1, 2),
                                                                       (0, 1, 2), (0, 2), (0, 1)):
        op = onnxpool.MaxPool(kernel_shape=kernel, strides=stride, dilations=dilation, pads=(before, after), axes=0,
                              ceil_mode=ceil)
        if (kernel - 1) * dilation < size + before + after:
            windows = taps(size, kernel, stride, dilation, (before, after), ceil)
            if not windows:
                continue
            assert op.output_shape((size,)) == (len(windows),)


FUNCTIONS_OF_COORDINATES = ["mean", "median", "min", "max", "sum", "prod", "std", "var", "count", "all", "any", "first",
                            "last", np.ptp, lambda windows, axis: np.quantile(windows, 0.25, axis=axis)]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("function", FUNCTIONS_OF_COORDINATES,
                         ids=lambda function: getattr(function, "__name__", function))
@pytest.mark.parametrize("dtype", ["f4", "i8", "M8[s]"])
def test_chunks_of_coordinates_may_be_empty(function: Any, dtype: str) -> None:
    """Empty chunks of lazy coordinates have no effect, and neither do batch axes without elements, lazy or not."""
    da = pytest.importorskip("dask.array")
    if dtype == "M8[s]" and function not in ("mean", "min", "max", "first", "last", "count"):
        return
    for shape, chunks in (((2, 8, 4), ((0, 2), (0, 8, 0), (0, 4))), ((2, 8, 4), ((1, 0, 1), (3, 0, 5), (0, 2, 0, 2))),
                          ((0, 8, 4), ((0,), (8,), (4,))), ((0, 8, 4), ((0, 0), (3, 5), (4, 0)))):
        values = np.arange(math.prod(shape)).reshape(shape)
        whole, lazy = (xr.DataArray(one(values.astype(float)), dims=("n", "y", "x"), name="v",
                                    coords={"lat": (("n", "y", "x"), one(values.astype(dtype)))})
                       for one in (np.asarray, lambda array, chunks=chunks: da.from_array(array, chunks=chunks)))
        for pads in (0, {"y": (1, 0)}, {"y": 3, "x": 0}):
            given: dict[str, Any] = {"strides": {"y": 3}, "pads": pads, "coord_func": function}
            y, later = (pools.max_pool(x, {"y": 2, "x": 2}, **given) for x in (whole, lazy))
            assert later.lat.chunks is not None
            xr.testing.assert_identical(later.compute(scheduler="sync"), y)
            assert later.lat.dtype == y.lat.dtype
