"""QLinearAveragePool and NhwcMaxPool: onnxruntime's arithmetic bit for bit, and refused arguments."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from calls import NHWC_MAX, QLINEAR_AVERAGE, SeededChoices
from calls_family import draw_call
from onnxpool_conformance.oracle import GeometryError, expect
from peer import agreed_window, ask, explicit
from support import BYTE_NAMES, LAYOUTS, assert_same_bits, to_first, to_last
from truths import truths

import onnxpool
from onnxpool import PoolError, PoolTypeError

CANARY = 77
PEER_SEEDS = [2000, pytest.param(6000, marks=pytest.mark.slow)]
NAN, INF = math.nan, math.inf


class Case(NamedTuple):
    """One channel, its scales and zero points, a window, and the quantised means."""

    name: str
    x: list
    numbers: tuple  # x_scale, x_zero_point, y_scale, y_zero_point
    attributes: dict
    expected: list
    dtypes: tuple = BYTE_NAMES


UNIT = (1, 0, 1, 0)
EDGES = {"kernel_shape": 2, "strides": 2, "pads": (2, 3)}
CASES = [
    # The zero point is added before rounding: a half then rounds to the even sum.
    *(Case(f"tie {pair} zero point {zero}", [*pair, 9], (1, 0, 1, zero), {"kernel_shape": 2, "strides": 2},
           [round(sum(pair) / 2 + zero)]) for pair in ([0, 1], [1, 2], [2, 3]) for zero in (0, 1, 2)),
    # A kernel that covers everything without pads rounds first.
    *(Case(f"whole tie {pair} zero point {zero}", pair, (1, 0, 1, zero), {"kernel_shape": 2},
           [round(sum(pair) / 2) + zero]) for pair in ([0, 1], [1, 2], [2, 3]) for zero in (0, 1, 2)),
    Case("whole with pads", [0, 1], (1, 0, 1, 1), {"kernel_shape": 2, "strides": 4, "pads": (0, 1)}, [2]),
    Case("whole with stride", [0, 1], (1, 0, 1, 1), {"kernel_shape": 2, "strides": 4}, [1]),
    Case("scales", [10, 20, 30, 50], (0.5, 10, 0.25, 3), {"kernel_shape": 2}, [13, 33, 63]),
    Case("missing zero points", [10, 20, 40], (0.5, None, 0.25, None), {"kernel_shape": 2}, [30, 60]),
    Case("pads do not count", [4, 8], UNIT, {"kernel_shape": 2, "pads": (1, 1)}, [4, 6, 8]),
    Case("pads count", [4, 8], UNIT, {"kernel_shape": 2, "pads": (1, 1), "count_include_pad": 1}, [2, 6, 4]),
    Case("pads are real zeros", [14, 18], (1, 10, 1, 3), {"kernel_shape": 2, "pads": (1, 1), "count_include_pad": 1},
         [5, 9, 7]),
    Case("overhang does not count D19", [6, 6, 6, 6], UNIT,
         {"kernel_shape": 3, "strides": 2, "ceil_mode": 1, "count_include_pad": 1}, [6, 6]),
    Case("ceil drops the last window", [1, 2], UNIT, {"kernel_shape": 1, "strides": 2, "ceil_mode": 1}, [1]),
    Case("empty windows D21", [1, 3, 5, 7, 9], (1, 2, 1, 5), EDGES, [5, 5, 9, 12, 5]),
    Case("empty windows counting pads", [1, 3, 5, 7, 9], (1, 1, 1, 5), {**EDGES, "count_include_pad": 1},
         [5, 6, 10, 9, 5]),
    Case("same upper", [2, 4, 6, 8, 10], UNIT, {"kernel_shape": 2, "auto_pad": "SAME_UPPER"}, [3, 5, 7, 9, 10]),
    Case("saturates high uint8", [200, 255, 255], (2, 0, 1, 0), {"kernel_shape": 2}, [255, 255], ("uint8",)),
    Case("saturates low uint8", [0, 1, 2], (1, 100, 1, 3), {"kernel_shape": 2}, [0, 0], ("uint8",)),
    Case("saturates high int8", [127] * 3, (4, -128, 1, 5), {"kernel_shape": 2}, [127, 127], ("int8",)),
    Case("saturates low int8", [-128] * 3, (4, 127, 1, 5), {"kernel_shape": 2}, [-128, -128], ("int8",)),
    Case("beyond any integer", [255, 255, 0], (3e38, 0, 1e-30, 0), {"kernel_shape": 2}, [255, 255], ("uint8",)),
]  # fmt: skip


def inputs_of(x, numbers):
    """x with its scales and zero points as arrays."""
    x_scale, x_zero, y_scale, y_zero = numbers
    zeros = [None if zero is None else np.array(zero, x.dtype) for zero in (x_zero, y_zero)]
    return x, np.array(x_scale, np.float32), zeros[0], np.array(y_scale, np.float32), zeros[1]


def averaged(inputs, attributes, **options):
    """A call with attributes by name."""
    others = {name: value for name, value in attributes.items() if name != "kernel_shape"}
    return onnxpool.qlinear_average_pool(*inputs, attributes["kernel_shape"], **others, **options)


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_value(case, channels_last):
    """The quantised means are as decided for one and for many channels, and the oracle agrees."""
    for dtype in case.dtypes:
        for channels in (1, 2, 19):
            x = np.tile(np.array(case.x, dtype), (2, channels, 1))
            inputs = inputs_of(to_last(x, channels_last), case.numbers)

            y = averaged(inputs, case.attributes, channels_last=int(channels_last))

            assert y.dtype == x.dtype
            wanted = np.tile(np.array(case.expected, dtype), (2, channels, 1))
            np.testing.assert_array_equal(to_first(y, channels_last), wanted, strict=True)
        truth = expect(QLINEAR_AVERAGE, inputs, case.attributes, channels_last=channels_last)
        assert truth.cells == np.ravel(wanted).tolist()


@pytest.mark.parametrize(("pads", "channels_last"), [(1, 0), (0, 1)])
@pytest.mark.parametrize("dtype", BYTE_NAMES)
def test_large_window(dtype, pads, channels_last):
    """The mean of 2^24 extreme elements overflows no accumulator."""
    limits = np.iinfo(dtype)
    side = 4096
    shape = (1, side, side, 1) if channels_last else (1, 1, side, side)
    for value, zero in ((limits.max, limits.min), (limits.min, limits.max)):
        x = np.broadcast_to(np.array(value, dtype), shape)
        numbers = inputs_of(x, (0.5, zero, 0.5, zero))
        y = averaged(numbers, {"kernel_shape": side, "pads": (0, 0, pads, 0)}, channels_last=channels_last)
        assert y.ravel()[0] == value


def board(dtype="uint8"):
    """One plane of 8x8."""
    return (np.arange(64) % 97).astype(dtype).reshape(1, 1, 8, 8)


GOOD = (1.0, 0, 1.0, 0)
BAD_SCALES = {"zero": 0.0, "negative": -1.0, "NaN": NAN, "inf": INF, "-inf": -INF}
BAD = {
    **{f"x_scale {name}": (PoolError, "x_scale", 1, np.float32(value)) for name, value in BAD_SCALES.items()},
    **{f"y_scale {name}": (PoolError, "y_scale", 3, np.float32(value)) for name, value in BAD_SCALES.items()},
    "scale of none": (PoolError, "x_scale", 1, np.ones(0, np.float32)),
    "scale per channel": (PoolError, "y_scale", 3, np.ones(2, np.float32)),
    "zero point of two": (PoolError, "y_zero_point", 4, np.zeros(2, np.uint8)),
    "scale of rank 2": (PoolError, "x_scale", 1, np.ones((1, 1), np.float32)),
    "missing scale": (PoolError, "x_scale", 1, None),
    "float64 scale": (PoolTypeError, "y_scale", 3, np.ones((), np.float64)),
    "integer scale": (PoolTypeError, "x_scale", 1, np.ones((), np.int32)),
    "zero point of the other dtype": (PoolTypeError, "x_zero_point", 2, np.zeros((), np.int8)),
    "float zero point": (PoolTypeError, "y_zero_point", 4, np.zeros((), np.float32)),
    "zero point out of range": (PoolError, "y_zero_point", 4, 256),
    "float32 x": (PoolTypeError, "float32", 0, board("float32")),
    "int16 x": (PoolTypeError, "int16", 0, board("int16")),
    "empty spatial axis": (PoolError, "axis 2", 0, np.zeros((1, 1, 0, 8), np.uint8)),
    "no spatial axis": (PoolError, "X", 0, np.zeros((1, 1), np.uint8)),
}


@pytest.mark.parametrize("kernel", [2, 8])
@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(("error", "words", "place", "value"), BAD.values(), ids=BAD)
def test_refused(error, words, place, value, channels_last, kernel):
    """A bad input is refused by name, for a window and for a whole plane, and `out` is unchanged."""
    words = words.replace("axis 2", "axis 1") if channels_last else words
    for dtype in BYTE_NAMES:
        inputs = list(inputs_of(board(dtype), GOOD))
        other = "uint8" if dtype == "int8" else "int8"
        inputs[place] = value.astype(other) if words == "x_zero_point" else value
        inputs[0] = to_last(inputs[0], channels_last)
        out = to_last(np.full((1, 1, 9 - kernel, 9 - kernel), CANARY, inputs[0].dtype), channels_last)
        with pytest.raises(error, match=words):
            averaged(inputs, {"kernel_shape": kernel}, out=out, channels_last=int(channels_last))
        assert (out == CANARY).all()


@pytest.mark.parametrize("attributes", [{"dilations": 2}, {"storage_order": 0}, {"strides": 0}, {"pads": (1, 1)},
                                        {"ceil_mode": 2}, {"kernel_shape": 9}, {"auto_pad": "SAME"}, {"opset": 2},
                                        {"auto_pad": "VALID", "pads": (1,) * 4}])  # fmt: skip
def test_attribute_refused(attributes):
    """Attributes that the operator lacks, and values that no window can have, are refused."""
    given = {"kernel_shape": 2, **attributes}
    with pytest.raises((PoolError, TypeError)):
        onnxpool.QLinearAveragePool(**given)(*inputs_of(board(), GOOD))


def test_number_of_inputs():
    """Zero points may be None, and the last may be omitted. Scales are required. More than five inputs are refused."""
    x, *numbers = inputs_of(board(), GOOD)
    op = onnxpool.QLinearAveragePool(kernel_shape=2)
    wanted = op(x, *numbers)
    assert_same_bits(op(x, *numbers[:3]), wanted)
    assert_same_bits(op(x, numbers[0], None, numbers[2], None), wanted)
    for wrong in ((), numbers[:1], numbers[:2], (*numbers, numbers[3])):
        with pytest.raises(PoolError):
            op(x, *wrong)


def counts_overhang(call):
    """Whether a window beyond the end padding is counted, for which onnxruntime divides by the full kernel (D19)."""
    return bool(call.attributes.get("ceil_mode")) and bool(call.attributes.get("count_include_pad"))


def peer_call(seed, operator):
    """A random call and its attributes, restricted to calls that onnxruntime computes as ONNX says."""
    call = draw_call(SeededChoices(seed), (operator,))
    if not agreed_window(call) or counts_overhang(call):
        return None
    try:
        truths(call)
    except GeometryError:
        return None
    layout = {"channels_last": int(call.channels_last)} if operator == QLINEAR_AVERAGE else {}
    return call, explicit(call) | layout


@pytest.mark.parametrize("seeds", PEER_SEEDS)
@pytest.mark.parametrize("operator", [QLINEAR_AVERAGE, NHWC_MAX])
def test_onnxruntime_agrees(operator, seeds):
    """Every value equals onnxruntime's, in both dtypes and layouts and in all ranks that onnxruntime supports."""
    values, kinds = 0, set()
    for seed in range(seeds):
        found = peer_call(seed, operator)
        if found is None:
            continue
        call, attributes = found
        zero = np.zeros((), call.x.dtype)
        inputs = [np.ascontiguousarray(call.x), *(zero if a is None else a.reshape(()) for a in call.further)]
        wanted = ask(operator, inputs, [call.x.dtype.name], attributes, opset=22, domain="com.microsoft")[0]
        y = call.run(onnxpool)
        np.testing.assert_array_equal(y, wanted, call.describe(), strict=True)
        values += y.size
        kinds.add((call.x.dtype.name, call.channels_last, call.x.ndim))
    assert values >= 20 * seeds
    assert len(kinds) == (12 if operator == QLINEAR_AVERAGE else 6)


