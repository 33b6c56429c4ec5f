"""Outputs, thread counts and quantisation parameters that are refused; extremes that stay bounded or finite."""

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from programs import program
from samples import OPERATORS, build, inputs

import onnxpool
from onnxpool import PoolError, PoolTypeError

CANARY = 77
QUANTISED = (np.int8, np.uint8)


def board(dtype: Any = np.float32) -> NDArray[Any]:
    return np.arange(64).reshape(1, 1, 8, 8).astype(dtype)


# Each operator on its own arrays; `out` and `num_threads` may be given.
CALLS: dict[str, Callable[..., Any]] = {name: partial(build(name), *inputs(name)) for name in OPERATORS}


def read_only(y: NDArray[Any]) -> NDArray[Any]:
    y.flags.writeable = False
    return y


BAD_OUT: dict[str, tuple[Callable[[NDArray[Any]], Any], type[Exception]]] = {
    "read_only": (read_only, PoolError),
    "one_axis_less": (lambda y: y[0], PoolError),
    "one_axis_more": (lambda y: y[np.newaxis], PoolError),
    "longer": (lambda y: np.repeat(y, 2, axis=2), PoolError),
    "broadcastable": (lambda y: np.repeat(y, 2, axis=0), PoolError),
    "channels_last": (lambda y: np.repeat(y, 2, axis=1).transpose(0, 2, 3, 1), PoolError),
    "empty": (lambda y: y[:0], PoolError),
    "wider_dtype": (lambda y: y.astype(np.complex128), PoolTypeError),
    "other_dtype": (lambda y: y.astype(np.float16), PoolTypeError),
    "list": (lambda y: y.tolist(), PoolTypeError),
    "tuple_of_array": (lambda y: (y,), PoolTypeError),
    "bytearray": (lambda y: bytearray(y.tobytes()), PoolTypeError),
}


@pytest.mark.parametrize("operator", CALLS)
@pytest.mark.parametrize("bad", BAD_OUT)
def test_bad_out_is_refused_and_left_alone(bad: str, operator: str) -> None:
    """An `out` that is read-only, or has the wrong kind, dtype or shape, is refused before anything is written."""
    change, error = BAD_OUT[bad]
    out = change(np.full_like(CALLS[operator](), CANARY))

    with pytest.raises(error, match=rf"^{operator}-\d+: .*\bout(put)?\b"):
        CALLS[operator](out=out)

    if isinstance(out, np.ndarray):
        assert (out == CANARY).all()


@pytest.mark.parametrize("operator", CALLS)
@pytest.mark.parametrize("value", [0, -1, "2", 1.5, [1]], ids=repr)
def test_bad_thread_count_of_a_call_is_refused(operator: str, value: Any) -> None:
    """`num_threads` must be an integer of at least 1; otherwise nothing is computed."""
    error = PoolError if isinstance(value, int) else PoolTypeError
    out = np.full_like(CALLS[operator](), CANARY)

    with pytest.raises(error, match="num_threads"):
        CALLS[operator](out=out, num_threads=value)

    assert (out == CANARY).all()


QLinear = tuple[Any, Any, Any, Any]  # x_scale, x_zero_point, y_scale, y_zero_point


def pooled(dtype: Any, *, last: bool = False, out: Any = None, x: Any = None, **changed: Any) -> Any:
    """The quantised mean of the board with scales of 1 and zero points of 0, except for what is overridden."""
    plain = {"x_scale": np.float32(1), "x_zero_point": dtype(0), "y_scale": np.float32(1), "y_zero_point": dtype(0)}
    x = board(dtype) if x is None else x
    x = np.moveaxis(x, 1, -1) if last else x
    return onnxpool.qlinear_global_average_pool(x, *(plain | changed).values(), channels_last=int(last), out=out)


BAD_SCALES = {
    "zero": 0.0,
    "negative_zero": -0.0,
    "nan": np.nan,
    "inf": np.inf,
    "negative_inf": -np.inf,
    "negative": -1.0,
}


