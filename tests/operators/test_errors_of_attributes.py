"""What is refused, with which exception and in which words; and the odd values that are not refused."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from refusals import BAD_GEOMETRY, BAD_KINDS, FUNCTIONS, GLOBAL, WINDOWED, Bad, applied, board
from support import FLOATS, to_last

import onnxpool
from onnxpool import PoolError, PoolTypeError

pytestmark = pytest.mark.smoke

CANARY = 77


def says(text: str, operator: str, words: tuple[str, ...]) -> None:
    """The text starts with operator and version, holds the words (numbers as whole numbers) and offers a way out."""
    assert re.match(rf"{operator}-\d+: ", text), text
    body = text.partition(": ")[2]
    for word in words:
        # An index is no value: "strides[0]" does not name the number 0.
        place = body if "[" in word else re.sub(r"\[\d+\]", "", body)
        assert re.search(rf"(?<![\w.-]){re.escape(word)}(?!\w|\.\d)", place), f"{word!r} is missing in {text!r}"
    assert body.partition("; ")[2].strip(), f"no way out after a semicolon in {text!r}"


def refused(call: Callable[..., Any], error: type[Exception], dtype: Any, shape: tuple[int, ...]) -> str:
    """The text of the refusal of a call, made without `out` and again with one, which must stay as it was."""
    with pytest.raises(error) as caught:
        call()
    out = np.full(shape, CANARY, dtype)
    with pytest.raises(error):
        call(out=out)
    assert (out == np.asarray(CANARY, dtype)).all()
    return str(caught.value)


@pytest.mark.parametrize(("case", "operator"), applied(BAD_GEOMETRY + BAD_KINDS))
def test_bad_attribute_is_refused(case: Bad, operator: str) -> None:
    """A bad attribute is refused, in both layouts and every dtype, in words that name it, and nothing is written."""
    kernel = case.attributes.get("kernel_shape", [2, 2])
    others = {name: value for name, value in case.attributes.items() if name not in ("kernel_shape", "channels_last")}
    for last in (False, True):
        layout = case.attributes.get("channels_last", last)
        words = case.words if case.axis is None else (*case.words, f"axis {case.axis + (1 if last else 2)}")
        for dtype in WINDOWED[operator]:
            x = to_last(board(dtype)) if last else board(dtype)

            call = partial(FUNCTIONS[operator], x, kernel, channels_last=layout, **others)
            says(refused(call, case.error, dtype, (1, 7, 7, 1) if last else (1, 1, 7, 7)), operator, words)


@pytest.mark.parametrize("operator", WINDOWED)
def test_example_of_the_documentation(operator: str) -> None:
    """A kernel larger than its axis is explained with attribute, span, axis, length, pads and what to do."""
    with pytest.raises(PoolError) as caught:
        FUNCTIONS[operator](board(shape=(1, 1, 8, 4)), (1, 9), dilations=(1, 1), opset=21)

    version = {"AveragePool": 19, "LpPool": 18, "MaxPool": 12}[operator]
    assert str(caught.value) == (
        f"{operator}-{version}: kernel_shape[1]=9 with dilations[1]=1 spans 9, but axis 3 has 4 (+0+0 pads); "
        "add pads or shrink kernel_shape"
    )


@pytest.mark.parametrize("operator", ["GlobalLpPool", "LpPool"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("-inf")])
def test_float_exponent_that_is_no_norm_is_refused(operator: str, value: float) -> None:
    """At version 1 a float exponent must be above zero."""
    kernel = ([2, 2],) if operator == "LpPool" else ()
    call = partial(FUNCTIONS[operator], board(), *kernel, p=value, opset=1)

    text = refused(call, PoolError, np.float32, (1, 1, 1, 1))

    says(text, operator, ("p", str(value), "0"))


@pytest.mark.parametrize("value", [0, -1, 2**70, 2.0], ids=repr)
def test_global_exponent_that_is_no_norm_is_refused(value: Any) -> None:
    """A global Lp exponent must be an integer of at least 1."""
    error = PoolTypeError if isinstance(value, float) else PoolError
    for dtype in FLOATS:
        text = refused(partial(onnxpool.global_lp_pool, board(dtype), p=value), error, dtype, (1, 1, 1, 1))

        says(text, "GlobalLpPool", ("p", str(value)))


def test_lp_pool_1_without_a_kernel_is_refused() -> None:
    """LpPool-1, whose kernel_shape is optional in the schema but has no meaning left out, asks for it."""
    with pytest.raises(PoolError, match="kernel_shape"):
        onnxpool.LpPool(opset=1)(board())


class Good(NamedTuple):
    """Unusual attributes on the 8x8 board that have a value; `pick` chooses from the board what max pooling gives."""

    name: str
    attributes: dict[str, Any]
    pick: Callable[[NDArray[Any]], NDArray[Any]]


ROWS = [*range(8), 5, 6, 7]  # what the bottom right tap of a 2x2 window dilated by 3 sees through 3 pads
GOOD = [
    Good("stride_beyond_any_output", {"kernel_shape": [2, 2], "strides": [2**62, 2**62]}, lambda b: b[1:2, 1:2]),
    Good("dilated_into_the_pads", {"kernel_shape": [2, 1], "dilations": [9, 1], "pads": [2, 0, 0, 0]}, lambda b: b[7:]),
    Good(
        "dilated_same",
        {"kernel_shape": [2, 1], "dilations": [8, 1], "auto_pad": "SAME_LOWER"},
        lambda b: b[[4, 5, 6, 7, 0, 1, 2, 3]],
    ),
    Good(
        "pads_below_the_dilated_kernel",
        {"kernel_shape": [2, 2], "dilations": [3, 3], "pads": [3, 3, 3, 3]},
        lambda b: b[np.ix_(ROWS, ROWS)],
    ),
    Good("same_upper_stride_3", {"kernel_shape": 1, "strides": 3, "auto_pad": "SAME_UPPER"}, lambda b: b[::3, ::3]),
    Good("same_lower_stride_3", {"kernel_shape": 1, "strides": 3, "auto_pad": "SAME_LOWER"}, lambda b: b[::3, ::3]),
    Good("zero_pads_with_valid", {"kernel_shape": 2, "auto_pad": "VALID", "pads": [0] * 4}, lambda b: b[1:, 1:]),
    Good("no_auto_pad", {"kernel_shape": 2, "auto_pad": "", "strides": None, "pads": None}, lambda b: b[1:, 1:]),
    Good("numpy_integers", {"kernel_shape": np.int8(2), "strides": [np.uint64(2), 2]}, lambda b: b[1::2, 1::2]),
    Good("integer_arrays", {"kernel_shape": np.array([2, 2]), "pads": np.zeros(4, "i1")}, lambda b: b[1:, 1:]),
    Good("bools", {"kernel_shape": 2, "ceil_mode": True, "channels_last": np.bool_(False)}, lambda b: b[1:, 1:]),
    Good("kernel_larger_in_ceil_mode", {"kernel_shape": 9, "strides": 2, "ceil_mode": 1}, lambda b: b[7:, 7:]),
]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.name)
def test_unusual_attribute_has_a_value(case: Good) -> None:
    """Attributes at the edge of what is legal give the value that arithmetic gives, in every dtype of max pooling."""
    for dtype in WINDOWED["MaxPool"]:
        y = onnxpool.max_pool(board(dtype), **case.attributes)

        expected = case.pick(board(dtype)[0, 0])
        assert y.dtype == dtype
        np.testing.assert_array_equal(y[0, 0], expected)


@pytest.mark.parametrize("value", [True, False, 0, 1, np.int8(1), np.bool_(True)], ids=repr)
def test_flags_take_numbers_and_bools(value: Any) -> None:
    """A flag may be 0, 1 or a bool."""
    expected = onnxpool.average_pool(board(), 3, pads=1, strides=2, count_include_pad=int(value), ceil_mode=int(value))

    y = onnxpool.average_pool(board(), 3, pads=1, strides=2, count_include_pad=value, ceil_mode=value)

    assert y.tobytes() == expected.tobytes()


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("operator", WINDOWED)
def test_input_without_spatial_axes_is_refused(operator: str, rank: int) -> None:
    """Windows need at least one spatial axis: an input of rank 0, 1 or 2 is refused with its rank."""
    x = board(shape=(2,) * rank)
    for kernel in (2, [2, 2], []):
        for last in (False, True):
            with pytest.raises(PoolError) as caught:
                FUNCTIONS[operator](x, kernel, channels_last=last)
            says(str(caught.value), operator, ())
    with pytest.raises(PoolError, match=rf"\b{rank}\b"):
        FUNCTIONS[operator](x, 2)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("operator", GLOBAL)
def test_input_without_batch_and_channels_is_refused(operator: str, rank: int) -> None:
    """Global pooling needs a batch and a channel axis."""
    with pytest.raises(PoolError) as caught:
        FUNCTIONS[operator](board(shape=(2,) * rank))

    says(str(caught.value), operator, (str(rank), "2"))


@pytest.mark.parametrize("rank", [6, 12])
def test_any_number_of_spatial_axes_is_pooled(rank: int) -> None:
    """There is no upper limit on the rank below NumPy's."""
    x = board(shape=(1, 1, *(2,) * (rank - 2)))

    assert onnxpool.max_pool(x, 2).item() == x.max()
    assert onnxpool.average_pool(x, 2).item() == pytest.approx(x.mean())
    assert onnxpool.global_max_pool(x).shape == (1,) * rank