@pytest.mark.parametrize("dtype", BYTE_NAMES)
def test_nhwc_max_pool_is_max_pool(dtype):
    """NhwcMaxPool is MaxPool of a channels-last array, without indices or floats."""
    x = np.random.default_rng(4).integers(-100, 100, (2, 9, 8, 5)).astype(dtype)
    for attributes in ({}, {"strides": 2, "pads": (1, 0, 1, 1)}, {"dilations": 2, "ceil_mode": 1, "strides": 2},
                       {"auto_pad": "SAME_LOWER"}):  # fmt: skip
        wanted = onnxpool.max_pool(x, (3, 2), **attributes, channels_last=True)
        assert_same_bits(onnxpool.nhwc_max_pool(x, (3, 2), **attributes), wanted)
        assert_same_bits(onnxpool.NhwcMaxPool(kernel_shape=(3, 2), **attributes)(x), wanted)
    with pytest.raises(PoolTypeError):
        onnxpool.nhwc_max_pool(x.astype(np.float32), 2)
    for unknown in ({"storage_order": 0}, {"return_indices": True}):
        with pytest.raises((PoolError, TypeError)):
            onnxpool.NhwcMaxPool(kernel_shape=2, **unknown)


@pytest.mark.parametrize("dtype", BYTE_NAMES)
@pytest.mark.parametrize("scales", [(1.0, 1.0), (0.05, 0.04), (1e-37, 1e-38), (1e-42, 1e-43), (5e34, 1e34), (1e36, 1.0),
                                    (1e-20, 1e-19), (0.3, 1e-30), (1e-30, 0.3)])
