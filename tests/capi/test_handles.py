"""Handles of the C API: refused arguments, the status of runs, and the lifetime of handles."""

import ctypes
import gc
import math
import sys
from pathlib import Path
from typing import Any

import native
import numpy as np
import pytest
from calls import NHWC_MAX
from programs import program

import onnxpool
from onnxpool import cython_api


def handle_of(**fields: Any) -> int:
    """A handle for a small MaxPool. The handle is never released."""
    given = native.geometry("MaxPool", (1, 1, 4), "float32", kernel_shape=(2,))
    native.fill(given, fields)
    return native.prepare_geometry(given)


def test_runs_return_a_status() -> None:
    """A run raises nothing: its status says what is wrong with its arguments, and nothing is written."""
    x, y, indices = np.arange(4, dtype=np.float32), np.full(3, 7, np.float32), np.full(3, 7)
    plain, indexed = handle_of(), handle_of(return_indices=1)
    at, to, into = x.ctypes.data, y.ctypes.data, indices.ctypes.data
    wrong = {
        native.NULL_POINTER: [(None, at, to, None, 1), (plain, None, to, None, 1), (plain, at, None, None, 1)],
        native.BAD_INDICES: [(plain, at, to, into, 1), (indexed, at, to, None, 1)],
        native.BAD_THREADS: [(plain, at, to, None, -1)],
    }
    for status, arguments in wrong.items():
        for given in arguments:
            assert native.run(*given) == status
    assert y.tolist() == [7, 7, 7]
    assert indices.tolist() == [7, 7, 7]
    assert native.run(indexed, at, to, into, 1) == native.OK
    assert (y.tolist(), indices.tolist()) == ([1, 2, 3], [1, 2, 3])
    texts = [native.message(status) for status in range(-1, 6)]
    assert len(set(texts)) == 6
    assert texts[0] == texts[-1] == b"unknown status"