@pytest.mark.parametrize("dtype", QUANTISED)
@pytest.mark.parametrize("name", ["x_scale", "y_scale"])
@pytest.mark.parametrize("value", BAD_SCALES.values(), ids=BAD_SCALES)
def test_scale_must_be_finite_and_positive(value: float, name: str, dtype: Any) -> None:
    """A scale that is zero, negative or not finite is refused by name and value."""
    for last in (False, True):
        out = np.full((1, 1, 1, 1), CANARY, dtype)

        with pytest.raises(PoolError, match=rf"^QLinearGlobalAveragePool-1: .*{name}.*; .+"):
            pooled(dtype, last=last, out=out, **{name: np.float32(value)})

        assert out.item() == CANARY


@pytest.mark.parametrize("dtype", QUANTISED)
@pytest.mark.parametrize(
    ("x_scale", "y_scale"), [(1.0, 1e-45), (3e38, 1e-3), (3e38, 1e-40)], ids=["subnormal", "large", "both"]
)
def test_ratio_of_scales_must_be_finite(x_scale: float, y_scale: float, dtype: Any) -> None:
    """Two legal scales whose ratio float32 cannot hold are refused."""
    with pytest.raises(PoolError, match="scale"):
        pooled(dtype, x_scale=np.float32(x_scale), y_scale=np.float32(y_scale))


@pytest.mark.parametrize("dtype", QUANTISED)
@pytest.mark.parametrize("name", ["x_zero_point", "y_zero_point"])
def test_zero_point_must_have_the_dtype_of_the_input(name: str, dtype: Any) -> None:
    """A zero point of the other 8-bit type, of a wider type or of a float type is refused."""
    other = next(kind for kind in QUANTISED if kind is not dtype)
    for kind in (other, np.int16, np.float32):
        with pytest.raises(PoolTypeError, match=name):
            pooled(dtype, **{name: kind(0)})


@pytest.mark.parametrize("dtype", QUANTISED)
@pytest.mark.parametrize("name", ["x_scale", "x_zero_point", "y_scale", "y_zero_point"])
def test_every_parameter_is_needed_and_is_one_number(name: str, dtype: Any) -> None:
    """A quantisation parameter that is missing or does not hold exactly one number is refused by name."""
    kind = np.float32 if "scale" in name else dtype
    with pytest.raises((PoolError, PoolTypeError), match=name):
        pooled(dtype, **{name: None})
    for shape in ((0,), (2,), (1, 1), (1, 2)):
        with pytest.raises(PoolError, match=name):
            pooled(dtype, **{name: np.ones(shape, kind)})


@pytest.mark.parametrize("dtype", QUANTISED)
@pytest.mark.parametrize("name", ["x_scale", "x_zero_point", "y_scale", "y_zero_point"])
def test_parameter_may_be_a_scalar_or_an_array_of_one(name: str, dtype: Any) -> None:
    """A NumPy scalar, a 0-d array and a 1-d array of one element mean the same."""
    one = (np.float32 if "scale" in name else dtype)(2)
    expected = pooled(dtype, **{name: one})

    for form in (np.array(one), np.array([one])):
        assert pooled(dtype, **{name: form}) == expected


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.float32, np.float16, bool], ids=lambda dtype: dtype.__name__)
def test_quantised_input_must_be_8_bits(dtype: Any) -> None:
    """The quantised operator accepts int8 and uint8, and says so."""
    with pytest.raises(PoolTypeError, match=r"^QLinearGlobalAveragePool-1: (?=.*\bint8, uint8\b).*; .+"):
        pooled(np.int8, x=board(dtype))


@pytest.mark.parametrize("dtype", QUANTISED)
def test_quantised_shapes(dtype: Any) -> None:
    """No images or no channels give an empty result. An empty spatial axis or a missing channel axis is refused."""
    assert pooled(dtype, x=np.zeros((0, 2, 3, 3), dtype)).shape == (0, 2, 1, 1)
    assert pooled(dtype, x=np.zeros((2, 0, 3, 3), dtype), last=True).shape == (2, 1, 1, 0)
    for last in (False, True):
        with pytest.raises(PoolError, match=rf"axis {1 if last else 2}\b"):
            pooled(dtype, x=np.zeros((1, 2, 0, 3), dtype), last=last)
    with pytest.raises(PoolError):
        pooled(dtype, x=np.zeros(3, dtype))


