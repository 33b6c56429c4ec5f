"""Being a good guest in somebody else's process: imports, objects, and arrays that belong to the caller."""

import copy
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import samples
import scenarios_threads
from calls import REGIONS
from numpy.typing import NDArray
from programs import program
from samples import CONTRIBUTED, OPERATORS
from support import to_last

import onnxpool
from onnxpool.base import registry

# Imports


LOADED = """
import sys, numpy
before = set(sys.modules)
import onnxpool
new = {name for name in set(sys.modules) - before if getattr(sys.modules[name], '__file__', None)}
print(*sorted({name.partition('.')[0] for name in new} - set(sys.stdlib_module_names) - {'onnxpool', 'numpy'}))
"""


def test_import_brings_numpy_and_nothing_else() -> None:
    """Importing the library imports no package other than numpy, and prints nothing."""
    assert program(LOADED) == ""


USED = """
import sys
import numpy as np, onnxpool
x = np.ones((1, 2, 5, 5), np.float16)
onnxpool.AveragePool(kernel_shape=2).plan(x.shape, x.dtype)(x)
onnxpool.global_lp_pool(x)
onnxpool.supported()
top = {name.partition('.')[0] for name in sys.modules} - {'onnxpool', 'numpy'}
print(*sorted(top & {'onnx', 'ml_dtypes', 'onnxruntime', 'dask', 'google'}))
"""


def test_use_brings_nothing_else_either() -> None:
    """Pooling imports neither onnx nor ml_dtypes nor a runtime."""
    assert program(USED) == ""


# Objects

# Attributes beyond the smallest ones, in every form in which they can be given.
CHANGED: dict[str, dict[str, Any]] = {
    "AveragePool": {"kernel_shape": (3, 2), "pads": [1, 0, 1, 0], "count_include_pad": True, "opset": 19},
    "GlobalAveragePool": {"channels_last": True},
    "GlobalMaxPool": {"opset": 1},
    "LpPool": {"kernel_shape": 2, "p": 2.5, "opset": 1},
    "MaxPool": {"kernel_shape": np.array([2, 2]), "dilations": 2, "storage_order": 1, "auto_pad": "SAME_LOWER"},
    "QLinearGlobalAveragePool": {"channels_last": 1},
    "RoiAlign": {"mode": "max", "sampling_ratio": 2},
}


def build(name: str) -> Any:
    return samples.build(name, **CHANGED.get(name, {}))


def inputs(name: str, shape: tuple[int, ...] = (2, 6, 7, 8), seed: int = 0) -> list[Any]:
    """Random inputs of an operator, signed where they are bytes."""
    return samples.inputs(name, "int8" if name in CONTRIBUTED else "float32", shape, seed)


@pytest.mark.parametrize("name", OPERATORS)
def test_objects_are_values(name: str) -> None:
    """An operator object equals another with the same attributes, has the same hash, and survives repr and pickle."""
    operator = build(name)

    for twin in (build(name), eval(repr(operator), vars(onnxpool).copy()), pickle.loads(pickle.dumps(operator))):
        assert twin == operator
        assert hash(twin) == hash(operator)
        assert repr(twin) == repr(operator)
        assert twin(*inputs(name)).tobytes() == operator(*inputs(name)).tobytes()