@pytest.mark.parametrize("operator", [*WINDOWED, *GLOBAL])
@pytest.mark.parametrize("shape", [(0, 1, 8, 8), (1, 0, 8, 8), (0, 0, 8, 8)])
def test_no_images_or_no_channels_give_an_empty_result(operator: str, shape: tuple[int, ...]) -> None:
    """N = 0 and C = 0 give an empty result of the right shape, in both layouts and every dtype."""
    kernel, spatial = (([2, 2],), (7, 7)) if operator in WINDOWED else ((), (1, 1))
    for dtype in {**WINDOWED, **GLOBAL}[operator]:
        x = np.zeros(shape, dtype)

        assert FUNCTIONS[operator](x, *kernel).shape == (*shape[:2], *spatial)
        assert FUNCTIONS[operator](to_last(x), *kernel, channels_last=True).shape == (shape[0], *spatial, shape[1])


EMPTY = [(1, 2, 0, 3), (1, 1, 0, 2**60), (0, 1, 0, 3)]


@pytest.mark.parametrize("operator", [*WINDOWED, *GLOBAL])
@pytest.mark.parametrize("shape", EMPTY)
def test_empty_spatial_axis_is_refused(operator: str, shape: tuple[int, ...]) -> None:
    """An empty spatial axis is refused by its number, whatever the padding and whatever other axes claim."""
    x = np.broadcast_to(np.float32(1), shape)
    windows: list[dict[str, Any]] = [{}]
    if operator in WINDOWED:
        options = ({}, {"pads": 1}, {"auto_pad": "SAME_UPPER"}, {"ceil_mode": 1}, {"kernel_shape": 1})
        windows = [{"kernel_shape": [2, 2], **option} for option in options]
    for attributes in windows:
        for last in (False, True):
            with pytest.raises(PoolError) as caught:
                FUNCTIONS[operator](np.moveaxis(x, 1, -1) if last else x, channels_last=last, **attributes)
            says(str(caught.value), operator, (f"axis {1 if last else 2}",))