NO_MEMORY = """
import resource, sys
from pathlib import Path
import native, numpy as np
shape = (1, 1, 1 << 23)
handle = native.prepare_geometry(native.geometry("MaxPool", shape, "float64", kernel_shape=(1 << 22,)))
x, y = np.zeros(shape), np.zeros(native.shape_of(handle))
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), used + (1 << 20)))
print(native.run(handle, x.ctypes.data, y.ctypes.data, None, 1))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_no_scratch_memory_is_a_status() -> None:
    """A run that gets no scratch memory returns the status for missing memory and does nothing else."""
    assert program(NO_MEMORY) == str(native.NO_MEMORY)


def test_empty_batches_need_no_data() -> None:
    """A handle for no images accepts NULL and does nothing."""
    for shape in ((0, 3, 4), (2, 0, 4)):
        handle = handle_of(shape=shape)
        assert native.shape_of(handle) == (*shape[:2], 3)
        assert native.run(handle, None, None, None, 1) == native.OK


def test_indices_that_nobody_asks_for_need_no_room() -> None:
    """A handle without Indices is accepted even if no array could hold the Indices."""
    handle = handle_of(dtype=native.DTYPES["uint8"], shape=(1, 1, 2**61))
    assert native.shape_of(handle) == (1, 1, 2**61 - 1)
    with pytest.raises(onnxpool.PoolError, match=r"Indices of shape .* is too large for any array"):
        handle_of(dtype=native.DTYPES["uint8"], shape=(1, 1, 2**61), return_indices=1)


REFUSED = {
    "size": ({"size": 0}, "size=0 of a geometry"),
    "size_of_garbage": ({"size": 2**40}, "size=1099511627776 of a geometry"),
    "operation": ({"operation": 0}, r"operation=0 .* pass 1 \(AveragePool\)"),
    "operation_beyond": ({"operation": 10}, "operation=10"),
    "dtype": ({"dtype": 7}, r"dtype=7 .* 1 \(float32\)"),
    "auto_pad": ({"auto_pad": 4}, "auto_pad=4"),
    "opset": ({"opset": 1000}, "MaxPool: opset=1000 is not known"),
    "opset_negative": ({"opset": -1}, "opset"),
    "ndim": ({"ndim": 1}, "ndim=1"),
    "ndim_of_garbage": ({"ndim": 65}, "ndim=65"),
    "ndim_without_windows": ({"ndim": 2}, "MaxPool: ndim=2 of a geometry; pass 3 to 64 axes"),
    "shape": ({"shape": None}, "shape of a geometry is NULL"),
    "shape_negative": ({"shape": (1, -1, 4)}, r"shape\[1\]"),
    "shape_too_large": ({"shape": (2**31, 2**31, 4)}, "too large for any array"),
    "kernel_shape_missing": ({"kernel_shape": None}, "kernel_shape is required"),
    "kernel_shape_zero": ({"kernel_shape": (0,)}, r"MaxPool-22: kernel_shape\[0\]"),
    "kernel_shape_too_large": ({"kernel_shape": (5,)}, r"kernel_shape\[0\]=5 .* axis 2 has 4"),
    "kernel_shape_too_large_for_ceil_mode": (
        {"kernel_shape": (5,), "ceil_mode": 1}, r"ceil_mode=1 less than strides\[0\]=1 may be missing"),
    "strides": ({"strides": (0,)}, r"strides\[0\]"),
    "pads": ({"pads": (0, -1)}, r"pads\[1\]"),
    "flag": ({"ceil_mode": 2}, "ceil_mode must be 0 or 1, got 2"),
    "channels_last": ({"channels_last": 2}, "channels_last must be 0 or 1, got 2"),
    "return_indices": ({"return_indices": 2}, "return_indices must be 0 or 1, got 2"),
    "foreign_attribute": ({"p": 2.0}, "MaxPool-22: unknown attribute p=2.0"),
    "attribute_of_a_later_opset": ({"ceil_mode": 1, "opset": 8}, "ceil_mode was introduced in MaxPool-10"),
    "indices_of_a_later_opset": ({"return_indices": 1, "opset": 1}, "Indices were introduced in MaxPool-8"),
}


@pytest.mark.parametrize(("fields", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_geometries_are_refused(fields: dict[str, Any], message: str) -> None:
    """A bad geometry raises the error that Python raises, or an error that names the field."""
    with pytest.raises(onnxpool.PoolError, match=message):
        handle_of(**fields)


def test_powers_are_of_the_version() -> None:
    """p is an integer since version 2 and a float before."""
    window = {"kernel_shape": (2,), "p": 2.5}
    assert native.prepare_geometry(native.geometry("LpPool", (1, 1, 4), "float32", opset=1, **window))
    with pytest.raises(onnxpool.PoolTypeError, match="LpPool-22: p"):
        native.prepare_geometry(native.geometry("LpPool", (1, 1, 4), "float32", **window))
    with pytest.raises(onnxpool.PoolTypeError, match="LpPool-22: p"):
        native.prepare_geometry(native.geometry("LpPool", (1, 1, 4), "float32", **window | {"p": math.inf}))


def test_no_geometry_is_refused() -> None:
    """NULL is refused as a geometry."""
    with pytest.raises(onnxpool.PoolError, match="geometry is NULL"):
        native.prepare_geometry(None)


def test_fields_of_a_later_version() -> None:
    """A longer geometry is accepted if the unknown part is 0, and refused otherwise."""

    class Later(ctypes.Structure):
        _fields_ = (("known", native.Geometry), ("further", ctypes.c_int64))

    given = Later(native.geometry("GlobalMaxPool", (1, 1, 4), "float32"))
    given.known.size = ctypes.sizeof(Later)
    later = ctypes.cast(ctypes.byref(given), ctypes.POINTER(native.Geometry))

    assert native.shape_of(native.prepare_geometry(later)) == (1, 1, 1)
    given.further = 1 << 56
    with pytest.raises(onnxpool.PoolError, match="byte 143 of a geometry"):
        native.prepare_geometry(later)


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (None, "got NoneType"),
        (onnxpool.MaxPool(kernel_shape=2), "got MaxPool"),
        (onnxpool.MaxUnpool(kernel_shape=2).plan((1, 1, 2, 2), "float32"), "MaxUnpool-22: .* call the plan"),
        (onnxpool.MaxRoiPool(pooled_shape=(2, 2)).plan((1, 1, 2, 2), "float32"), "MaxRoiPool-22: .* call the plan"),
    ],
    ids=["None", "operator", "MaxUnpool", "MaxRoiPool"],
)
def test_only_plans_of_windows_have_handles(thing: Any, message: str) -> None:
    """Only plans of windows have handles. For anything else, the error says what to pass instead."""
    with pytest.raises(onnxpool.PoolTypeError, match=message):
        cython_api.Prepared(thing)
    with pytest.raises(onnxpool.PoolTypeError, match=message):
        native.prepare(thing, None)


def test_a_handle_outlives_what_it_was_made_of() -> None:
    """A handle keeps its kernel until the last release, even if the plan is gone."""
    plan = onnxpool.AveragePool(kernel_shape=2, pads=1).plan((1, 1, 1001), "float32")
    pool = plan._row_major_pool()
    before = sys.getrefcount(pool)
    handle = native.prepare(plan, ())
    assert sys.getrefcount(pool) == before + 1
    native.retain(handle)
    native.release(handle)
    assert sys.getrefcount(pool) == before + 1

    native.release(handle)

    assert sys.getrefcount(pool) == before
    native.release(None)
    native.retain(None)


def test_prepared_releases_its_handle() -> None:
    """A `Prepared` holds one reference, and releases it when deleted."""
    pool = (plan := onnxpool.GlobalMaxPool().plan((1, 1, 777), "float32"))._row_major_pool()
    before = sys.getrefcount(pool)
    prepared = cython_api.Prepared(plan)
    assert sys.getrefcount(pool) == before + 1

    del prepared
    gc.collect()

    assert sys.getrefcount(pool) == before


def test_failed_preparations_leave_nothing() -> None:
    """Handles that are refused leak no reference to the kernel of their plan."""
    pool = (plan := onnxpool.GlobalMaxPool().plan((1, 1, 778), "float32"))._row_major_pool()
    before = sys.getrefcount(pool)
    for _ in range(10):
        with pytest.raises(onnxpool.PoolError):
            cython_api.Prepared(plan, 1)
    assert sys.getrefcount(pool) == before


def test_nhwc_geometry_says_its_layout() -> None:
    """For NhwcMaxPool, channels_last=0 means that the layout is not given."""
    given = native.geometry(NHWC_MAX, (1, 4, 5, 3), "uint8", kernel_shape=(2, 2))

    assert native.shape_of(native.prepare_geometry(given)) == (1, 3, 4, 3)


SHUTDOWN = """
import onnxpool, onnxpool.cython_api
keep = onnxpool.cython_api.Prepared(onnxpool.GlobalMaxPool().plan((1, 1, 4), "float32"))
print("done")
"""


def test_handles_at_the_end_of_the_process() -> None:
    """A handle that is alive when the interpreter ends does no harm."""
    assert program(SHUTDOWN) == "done"