@pytest.mark.parametrize(
    ("value", "error"), [(2, PoolError), (-1, PoolError), ("1", PoolTypeError), (0.5, PoolTypeError)], ids=repr
)
def test_quantised_layout_is_a_flag(value: Any, error: type[Exception]) -> None:
    """The attribute channels_last of the quantised operator is 0 or 1."""
    with pytest.raises(error, match="channels_last"):
        onnxpool.QLinearGlobalAveragePool(channels_last=value)


# Each runs in a new process with 4 GiB of address space and 20 s of processor time, which exposes loops over
# taps and large copies.
PRELUDE = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
import ml_dtypes, numpy as np, onnxpool
from support import to_first, to_last
board = np.arange(64).reshape(1, 1, 8, 8)
def all_are(y, value):
    assert y.shape == (1, 1, 8, 8), y.shape
    assert np.allclose(y.astype('f8'), value, rtol=5e-3 if y.itemsize == 2 else 1e-6, atol=0), y
def refused(function, x, *args, errors=onnxpool.PoolError, **attributes):
    try:
        function(x, *args, **attributes)
    except errors:
        return
    raise AssertionError('accepted')
for dtype in {dtypes}:
    x = board.astype(dtype)
    for last in (False, True):
        if last:
            x = to_last(x)
        channels_first = lambda y: to_first(y, last)
