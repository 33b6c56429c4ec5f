"""Attributes that are refused, with their exceptions and messages; and unusual values that are accepted."""

import math
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from calls import FUNCTIONS
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from onnxpool_conformance.oracle import expect
from onnxpool_conformance.oracle_indices import expect_indices
from refusals import (
    BAD,
    NEWEST,
    SLIDING,
    Bad,
    board,
    dtypes_of,
    layouts_of,
    operators_of,
    refused,
    says,
    spoilt,
)
from samples import further
from support import DTYPES, FLOATS, to_last
from tolerance import judge

import onnxpool
from onnxpool import PoolError, PoolTypeError

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("case", BAD)
def test_bad_attribute_is_refused(case: Bad) -> None:
    """A bad attribute is refused, in both layouts and every dtype, in words that name the attribute, and nothing is
    written. The fields of the error hold the operator, the attribute, the axis of the array and the value, as its
    message does."""
    given = {"kernel_shape": [2, 2], **case.attributes}
    for operator, last in [(name, last) for name in operators_of(case) for last in layouts_of(name)]:
        axis = None if case.axis is None else case.axis + (1 if last else 2)
        words = case.words if axis is None else (*case.words, f"axis {axis}")
        for dtype in dtypes_of(operator):
            call = spoilt(operator, to_last(board(dtype), last), last, case.attributes)
            error = refused(call, case.error, dtype, (1, 7, 7, 1) if last else (1, 1, 7, 7))
            says(error, operator, words)

        text = str(error)
        assert error.operator == operator
        assert error.attribute in given
        assert re.search(rf"\b{error.attribute}\b", text)
        if error.attribute != "pads" or axis is not None:  # the text of huge pads names an axis too
            assert error.axis == axis, text
        parts = np.array([given[error.attribute]], object).ravel().tolist()
        assert (error.value is None) == (None in parts), text
        assert error.value is None or all(str(part) in text for part in np.array([error.value], object).ravel())


@pytest.mark.parametrize("operator", ["AveragePool", "LpPool", "MaxPool"])
def test_example_of_the_documentation(operator: str) -> None:
    """A kernel larger than its axis is explained with attribute, span, axis, length, pads and a correction."""
    with pytest.raises(PoolError) as caught:
        getattr(onnxpool, FUNCTIONS[operator])(board(shape=(1, 1, 8, 4)), (1, 9), dilations=(1, 1), opset=21)

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
    call = partial(getattr(onnxpool, FUNCTIONS[operator]), board(), *kernel, p=value, opset=1)

    text = refused(call, PoolError, np.float32, (1, 1, 1, 1))

    says(text, operator, ("p", str(value), "0"))


@pytest.mark.parametrize("value", [10**400, -10**400, 2**1024 - 2**970], ids=["huge", "huge negative", "rounded up"])
def test_integers_beyond_floats_are_no_exponents(value: int) -> None:
    """An integer that no float can hold is refused as an exponent, rather than taken as infinity."""
    with pytest.raises(PoolError, match=r"p must be above 0 and at most 1\.797"):
        onnxpool.GlobalLpPool(p=value, opset=1)


@pytest.mark.parametrize("value", [-1.0, 0.0, -10**9])
def test_limits_that_do_not_exist_are_not_named(value: float) -> None:
    """Float exponents have no upper limit. The limit of integer exponents is the largest float."""
    with pytest.raises(PoolError, match=r"p must be above 0, got" if isinstance(value, float) else "at most 1.797"):
        onnxpool.GlobalLpPool(p=value, opset=1)


@pytest.mark.parametrize("value", [10**39, 1e39, math.inf, 10**400], ids=str)
def test_scales_are_those_of_float32(value: float) -> None:
    """Scales have the limits of float32, as floats and as integers."""
    with pytest.raises(PoolError, match=r"spatial_scale must be above 0 and at most 3\.402"):
        onnxpool.RoiAlign(spatial_scale=value)


def test_the_largest_exponents_are_taken() -> None:
    """Float exponents may be the largest float or infinity. Integer exponents may be the largest float."""
    for value in (sys.float_info.max, int(sys.float_info.max), math.inf, sys.float_info.min):
        assert onnxpool.GlobalLpPool(p=value, opset=1).attributes["p"] == value


@pytest.mark.parametrize("value", [0, -1, 2**70, 2.0], ids=repr)
def test_global_exponent_that_is_no_norm_is_refused(value: Any) -> None:
    """A global Lp exponent must be an integer of at least 1."""
    error = PoolTypeError if isinstance(value, float) else PoolError
    for dtype in FLOATS:
        text = refused(partial(onnxpool.global_lp_pool, board(dtype), p=value), error, dtype, (1, 1, 1, 1))

        says(text, "GlobalLpPool", ("p", str(value)))


REALS = [np.float16(2), np.float32(2), np.float64(2), np.longdouble(2), np.int8(2), np.uint64(2), Fraction(2), 2, 2.0,
         np.array(2.0), np.array(2), bfloat16(2)]


