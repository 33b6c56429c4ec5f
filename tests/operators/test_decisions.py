"""The edge cases on which specification, reference and runtimes disagree, with the values that onnxpool decided on."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from calls import BFLOAT16_SINCE, FUNCTIONS, INTEGER_MAX_SINCE, SINCE, WINDOWED
from onnxpool_conformance.oracle import DTYPES, FORMATS, MAX, expect
from support import BYTE_NAMES, FLOAT_NAMES, LAYOUTS, to_first
from tolerance import mean_limit

import onnxpool

NAN, INF = math.nan, math.inf
NEWEST = 28
VERSIONS = {
    "AveragePool": (1, 7, 10, 11, 19, 22, NEWEST),
    "MaxPool": (1, 8, 10, 11, 12, 22, NEWEST),
    "LpPool": (1, 2, 11, 18, 22, NEWEST),
    "GlobalAveragePool": (1, 22, NEWEST),
    "GlobalMaxPool": (1, 22, NEWEST),
    "GlobalLpPool": (1, 2, 22, NEWEST),
}


class Case(NamedTuple):
    """One image of one channel, and its pool at every version that has the attributes and the dtype."""

    name: str
    operator: str
    x: list
    attributes: dict
    expected: list
    dtypes: tuple = FLOAT_NAMES

    def opsets(self):
        """Versions that have all attributes. Only version 1 accepts a fractional p."""
        since = max((SINCE.get(self.operator, {}).get(name, 1) for name in self.attributes), default=1)
        last = 1 if isinstance(self.attributes.get("p"), float) else NEWEST
        return [version for version in VERSIONS[self.operator] if since <= version <= last]

    def at(self, opset):
        """The attributes as spelt by that version."""
        given = dict(self.attributes)
        if opset == 1 and "p" in given:
            given["p"] = float(given["p"])
        return given

    def legal(self, opset):
        """The dtypes of the case that the version has."""
        first = dict.fromkeys(BYTE_NAMES, INTEGER_MAX_SINCE) | {"bfloat16": BFLOAT16_SINCE}
        return [name for name in self.dtypes if opset >= first.get(name, 1)]


def count(*shape, start=1):
    """start, start+1, ... in row-major order."""
    return np.arange(start, start + math.prod(shape)).reshape(shape).tolist()


def shared(name, x, results, dtypes=FLOAT_NAMES, **attributes):
    """The same window for several operators: avg, cip (the mean that counts pads), max and lp (p=2)."""
    kinds = {"avg": ("AveragePool", {}), "cip": ("AveragePool", {"count_include_pad": 1})}
    kinds |= {"max": ("MaxPool", {}), "lp": ("LpPool", {})}
    rows = [(f"{name} {kind}", kinds[kind], expected) for kind, expected in results.items()]
    return [Case(label, kind[0], x, attributes | kind[1], expected, dtypes) for label, kind, expected in rows]


def maxima(name, x, expected, dtypes=FLOAT_NAMES):
    """A maximum of all elements, as one window and as a global pool."""
    window = Case(f"{name} window", "MaxPool", x, {"kernel_shape": len(x)}, [expected], dtypes)
    return [window, Case(f"{name} global", "GlobalMaxPool", x, {}, [expected], dtypes)]


def norms(name, x, p, expected, dtypes=FLOAT_NAMES):
    """A norm of all elements, as one window and as a global pool."""
    window = Case(f"{name} window", "LpPool", x, {"kernel_shape": len(x), "p": p}, [expected], dtypes)
    return [window, Case(f"{name} global", "GlobalLpPool", x, {"p": p}, [expected], dtypes)]


def means(name, x, expected, dtypes=FLOAT_NAMES):
    """A mean of all elements, as one window and as a global pool."""
    window = Case(f"{name} window", "AveragePool", x, {"kernel_shape": len(x)}, [expected], dtypes)
    return [window, Case(f"{name} global", "GlobalAveragePool", x, {}, [expected], dtypes)]


ROOT = math.sqrt
SAME_UPPER, SAME_LOWER = {"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}
CEIL = {"ceil_mode": 1}
SINGLE = ("float32",)
ROW = [2.0903, 4.6493, 1.6320, -3.2051, 4.6975, 4.7296, 3.3653, -1.5815, -2.3832]  # from ORT#16203
PLANES = (  # from the node test averagepool_2d_ceil_last_window_starts_on_pad
    [[0.8580, 0.0786], [0.2692, 0.1537]],
    [[0.8816, 0.4353], [0.5772, 0.6623]],
    [[0.9067, 0.9483], [0.5970, 0.7630]],
)
NINE = [[31, 201 / 7, 17.5], [321 / 7, 288 / 7, 24.642857142857142], [33.5, 29.785714285714285, 17.75]]
CUBE = [v / 27 for v in (60, 68, 84, 92, 132, 140, 156, 164)]

CASES = [
    # D1: a last window that starts in the right padding
    *shared("ceil drop", count(2, 2), {"avg": [[2.5]], "max": [[4]], "lp": [[ROOT(30)]]},
            kernel_shape=3, strides=3, pads=(1,) * 4, **CEIL),
    *shared("ceil drop stride over kernel", count(4, 4), {"avg": [[1, 3], [9, 11]], "max": [[1, 3], [9, 11]]},
            kernel_shape=1, strides=2, **CEIL),
    *shared("ceil drop 4 pads 0 1", count(4, start=0), {"avg": [0.5], "max": [1]},
            kernel_shape=2, strides=4, pads=(0, 1), **CEIL),
    *shared("ceil drop 2x2", count(2, 2), {"max": [[1]]}, kernel_shape=1, strides=2, **CEIL),
    *(Case(f"ceil drop mean of plane {n}", "AveragePool", plane,
           {"kernel_shape": 3, "strides": 3, "pads": (1,) * 4, "count_include_pad": 1, **CEIL},
           [[sum(map(sum, plane)) / 9]], SINGLE) for n, plane in enumerate(PLANES)),
    # D2: the divisor
    *shared("divisor 4x4", count(4, 4),
            {"cip": [[14 / 9, 30 / 9, 2], [57 / 9, 11, 6], [4.5, 7.5, 4]],
             "avg": [[3.5, 5, 6], [9.5, 11, 12], [13.5, 15, 16]]},
            kernel_shape=3, strides=2, pads=(1,) * 4, **CEIL),
    *shared("divisor overhang", count(4, 4), {"cip": [[6, 7.5], [12, 13.5]]}, kernel_shape=3, strides=2, **CEIL),
    *shared("divisor overhang from 0", count(4, 4, start=0),
            {"cip": [[5, 6.5], [11, 12.5]], "avg": [[5, 6.5], [11, 12.5]]}, kernel_shape=3, strides=2, **CEIL),
    *shared("divisor 9 pads 3 3", count(9), {"cip": [10 / 7, 4, 39 / 7, 4]},
            kernel_shape=7, strides=3, pads=(3, 3), **CEIL),
    *shared("divisor 9 pads 0 3", count(9), {"cip": [4, 39 / 7, 4]}, kernel_shape=7, strides=3, pads=(0, 3), **CEIL),
    *shared("divisor 9x9 tail pads", count(9, 9), {"cip": NINE},
            kernel_shape=7, strides=3, pads=(0, 0, 3, 3), **CEIL),
    *shared("divisor tail pads", [[1, 1], [1, 1]], {"cip": [[1, 0.5], [0.5, 0.25]]}, kernel_shape=2, pads=(0, 0, 1, 1)),
    *shared("divisor dilated", count(9), {"cip": [4 / 3, 2, 3, 4, 5, 6, 7, 14 / 3, 16 / 3]},
            kernel_shape=3, dilations=2, pads=(2, 2)),
    *shared("divisor SAME_UPPER", count(10), {"cip": [2, 4, 6, 8, 19 / 3]}, kernel_shape=3, strides=2, **SAME_UPPER),
    *shared("divisor SAME_LOWER", count(10), {"cip": [1, 3, 5, 7, 9]}, kernel_shape=3, strides=2, **SAME_LOWER),
    *shared("divisor partial", count(5), {"avg": [2.5, 5], "cip": [2.5, 5]}, kernel_shape=4, strides=4, **CEIL),
    *shared("divisor SAME_LOWER of one axis", count(6, 2, start=0),
            {"cip": [[1.2, 1.8], [2.4, 3.2], [4, 5], [6, 7], [5.6, 6.4], [4.8, 5.4]]},
            kernel_shape=(5, 1), **SAME_LOWER),
    Case("divisor of 9 numbers", "AveragePool", ROW,
         {"kernel_shape": 7, "strides": 3, "pads": (3, 3), "count_include_pad": 1, **CEIL},
         [0.73807144, 2.5655572, 0.8032287, -0.09990001], SINGLE),
    *shared("divisor dilated strided", count(6), {"cip": [2, 4, 5]},
            kernel_shape=3, strides=2, dilations=2, pads=(1, 1), **CEIL),
    *shared("divisor 3-D", count(3, 3, 3), {"cip": np.reshape(CUBE, (2, 2, 2)).tolist()},
            kernel_shape=3, strides=2, pads=(1,) * 6, **CEIL),
    *shared("ceil unequal strides", [[1, 3, 2, 4], [5, 7, 6, 8], [9, 11, 10, 12], [13, 15, 14, 16]],
            {"avg": [[4, 4.5, 5], [14, 14.5, 15]]}, kernel_shape=2, strides=(3, 1), **CEIL),
    # D3, D4, D5: windows without elements
    *shared("empty windows", count(5),
            {"avg": [NAN, 1.5, 3.5, 5, NAN], "cip": [0, 1.5, 3.5, 2.5, 0], "max": [-INF, 2, 4, 5, -INF],
             "lp": [0, ROOT(5), 5, 5, 0]}, kernel_shape=2, strides=2, pads=(2, 3)),
    Case("empty windows p=inf", "LpPool", count(5), {"kernel_shape": 2, "strides": 2, "pads": (2, 3), "p": INF},
         [0, 2, 4, 5, 0]),
    *shared("empty between dilated taps", count(2), {"avg": [NAN], "cip": [0], "max": [-INF], "lp": [0]},
            kernel_shape=2, dilations=3, pads=(1, 1)),
    *shared("empty 1x1 dilated", [[5]], {"avg": [[NAN]], "cip": [[0]], "max": [[-INF]], "lp": [[0]]},
            kernel_shape=2, dilations=2, pads=(1,) * 4),
    *shared("empty 1x1 dilated int8", [[5]], {"max": [[-128]]}, ("int8",), kernel_shape=2, dilations=2, pads=(1,) * 4),
    *shared("empty 1x1 dilated uint8", [[5]], {"max": [[0]]}, ("uint8",), kernel_shape=2, dilations=2, pads=(1,) * 4),
    # D9, D11, D12: pads and auto_pad
    *shared("VALID with zero pads", count(5), {"avg": [2, 4], "max": [3, 5]},
            kernel_shape=3, strides=2, pads=(0, 0), auto_pad="VALID"),
    *shared("SAME with zero pads", count(5), {"avg": [1.5, 3, 4.5], "max": [2, 4, 5]},
            kernel_shape=3, strides=2, pads=(0, 0), **SAME_UPPER),
    *shared("empty auto_pad is NOTSET", count(5), {"avg": [1.5, 3, 4.5], "max": [2, 4, 5]},
            kernel_shape=3, strides=2, pads=(1, 1), auto_pad=""),
    # SAME_* and VALID with dilations
    *(case for same in (SAME_UPPER, SAME_LOWER) for case in (
        *shared(f"dilated {same['auto_pad']}", count(7),
                {"avg": [2, 3, 3, 4, 5, 5, 6], "max": [3, 4, 5, 6, 7, 6, 7]}, kernel_shape=3, dilations=2, **same),
        *shared(f"dilated strided {same['auto_pad']}", count(7), {"max": [3, 5, 7, 7]},
                kernel_shape=3, dilations=2, strides=2, **same))),
    *shared("dilated VALID", count(7), {"avg": [3, 4, 5]}, kernel_shape=3, dilations=2, auto_pad="VALID"),
    Case("dilated ORT DilationPadding_1d", "MaxPool", [1, 3, 2, 4, -1, -3, -2, -4, -6, -5, -4, -2],
         {"kernel_shape": 3, "dilations": 3, "pads": (1, 1)}, [2, 4, 3, 2, 4, -1, -2, -2], (*FLOAT_NAMES, "int8")),
    # D8: odd and negative SAME_* pads
    *shared("odd pad SAME_UPPER", count(6), {"avg": [2.5, 5], "max": [4, 6]}, kernel_shape=4, strides=3, **SAME_UPPER),
    *shared("odd pad SAME_LOWER", count(6), {"avg": [2, 4.5], "max": [3, 6]}, kernel_shape=4, strides=3, **SAME_LOWER),
    *(case for same in (SAME_UPPER, SAME_LOWER) for case in (
        *shared(f"negative pad k1 {same['auto_pad']}", count(6), {"avg": [1, 4], "max": [1, 4], "lp": [1, 4]},
                kernel_shape=1, strides=3, **same),
        *shared(f"negative pad k2 {same['auto_pad']}", count(8), {"avg": [1.5, 5.5]},
                kernel_shape=2, strides=4, **same))),
    # D7: auto_pad with ceil_mode
    *shared("VALID ceil", count(6), {"avg": [2, 4, 5.5], "max": [3, 5, 6]},
            kernel_shape=3, strides=2, auto_pad="VALID", **CEIL),
    *shared("SAME_UPPER ceil", count(6), {"avg": [2, 4, 5.5]}, kernel_shape=3, strides=2, **SAME_UPPER, **CEIL),
    *shared("SAME_LOWER ceil", count(6), {"avg": [1.5, 3, 5], "max": [2, 4, 6]},
            kernel_shape=3, strides=2, **SAME_LOWER, **CEIL),
    # D10: stride over kernel, kernel over input
    *shared("stride over kernel", count(5), {"avg": [1, 4], "max": [1, 4]}, kernel_shape=1, strides=3),
    *shared("kernel over input ceil k6", count(5), {"avg": [3], "max": [5], "lp": [ROOT(55)]},
            kernel_shape=6, strides=2, **CEIL),
    *shared("kernel over input ceil k9", count(5), {"avg": [3], "max": [5], "lp": [ROOT(55)]},
            kernel_shape=9, strides=7, **CEIL),
    *shared("kernel over input 1280", count(7, 7), {"avg": [[25]]}, kernel_shape=1280, strides=1280, **CEIL),
    # D6: NaN, infinities, signed zeros
    *(case for lane in range(4) for case in maxima(f"NaN at {lane}", [NAN if k == lane else k for k in range(4)], NAN)),
    *maxima("all NaN", [NAN] * 4, NAN),
    *maxima("all -inf", [-INF] * 4, -INF),
    *maxima("-inf and NaN", [-INF, -INF, NAN, -INF], NAN),
    *maxima("zeros of both signs", [-1, -0.0, 0.0, -0.0], 0.0),
    *shared("NaN 2x2", [[1, NAN], [2, 3]], {"max": [[NAN, NAN], [3, 3]]}, kernel_shape=2, pads=(0, 0, 1, 1)),
    *means("mean of NaN", [NAN, 1, 2, 3], NAN),
    *means("mean of infinities", [INF, -INF, 1, 2], NAN),
    *means("mean with inf", [INF, 1, -2, 3], INF),
    *norms("norm of NaN", [1, NAN, 2], 2, NAN),
    *norms("norm of -inf", [1, -INF, 2], 2, INF),
    # D15: norms
    *(case for p, norm in ((1, 10), (2, ROOT(30)), (3, 100 ** (1 / 3)), (4, 354**0.25))
      for case in norms(f"norm p={p}", [-1, 2, -3, 4], p, norm)),
    *norms("norm p=100", [-1, 2, -3, 4], 100, 4 * (1 + 0.75**100 + 0.5**100 + 0.25**100) ** 0.01),
    *norms("norm p=1000", [1e30, 1e30], 1000, 1e30 * 2**0.001, ("float32", "float64", "bfloat16")),
    *norms("norm p=1.5", [-1, 2, -3, 4], 1.5, (1 + 2**1.5 + 3**1.5 + 8) ** (2 / 3)),
    *norms("norm p=inf", [-1, 2, -3, 4], INF, 4),
    *norms("norm of large float32", [3e30, 4e30], 2, 5e30, SINGLE),
    *norms("norm of small float32", [1e-30] * 4, 2, 2e-30, SINGLE),
    *norms("norm of large float64", [3e200, 4e200], 2, 5e200, ("float64",)),
    *norms("norm of small float64", [3e-200, 4e-200], 2, 5e-200, ("float64",)),
    *(case for p in (0.5, 1.5, 2.5) for size in (3e-290, 3e290)
      for case in norms(f"norm p={p} of {size}", [size], p, size, ("float64",))),
    *norms("norm of large float16", [300, 300], 2, 424.25, ("float16",)),
    *norms("norm of small float16", [1e-4, 1e-4], 2, 1.415e-4, ("float16",)),
    *(case for name in FLOAT_NAMES for case in norms(
        f"norm of subnormal {name}", [math.ldexp(k, -FORMATS[name].unit) for k in (3, -4)], 2,
        math.ldexp(5, -FORMATS[name].unit), (name,))),
    Case("norm of a partial window", "LpPool", count(5), {"kernel_shape": 4, "strides": 4, "p": 1, **CEIL}, [10, 5]),
    Case("norm ORT LpPoolCeilMode", "LpPool", count(4), {"kernel_shape": 3, "strides": 2, "p": 1, **CEIL}, [6, 7]),
    # Sums that exceed the range of the type
    *means("mean of large float16", [60000] * 4, 60000, ("float16",)),
    *means("mean of large bfloat16", [3e38] * 4, 3e38, ("bfloat16",)),
    *means("mean of large float32", [3e38] * 2, 3e38, SINGLE),
    *means("mean of large float64", [1.7e308] * 2, 1.7e308, ("float64",)),
    *means("mean keeps float64", [1, 1 + 2.0**-39], 1 + 2.0**-40, ("float64",)),
    # Padding is not zero
    *shared("negative maxima with pads", [[-100] * 3] * 3, {"max": [[-100] * 3] * 3}, (*FLOAT_NAMES, "int8"),
            kernel_shape=3, pads=(1,) * 4),
    *shared("small maxima with pads", [[7, 6], [5, 4]], {"max": [[7, 7], [7, 7]]}, (*FLOAT_NAMES, *BYTE_NAMES),
            kernel_shape=3, pads=(1,) * 4),
]  # fmt: skip

# D13, D14, any rank: operator, attributes, shape of x (channels first), shape of the result.
SHAPES = [
    *((name, {"kernel_shape": 2}, shape, result) for name in WINDOWED for shape, result in (
        ((0, 3, 4), (0, 3, 3)), ((2, 0, 4), (2, 0, 3)), ((0, 0, 4), (0, 0, 3)),
        ((1, 1, 2, 2, 2, 2), (1, 1, 1, 1, 1, 1)), ((2, 1, 2, 2, 2, 2, 3), (2, 1, 1, 1, 1, 1, 2)))),
    *((f"Global{name}", {}, shape, result) for name in WINDOWED for shape, result in (
        ((0, 3, 4), (0, 3, 1)), ((2, 0, 4, 5), (2, 0, 1, 1)), ((2, 3), (2, 3)), ((0, 3), (0, 3)),
        ((2, 3, 2, 2, 2, 2), (2, 3, 1, 1, 1, 1)), ((2, 3, 1, 2, 1, 2, 2), (2, 3, 1, 1, 1, 1, 1)))),
]  # fmt: skip

# Quantised global means: name, dtype, one plane, (x_scale, x_zero_point, y_scale, y_zero_point), result.
# Ties go to even before the zero point is added, and the result saturates.
QUANTISED = [
    *((f"tie {plane} zero point {zero}", dtype, plane, (1, 0, 1, zero), even + zero)
      for dtype in BYTE_NAMES for zero in (0, 1, 2) for plane, even in (([0, 1], 0), ([1, 2], 2), ([2, 3], 2))),
    *((f"negative tie zero point {zero}", "int8", plane, (1, 0, 1, zero), even + zero)
      for zero in (0, 1) for plane, even in (([0, -1], 0), ([-1, -2], -2))),
    ("x zero point", "uint8", [10, 20, 30], (0.5, 10, 0.25, 3), 23),
    ("saturates high uint8", "uint8", [200, 255], (2, 0, 1, 0), 255),
    ("saturates low uint8", "uint8", [0, 1], (1, 100, 1, 3), 0),
    ("saturates high int8", "int8", [127, 127], (4, -128, 1, 5), 127),
    ("saturates low int8", "int8", [-128, -128], (4, 127, 1, 5), -128),
]  # fmt: skip


def placed(case, dtype, channels_last):
    """The image of a case, as a batch in a layout."""
    x = np.array(case.x, np.float64).astype(DTYPES[dtype])
    return x[None, ..., None] if channels_last else x[None, None]


def agrees(y, case, dtype, *where):
    """Whether a result is as expected: exact for maxima, otherwise within two units in the largest number's last
    place."""
    channels_last, *_ = where
    form = FORMATS.get(dtype)
    wanted = np.array(case.expected, np.float64)
    assert y.dtype == DTYPES[dtype]
    got = (y[0, ..., 0] if channels_last else y[0, 0]).astype(np.float64).reshape(wanted.shape)
    if case.operator in MAX:
        np.testing.assert_array_equal(got, wanted, f"{dtype} {where}")
        return
    unit = 2.0 ** (2 - form.precision)
    largest = max(abs(wanted[np.isfinite(wanted)]), default=0.0)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=unit * largest, err_msg=f"{dtype} {where}")


def single(operator, x, attributes=None, **options):
    """A call by ONNX name."""
    attributes = dict(attributes or {})
    kernel = (attributes.pop("kernel_shape"),) if "kernel_shape" in attributes else ()
    return getattr(onnxpool, FUNCTIONS[operator])(x, *kernel, **attributes, **options)


@pytest.mark.smoke
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_value(case):
    """The library returns the decided value at every version, dtype and layout, and so does the oracle."""
    for channels_last in LAYOUTS.values():
        for dtype in case.dtypes:
            x = placed(case, dtype, channels_last)
            truth = expect(case.operator, [x], case.attributes, channels_last=channels_last)
            agrees(truth.result(), case, dtype, channels_last)
            for opset in case.opsets():
                if dtype in case.legal(opset):
                    agrees(single(case.operator, x, case.at(opset), opset=opset, channels_last=channels_last), case,
                           dtype, channels_last, opset)


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(("operator", "attributes", "shape", "result"), SHAPES)
def test_shape(operator, attributes, shape, result, channels_last):
    """Empty batches, no channels, no spatial axis, and four or five spatial axes are all legal."""
    x = np.ones(shape, np.float32)
    y = single(operator, np.moveaxis(x, 1, -1) if channels_last else x, attributes, channels_last=channels_last)
    y = to_first(y, channels_last)
    assert y.shape == result
    norm = "Lp" in operator and x.ndim > 2
    window = math.prod(shape[2:]) if "Global" in operator else 2 ** (x.ndim - 2)
    np.testing.assert_allclose(y, math.sqrt(window) if norm else 1, rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOAT_NAMES)
@pytest.mark.parametrize("operator", [f"Global{name}" for name in WINDOWED])
def test_no_spatial_axis(operator, dtype):
    """Without spatial axes, a mean and a maximum are the identity, and a norm is |x|."""
    x = np.array([[1, -2, 3], [INF, NAN, -INF]]).astype(DTYPES[dtype])
    y = single(operator, x)
    np.testing.assert_array_equal(y.astype(float), np.abs(x.astype(float)) if "Lp" in operator else x.astype(float))


def test_lp_pool_1_without_kernel_shape():
    """LpPool-1 without kernel_shape is refused: its schema declares the attribute as optional, but nothing can be
    computed without it."""
    with pytest.raises((onnxpool.PoolError, onnxpool.PoolTypeError)):
        onnxpool.LpPool(opset=1)(np.zeros((1, 1, 3), np.float32))


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(("dtype", "plane", "numbers", "result"), [pytest.param(*row[1:], id=f"{row[1]} {row[0]}")
                                                                   for row in QUANTISED])  # fmt: skip
def test_quantised(dtype, plane, numbers, result, channels_last):
    """The quantised global mean rounds half to even, adds the zero point and saturates."""
    x = np.array(plane, dtype).reshape((1, -1, 1) if channels_last else (1, 1, -1))
    scales = [np.array(number, np.float32) for number in numbers[::2]]
    zeros = [np.array(number, dtype) for number in numbers[1::2]]
    inputs = (x, scales[0], zeros[0], scales[1], zeros[1])
    assert expect("QLinearGlobalAveragePool", inputs, channels_last=channels_last).cells == [result]
    y = onnxpool.qlinear_global_average_pool(*inputs, channels_last=int(channels_last))
    assert (y.dtype, y.shape, y.item()) == (np.dtype(dtype), (1, 1, 1), result)


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize(
    ("dtype", "value", "zero_point", "side"),
    [("uint8", 255, 0, 2902), ("int8", -128, 127, 3000), ("int8", 127, -128, 3000)],
)
def test_quantised_sum_is_exact(dtype, value, zero_point, side, channels_last):
    """A mean is right even if its sum needs more than 32 bits."""
    x = np.full((1, side, side, 1) if channels_last else (1, 1, side, side), value, dtype)
    numbers = (np.float32(0.5), np.array(zero_point, dtype), np.float32(0.5), np.array(zero_point, dtype))
    y = onnxpool.qlinear_global_average_pool(x, *numbers, channels_last=channels_last)
    assert y.item() == value


@pytest.mark.parametrize(("rows", "columns", "value"), [(512, 512, 1000.1), (4200, 4200, 0.1), (8193, 8192, 1.0)])
def test_large_mean(rows, columns, value):
    """The mean of a constant large plane is that constant, whereas running float32 sums lose up to 4 percent."""
    x = np.broadcast_to(np.full(columns, value, np.float32), (1, 1, rows, columns))
    constant = float(x[0, 0, 0, 0])
    allowed = mean_limit(x.size) * 2.0**-24 * constant
    assert abs(float(onnxpool.global_average_pool(x).item()) - constant) <= allowed
    assert abs(float(onnxpool.average_pool(x, (rows, columns)).item()) - constant) <= allowed


@pytest.mark.parametrize("dtype", FLOAT_NAMES)
@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
def test_nan_at_every_lane(dtype, channels_last):
    """A NaN reaches the maxima of exactly those windows that contain it, at every width and position."""
    pair = {"kernel_shape": 2}
    for width in range(1, 71):
        x = np.tile(np.arange(width) % 97 - 40.0, (width, 2, 1))  # image n has its NaN at position n
        x[np.arange(width), :, np.arange(width)] = NAN
        narrow = x.astype(DTYPES[dtype])
        x = np.moveaxis(narrow, 1, -1) if channels_last else narrow
        x = np.ascontiguousarray(x)
        whole = np.moveaxis(single("GlobalMaxPool", x, channels_last=channels_last), -1 if channels_last else 1, 1)
        assert np.isnan(whole.astype(float)).all()
        across = np.ascontiguousarray(np.swapaxes(x, 1, 2))  # now the other axis provides the lanes
        last = single("GlobalMaxPool", across, channels_last=not channels_last)
        assert np.isnan(last.astype(float)).all()
        if width > 1:
            y = single("MaxPool", x, pair, channels_last=channels_last)
            y = to_first(y, channels_last)
            wide = narrow.astype(np.float64)
            np.testing.assert_array_equal(y.astype(np.float64), np.maximum(wide[..., :-1], wide[..., 1:]))


@pytest.mark.parametrize("dtype", FLOAT_NAMES)
@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
def test_nan_in_every_channel(dtype, channels_last):
    """A NaN in one channel does not affect the other channels, for every number of channels and position."""
    for channels in range(1, 71):
        x = np.tile(np.arange(3.0), (channels, channels, 1))
        x[np.arange(channels), np.arange(channels), 1] = NAN
        wanted = np.tile([1.0, 2.0], (channels, channels, 1))
        wanted[np.arange(channels), np.arange(channels)] = NAN
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1) if channels_last else x).astype(DTYPES[dtype])
        y = single("MaxPool", x, {"kernel_shape": 2}, channels_last=channels_last)
        whole = single("GlobalMaxPool", x, channels_last=channels_last)
        y, whole = (to_first(a, channels_last) for a in (y, whole))
        np.testing.assert_array_equal(y.astype(float), wanted)
        np.testing.assert_array_equal(whole.astype(float), wanted[..., 1:])