"""
FLOATS = "('f2', 'f4', 'f8', 'bfloat16')"
BYTES = "('i1', 'u1')"
ALL = "('f2', 'f4', 'f8', 'bfloat16', 'i1', 'u1')"
BOUNDED = {
    "max_kernel_of_2_to_31": (
        ALL,
        "all_are(channels_first(onnxpool.max_pool(x, 2**31, auto_pad='SAME_UPPER', channels_last=last)), 63)",
    ),
    "positions_kernel_of_2_to_31": (
        ALL,
        "pair = onnxpool.max_pool(x, 2**31, auto_pad='SAME_LOWER', channels_last=last, return_indices=True)\n"
        "        for y in pair:\n"
        "            all_are(channels_first(y), 63)",
    ),
    "maximum_of_bytes_kernel_of_2_to_31": (
        BYTES,
        "y = onnxpool.nhwc_max_pool(x if last else to_last(x), 2**31, auto_pad='SAME_UPPER')\n"
        "        all_are(to_first(y), 63)",
    ),
    "mean_of_bytes_kernel_of_2_to_31": (
        BYTES,
        "y = onnxpool.qlinear_average_pool(x, 1.0, 1, 1.0, 3, 2**31, auto_pad='SAME_UPPER', channels_last=last)\n"
        "        all_are(channels_first(y), round(31.5 - 1 + 3))",
    ),
    "mean_of_bytes_counts_2_to_40_pads": (
        BYTES,
        "y = onnxpool.qlinear_average_pool(x, 1.0, 1, 1.0, 3, 2**20, auto_pad='SAME_LOWER', count_include_pad=1,\n"
        "                                          channels_last=last)\n"
        "        all_are(channels_first(y), 3)",
    ),
    "mean_kernel_of_2_to_31": (
        FLOATS,
        "all_are(channels_first(onnxpool.average_pool(x, 2**31, auto_pad='SAME_LOWER', channels_last=last)), 31.5)",
    ),
    "norm_kernel_of_2_to_31": (
        FLOATS,
        "all_are(channels_first(onnxpool.lp_pool(x, 2**31, auto_pad='SAME_UPPER', channels_last=last)), 85344**0.5)",
    ),
    "mean_counts_2_to_40_pads": (
        "('f4', 'f8', 'bfloat16')",
        "y = onnxpool.average_pool(x, 2**20, auto_pad='SAME_UPPER', count_include_pad=1, channels_last=last)\n"
        "        all_are(channels_first(y), 2016 / 2**40)",
    ),
    "kernel_of_2_to_63": (FLOATS, "refused(onnxpool.average_pool, x, 2**63 - 1, pads=0, channels_last=last)"),
    "input_of_4_tib": (
        FLOATS,
        "wide = np.broadcast_to(np.array(7, dtype), (1, 2**20, 2**20, 1) if last else (1, 1, 2**20, 2**20))\n"
        "        y = onnxpool.max_pool(wide, 2, strides=2**20, channels_last=last)\n"
        "        assert y.shape == (1, 1, 1, 1) and y.item() == 7",
    ),
    "input_of_bytes_of_1_tib": (
        BYTES,
        "wide = np.broadcast_to(np.array(7, dtype), (1, 2**20, 2**20, 1) if last else (1, 1, 2**20, 2**20))\n"
        "        y = onnxpool.qlinear_average_pool(wide, 1.0, 1, 1.0, 3, 2, strides=2**20, channels_last=last)\n"
        "        assert y.shape == (1, 1, 1, 1) and y.item() == 9\n"
        "        y, i = onnxpool.max_pool(wide, 2, strides=2**20, channels_last=last, return_indices=True)\n"
        "        assert (y.item(), i.item()) == (7, 0)\n"
        "        assert not last or (onnxpool.nhwc_max_pool(wide, 2, strides=2**20) == 7).all()",
    ),
    "input_of_norms_of_4_tib": (
        FLOATS,
        "wide = np.broadcast_to(np.array(-7, dtype), (1, 2**20, 2**20, 1) if last else (1, 1, 2**20, 2**20))\n"
        "        y = onnxpool.lp_pool(wide, 2, strides=2**20, channels_last=last)\n"
        "        assert y.shape == (1, 1, 1, 1) and y.item() == 14",
    ),
    "input_of_256_tib": (
        FLOATS,
        "wide = np.broadcast_to(np.array(7, dtype), (1, 2**20, 2**20, 64) if last else (1, 64, 2**20, 2**20))\n"
        "        assert (onnxpool.average_pool(wide, 2, strides=2**20, channels_last=last) == 7).all()",
    ),
    "dilation_of_2_to_62": (
        FLOATS,
        "refused(onnxpool.lp_pool, x, 3, dilations=2**62, channels_last=last)",
    ),
}


@pytest.mark.parametrize("case", BOUNDED)
def test_work_is_bounded_by_the_data(case: str) -> None:
    """Attributes of any size get a result or an error, in time and memory that input and output bound."""
    pytest.importorskip("resource", exc_type=ModuleNotFoundError)
    dtypes, body = BOUNDED[case]

    program(PRELUDE.replace("{dtypes}", dtypes) + f"        {body}\n")


# Results of 2^40 elements, or of 4 GiB at least, from an input of 64 elements.
AMPLIFIED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
import numpy as np
import onnxpool
try:
    np.empty(8 << 30, np.uint8)
except MemoryError:
    pass
else:
    print("no limit")
    raise SystemExit
from refusals import SLIDING, board, dtypes_of, layouts_of, spoilt
from support import to_last
refused = 0
for operator in SLIDING:
    for dtype in dtypes_of(operator):
        for last in layouts_of(operator):
            x = to_last(board(dtype), last)
            for kernel in (2**16, 2**20):
                given = {"kernel_shape": kernel, "pads": kernel - 1}
                calls = [spoilt(operator, x, last, given)]
                if operator == "MaxPool":
                    calls.append(spoilt(operator, x, last, {**given, "return_indices": True}))
                for call in calls:
                    try:
                        call()
                    except (onnxpool.PoolError, MemoryError):
                        refused += 1
                    else:
                        raise AssertionError((operator, dtype, last, kernel))
print(refused > 0)
"""


def test_results_too_large_for_memory_are_refused() -> None:
    """Pads can ask for any number of results. An error is raised before memory is taken, and without a long wait."""
    outcome = program(AMPLIFIED)
    if outcome == "no limit":
        pytest.skip("emulators do not limit memory")
    assert outcome == "True"


def full(dtype: Any, value: float, shape: tuple[int, ...] = (1, 1, 2, 2)) -> NDArray[Any]:
    return np.full(shape, value).astype(dtype)