@pytest.mark.parametrize("value", REALS, ids=repr)
def test_any_real_number_is_a_float(value: Any) -> None:
    """Any real number is accepted where floats are expected, as in exponents and scales."""
    for operator in (onnxpool.GlobalLpPool(p=value, opset=1), onnxpool.LpPool(kernel_shape=1, p=value, opset=1),
                     onnxpool.RoiAlign(spatial_scale=value), onnxpool.MaxRoiPool(pooled_shape=2, spatial_scale=value)):
        found = operator.attributes["p" if "Lp" in operator.label else "spatial_scale"]
        assert (type(found), found) == (float, 2.0)
    x, rois = np.ones((1, 1, 4, 4), np.float32), np.array([[0, 0, 0, 1, 1]], np.float32)
    assert onnxpool.max_roi_pool(x, rois, 1, spatial_scale=value).item() == 1
    assert onnxpool.global_lp_pool(x, p=value, opset=1).item() == 4


@pytest.mark.parametrize("value", [True, np.True_, np.timedelta64(2, "s"), 2 + 0j, "2", np.str_("2"), Decimal(2), [2.0],
                                   np.array([2.0]), np.array(True), np.datetime64(2, "s"), np.array("2")], ids=repr)
def test_what_is_no_real_number(value: Any) -> None:
    """Bools are refused as real numbers, and so are objects that NumPy or Python can only convert."""
    for name, call in {"p": partial(onnxpool.GlobalLpPool, p=value, opset=1),
                       "spatial_scale": partial(onnxpool.RoiAlign, spatial_scale=value)}.items():
        with pytest.raises(PoolTypeError, match=f"{name} must be a float, got "):
            call()


@pytest.mark.parametrize("value", [Fraction(10**400), -10**400, np.longdouble("1e4000"), Fraction(1, 10**400),
                                   Fraction(-1, 2), np.longdouble("1e-4000")], ids=str)
def test_real_numbers_that_no_float_is(value: Any) -> None:
    """Real numbers that no float can represent become neither infinity nor zero."""
    for call in (partial(onnxpool.GlobalLpPool, p=value, opset=1), partial(onnxpool.RoiAlign, spatial_scale=value)):
        with pytest.raises(PoolError, match=r"must be above 0 and at most "):
            call()


@pytest.mark.parametrize("value", [np.int64(2), np.array(2), np.array(2, np.uint8)], ids=repr)
def test_integers_of_numpy(value: Any) -> None:
    """NumPy integers are accepted as scalars, and as arrays without axes, wherever integers are expected."""
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    expected = onnxpool.max_pool(x, 2, strides=2)
    for y in (onnxpool.max_pool(x, value, strides=value), onnxpool.max_pool(x, (value, 2), strides=[2, value]),
              onnxpool.max_pool(x, 2, strides=2, num_threads=value),
              onnxpool.max_pool(x, 2, strides=2, opset=10 + value)):
        np.testing.assert_array_equal(y, expected)
    plan = onnxpool.MaxPool(kernel_shape=2).plan((1, 1, 4, value), "float32")
    assert plan.shape == (1, 1, 4, 2)
    assert len(list(plan.tiles(value))) == 2
    assert onnxpool.LpPool(kernel_shape=2, p=value).p == 2
    with onnxpool.num_threads(value):
        assert onnxpool.get_num_threads() == 2


@pytest.mark.parametrize("value", [np.timedelta64(2, "s"), np.array([[2]]), np.array(True), np.array(2.0), Fraction(2)],
                         ids=repr)
def test_what_is_no_integer(value: Any) -> None:
    """Objects that are not integers are refused, including timedelta64, which NumPy counts as an integer."""
    x = np.ones((1, 1, 4, 4), np.float32)
    for call in (partial(onnxpool.max_pool, x, value), partial(onnxpool.max_pool, x, 2, num_threads=value),
                 partial(onnxpool.max_pool, x, 2, opset=value), partial(onnxpool.set_num_threads, value)):
        with pytest.raises(PoolTypeError, match="must be an integer"):
            call()


@pytest.mark.parametrize("value", [1, Fraction(1), 1.0, np.float32(1), np.float64(1)], ids=repr)
def test_scales_of_quantised_tensors(value: Any) -> None:
    """Python's real numbers are rounded to float32, which turns huge numbers into infinity."""
    x, one = np.arange(16, dtype=np.uint8).reshape(1, 1, 4, 4), np.float32(1)
    for call, inputs in ((onnxpool.qlinear_average_pool, (np.uint8(0), one, np.uint8(0), 2)),
                         (onnxpool.qlinear_global_average_pool, (np.uint8(0), one, np.uint8(0)))):
        np.testing.assert_array_equal(call(x, value, *inputs), call(x, one, *inputs))
        for huge in (10**400, Fraction(10**400), 1e39):
            with pytest.raises(PoolError, match="x_scale must be finite and above 0, got inf"):
                call(x, huge, *inputs)
        with pytest.raises(PoolTypeError, match="x_scale must be float32, got bool"):
            call(x, True, *inputs)


