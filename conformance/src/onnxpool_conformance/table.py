"""The table of cases: every operator and version, and the edges of windows, numbers and arguments."""

import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from .cases import Array, Case
from .oracle import DTYPES, FORMATS
from .rules import RULES
from .versions import COMMON, OPERATORS, oldest

NAN, INF = math.nan, math.inf
WINDOWED = ("AveragePool", "MaxPool", "LpPool")
GLOBAL = ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
SAME = ("SAME_UPPER", "SAME_LOWER")
EVEN = 4  # a zero point that may be added before or after halves are rounded to even
MEANINGS = dict(zip((*WINDOWED, *GLOBAL, "MaxUnpool", "MaxRoiPool", "RoiAlign", "QLinearGlobalAveragePool",
                     "QLinearAveragePool", "NhwcMaxPool"), (
    "average", "maximum", "norm", "global average", "global maximum", "global norm", "unpool", "regions", "align",
    "quantised global average", "quantised average", "quantised maximum"), strict=True))


def ramp(*sizes: int, dtype: str = "float32") -> Array:
    """1, 2, 3, ... as one image of one channel."""
    return mixed(1, 1, *sizes, dtype=dtype, step=1)


def mixed(*shape: int, dtype: str = "float32", step: int = 7) -> Array:
    """Whole numbers that differ from their neighbours: steps modulo 31, with both signs in signed types."""
    count = math.prod(shape)
    values = np.arange(1, 1 + count) if step == 1 else np.arange(count) * step % 31 - (0 if dtype == "uint8" else 15)
    return np.asarray(values.reshape(shape).astype(DTYPES[dtype]))