FINITE: dict[str, tuple[Callable[[NDArray[Any]], Any], NDArray[Any], float]] = {
    "mean_float16": (lambda x: onnxpool.average_pool(x, 2), full(np.float16, 60000), 60000),
    "mean_bfloat16": (lambda x: onnxpool.average_pool(x, 2), full(ml_dtypes.bfloat16, 3e38), 3e38),
    "mean_float32": (lambda x: onnxpool.average_pool(x, 2), full(np.float32, 3e38), 3e38),
    "global_mean_float16": (onnxpool.global_average_pool, full(np.float16, 60000), 60000),
    "global_mean_bfloat16": (onnxpool.global_average_pool, full(ml_dtypes.bfloat16, 3e38), 3e38),
    "global_mean_float32": (onnxpool.global_average_pool, full(np.float32, 3e38), 3e38),
    "norm_float16": (lambda x: onnxpool.lp_pool(x, 2), full(np.float16, 300), 600),
    "norm_small_float16": (lambda x: onnxpool.lp_pool(x, 2), full(np.float16, 1e-4), 2e-4),
    "norm_bfloat16": (lambda x: onnxpool.lp_pool(x, 2), full(ml_dtypes.bfloat16, 1e30), 2e30),
    "norm_float32": (lambda x: onnxpool.lp_pool(x, 2), full(np.float32, 1e30), 2e30),
    "norm_small_float32": (lambda x: onnxpool.lp_pool(x, 2), full(np.float32, 1e-30), 2e-30),
    "norm_float64": (lambda x: onnxpool.lp_pool(x, 2), full(np.float64, 1e300), 2e300),
    "norm_small_float64": (lambda x: onnxpool.lp_pool(x, 2), full(np.float64, 1e-300), 2e-300),
    "global_norm_float32": (onnxpool.global_lp_pool, full(np.float32, 1e30), 2e30),
    "global_norm_small_float64": (onnxpool.global_lp_pool, full(np.float64, 1e-300), 2e-300),
    "norm_p_1000": (lambda x: onnxpool.lp_pool(x, 2, p=1000), full(np.float32, 4), 4 * 4**0.001),
    "norm_p_2_to_62": (lambda x: onnxpool.lp_pool(x, 2, p=2**62), full(np.float32, -4), 4),
    "norm_p_most": (lambda x: onnxpool.lp_pool(x, 2, p=2**63 - 1), full(np.float16, 3), 3),
    "norm_p_2_to_55_large": (lambda x: onnxpool.lp_pool(x, 2, p=2**55), full(np.float64, -1e300), 1e300),
    "norm_p_2_to_55_small": (lambda x: onnxpool.lp_pool(x, 2, p=2**55), full(np.float64, -1e-300), 1e-300),
    "norm_p_2_to_44_large": (lambda x: onnxpool.lp_pool(x, 2, p=2**44), full(np.float64, 1e300), 1e300 * 4 ** 2**-44),
    "norm_p_1e30": (lambda x: onnxpool.lp_pool(x, 2, p=1e30, opset=1), full(np.float64, 1e300), 1e300),
    "global_norm_p_1000": (lambda x: onnxpool.global_lp_pool(x, p=1000), full(np.float64, 4), 4 * 4**0.001),
    "norm_p_1_of_negatives": (lambda x: onnxpool.lp_pool(x, 2, p=1), full(np.float32, -4), 16),
    "norm_p_3_of_negatives": (lambda x: onnxpool.lp_pool(x, 2, p=3), full(np.float64, -4), 4 * 4 ** (1 / 3)),
    "norm_p_inf": (lambda x: onnxpool.lp_pool(x, 2, p=float("inf"), opset=1), full(np.float32, -4), 4),
    "norm_p_half": (lambda x: onnxpool.lp_pool(x, 2, p=0.5, opset=1), full(np.float32, -4), 64),
}


@pytest.mark.parametrize("case", FINITE)
def test_result_that_the_dtype_can_hold_is_finite(case: str) -> None:
    """A mean or norm within the range of the dtype is right even if the plain sum would exceed that range."""
    call, x, expected = FINITE[case]
    relative = {2: 2**-8, 4: 2**-21, 8: 2**-45}[x.dtype.itemsize]

    y = call(x)

    assert y.dtype == x.dtype
    assert float(y.item()) == pytest.approx(expected, rel=relative)