def test_windows_of_every_width_and_scale_are_added_in_order(dtype, scales):
    """Taps are added one by one, and quotients equal true divisions, whatever the scales."""
    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    x_scale, y_scale = np.array(scales, np.float32)
    x_zero, y_zero = (np.array(zero, dtype) for zero in (3, 5))
    for n in (5, 16, 17, 33, 40, 61):
        x = rng.integers(info.min, info.max, (2, 3, 9, n), dtype, endpoint=True)
        for size, stride, pads in ((2, 2, 0), (3, 1, 1), (3, 2, 1), (2, 1, 0), (4, 2, 1)):
            around = ((0, 0), (0, 0), (pads, pads), (pads, pads))
            inside = np.pad(np.ones_like(x, np.float32), around)
            total = count = np.float32(0)
            with np.errstate(over="ignore"):
                real = np.pad(x_scale * (x.astype(np.int32) - 3).astype(np.float32), around)
                for r, c in np.ndindex(size, size):
                    rows, columns = (slice(t, t + length - size + 1, stride)
                                     for t, length in ((r, real.shape[2]), (c, real.shape[3])))
                    total, count = total + real[:, :, rows, columns], count + inside[:, :, rows, columns]
                expected = np.clip(np.rint(total / count / y_scale + np.float32(5)), info.min, info.max).astype(dtype)
            y = averaged((x, x_scale, x_zero, y_scale, y_zero), {"kernel_shape": size, "strides": stride, "pads": pads})
            assert np.array_equal(y, expected), (n, size, stride)
            last = averaged((to_last(x), x_scale, x_zero, y_scale, y_zero),
                            {"kernel_shape": size, "strides": stride, "pads": pads}, channels_last=True)
            assert np.array_equal(np.moveaxis(last, -1, 1), expected), (n, size, stride)