COPIES: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy]
COPIES += [lambda one, p=p: pickle.loads(pickle.dumps(one, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)]


def test_every_operator_and_plan_is_copied_whole() -> None:
    """Operators and plans survive every pickle protocol, copy and deepcopy, and the copies compute the same bits."""
    jobs = scenarios_threads.jobs()
    assert {type(operator).__name__ for operator, _ in jobs} == set(registry)
    for operator, arrays in jobs:
        expected = operator(*arrays).tobytes()
        for original in (operator, operator.plan(arrays[0].shape, arrays[0].dtype)):
            for duplicate in COPIES:
                twin = duplicate(original)
                assert type(twin) is type(original)
                assert repr(twin) == repr(original)
                assert twin(*arrays).tobytes() == expected
                with pytest.raises(AttributeError):
                    twin.opset = 1


def test_objects_differ_by_everything_that_matters() -> None:
    """Objects with another operator, attribute, opset or layout are not equal."""
    different = [
        onnxpool.MaxPool(kernel_shape=(2, 2)),
        onnxpool.AveragePool(kernel_shape=(2, 2)),
        onnxpool.MaxPool(kernel_shape=(2, 3)),
        onnxpool.MaxPool(kernel_shape=(2, 2), strides=(2, 2)),
        onnxpool.MaxPool(kernel_shape=(2, 2), opset=8),
        onnxpool.MaxPool(kernel_shape=(2, 2), channels_last=True),
    ]

    assert len(set(different)) == len(different)
    assert all(one != other for one in different for other in different if one is not other)
    assert different[0] != "MaxPool"


@pytest.mark.parametrize("name", OPERATORS)
def test_objects_are_immutable(name: str) -> None:
    """No attribute of an operator object can be set, added or deleted, and lists passed to it can change later."""
    operator = build(name)
    before = repr(operator)
    for attribute in ("opset", "kernel_shape", "channels_last", "new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(operator, attribute, 1)
        with pytest.raises((AttributeError, TypeError)):
            delattr(operator, attribute)

    assert repr(operator) == before


def test_objects_keep_no_list_of_the_caller() -> None:
    """Attributes are copied: changing a list afterwards has no effect."""
    kernel = [2, 2]
    pads = np.array([0, 0, 0, 0])
    operator = onnxpool.MaxPool(kernel_shape=kernel, pads=pads)
    kernel[0] = 5
    pads[:] = 1

    assert operator == onnxpool.MaxPool(kernel_shape=[2, 2], pads=[0, 0, 0, 0])
    assert operator.output_shape((1, 1, 6, 6)) == (1, 1, 5, 5)


@pytest.mark.parametrize("name", OPERATORS)
def test_plans_and_output_shapes_agree_with_calls(name: str) -> None:
    """The object, its plan and `output_shape` agree on shape and bits."""
    operator = build(name)
    arrays = inputs(name)
    expected = operator(*arrays)

    plan = operator.plan(arrays[0].shape, arrays[0].dtype)

    assert plan(*arrays).tobytes() == expected.tobytes()
    assert plan(*arrays, num_threads=2).tobytes() == expected.tobytes()
    regions = (1,) if name in REGIONS else expected.shape[:1]  # it is computed for one region
    assert operator.output_shape(arrays[0].shape) == (*regions, *expected.shape[1:])


@pytest.mark.parametrize("name", OPERATORS)
def test_plans_refuse_other_arrays(name: str) -> None:
    """A plan refuses a shape, dtype or `out` other than its own, and leaves `out` unchanged."""
    arrays = inputs(name)
    operator = build(name)
    plan = operator.plan(arrays[0].shape, arrays[0].dtype)
    shape, dtype = operator.output_shape(arrays[0].shape), arrays[0].dtype
    out = np.full(shape, 77, dtype)

    for wrong in (arrays[0][:1], arrays[0][..., :-1], arrays[0][0], np.moveaxis(arrays[0], 1, -1)):
        with pytest.raises(onnxpool.PoolError):
            plan(wrong, *arrays[1:], out=out)
    for kind in (np.float64, np.uint8):
        with pytest.raises(onnxpool.PoolTypeError):
            plan(arrays[0].astype(kind), *arrays[1:], out=out)
    with pytest.raises(onnxpool.PoolTypeError):
        plan(*arrays, out=np.empty(shape, np.float16))
    with pytest.raises(onnxpool.PoolError):
        plan(*arrays, out=np.empty((1, *shape), dtype))
    assert (out == 77).all()


# Arrays of the caller


def outs(shape: tuple[int, ...], dtype: Any) -> dict[str, NDArray[Any]]:
    """Writeable arrays of a shape in unusual memory layouts, all filled with 77."""
    twice = tuple(2 * length for length in shape)
    room = np.full(int(np.prod(shape)) * np.dtype(dtype).itemsize + 1, 0, np.uint8)
    return {
        "plain": np.full(shape, 77, dtype),
        "fortran": np.full(shape, 77, dtype, order="F"),
        "every_second": np.full(twice, 77, dtype)[tuple(slice(None, None, 2) for _ in shape)],
        "reversed": np.full(shape, 77, dtype)[tuple(slice(None, None, -1) for _ in shape)],
        "moved": np.moveaxis(np.full((*shape[2:], *shape[:2]), 77, dtype), (-2, -1), (0, 1)),
        "unaligned": room[1:].view(dtype).reshape(shape),
    }


@pytest.mark.parametrize("name", OPERATORS)
def test_out_is_filled_and_returned(name: str) -> None:
    """An `out` with any strides and alignment is filled and returned, and nothing next to it is written."""
    operator, arrays = build(name), inputs(name)
    expected = operator(*arrays)

    for where, out in outs(expected.shape, expected.dtype).items():
        assert operator(*arrays, out=out) is out, where
        np.testing.assert_array_equal(out, expected, strict=True, err_msg=where)
        if where == "every_second":
            assert int((out.base == 77).sum()) >= out.base.size - out.size


@pytest.mark.parametrize("name", ["AveragePool", "GlobalMaxPool", "LpPool", "MaxPool", "QLinearGlobalAveragePool"])
def test_out_may_overlap_the_input(name: str) -> None:
    """An `out` in the memory of the input, anywhere and with any strides, gets the same values as a separate `out`."""
    operator, arrays = build(name), inputs(name, (2, 6, 40, 41))
    x = arrays[0]
    expected = operator(*arrays)
    size = expected.size

    for offset in {0, min(7, x.size - size), x.size - size}:
        buffer = x.copy()
        out = buffer.reshape(-1)[offset : offset + size].reshape(expected.shape)
        assert operator(buffer, *arrays[1:], out=out, num_threads=2) is out
        np.testing.assert_array_equal(out, expected, strict=True)
    buffer = x.copy()
    out = buffer.reshape(-1)[::-1][:size].reshape(expected.shape)
    np.testing.assert_array_equal(operator(buffer, *arrays[1:], out=out), expected, strict=True)


def test_out_may_be_the_input() -> None:
    """A pool that keeps the shape can write over its own input."""
    x = inputs("MaxPool", (2, 16, 64, 65))[0]
    for pool in (onnxpool.max_pool, onnxpool.average_pool, onnxpool.lp_pool):
        buffer = x.copy()

        assert pool(buffer, 3, pads=1, out=buffer, num_threads=2).tobytes() == pool(x, 3, pads=1).tobytes()


def disguises(x: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The same values in other memory layouts, all read-only."""
    room = np.zeros(x.nbytes + 1, np.uint8)
    unaligned = room[1:].view(x.dtype).reshape(x.shape)
    unaligned[...] = x
    wide = np.zeros((*x.shape[:-1], 3 * x.shape[-1]), x.dtype)
    wide[..., ::3] = x
    views = {
        "plain": x.copy(),
        "fortran": np.asfortranarray(x),
        "moved": to_last(x).transpose(0, 3, 1, 2),
        "reversed": np.ascontiguousarray(x[::-1, ::-1, ::-1, ::-1])[::-1, ::-1, ::-1, ::-1],
        "stepped": wide[..., ::3],
        "unaligned": unaligned,
        "other_byte_order": x.astype(x.dtype.newbyteorder()) if x.dtype.itemsize > 1 else x.copy(),
    }
    for view in views.values():
        view.flags.writeable = False
    return views


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.uint8])
def test_inputs_in_any_form_are_read_and_never_written(dtype: Any) -> None:
    """Read-only, strided, byte-swapped and unaligned arrays give the same bits as a plain array and stay unchanged."""
    x = (np.random.default_rng(5).standard_normal((2, 5, 9, 11)) * 20).astype(np.int8).astype(dtype)
    calls: list[Callable[..., Any]] = [onnxpool.MaxPool(kernel_shape=3, pads=1)]
    if x.dtype.itemsize > 1:
        calls += [onnxpool.AveragePool(kernel_shape=3, strides=2), onnxpool.LpPool(kernel_shape=2, p=3)]
        calls += [onnxpool.GlobalAveragePool(), onnxpool.GlobalMaxPool(), onnxpool.GlobalLpPool()]
    for call in calls:
        expected = call(x)
        for where, view in disguises(x).items():
            before = view.tobytes()
            if dtype is ml_dtypes.bfloat16 and where == "other_byte_order":
                continue  # ml_dtypes has no other byte order
            y = call(view)
            assert (y.dtype, y.tobytes()) == (expected.dtype, expected.tobytes()), where
            assert view.tobytes() == before, where


def test_results_lie_in_memory_as_x_does() -> None:
    """Channels of results are adjacent if channels of x are. `out` keeps its own memory order."""
    x = np.ones((2, 9, 8, 3), np.float32).transpose(0, 3, 1, 2)
    rois = np.array([[0, 0, 0, 3, 3]], np.float32)
    for y in (onnxpool.max_pool(x, 2), onnxpool.average_pool(x, 1), onnxpool.global_max_pool(x),
              onnxpool.max_pool(x, 2, return_indices=True)[1], onnxpool.max_roi_pool(x, rois, 2)):
        assert y.transpose(0, 2, 3, 1).flags.c_contiguous
    for y in (onnxpool.max_pool(x.copy("C"), 2), onnxpool.max_pool(x, 2, out=np.empty((2, 3, 8, 7), np.float32))):
        assert y.flags.c_contiguous


def test_one_value_stretched_over_an_array_is_read_in_place() -> None:
    """An array with strides of zero is pooled without a copy."""
    x = np.broadcast_to(np.float32(3), (2, 3, 50, 50))

    assert (onnxpool.average_pool(x, 5) == 3).all()
    assert (onnxpool.global_average_pool(x) == 3).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("last", [False, True])
def test_view_of_the_other_layout_is_not_copied(last: bool, dtype: Any) -> None:
    """A transposed view is pooled in place: no array of its size is allocated for it."""
    data = np.random.default_rng(2).integers(0, 100, (2, 96, 96, 32)).astype(dtype)
    x = data if last else data.transpose(0, 3, 1, 2)
    if last:
        x = np.ascontiguousarray(data.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
    operator = onnxpool.MaxPool(kernel_shape=8, strides=8, channels_last=last)
    expected = operator(np.ascontiguousarray(x))

    tracemalloc.start()
    try:
        y = operator(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    np.testing.assert_array_equal(y, expected, strict=True)
    assert peak < x.nbytes // 8