def scattered(*shape: int, dtype: str = "float32") -> Array:
    """
    Shuffled whole numbers from 0 on, each once in floats, so that each window has its own maximum.

    Bytes cover their whole range.
    """
    count = math.prod(shape)
    step = next(step for step in range(count * 5 // 8, count + 1) if math.gcd(step, count) == 1)
    values = np.arange(count) * step % count
    low = 0 if dtype in FORMATS else np.iinfo(dtype).min
    return np.asarray((values if dtype in FORMATS else values % 256 + low).reshape(shape).astype(DTYPES[dtype]))


def row(*values: float, dtype: str = "float32") -> Array:
    """One spatial axis of these values."""
    return np.array([[values]]).astype(DTYPES[dtype])


def case(rule: str, operator: str, label: str, *inputs: Array | None, opset: int | None = None, outputs: int = 1,
         error: str = "", **attributes: Any) -> Case:
    """A case at the oldest opset that has everything it needs, unless another opset is given."""
    x = inputs[0]
    assert x is not None
    decision = RULES[rule].decision
    words = [f"d{int(decision[1:]):02}"] if decision else []
    words += [operator.lower(), label] if label else [operator.lower()]
    if opset is None:
        opset = oldest(operator, attributes, x.dtype.name, outputs)
    return Case("_".join(words), rule, operator, opset, inputs, attributes, outputs, error)


def pools(rule: str, label: str, x: Array, operators: tuple[str, ...] = WINDOWED, **settings: Any) -> Iterator[Case]:
    """The same windows as a mean, a maximum and a norm."""
    for operator in operators:
        yield case(rule, operator, label, x, **settings)


def indices(rule: str, label: str, x: Array, **settings: Any) -> Case:
    """Maxima with their indices."""
    return case(rule, "MaxPool", label, x, outputs=2, **settings)


def quantised(rule: str, operator: str, label: str, x: Array, scales: tuple[float, float] = (1, 1),
              zero_points: tuple[int | None, int | None] = (0, 0), **settings: Any) -> Case:
    """A quantised mean."""
    zeros = [None if zero is None else np.array(zero, x.dtype) for zero in zero_points]
    first, second = (np.array(scale, np.float32) for scale in scales)
    return case(rule, operator, label, x, first, zeros[0], second, zeros[1], **settings)


def sample(operator: str, *, rank: int = 2, dtype: str = "") -> tuple[tuple[Array, ...], dict[str, Any]]:
    """Inputs and attributes with which any version of an operator can be called."""
    known = OPERATORS[operator]
    dtype = dtype or ("float32" if "float32" in known.dtypes else "uint8")
    spatial = (6, 5)[:rank] if rank < 3 else (4, 3, 3, 2, 2)[:rank]
    x = mixed(2, 3, *spatial, dtype=dtype)
    if operator in GLOBAL:
        return (x,), {}
    if operator == "MaxUnpool":
        places = np.arange(x.size).reshape(x.shape) * 2**rank + np.arange(x.size).reshape(x.shape) % 2**rank
        return (x, places), {"kernel_shape": [2] * rank, "strides": [2] * rank}
    if operator == "MaxRoiPool":
        return (x, np.array([[0, 0, 0, 3, 3], [1, 1, 2, 2, 5]]).astype(x.dtype)), {"pooled_shape": [2, 2]}
    if operator == "RoiAlign":
        rois = np.array([[0, 0, 4, 4], [0.5, 1, 4.5, 5]]).astype(x.dtype)
        return (x, rois, np.array([0, 1])), {"output_height": 2, "output_width": 2, "sampling_ratio": 1}
    attributes: dict[str, Any] = {"kernel_shape": [2] * rank, "strides": [2, 1, 2, 1, 1][:rank]}
    if operator == "NhwcMaxPool":
        return (np.ascontiguousarray(np.moveaxis(x, 1, -1)),), attributes
    if known.domain:
        one, zero = np.array(1, np.float32), np.array(EVEN, x.dtype)
        return (x, one, zero, one, zero), {} if "Global" in operator else attributes
    return (x,), attributes


# Every operator, version, dtype and rank


def versions() -> Iterator[Case]:
    """Each version of each operator."""
    for operator, known in OPERATORS.items():
        inputs, attributes = sample(operator)
        for version in known.versions:
            opset = None if known.domain else version
            label = "" if known.domain else f"version_{version}"
            yield case(MEANINGS[operator], operator, label, *inputs, opset=opset, **attributes)


def dtypes() -> Iterator[Case]:
    """Each dtype of each operator."""
    for operator, known in OPERATORS.items():
        for dtype in known.dtypes:
            if dtype in DTYPES:
                inputs, attributes = sample(operator, dtype=dtype)
                eight = operator == "MaxPool" and known.dtypes[dtype] > 1  # a dtype of a later version
                rule = "floats and bytes" if eight else "floats"
                rule = MEANINGS[operator] if known.domain or operator == "RoiAlign" else rule
                yield case(rule, operator, dtype, *inputs, **attributes)


def ranks() -> Iterator[Case]:
    """One to four spatial axes."""
    for operator in (*WINDOWED, *GLOBAL, "MaxUnpool", "QLinearGlobalAveragePool", "QLinearAveragePool", "NhwcMaxPool"):
        for rank in (1, 2, 3, 4):
            inputs, attributes = sample(operator, rank=rank)
            rule = MEANINGS[operator] if OPERATORS[operator].domain or operator == "MaxUnpool" else "shapes"
            yield case(rule, operator, f"{rank}d", *inputs, **attributes)
    yield indices("indices", "3d_indices", mixed(2, 3, 4, 3, 4), kernel_shape=[2, 2, 2], strides=[2, 1, 2])


# Borders


def borders() -> Iterator[Case]:
    """Padding, auto_pad, strides and ceil_mode."""
    one, two = ramp(7), mixed(1, 2, 5, 4)
    for label, x, pads in (("1d_begin", one, [2, 0]), ("1d_end", one, [0, 2]), ("2d", two, [1, 1, 1, 1]),
                           ("2d_uneven", two, [2, 0, 0, 1])):
        kernel: dict[str, Any] = {"kernel_shape": [3] * (x.ndim - 2), "pads": pads}
        yield from pools("pads", f"pads_{label}", x, ("MaxPool", "LpPool"), **kernel)
        yield case("excluded", "AveragePool", f"pads_{label}", x, **kernel)
        yield case("excluded in version 1", "AveragePool", f"pads_{label}_version_1", x, opset=1, **kernel)
        for opset in (7, 10, 19):  # runtimes have kernels of their own for these versions
            yield case("counted", "AveragePool", f"pads_{label}_counted_version_{opset}", x, opset=opset,
                       count_include_pad=1, **kernel)
    for dtype in ("float32", "int8", "float16"):
        yield case("maximum without pads", "MaxPool", f"negative_{dtype}", np.negative(ramp(3, 3, dtype=dtype)),
                   kernel_shape=[2, 2], pads=[1, 1, 1, 1])
    for strides in ([3], [4]):
        yield from pools("pads", f"strides_{strides[0]}", one, ("MaxPool", "LpPool"), kernel_shape=[2], strides=strides,
                         pads=[1, 1])
        yield case("excluded", "AveragePool", f"strides_{strides[0]}", one, kernel_shape=[2], strides=strides,
                   pads=[1, 1])
    yield from pools("valid", "valid", one, kernel_shape=[3], strides=[2], auto_pad="VALID")
    for same in SAME:
        label, low = same.lower(), dict[str, Any](auto_pad=same)
        yield from pools("same", label, one, ("AveragePool", "MaxPool"), kernel_shape=[3], strides=[2], **low)
        yield from pools("odd", f"{label}_odd", ramp(6), kernel_shape=[4], strides=[3], **low)
        yield from pools("odd", f"{label}_2d", two, kernel_shape=[2, 3], strides=[1, 2], **low)
        yield from pools("odd since 11", f"{label}_dilations", ramp(6), ("AveragePool", "LpPool"), kernel_shape=[2],
                         dilations=[3], **low)
        yield case("odd", "MaxPool", f"{label}_dilations", ramp(6), kernel_shape=[2], dilations=[3], **low)
        yield from pools("same", f"{label}_dilations_strides", one, ("AveragePool", "MaxPool"), kernel_shape=[3],
                         strides=[2], dilations=[2], **low)
    window: dict[str, Any]
    for rule, label, x, window in (
        ("dilations", "dilations", one, {"kernel_shape": [3], "dilations": [2]}),
        ("dilations", "dilations_strides", ramp(9), {"kernel_shape": [2], "strides": [3], "dilations": [4]}),
        ("dilations", "dilations_pads", one, {"kernel_shape": [3], "dilations": [2], "pads": [2, 1]}),
        ("dilations", "dilations_2d", two, {"kernel_shape": [2, 2], "dilations": [3, 2]}),
        ("ceil", "ceil", ramp(6), {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}),
        ("ceil", "ceil_exact", one, {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}),
        ("ceil", "ceil_large_strides", ramp(5), {"kernel_shape": [4], "strides": [4], "ceil_mode": 1}),
        ("ceil", "ceil_pads", ramp(6), {"kernel_shape": [3], "strides": [3], "pads": [1, 0], "ceil_mode": 1}),
        ("ceil", "ceil_2d", mixed(1, 2, 6, 5), {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}),
        ("ceil", "ceil_dilations", ramp(8), {"kernel_shape": [2], "strides": [3], "dilations": [3], "ceil_mode": 1}),
    ):
        yield from pools(rule, label, x, **window)
    yield case("counted", "AveragePool", "dilations_counted", ramp(9), kernel_shape=[3], dilations=[2], pads=[2, 2],
               count_include_pad=1)
    for order, rule in ((0, "indices"), (1, "storage order")):
        for label, x, settings in (
            ("2d", mixed(2, 2, 4, 5), {"kernel_shape": [2, 3], "strides": [2, 1]}),
            ("2d_units", mixed(2, 2, 4, 5), {"kernel_shape": [2, 2]}),
            ("2d_pads", mixed(2, 2, 4, 5), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
            ("2d_dilations", mixed(1, 2, 5, 6), {"kernel_shape": [2, 2], "dilations": [2, 3]}),
            ("2d_ceil", mixed(1, 2, 5, 4), {"kernel_shape": [2, 2], "strides": [2, 3], "ceil_mode": 1}),
            ("2d_same_upper", mixed(1, 2, 5, 4), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ):
            yield indices(rule, f"indices_{label}_order_{order}", x, storage_order=order, **settings)
    for dtype in ("uint8", "float16", "float64"):
        yield indices("indices", f"indices_{dtype}", mixed(1, 2, 4, 4, dtype=dtype), kernel_shape=[2, 2],
                      strides=[2, 2])
    yield indices("indices", "indices_1d_pads", row(-3, -1, -2), kernel_shape=[3], pads=[1, 1])


def sizes() -> Iterator[Case]:
    """More taps, places, rows and channels than a processor holds at once, and ends that do not fill a register."""
    windows: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = (
        ("window_of_20", (1, 2, 47), {"kernel_shape": [20], "strides": [3]}),
        ("window_of_33x4", (1, 1, 33, 40), {"kernel_shape": [33, 4], "strides": [33, 4]}),
        ("window_of_27_columns", (1, 8, 4, 50), {"kernel_shape": [1, 27], "strides": [1, 11]}),
        ("window_of_19_rows", (1, 2, 40, 9), {"kernel_shape": [19, 2], "strides": [7, 2]}),
        ("window_of_19x2x2", (1, 1, 21, 5, 17), {"kernel_shape": [19, 2, 2]}),
        ("channels", (2, 33, 6, 5), {"kernel_shape": [2, 3]}),
        ("one_place_along_the_last_axis", (1, 2, 7, 8, 17), {"kernel_shape": [2, 3, 1]}),
        ("one_place_along_the_last_axes", (1, 2, 9, 5, 9), {"kernel_shape": [3, 1, 1], "pads": [2, 0, 0, 1, 0, 0]}),
        ("columns", (1, 4, 12, 17), {"kernel_shape": [3, 1]}),
        ("planes", (1, 4, 4, 10, 33), {"kernel_shape": [2, 1, 1], "strides": [4, 3, 1]}),
        ("disjoint_places", (1, 5, 260), {"kernel_shape": [4], "strides": [4]}),
        ("disjoint", (1, 1, 5, 6, 70), {"kernel_shape": [1, 2, 2], "strides": [2, 2, 2]}),
        ("disjoint_rows", (1, 3, 7, 41), {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
        ("3x3", (1, 3, 9, 37), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("four_axes", (1, 2, 5, 3, 6, 9), {"kernel_shape": [2, 1, 3, 2], "strides": [1, 2, 1, 3]}),
        ("overhang", (1, 1, 3, 4, 2, 40), {"kernel_shape": [1, 3, 1, 1], "strides": [1, 3, 2, 1], "ceil_mode": 1}),
        ("far_taps", (1, 3, 5, 13), {"kernel_shape": [2, 3], "strides": [3, 4], "dilations": [1, 3],
                                     "pads": [1, 2, 1, 2]}),
        *((f"row_of_{size}_by_{stride}", (1, 2, 3, size),
           {"kernel_shape": [2, 3], "strides": [1, stride], "pads": [0, 1, 0, 0]})
          for size, stride in ((7, 2), (15, 2), (31, 2), (23, 3), (31, 4), (63, 4))),
    )
    for label, shape, window in windows:
        for operator in WINDOWED:
            yield case("excluded" if operator == "AveragePool" and "pads" in window else MEANINGS[operator], operator,
                       label, scattered(*shape), **window)
    for label, x in (("ascending", ramp(320)), ("descending", -ramp(320))):
        yield from pools("shapes", label, x, kernel_shape=[159], strides=[80])
    for label, shape in (("of_130", (2, 3, 130)), ("of_33x5", (3, 2, 33, 5)), ("of_7x9x5", (1, 5, 7, 9, 5)),
                         ("of_40_channels", (2, 40, 3, 3)), ("of_57x61", (1, 1, 57, 61))):
        for operator in GLOBAL:
            yield case(MEANINGS[operator], operator, label, scattered(*shape))
    last = {"channels_last": 1}
    for dtype in ("uint8", "int8"):
        for label, shape, given in (("", (1, 2, 20, 17), {}), ("_channels_last", (2, 20, 17, 18), last)):
            full = np.full(shape, np.iinfo(dtype).max, DTYPES[dtype])
            full[..., ::3] -= 30
            yield quantised("quantised average", "QLinearAveragePool", f"bytes_{dtype}{label}",
                            scattered(*shape, dtype=dtype)[:1], (0.5, 0.5), (EVEN, EVEN), kernel_shape=[3, 3],
                            strides=[2, 2], **given)
            yield quantised("quantised average", "QLinearAveragePool", f"sum_of_bytes_{dtype}{label}", full[:1],
                            (0.5, 0.5), (EVEN, EVEN), kernel_shape=[20, 15], **given)
            yield quantised("quantised global average", "QLinearGlobalAveragePool", f"sum_of_bytes_{dtype}{label}",
                            full, (0.5, 0.5), (EVEN, EVEN), **given)
        yield case("quantised maximum", "NhwcMaxPool", f"channels_{dtype}", scattered(2, 7, 5, 40, dtype=dtype),
                   kernel_shape=[3, 2], pads=[1, 0, 0, 1])


def numbers() -> Iterator[Case]:
    """Norms, NaN, infinities, and sums beyond the range."""
    signed = row(-1, 2, -3, 4)
    for p in (1, 2, 3, 4):
        yield case("p", "LpPool", f"p_{p}", signed, kernel_shape=[4], p=p)
        yield case("p", "GlobalLpPool", f"p_{p}", signed, p=p)
    yield case("p", "LpPool", "p_1_version_1", signed, opset=1, kernel_shape=[4], p=1.0)
    yield case("p", "GlobalLpPool", "p_3_version_1", signed, opset=1, p=3.0)
    yield case("p", "LpPool", "p_3_ceil", ramp(5), kernel_shape=[4], strides=[4], p=3, ceil_mode=1)
    for label, x in (("nan", row(1, NAN, 2, 3)), ("infinities", row(INF, -INF, 1, 2)),
                     ("infinity", row(INF, 1, -2, 3))):
        yield case("infinities", "AveragePool", label, x, kernel_shape=[2])
        yield case("infinities", "GlobalAveragePool", label, x)
    for dtype in ("float16", "float32"):
        yield case("infinities", "AveragePool", f"pads_and_infinities_{dtype}",
                   np.full((1, 3, 2, 9), -INF, DTYPES[dtype]), kernel_shape=[1, 2], strides=[1, 2], pads=[0, 1, 0, 0])
    for dtype, rule in (("float16", "wide sums"), ("bfloat16", "exact sums"), ("float32", "exact sums"),
                        ("float64", "exact sums")):
        if dtype in DTYPES:
            huge = math.ldexp(0.75, FORMATS[dtype].top)
            yield case(rule, "AveragePool", f"large_{dtype}", row(huge, huge, dtype=dtype), kernel_shape=[2])
            yield case(rule, "GlobalAveragePool", f"large_{dtype}", row(huge, huge, dtype=dtype))
            half = math.ldexp(1, FORMATS[dtype].top - 3)
            norm = row(3 * half / 2, 2 * half, dtype=dtype)
            yield case(rule, "LpPool", f"large_{dtype}", norm, kernel_shape=[2])
            tiny = math.ldexp(1, -FORMATS[dtype].unit)
            yield case(rule, "LpPool", f"small_{dtype}", row(3 * tiny, 4 * tiny, dtype=dtype), kernel_shape=[2])
            root = math.ldexp(1, -FORMATS[dtype].unit // 2 - 1)  # its square is below the smallest number
            yield case(rule, "LpPool", f"small_squares_{dtype}", row(3 * root, 4 * root, dtype=dtype), kernel_shape=[2])
            yield case(rule, "GlobalLpPool", f"small_squares_{dtype}", row(3 * root, 4 * root, dtype=dtype))
            faint = np.full((1, 2, 3, 9), tiny, DTYPES[dtype])
            faint[..., 0, ::2] = 0
            yield case("subnormal", "AveragePool", f"subnormal_{dtype}", faint, kernel_shape=[2, 2])
            yield case("subnormal", "GlobalAveragePool", f"subnormal_{dtype}", faint)
    huge = math.ldexp(0.75, FORMATS["float64"].top)
    yield case("exact sums", "AveragePool", "large_float64_digits", row(huge, huge, huge * 2**-24, dtype="float64"),
               kernel_shape=[3])
    yield case("exact sums", "GlobalAveragePool", "float64_digits", row(1, 1 + 2**-39, dtype="float64"))


def regions() -> Iterator[Case]:
    """MaxUnpool, MaxRoiPool and RoiAlign."""
    x = ramp(2, 2)
    places = np.array([[[[0, 3], [9, 15]]]])
    yield case("unpool", "MaxUnpool", "2d_spread", x, places, kernel_shape=[2, 2], strides=[2, 2])
    yield case("unpool", "MaxUnpool", "1d_strides_of_1", ramp(3), np.array([[[0, 2, 3]]]), kernel_shape=[2])
    yield case("unpool", "MaxUnpool", "pads", x, np.array([[[[0, 2], [6, 8]]]]), kernel_shape=[3, 3], strides=[2, 2],
               pads=[1, 1, 1, 1])
    yield case("unpool", "MaxUnpool", "negative", np.negative(x), places, kernel_shape=[2, 2], strides=[2, 2])
    image = mixed(2, 2, 6, 6)
    def pooled(rule: str, label: str, *rois: tuple[float, ...], **settings: Any) -> Case:
        return case(rule, "MaxRoiPool", label, image, np.array(rois, np.float32),
                    **{"pooled_shape": [2, 2], **settings})

    yield pooled("regions", "whole", (0, 0, 0, 5, 5), (1, 2, 2, 5, 5))
    yield pooled("regions", "one_bin", (0, 1, 2, 3, 3), pooled_shape=[1, 1])
    yield pooled("scale", "scale", (0, 0, 0, 6, 6), (1, 4, 4, 10, 10), spatial_scale=0.5)
    yield pooled("rounding of regions", "shared_elements", (0, 0, 0, 4, 4), (1, 1, 1, 3, 5))
    yield pooled("rounding of regions", "halves", (0, 0.5, 1.5, 3.5, 4.5))
    yield pooled("rounding of regions", "inverted", (0, 4, 4, 2, 2))
    yield pooled("rounding of regions", "outside", (0, -2, -2, 1, 1), (1, 8, 8, 9, 9))

    def aligned(rule: str, label: str, *rois: tuple[float, ...], **settings: Any) -> Case:
        return case(rule, "RoiAlign", label, image, np.array(rois, np.float32), np.arange(len(rois)) % 2,
                    **{"output_height": 2, "output_width": 2, "sampling_ratio": 1, **settings})

    half, whole = (dict[str, Any](coordinate_transformation_mode=mode) for mode in ("half_pixel", "output_half_pixel"))
    yield aligned("align", "whole", (0, 0, 4, 4), (1, 1, 5, 3), **whole)
    yield aligned("align", "fractions", (0.25, 0.5, 4.75, 4), **whole)
    yield aligned("half pixel", "half_pixel", (0.5, 0.5, 4.5, 4.5), (1, 2, 4, 5), **half)
    yield aligned("half pixel", "half_pixel_by_default", (0.5, 0.5, 4.5, 4.5), opset=16)
    yield aligned("align", "version_10_has_no_shift", (0.5, 0.5, 4.5, 4.5), opset=10)
    for label, roi in (("far_border", (5, 5, 7, 7)), ("near_border", (-2, -2, 0, 0)), ("outside", (-3, 2, 1, 9))):
        yield aligned("samples outside", label, roi, output_height=1, output_width=1)
    for size in (3, 5):
        yield case("align", "RoiAlign", f"{size}x{size}_float16", mixed(1, 1, size, size, dtype="float16"),
                   np.array([[0, 0, size, size]], np.float16), FIRST, output_height=size, output_width=size,
                   sampling_ratio=1, **half)
    yield aligned("scale", "scale", (0, 0, 8, 8), spatial_scale=0.5)
    yield aligned("grid", "sampling_ratio_2", (0, 0, 4, 4), sampling_ratio=2)
    yield aligned("grid", "adaptive", (0, 0, 4, 4), (1, 1, 4, 3), sampling_ratio=0)


def quantisation() -> Iterator[Case]:
    """QLinearGlobalAveragePool, QLinearAveragePool and NhwcMaxPool."""
    for dtype in ("uint8", "int8"):
        x = mixed(1, 2, 4, 4, dtype=dtype)
        last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        for name, array, given in (("", x, {}), ("channels_last_", last, {"channels_last": 1})):
            yield quantised("quantised average", "QLinearAveragePool", f"{name}pads_{dtype}", array, (0.5, 0.25),
                            (3, EVEN), kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1], **given)
            yield quantised("quantised global average", "QLinearGlobalAveragePool", f"{name}scales_{dtype}", array,
                            (0.5, 0.25), (3, EVEN), **given)
        yield quantised("quantised average", "QLinearAveragePool", f"saturated_{dtype}", x, (8, 0.5),
                        kernel_shape=[2, 2])
        yield quantised("quantised global average", "QLinearGlobalAveragePool", f"saturated_{dtype}",
                        np.full_like(x, 20), (8, 0.5))
        yield quantised("quantised average", "QLinearAveragePool", f"counted_{dtype}", x, kernel_shape=[2, 2],
                        pads=[1, 1, 1, 1], count_include_pad=1)
    yield quantised("quantised average", "QLinearAveragePool", "no_zero_points", ramp(4, dtype="uint8"),
                    zero_points=(None, None), kernel_shape=[3])
    for zero in (0, 1):
        ties = row(1, 2, 4, 5, dtype="uint8")
        yield quantised("quantised rounding", "QLinearAveragePool", f"ties_{zero}", ties, zero_points=(0, zero),
                        kernel_shape=[2])
        yield quantised("quantised rounding", "QLinearGlobalAveragePool", f"ties_{zero}", ties[..., :2],
                        zero_points=(0, zero))
    for label, settings in (("pads", {"pads": [1, 1, 1, 1]}), ("dilations", {"dilations": [2, 2]}),
                            ("ceil", {"strides": [2, 2], "ceil_mode": 1}), ("same", {"auto_pad": "SAME_LOWER"})):
        yield case("quantised maximum", "NhwcMaxPool", label, np.negative(mixed(1, 5, 4, 2, dtype="int8") // 2 + 50),
                   kernel_shape=[2, 2], **settings)


# Where the specification is silent

CORNER = np.zeros((1, 1, 2, 2, 2), np.float32)
CORNER[..., 0, 0, 1] = 1
IMAGE = np.array([[[[0, 1], [2, 8]]]], np.float32)
REGION, FIRST = np.array([[0, 0, 1, 1]], np.float32), np.array([0])
DROPPED: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1}
OVERHANG: dict[str, Any] = {"kernel_shape": [4], "strides": [4], "ceil_mode": 1, "count_include_pad": 1}
COUNTED: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1,
                           "count_include_pad": 1}
EMPTY: dict[str, Any] = {"kernel_shape": [2], "strides": [2], "pads": [2, 3]}
AROUND: dict[str, Any] = {"kernel_shape": [2], "dilations": [3], "pads": [1, 1]}  # a window reads one of two elements
LARGER: dict[str, Any] = {"kernel_shape": [6], "strides": [2], "ceil_mode": 1}
SAMPLE: dict[str, Any] = {"sampling_ratio": 1, "coordinate_transformation_mode": "output_half_pixel"}


def decisions() -> Iterator[Case]:
    """Cases of onnxpool's decisions that have results."""
    yield from pools("d1", "2d", ramp(2, 2), ("AveragePool", "MaxPool"), opset=22, **DROPPED)
    for operator, opset in (("AveragePool", 10), ("AveragePool", 19), ("MaxPool", 12), ("LpPool", 18), ("LpPool", 22)):
        yield case("d1 silent", operator, f"2d_opset_{opset}", ramp(2, 2), opset=opset, **DROPPED)
    for opset in (10, 11, 19, 22):
        yield case("d2", "AveragePool", f"1d_overhang_opset_{opset}", ramp(5), opset=opset, **OVERHANG)
        yield case("d2", "AveragePool", f"2d_pads_and_overhang_opset_{opset}", ramp(4, 4), opset=opset, **COUNTED)
    for same in SAME:
        yield case("d2 same", "AveragePool", f"1d_{same.lower()}", ramp(10), kernel_shape=[3], strides=[2],
                   auto_pad=same, count_include_pad=1)
    yield case("d3", "AveragePool", "1d", ramp(5), **EMPTY)
    yield case("d3 counted", "AveragePool", "1d_count_include_pad", ramp(5), **EMPTY, count_include_pad=1)
    yield case("d3", "AveragePool", "1d_dilated", ramp(2), **AROUND)
    yield case("d4", "MaxPool", "1d", ramp(5), **EMPTY)
    yield indices("d4", "1d_indices", ramp(5), **EMPTY)
    yield case("d4", "MaxPool", "1d_int8", ramp(5, dtype="int8"), **EMPTY)
    yield case("d4", "MaxPool", "1d_dilated", ramp(2), **AROUND)
    yield indices("d4", "1d_dilated_indices", ramp(2), **AROUND)
    yield case("d5", "LpPool", "1d", ramp(5), **EMPTY)
    yield case("d5", "LpPool", "1d_dilated", ramp(2), **AROUND)
    yield case("d6", "MaxPool", "1d", row(1, NAN, 2, 3), kernel_shape=[4])
    yield case("d6", "MaxPool", "1d_first", row(NAN, 1, 2, 3), kernel_shape=[4])
    yield indices("d6", "1d_indices", row(1, NAN, 2, NAN), kernel_shape=[4])
    yield case("d6", "GlobalMaxPool", "2d", np.array([[[[1, NAN], [2, 3]]]], np.float32))
    yield from pools("d7", "1d", ramp(6), kernel_shape=[3], strides=[2], auto_pad="VALID", ceil_mode=1)
    for same in SAME:
        yield from pools("d8", f"1d_{same.lower()}", ramp(6), kernel_shape=[1], strides=[3], auto_pad=same)
    yield from pools("d9", "1d_pads_of_0", ramp(5), kernel_shape=[3], strides=[2], pads=[0, 0], auto_pad="VALID")
    yield from pools("d10", "1d", ramp(5), **LARGER)
    yield case("d11 empty", "MaxPool", "1d", ramp(5), kernel_shape=[2], pads=[2, 2])
    yield from pools("d11", "1d_dilated", ramp(5), kernel_shape=[2], dilations=[3], pads=[2, 2])  # no window is empty
    yield from pools("d12", "1d", ramp(3), kernel_shape=[2], auto_pad="")
    yield from pools("d13", "", np.array([[-1, 2]], np.float32), GLOBAL)
    for label, shape in (("no_images", (0, 3, 4, 4)), ("no_channels", (2, 0, 4, 4))):
        yield case("d14", "MaxPool", label, np.zeros(shape, np.float32), kernel_shape=[2, 2])
        yield from pools("d14", label, np.zeros(shape, np.float32), ("GlobalMaxPool", "GlobalAveragePool"))
    for label, p in (("fraction", 1.5), ("infinity", INF)):
        yield case("d15", "LpPool", f"1d_{label}_opset_1", row(-1, 2, -3, 4), opset=1, kernel_shape=[4], p=p)
        yield case("d15", "GlobalLpPool", f"1d_{label}_opset_1", row(-1, 2, -3, 4), opset=1, p=p)
    for mode, rule in (("avg", "d16"), ("max", "d16 maximum")):
        yield case(rule, "RoiAlign", mode, IMAGE, REGION, FIRST, mode=mode, **SAMPLE)
    yield case("d17", "MaxUnpool", "1d_output_shape", row(2, 4), np.array([[[1, 3]]]), np.array([1, 1, 6]),
               kernel_shape=[2], strides=[2])
    yield case("d17", "MaxUnpool", "2d_output_shape", ramp(2, 2), np.array([[[[0, 3], [9, 15]]]]),
               np.array([1, 1, 5, 6]), kernel_shape=[2, 2], strides=[2, 2])
    for order, rule in ((0, "d18"), (1, "d18 columns")):
        yield indices(rule, f"3d_storage_order_{order}", CORNER, kernel_shape=[2, 2, 2], storage_order=order)
    yield indices("d18 columns", "3d_storage_order_1_strides", ramp(2, 3, 4), kernel_shape=[2, 2, 2],
                  strides=[1, 1, 2], storage_order=1)
    yield quantised("d19", "QLinearAveragePool", "1d", ramp(5, dtype="uint8"), **OVERHANG)
    yield quantised("d20", "QLinearGlobalAveragePool", "2d", np.full((1, 1, 2902, 2902), 255, np.uint8), opset=9)
    yield quantised("d21", "QLinearAveragePool", "1d", ramp(5, dtype="uint8"), zero_points=(0, 7), **EMPTY)
    yield indices("d23", "1d_indices", row(-0.0, 0.0), kernel_shape=[2])
    yield indices("d23", "1d_equal_indices", row(1, 3, 3, 3), kernel_shape=[3])
    yield case("d24", "RoiAlign", "avg", ramp(4, 4), np.array([[-1.5e38, -1.5e38, 1.5e38, 1.5e38]], np.float32), FIRST,
               opset=16, sampling_ratio=1)


# Errors


def errors() -> Iterator[Case]:
    """Cases that a runtime must refuse."""
    one, kernel = ramp(5), {"kernel_shape": [3]}

    def refused(rule: str, operator: str, label: str, *inputs: Array, **settings: Any) -> Case:
        """A case whose error is the name of its rule."""
        return case(rule, operator, f"error_{label}", *inputs, error=RULES[rule].tests, **settings)

    flags = {"ceil_mode": 1, "count_include_pad": 1, "storage_order": 1, "dilations": [2]}
    for operator, opset, name in (("AveragePool", 1, "count_include_pad"), ("AveragePool", 7, "ceil_mode"),
                                  ("AveragePool", 11, "dilations"), ("AveragePool", 19, "storage_order"),
                                  ("MaxPool", 1, "storage_order"), ("MaxPool", 8, "ceil_mode"),
                                  ("MaxPool", 8, "dilations"), ("MaxPool", 22, "count_include_pad"),
                                  ("LpPool", 11, "ceil_mode"), ("LpPool", 11, "dilations")):
        yield refused("unknown attribute", operator, f"{name}_version_{opset}", one, opset=opset, **kernel,
                      **{name: flags[name]})
    rois = np.array([[0, 0, 3, 3]], np.float32)
    yield refused("unknown attribute", "RoiAlign", "coordinate_transformation_mode_version_10", ramp(4, 4), rois, FIRST,
                  opset=10, coordinate_transformation_mode="half_pixel")
    yield from (refused("missing attribute", operator, "no_kernel_shape", one) for operator in WINDOWED)
    yield refused("missing attribute", "MaxRoiPool", "no_pooled_shape", ramp(4, 4), np.zeros((1, 5), np.float32))
    yield refused("type of attribute", "LpPool", "float_p_version_2", one, opset=7, p=2.0, **kernel)
    yield refused("type of attribute", "LpPool", "int_p_version_1", one, opset=1, p=2, **kernel)
    yield refused("type of attribute", "GlobalLpPool", "float_p_version_2", one, opset=7, p=2.0)
    yield refused("type of attribute", "MaxPool", "kernel_shape_of_a_number", one, kernel_shape=3)
    for operator, dtype, opset in (("MaxPool", "int8", 11), ("AveragePool", "uint8", 22), ("LpPool", "int8", 22),
                                   ("GlobalMaxPool", "uint8", 22)):
        yield refused("dtype", operator, f"{dtype}_version_{opset}", ramp(5, dtype=dtype), opset=opset,
                      **({} if operator in GLOBAL else kernel))
    yield refused("outputs", "MaxPool", "indices_version_1", one, opset=1, outputs=2, **kernel)
    yield refused("inputs", "MaxUnpool", "no_indices", one, **kernel)
    for name, value in (("pads", [1, 1, 1]), ("strides", [1, 1]), ("kernel_shape", [2, 2])):
        yield from (refused("lengths", operator, f"length_of_{name}", one, **{**kernel, name: value})
                    for operator in WINDOWED)
    for operator in WINDOWED:
        yield refused("negative pads", operator, "negative_pads", one, pads=[-1, 0], **kernel)
        yield refused("positive", operator, "no_strides", one, strides=[0], **kernel)
        yield refused("positive", operator, "no_kernel", one, kernel_shape=[0])
        yield refused("positive", operator, "no_dilations", one, dilations=[0], **kernel)
        yield refused("auto_pad", operator, "auto_pad_in_lower_case", one, auto_pad="valid", **kernel)
        yield refused("d9 refused", operator, "pads_and_auto_pad", one, auto_pad="VALID", pads=[1, 1], **kernel)
        yield refused("d10 refused", operator, "larger", one, kernel_shape=[7])
        yield refused("d14 refused", operator, "no_elements", np.zeros((1, 1, 0), np.float32), kernel_shape=[1])
        if operator != "LpPool":
            yield refused("d22 refused", operator, "ceil_mode_of_2", one, ceil_mode=2, **kernel)
    yield from (refused("d14 refused", operator, "no_elements", np.zeros((1, 1, 0), np.float32)) for operator in GLOBAL)
    yield refused("d15 refused", "LpPool", "p_0", one, p=0, **kernel)
    yield refused("d15 refused", "GlobalLpPool", "p_negative", one, p=-1)
    yield refused("d22 refused", "AveragePool", "count_include_pad_of_2", one, count_include_pad=2, **kernel)
    yield refused("mode", "RoiAlign", "mode", ramp(4, 4), rois, FIRST, mode="min")
    for label, batch in (("beyond", 1), ("negative", -1)):
        yield refused("images", "RoiAlign", f"image_{label}", ramp(4, 4), rois, np.array([batch]))
        place = np.array([[[0, 2, 4, 6, 10 if batch > 0 else -1]]])
        yield refused("places", "MaxUnpool", f"index_{label}", one, place, kernel_shape=[2], strides=[2])
    yield refused("d24 refused", "RoiAlign", "overflow", ramp(4, 4), np.array([[-3e38, 0, 3e38, 1]], np.float32), FIRST,
                  sampling_ratio=2)


def kernels() -> Iterator[Case]:
    """What a runtime supports: each dtype at the first and last opset of each version, with up to five axes."""
    for operator, known in OPERATORS.items():
        pooled = operator in WINDOWED or operator in GLOBAL or known.domain or operator == "MaxUnpool"
        usual = "float32" if "float32" in known.dtypes else "uint8"
        ranks = range(0 if "Global" in operator else 1, 6) if pooled else (2,)
        lasts = (*(version - 1 for version in known.versions[1:]), known.versions[-1])
        for version, last in zip(known.versions, lasts, strict=True):
            for opset, (dtype, since) in itertools.product(sorted({version, last}), known.dtypes.items()):
                for rank in ranks if (opset, dtype) == (last, usual) else (2,):
                    if dtype in DTYPES and (since <= version or known.domain):
                        inputs, attributes = sample(operator, rank=rank, dtype=dtype)
                        yield Case(f"kernel_{operator.lower()}_{opset}_{dtype}_{rank}d", MEANINGS[operator], operator,
                                   COMMON if known.domain else opset, inputs, attributes)


PARTS = (versions, dtypes, ranks, borders, sizes, numbers, regions, quantisation, decisions, errors)


@cache
def table() -> dict[str, Case]:
    """All cases by name."""
    cases = [case for part in PARTS for case in part()]
    assert len({case.name for case in cases}) == len(cases)
    return {case.name: case for case in sorted(cases, key=lambda case: (case.name[:1] == "d", case.name))}
