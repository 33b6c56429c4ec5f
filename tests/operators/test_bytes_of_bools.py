"""Every byte but 0 is true in bools, as in views of masks with 0 and 255, and results are 0 or 1."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import onnxpool

BYTES = np.array([0, 0, 0, 1, 2, 127, 128, 255], np.uint8)
CALLS = 150
ALL_FALSE = np.zeros(2, bool)


def masks(rng: np.random.Generator) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """An array of bools of any bytes, and the same values of the usual bytes, with the same strides."""
    high = rng.choice(BYTES[rng.integers(0, 8):], tuple(rng.integers(1, 12, 3)))
    cut = (slice(None, None, int(rng.choice([1, -1, 2]))), slice(None), slice(None, None, int(rng.choice([1, -1]))))
    return high.view(bool)[cut], (high != 0)[cut]


def arguments(rng: np.random.Generator) -> dict[str, Any]:
    """Windows along some of three axes."""
    axes = rng.permutation(3)[:rng.integers(1, 4)].tolist()
    kernel = rng.integers(1, 4, len(axes))
    return {"kernel_shape": kernel.tolist(), "axes": axes, "strides": rng.integers(1, 3, len(axes)).tolist(),
            "pads": [*rng.integers(0, 2 * kernel).tolist(), *rng.integers(0, 2 * kernel).tolist()], "ceil_mode": 1}


def assert_same_bytes(found: Any, expected: Any) -> None:
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for one, other in pairs:
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.ascontiguousarray(one).view(np.uint8),
                                      np.ascontiguousarray(other).view(np.uint8))
        if one.dtype == bool:
            assert set(np.unique(np.ascontiguousarray(one).view(np.uint8))) <= {0, 1}


@pytest.mark.parametrize(("name", "more"), [
    ("max_pool", {}), ("max_pool", {"return_indices": True}), ("min_pool", {}), ("average_pool", {}),
    ("average_pool", {"dtype": np.float32, "count_include_pad": 1}),
])
def test_windows_of_any_bytes(name, more):
    rng = np.random.default_rng(1)
    made = 0
    while made < CALLS:
        x, usual = masks(rng)
        given = arguments(rng) | more
        try:
            expected = getattr(onnxpool, name)(usual, **given)
        except onnxpool.PoolError:
            continue
        made += 1
        assert_same_bytes(getattr(onnxpool, name)(x, **given), expected)
        operator = {"max_pool": onnxpool.MaxPool, "min_pool": onnxpool.MinPool,
                    "average_pool": onnxpool.AveragePool}[name](**given)
        plan = operator.plan(x.shape, x.dtype)
        assert_same_bytes(plan(x), expected)
        for part in plan.tiles(n=3):
            whole = expected if isinstance(expected, tuple) else (expected,)
            found = part(x[part.inputs])
            assert_same_bytes(found if isinstance(found, tuple) else (found,), tuple(y[part.outputs] for y in whole))


@pytest.mark.parametrize("name", ["global_max_pool", "global_min_pool", "global_average_pool"])
def test_whole_axes_of_any_bytes(name):
    rng = np.random.default_rng(2)
    for _ in range(CALLS):
        x, usual = masks(rng)
        axes = tuple(rng.permutation(3)[:rng.integers(1, 4)].tolist())
        pool = getattr(onnxpool, name)
        assert_same_bytes(pool(x, axes=axes, keepdims=False), pool(usual, axes=axes, keepdims=False))


def test_partial_results_of_any_bytes():
    x = np.array([0, 255, 2, 0], np.uint8).view(bool)
    for operator in (onnxpool.GlobalMaxPool(axes=0), onnxpool.GlobalMinPool(axes=0)):
        plan = operator.plan(x.shape, x.dtype)
        total = plan.combine(share(x[share.inputs]) for share in plan.partials(n=4))
        assert_same_bytes(total, plan(x))


def test_minimum_of_true_bytes_is_true():
    assert onnxpool.min_pool(np.array([1, 255, 2], np.uint8).view(bool), 2, axes=0).view(np.uint8).tolist() == [1, 1]
    assert onnxpool.min_pool(np.array([0, 255], np.uint8).view(bool), 2, axes=0).tolist() == [False]


def test_first_of_equal_bools_is_indexed():
    y, indices = onnxpool.max_pool(np.array([1, 255, 2], np.uint8).view(bool), 3, axes=0, return_indices=True)
    assert (y.view(np.uint8).tolist(), indices.tolist()) == ([1], [0])


def test_windows_without_elements_keep_their_bools():
    assert onnxpool.max_pool(ALL_FALSE, 1, axes=0, pads=1).tolist() == [False, False, False, False]
    assert onnxpool.min_pool(ALL_FALSE, 1, axes=0, pads=1).tolist() == [True, False, False, True]


def test_each_library_takes_any_bytes():
    dask, xarray = pytest.importorskip("dask.array"), pytest.importorskip("xarray")
    import onnxpool.dask
    import onnxpool.xarray

    x = np.array([0, 255, 2, 0, 0, 1, 128, 128, 128], np.uint8).view(bool)
    expected = onnxpool.min_pool(x != 0, 2, axes=0)
    assert_same_bytes(onnxpool.dask.min_pool(dask.from_array(x, chunks=2), 2, axes=0).compute(), expected)
    assert_same_bytes(onnxpool.xarray.min_pool(xarray.DataArray(x, dims="x"), {"x": 2}).values, expected)
