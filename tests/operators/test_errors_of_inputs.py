"""Inputs that every operator refuses: by axes, sizes, dtypes and kinds; and empty batches, which are accepted."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from calls import NHWC_MAX, REGIONS, UNPOOL
from refusals import board, refused, says
from samples import OPERATORS, build, inputs

import onnxpool
from onnxpool import PoolError, PoolTypeError

pytestmark = pytest.mark.smoke

SLIDING = tuple(row["operator"] for row in onnxpool.supported() if "strides" in row["attributes"])
DTYPES = {name: sorted({dtype for row in onnxpool.supported() if row["operator"] == name for dtype in row["dtypes"]})
          for name in OPERATORS}


def both_layouts(operator: str, **attributes: Any) -> dict[bool, Any]:
    """The operator with channels first and, if it has both layouts, channels last."""
    if operator == NHWC_MAX:
        return {True: build(operator, **attributes)}
    return {last: build(operator, channels_last=last, **attributes) for last in (False, True)}


def laid(shape: tuple[int, ...], last: bool) -> tuple[int, ...]:
    """A channels-first shape in a layout."""
    return (shape[0], *shape[2:], shape[1]) if last else shape


def needed(operator: str) -> int:
    """The axes that an operator needs."""
    return 4 if operator in REGIONS else 3 if operator in SLIDING else 2


@pytest.mark.parametrize(("operator", "rank"), [(name, rank) for name in OPERATORS for rank in range(needed(name))])
def test_too_few_axes_are_refused(operator: str, rank: int) -> None:
    """Windows need a spatial axis, whole pools batch and channels, regions two spatial axes. Errors name the rank."""
    attributes = {"kernel_shape": 2, "strides": 1} if operator in SLIDING else {}
    for op in both_layouts(operator, **attributes).values():
        with pytest.raises(PoolError) as caught:
            op(*inputs(operator, shape=(2,) * rank))
        says(str(caught.value), operator, (str(rank),))


@pytest.mark.parametrize(("operator", "shape"), [
    (name, shape) for name in OPERATORS for shape in ((0, 1, 8, 8), (1, 0, 8, 8), (0, 0, 8, 8))
    if shape[0] or name not in REGIONS])  # no region can refer to an image that does not exist
def test_no_images_or_no_channels_give_an_empty_result(operator: str, shape: tuple[int, ...]) -> None:
    """N = 0 and C = 0 give an empty result of the right shape, in both layouts and every dtype."""
    for last, op in both_layouts(operator).items():
        for dtype in DTYPES[operator]:
            arrays = inputs(operator, dtype, laid(shape, last))
            y = op(*arrays)
            regions = y.shape[:1] if operator in REGIONS else ()
            assert y.shape == (*regions, *op.output_shape(arrays[0].shape)[len(regions):])
            assert (y.size, y.dtype) == (0, arrays[0].dtype)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("shape", [(1, 2, 0, 3), (1, 1, 0, 2**59), (0, 1, 0, 3)])
def test_empty_spatial_axis_is_refused(operator: str, shape: tuple[int, ...]) -> None:
    """An empty spatial axis is refused by its number, whatever the padding, and whatever is wrong with other axes."""
    known = build(operator).attributes
    options = ({}, {"pads": 1}, {"auto_pad": "SAME_UPPER"}, {"ceil_mode": 1}, {"kernel_shape": 1})
    for attributes in options:
        if not set(attributes) <= set(known):
            continue
        for last, op in both_layouts(operator, **attributes).items():
            for dtype in DTYPES[operator]:
                x, *further = inputs(operator, dtype, shape=(1, 2, 0, 3))
                x = np.broadcast_to(np.ones((), x.dtype), laid(shape, last))
                if operator == UNPOOL:
                    further = [np.broadcast_to(np.int64(0), x.shape)]
                with pytest.raises(PoolError) as caught:
                    op(x, *further)
                says(str(caught.value), operator, (f"axis {1 if last else 2}",))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("shape", [(9, 15, 0, 2772747373535906632), (2**62, 2**62, 2, 0), (3, 3, 2**62, 0)])
def test_empty_axis_beside_huge_ones_is_refused(operator: str, shape: tuple[int, ...]) -> None:
    """An empty spatial axis is found before sizes are multiplied, in a shape that NumPy itself refuses."""
    empty = shape.index(0)
    for last, op in both_layouts(operator).items():
        with pytest.raises(PoolError) as caught:
            op.output_shape(laid(shape, last))
        says(str(caught.value), operator, (f"axis {empty - (1 if last else 0)}",))
        for dtype in DTYPES[operator]:
            with pytest.raises(PoolError):
                op.plan(laid(shape, last), dtype)


@pytest.mark.parametrize("operator", [name for name in SLIDING if name != UNPOOL])
@pytest.mark.parametrize("width", [2**24 + 3, 2**53 + 1, 2**62 + 1])
def test_sizes_are_not_rounded(operator: str, width: int) -> None:
    """Lengths beyond the integers of float32 and of float64 are exact."""
    for last, op in both_layouts(operator, kernel_shape=1, strides=1).items():
        assert op.output_shape(laid((1, 1, width), last)) == laid((1, 1, width), last)
    for last, op in both_layouts(operator, kernel_shape=2, strides=2).items():
        assert op.output_shape(laid((1, 1, width), last)) == laid((1, 1, width // 2), last)


@pytest.mark.parametrize("width", [2**24 + 2, 2**38 + 2])
def test_unpooled_sizes_are_not_rounded(width: int) -> None:
    """Unpooling does not round sizes."""
    for last, op in both_layouts(UNPOOL, kernel_shape=3, strides=2).items():
        assert op.output_shape(laid((1, 1, width), last)) == laid((1, 1, 2 * width + 1), last)


STRANGERS = [
    *("int16", "int32", "int64", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"),
    *(["longdouble"] if np.dtype("longdouble") != np.float64 else []),  # on some systems, longdouble is float64
    *("object", "U1", "S1", "V4", "datetime64[s]", "timedelta64[s]", [("a", "f4"), ("b", "f4")]),
]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", STRANGERS, ids=str)
def test_dtype_of_no_version_is_refused(operator: str, dtype: Any) -> None:
    """A dtype that ONNX does not allow for the operator is refused with its name and the names of those it allows."""
    x, *further = inputs(operator)
    text = str(refused(partial(build(operator), np.zeros(x.shape, dtype), *further), PoolTypeError, x.dtype, x.shape))

    says(text, operator, tuple(DTYPES[operator]))
    assert np.dtype(dtype).name in text or str(np.dtype(dtype)) in text


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("operator", OPERATORS)
def test_array_with_another_meaning_is_refused(operator: str) -> None:
    """A masked array and a matrix are refused, because their meaning would be silently lost."""
    x, *further = inputs(operator)
    for stranger in (np.ma.masked_array(x, mask=False), np.asmatrix(board(x.dtype, (8, 8)))):
        with pytest.raises(PoolTypeError, match=type(stranger).__name__):
            build(operator)(stranger, *further)


@pytest.mark.parametrize("x", [None, "text", {}, object()], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("operator", OPERATORS)
def test_something_that_is_no_array_is_refused(operator: str, x: Any) -> None:
    """Arguments that are not arrays of numbers are refused for their type, or for their missing axes."""
    with pytest.raises((PoolTypeError, PoolError)):
        build(operator)(x, *inputs(operator)[1:])
