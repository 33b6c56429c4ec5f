"""Filters of dask arrays and labelled arrays return what they return for arrays in memory."""

from typing import Any

import numpy as np
import pytest

import onnxpool
from onnxpool import ndimage

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
xr = pytest.importorskip("xarray")
calls = pytest.importorskip("tests.ndimage.calls")

MODES = ["reflect", "mirror", "nearest", "wrap", "constant"]
rng = np.random.default_rng(0)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("mode", [*MODES, ("wrap", "constant")])
@pytest.mark.parametrize("name", ndimage.__all__)
@pytest.mark.parametrize("size", [4, 40])
def test_dask_arrays(name: str, mode: Any, size: int) -> None:
    """Results for dask arrays have the bits of results in memory, and keep the chunks, also with windows that are
    longer than a chunk or the array."""
    if name.endswith("1d") and isinstance(mode, tuple):
        return
    further: dict[str, Any] = {"truncate": True} if "uniform" in name else {"output": np.float64}
    for dtype, given in ((np.float32, {}), (np.int16, {"output": np.uint8}), (np.uint8, further)):
        x = rng.integers(0, 100, (23, 30)).astype(dtype)
        d = da.from_array(x, chunks=((5, 0, 10, 8), (14, 16)))
        y = getattr(ndimage, name)(d, size, mode=mode, cval=7, origin=1, **given)
        expected = getattr(ndimage, name)(x, size, mode=mode, cval=7, origin=1, **given)
        assert isinstance(y, da.Array)
        assert y.chunks == ((5, 10, 8), (14, 16))
        assert y.dtype == expected.dtype
        assert np.array_equal(y.compute(scheduler="sync"), expected)


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_on_dask_arrays(seed: int) -> None:
    """Random calls on random chunks return the same as on arrays in memory."""
    for place in range(12):
        call = calls.draw(7_000 + 12 * seed + place)
        expected = getattr(ndimage, call.name)(call.x, **call.given)
        chunks = tuple(int(rng.integers(1, size + 2)) for size in call.x.shape)
        y = getattr(ndimage, call.name)(da.from_array(call.x, chunks=chunks), **call.given)
        assert np.array_equal(y.compute(scheduler="sync"), expected), str(call)


def test_a_chunk_depends_on_its_neighbours_only() -> None:
    """The graph of one chunk, out of many, contains no chunks other than its neighbours."""
    d = da.zeros((4000, 4000), chunks=250, dtype=np.float32)
    for mode in MODES:
        y = ndimage.uniform_filter(d, 9, mode=mode)
        assert y.chunks == d.chunks
        for place in ((0, 0), (3, 3), (15, 15)):
            assert len(dask.optimize(y.blocks[place])[0].__dask_graph__()) < 60
            assert y.blocks[place].compute().shape == (250, 250)


def test_dask_arrays_larger_than_memory() -> None:
    """Dask arrays may be larger than memory, because no step depends on the size of the whole array."""
    d = da.zeros((10**7, 10**7), chunks=10**6, dtype=np.uint8)
    for given in ({"mode": "wrap"}, {"output": np.float64}, {"mode": "constant", "cval": 1}):
        assert ndimage.uniform_filter(d, 9, **given).shape == d.shape
        assert ndimage.maximum_filter(d, 9, **given).chunks == d.chunks


def test_nan_in_dask_arrays() -> None:
    """`skipna`, and comparisons with the constant, work as for arrays in memory."""
    x = np.where(rng.random((20, 20)) < 0.3, np.nan, rng.random((20, 20)))
    d = da.from_array(x, chunks=6)
    for name in ("maximum_filter", "minimum_filter", "uniform_filter"):
        for given in ({"skipna": True}, {"mode": "constant", "cval": 0.5}):
            expected = getattr(ndimage, name)(x, 3, **given)
            assert np.array_equal(getattr(ndimage, name)(d, 3, **given).compute(scheduler="sync"), expected,
                                  equal_nan=True)


def test_errors_of_dask_arrays() -> None:
    """For dask arrays, outputs must be dtypes, and sizes must be known."""
    d = da.zeros((8, 8), chunks=4)
    with pytest.raises(onnxpool.PoolTypeError, match="maximum_filter: output is an array"):
        ndimage.maximum_filter(d, 3, output=np.zeros((8, 8)))
    with pytest.raises(onnxpool.PoolError, match="maximum_filter: chunk sizes along axis 0 are unknown"):
        ndimage.maximum_filter(d[d[:, 0] > 0], 3)
    assert ndimage.maximum_filter(da.zeros((0, 3)), 3).shape == (0, 3)


def test_labelled_arrays() -> None:
    """Labelled arrays keep their labels, their axes have numbers or names, and their data may be a dask array."""
    a = xr.DataArray(rng.random((6, 8, 5)), dims=("y", "x", "band"), coords={"y": np.arange(6.0)}, name="r",
                     attrs={"unit": "K"})
    for b in (a, a.chunk({"y": 2, "x": 3})):
        y = ndimage.uniform_filter(b, (3, 5), axes=("x", "y"), mode=["wrap", "nearest"])
        expected = ndimage.uniform_filter(a.values, (3, 5), axes=(1, 0), mode=["wrap", "nearest"])
        assert np.array_equal(y.values, expected)
        assert (y.dims, y.name, y.attrs) == (a.dims, "r", {"unit": "K"})
        assert y.coords.equals(a.coords)
        assert (y.chunks is None) == (b is a)
    assert np.array_equal(ndimage.maximum_filter1d(a, 3, "band").values, ndimage.maximum_filter1d(a.values, 3))
    expected = ndimage.maximum_filter1d(a.values, 3)
    assert np.array_equal(ndimage.maximum_filter(a, footprint=np.ones(3), axes="band").values, expected)
    with pytest.raises(onnxpool.PoolTypeError, match=r"axis is \(2,\), but this filter has one"):
        ndimage.maximum_filter1d(a, 3, ("band",))
    assert np.array_equal(ndimage.grey_opening(a, (3, 3, 1)).values, ndimage.grey_opening(a.values, (3, 3, 1)))
    assert ndimage.maximum_filter(a, 3).identical(a.to_dataset().map(ndimage.maximum_filter, size=3, keep_attrs=True).r)
    with pytest.raises(onnxpool.PoolTypeError, match="maximum_filter: axes has 'z'"):
        ndimage.maximum_filter(a, 3, axes="z")
