"""Arrays are pooled along any axes: results equal those in the ONNX layout, with axes in their original places."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases_axes import difference, expected, random_case

import onnxpool

RGB = np.arange(8 * 10 * 3, dtype=np.float32).reshape(8, 10, 3)
GREY = RGB[..., 0]


def check(seed: int) -> None:
    case = random_case(seed)
    try:
        truth, places = expected(case)
    except onnxpool.PoolError:
        with pytest.raises(onnxpool.PoolError):
            case.make()(case.x)
        return
    before = case.x.tobytes()
    result = case.make()(case.x)
    y, indices = result if case.indexed else (result, None)
    assert difference(case, y, indices, truth, places) is None, (seed, case._replace(x=case.x.shape))
    assert case.x.tobytes() == before
    plan = case.make().plan(case.x.shape, case.x.dtype)
    assert plan.output_shape == case.make().output_shape(case.x.shape) == y.shape
    out = np.repeat(np.zeros_like(y), 2, axis=0)[::2] if y.ndim else np.zeros_like(y)
    again = plan(case.x, out=(out, None) if case.indexed else out)
    assert (again[0] if case.indexed else again) is out
    assert difference(case, out.copy(), places, truth, places) is None, seed


@pytest.mark.smoke
def test_results_are_those_of_arrays_in_order() -> None:
    """Results of windows have the same bits, and sums of whole axes agree within rounding, in any memory and dtype."""
    for seed in range(300):
        check(seed)


@pytest.mark.slow
def test_many_results_are_those_of_arrays_in_order() -> None:
    """5,000 random calls have the results of arrays in order."""
    for seed in range(1000, 6000):
        check(seed)


def test_an_image_is_pooled_without_its_colours() -> None:
    """Images are pooled with and without a colour axis."""
    assert np.array_equal(onnxpool.max_pool(RGB, 2, strides=2, axes=(0, 1)), RGB.reshape(4, 2, 5, 2, 3).max((1, 3)))
    assert np.array_equal(onnxpool.max_pool(GREY, 2, strides=2, axes=(0, 1)), GREY.reshape(4, 2, 5, 2).max((1, 3)))
    assert onnxpool.global_average_pool(RGB, axes=(0, 1), keepdims=False).tolist() == [118.5, 119.5, 120.5]
    assert onnxpool.global_average_pool(RGB, axes=(0, 1)).shape == (1, 1, 3)


def test_attributes_are_in_the_order_of_axes() -> None:
    """Attribute values follow the order of `axes`."""
    y = onnxpool.average_pool(RGB, (5, 2), axes=(1, 0), strides=(5, 1), pads=(0, 1, 0, 0))
    assert np.array_equal(y, onnxpool.average_pool(RGB, (2, 5), axes=(0, 1), strides=(1, 5), pads=(1, 0, 0, 0)))
    assert y.shape == (8, 2, 3)


def test_axes_of_onnx_are_onnx() -> None:
    """Naming the axes of the ONNX layout gives the same bits."""
    x = np.random.default_rng(0).standard_normal((2, 20, 9, 11)).astype(np.float32)
    for pool in (onnxpool.GlobalAveragePool, onnxpool.GlobalLpPool, onnxpool.GlobalMaxPool):
        assert np.array_equal(pool(axes=(2, 3))(x), pool()(x))
        assert np.array_equal(pool(axes=(1, 2))(x), pool(channels_last=True)(x))
        assert np.array_equal(pool(keepdims=False)(x), pool()(x)[:, :, 0, 0])
        assert np.array_equal(pool(keepdims=False, channels_last=True)(x), pool(channels_last=True)(x)[:, 0, 0])
    assert np.array_equal(onnxpool.global_max_pool(x[0, 0], keepdims=False), x[0, 0])


def test_indices_are_places_in_x() -> None:
    """`x.ravel()[indices]` gives the maxima, in either storage order, and -1 means none."""
    x = np.random.default_rng(0).standard_normal((4, 70, 6, 5))
    for axes in ((1,), (0, 2), (1, 3), (3, 0), (0, 1, 2, 3)):
        y, indices = onnxpool.max_pool(x, 3, axes=axes, return_indices=True)
        assert np.array_equal(x.ravel()[indices], y)
        y, indices = onnxpool.max_pool(x, 3, axes=axes, return_indices=True, storage_order=1)
        assert np.array_equal(x.ravel(order="F")[indices], y)
    y, indices = onnxpool.max_pool(x, 1, axes=1, pads=(1, 0), return_indices=True)
    assert (indices[:, 0] == -1).all()
    assert (indices[:, 1:] >= 0).all()


def test_maxima_of_bool_are_taken_along_axes() -> None:
    """ONNX has no bool, but calls with axes are not limited to ONNX."""
    x = np.random.default_rng(0).random((6, 9, 4)) > 0.8
    assert np.array_equal(onnxpool.max_pool(x, 3, axes=(0, 1), strides=3), x.reshape(2, 3, 3, 3, 4).max((1, 3)))
    assert np.array_equal(onnxpool.global_max_pool(x, axes=(0, 2), keepdims=False), x.any((0, 2)))
    y, indices = onnxpool.max_pool(x[::2, :, 1], 2, axes=1, return_indices=True)
    assert np.array_equal(x[::2, :, 1].ravel()[indices], y)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint32])
def test_maxima_of_integers_are_exact(dtype: Any) -> None:
    """Maxima of integers are exact: part by part, integers are converted exactly to floats, or pooled by NumPy."""
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, (300, 4, 900), dtype=dtype, endpoint=True)
    windows = np.lib.stride_tricks.sliding_window_view(x, (5, 7), (0, 2))[::3, :, ::2]
    y, indices = onnxpool.max_pool(x, (5, 7), axes=(0, 2), strides=(3, 2), return_indices=True)
    assert np.array_equal(y, windows.max((3, 4)))
    assert np.array_equal(x.ravel()[indices], y)
    out = np.empty((*y.shape, 2), dtype)[..., 0]
    assert onnxpool.max_pool(x, (5, 7), axes=(0, 2), strides=(3, 2), out=out) is out
    assert np.array_equal(out, y)
    assert (onnxpool.max_pool(x, 1, axes=0, pads=(0, 2))[-2:] == info.min).all()
    assert np.array_equal(onnxpool.global_max_pool(x, axes=(0, -1), keepdims=False), x.max((0, 2)))
    swapped = x.astype(x.dtype.newbyteorder())
    assert np.array_equal(onnxpool.max_pool(swapped[::2], 3, axes=1), onnxpool.max_pool(x[::2].copy(), 3, axes=1))


@pytest.mark.thread_unsafe(reason="measures the memory of the process")
def test_integers_take_little_memory() -> None:
    """Pooling integers takes little memory, because the array is not converted."""
    import tracemalloc

    x = np.ones((2000, 3000), np.int16)
    plan = onnxpool.MaxPool(kernel_shape=5, axes=(0, 1), strides=5).plan(x.shape, x.dtype)
    plan(x)
    tracemalloc.start()
    plan(x)
    assert tracemalloc.get_traced_memory()[1] < 500_000  # 480,000 of which are the result
    tracemalloc.stop()


REFUSED: dict[str, tuple[Callable[[], Any], str, tuple[Any, ...]]] = {
    "twice": (lambda: onnxpool.max_pool(RGB, 2, axes=(0, -3)), "names axis 0 twice", ("axes", 0, -3)),
    "too_large": (lambda: onnxpool.max_pool(RGB, 2, axes=(0, 3)), r"axes\[1\]=3, but X has 3 axes", ("axes", 3, 3)),
    "too_small": (lambda: onnxpool.max_pool(RGB, 2, axes=-4), "pass -3 to 2", ("axes", -4, -4)),
    "of_no_axes": (lambda: onnxpool.global_max_pool(np.float32(3), axes=0), "with axes", ("axes", 0, 0)),
    "none": (lambda: onnxpool.max_pool(RGB, 2, axes=()), "empty", ("axes", None, ())),
    "no_integer": (lambda: onnxpool.max_pool(RGB, 2, axes=(0, 1.0)), "must be an integer",  # type: ignore[arg-type]
                   ("axes", None, 1.0)),
    "both": (lambda: onnxpool.max_pool(RGB, 2, axes=(0, 1), channels_last=True), "leave channels_last out",
             ("axes", None, (0, 1))),
    "kernel": (lambda: onnxpool.MaxPool(kernel_shape=(2, 2, 2), axes=(0, 1)), "2 spatial axes take 2",
               ("kernel_shape", None, (2, 2, 2))),
    "pads": (lambda: onnxpool.MaxPool(kernel_shape=2, pads=(1, 1), axes=(0, 1)), "pass 2 for each axis",
             ("pads", None, (1, 1))),
    "room": (lambda: onnxpool.max_pool(RGB, (2, 9), axes=(2, 0)), "axis 0 has 8", ("kernel_shape", 0, 9)),
    "empty": (lambda: onnxpool.global_max_pool(RGB[:, :0], axes=1), "axis 1 is empty", ("X", 1, 0)),
    "keepdims": (lambda: onnxpool.global_max_pool(RGB, keepdims=2), "must be 0 or 1", ("keepdims", None, 2)),
    "grey": (lambda: onnxpool.max_pool(GREY, 2), r"axes=\(0, 1\)", ("X", None, (8, 10))),
    "colours_of_a_square": (lambda: onnxpool.max_pool(RGB, (2, 2)), r"axes=\(0, 1\) of \(H, W, 3\)",
                            ("kernel_shape", None, (2, 2))),
    "colours_are_few": (lambda: onnxpool.max_pool(RGB, 5), r"axes=\(0, 1\) of \(H, W, 3\)", ("kernel_shape", 2, 5)),
    "norms_of_integers": (lambda: onnxpool.lp_pool(RGB.astype(np.uint16), 2, axes=0), "float32, which represents",
                          ("X", None, "uint16")),
    "int64": (lambda: onnxpool.lp_pool(RGB.astype(np.int64), 2, axes=0), "float64, which is exact for integers",
              ("X", None, "int64")),
    "minima_without_axes": (lambda: onnxpool.min_pool(RGB, 2, axes=None),  # type: ignore[call-overload]
                            r"not part of ONNX .* axes=\(0, 1\)", ("axes", None, None)),
    "bool_in_onnx": (lambda: onnxpool.max_pool(RGB > 1, 2), "with axes=, bool is accepted",
                     ("X", None, "bool")),
}


def test_errors_about_dtypes_list_those_of_calls_with_axes() -> None:
    """Errors about dtypes list what calls with axes accept, including integers where maxima of integers are
    supported."""
    for call, own in ((lambda: onnxpool.max_pool(RGB.astype(complex), 2, axes=0), True),
                      (lambda: onnxpool.global_max_pool(RGB.astype(object), axes=0), True),
                      (lambda: onnxpool.lp_pool(RGB.astype(np.int64), 2, axes=0), False)):
        with pytest.raises(onnxpool.PoolTypeError) as caught:
            call()
        assert [name in str(caught.value) for name in ("bool", "int16", "uint32")] == [own] * 3


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """Wrong arguments are refused with an error that says what is wrong and what to do."""
    call, text, fields = REFUSED[name]
    with pytest.raises((onnxpool.PoolError, onnxpool.PoolTypeError), match=text) as caught:
        call()
    assert (caught.value.attribute, caught.value.axis, caught.value.value) == fields  # type: ignore[union-attr]


def test_a_wrong_layout_of_colours_gets_a_hint() -> None:
    """The explanation hints that colours are pooled if an image with colours, a legal ONNX array, has them last."""
    hint = "axes=(0, 1)"
    assert hint in onnxpool.MaxPool(kernel_shape=2).plan(RGB.shape, "float32").explain()
    assert hint not in onnxpool.MaxPool(kernel_shape=2).plan((1, 1, 4), "float32").explain()
    assert hint not in onnxpool.MaxPool(kernel_shape=2, axes=(0, 1)).plan(RGB.shape, "float32").explain()


def test_operators_and_plans_keep_axes() -> None:
    """Operators and plans with axes can be printed, compared, pickled and inspected."""
    import pickle

    op = onnxpool.GlobalLpPool(p=1, axes=[0, -1], keepdims=False, opset=13)
    assert repr(op) == "GlobalLpPool(p=1, opset=13, axes=(0, -1), keepdims=False)"
    assert (op.axes, op.keepdims) == ((0, -1), False)
    assert op == pickle.loads(pickle.dumps(op)) != onnxpool.GlobalLpPool(p=1, axes=[0, -1], opset=13)
    plan = op.plan(RGB.shape, "float32")
    assert plan == pickle.loads(pickle.dumps(plan))
    assert plan.output_shape == op.output_shape(RGB.shape) == (10,)
    assert [fact["axis"] for fact in plan.explain().to_dict()["axes"]] == [0, 2]
    assert [axis.size for axis in plan.axes] == [8, 3]


def test_results_keep_apart_from_x() -> None:
    """A result that overlaps x is right, as in calls without axes."""
    x = RGB.copy()
    truth = onnxpool.max_pool(x, 1, axes=(0, 1))
    wanted = onnxpool.average_pool(x, 3, axes=(0, 1), pads=1)
    assert onnxpool.average_pool(x, 3, axes=(0, 1), pads=1, out=x) is x
    assert np.array_equal(x, wanted)
    assert not np.shares_memory(truth, RGB)


def test_empty_arrays_have_empty_results() -> None:
    """An axis that is not pooled may be empty."""
    assert onnxpool.max_pool(RGB[:, :0], 2, axes=(0, 2)).shape == (7, 0, 2)
    assert onnxpool.global_average_pool(RGB[:0], axes=(1, 2), keepdims=False).shape == (0,)


def test_all_of_64_axes_are_pooled() -> None:
    """Arrays with NumPy's maximum of 64 axes are pooled along all axes."""
    x = np.arange(2.0**10, dtype=np.float32).reshape((2,) * 10 + (1,) * 54)
    y, indices = onnxpool.max_pool(x, (2,) * 10 + (1,) * 54, axes=range(64), return_indices=True)
    assert (y.item(), indices.item()) == (1023, 1023)
    assert np.array_equal(onnxpool.global_average_pool(x, axes=range(1, 64, 2)).ravel(),
                          x.mean(tuple(range(1, 64, 2)), dtype=np.float32).ravel())