def test_lp_pool_1_without_a_kernel_is_refused() -> None:
    """LpPool-1 requires kernel_shape, which is optional in the schema but has no meaning if it is omitted."""
    with pytest.raises(PoolError, match="kernel_shape"):
        onnxpool.LpPool(opset=1)(board())


class Good(NamedTuple):
    """Unusual but valid attributes on the 8x8 board; `pick` selects the elements that max pooling returns."""

    name: str
    attributes: dict[str, Any]
    pick: Callable[[NDArray[Any]], NDArray[Any]]


ROWS = [*range(8), 5, 6, 7]  # rows that the bottom right tap of a 2x2 window with dilation 3 reads with 3 pads
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
    """Attributes at the limits of the legal range give the right value, in every dtype of max pooling."""
    for dtype in DTYPES:
        y = onnxpool.max_pool(board(dtype), **case.attributes)

        expected = case.pick(board(dtype)[0, 0])
        assert y.dtype == dtype
        np.testing.assert_array_equal(y[0, 0], expected)


UNUSUAL: dict[str, dict[str, Any]] = {
    **{case.name: case.attributes for case in GOOD if "channels_last" not in case.attributes},
    "pads_larger_than_the_kernel": {"kernel_shape": [2, 2], "pads": [2, 3, 4, 5]},
    "pads_larger_than_the_input": {"kernel_shape": [1, 2], "strides": [3, 2], "pads": [0, 20, 1, 30]},
    "no_element_between_taps": {"kernel_shape": [1, 2], "dilations": [1, 9], "pads": [0, 3, 0, 4]},
    "only_a_window_in_the_padding": {"kernel_shape": [8, 2], "dilations": [1, 9], "pads": [0, 1, 0, 1]},
    "larger_than_padded_in_ceil_mode": {"kernel_shape": [12, 3], "strides": 5, "pads": [1, 0, 1, 0], "ceil_mode": 1},
    "a_window_that_starts_in_the_end_padding": {"kernel_shape": 2, "strides": [1, 9], "pads": [0, 0, 0, 3],
                                                "ceil_mode": 1},
    "counted_padding_and_overhang": {"kernel_shape": 3, "strides": 4, "pads": [1, 0, 1, 2], "ceil_mode": 1,
                                     "count_include_pad": 1},
    "counted_padding_of_dilated_windows": {"kernel_shape": 3, "strides": 3, "dilations": [2, 4], "pads": [3, 5, 4, 2],
                                           "ceil_mode": 1, "count_include_pad": 1},
}


@pytest.mark.parametrize(("name", "operator"), [
    (name, operator) for name, attributes in UNUSUAL.items() for operator in SLIDING
    if set(attributes) <= set(NEWEST[operator]["attributes"])])
def test_unusual_attribute_of_every_operator(name: str, operator: str) -> None:
    """Attributes at the limits of the legal range give the results of plain loops, in every dtype and both layouts."""
    attributes = UNUSUAL[name]
    plain = {key: value if isinstance(value, str) else np.vectorize(int, otypes=[object])(value).tolist()
             for key, value in attributes.items() if value is not None}
    for dtype in dtypes_of(operator):
        for last in layouts_of(operator):
            x = to_last(np.concatenate([board(dtype), board(dtype)[..., ::-1, :]], 1), last)
            truth = expect(operator, [x, *further(operator, x)], plain, channels_last=last)
            assert judge(truth, spoilt(operator, x, last, attributes)()).problem is None
            if operator == "MaxPool":
                _, indices = spoilt(operator, x, last, {**attributes, "return_indices": True})()
                assert judge(expect_indices(x, plain, channels_last=last), indices).problem is None


@pytest.mark.parametrize("value", [True, False, 0, 1, np.int8(1), np.bool_(True)], ids=repr)
def test_flags_take_numbers_and_bools(value: Any) -> None:
    """A flag may be 0, 1 or a bool."""
    expected = onnxpool.average_pool(board(), 3, pads=1, strides=2, count_include_pad=int(value), ceil_mode=int(value))

    y = onnxpool.average_pool(board(), 3, pads=1, strides=2, count_include_pad=value, ceil_mode=value)

    assert y.tobytes() == expected.tobytes()


@pytest.mark.parametrize("rank", [6, 12])
def test_any_number_of_spatial_axes_is_pooled(rank: int) -> None:
    """Arrays of any rank that NumPy allows are pooled."""
    x = board(shape=(1, 1, *(2,) * (rank - 2)))

    assert onnxpool.max_pool(x, 2).item() == x.max()
    assert onnxpool.average_pool(x, 2).item() == pytest.approx(x.mean())
    assert onnxpool.global_max_pool(x).shape == (1,) * rank