@pytest.mark.parametrize(("x_scale", "y_scale", "ratio"), [(1e-38, 1e38, "0.0"), (1e38, 1e-38, "inf")])
def test_scales_whose_ratio_is_no_number_are_refused(x_scale, y_scale, ratio):
    """Scales whose ratio is no number are refused, although each can be valid by itself."""
    with pytest.raises(PoolError, match=f"times 9 taps is {ratio} in float32, but must be finite and") as caught:
        onnxpool.qlinear_global_average_pool(np.zeros((1, 2, 3, 3), np.uint8), np.float32(x_scale), 0,
                                             np.float32(y_scale), 0)
    assert caught.value.attribute == "x_scale"
    assert onnxpool.qlinear_global_average_pool(np.zeros((1, 2, 3, 3), np.uint8), np.float32(1e-38), 0,
                                                np.float32(1), 0).shape == (1, 2, 1, 1)


def test_channels_whose_sum_may_not_fit_are_refused():
    """Channels whose sums may not fit are refused. No array is this large, but a plan or a handle of the C API can
    declare one with no channels."""
    pool = onnxpool.QLinearGlobalAveragePool(channels_last=True)
    scales = np.float32(1), 0, np.float32(1), 0
    for dtype in ("uint8", "int8"):
        pool.plan((1, 2**55, 0), dtype)._rule(scales)
        with pytest.raises(PoolError, match=r"36028797018963969 elements in each channel, but at most 2\^55") as caught:
            pool.plan((1, 2**55 + 1, 0), dtype)._rule(scales)
        assert (caught.value.attribute, caught.value.value) == ("X", 2**55 + 1)