STRANGERS = [
    *("int16", "int32", "int64", "uint16", "uint32", "uint64", "bool", "complex64", "complex128", "longdouble"),
    *("object", "U1", "S1", "V4", "datetime64[s]", "timedelta64[s]", [("a", "f4"), ("b", "f4")]),
]


@pytest.mark.parametrize("operator", [*WINDOWED, *GLOBAL])
@pytest.mark.parametrize("dtype", STRANGERS, ids=str)
def test_dtype_of_no_version_is_refused(operator: str, dtype: Any) -> None:
    """A dtype that ONNX does not give the operator is refused with its name and the names of those it does."""
    kernel = (2,) if operator in WINDOWED else ()
    x = np.zeros((1, 1, 8, 8), dtype)

    text = refused(partial(FUNCTIONS[operator], x, *kernel), PoolTypeError, np.float32, (1, 1, 7, 7))

    says(text, operator, ("float32", "float16", *(("int8",) if operator == "MaxPool" else ())))
    assert np.dtype(dtype).name in text or str(np.dtype(dtype)) in text


SUBCLASSES = {
    "MaskedArray": lambda: np.ma.masked_array(board(), mask=False),
    "matrix": lambda: np.asmatrix(board(shape=(8, 8))),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("operator", [*WINDOWED, *GLOBAL])
@pytest.mark.parametrize("kind", SUBCLASSES)
def test_array_with_another_meaning_is_refused(operator: str, kind: str) -> None:
    """A masked array and a matrix, whose meaning would be lost silently, are refused."""
    kernel = (2,) if operator in WINDOWED else ()

    with pytest.raises(PoolTypeError, match=kind):
        FUNCTIONS[operator](SUBCLASSES[kind](), *kernel)


@pytest.mark.parametrize("x", [None, "text", {}, object()], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("operator", [*WINDOWED, *GLOBAL])
def test_something_that_is_no_array_is_refused(operator: str, x: Any) -> None:
    """What is no array of numbers is refused as a wrong kind of argument, or for its missing axes."""
    with pytest.raises((PoolTypeError, PoolError)):
        FUNCTIONS[operator](x, *((2,) if operator in WINDOWED else ()))
