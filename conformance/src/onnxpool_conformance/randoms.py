"""Random cases, each determined by a seed and a number, on every machine and with every version of Python."""

import contextlib
import math
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from .cases import Array, Case
from .errors import SuiteError
from .oracle import DTYPES, SLIDING, GeometryError, axes_of
from .table import GLOBAL, MEANINGS, WINDOWED, sample
from .versions import OPERATORS, oldest

T = TypeVar("T")
NAME = re.compile(r"(random|wide)_(\d+)_(\d+)")
MOST_ELEMENTS = 400
OPERATORS_DRAWN = (*WINDOWED * 3, *GLOBAL, *OPERATORS)
ROUNDED = {"QLinearAveragePool": "quantised rounding", "QLinearGlobalAveragePool": "quantised rounding",
           "MaxRoiPool": "rounding of regions"}  # rules of the operators whose random results depend on rounding


class Draw:
    """Choices that a seed determines. Only random() is the same in every version of Python."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed).random

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + int(self.random() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True with this probability."""
        return self.integer(0, 99) < percent


def values(draw: Draw, shape: Sequence[int], dtype: str) -> Array:
    """Whole numbers, or fractions of float types; both of few digits, so that every type has them."""
    divisor = draw.pick((1, 1, 8, 64)) if dtype in ("float16", "float32", "float64", "bfloat16") else 1
    low = 0 if dtype == "uint8" else -99
    drawn = [draw.integer(low, 99) / divisor for _ in range(math.prod(shape))]
    return np.asarray(np.array(drawn).reshape(shape).astype(DTYPES[dtype]))


def window(draw: Draw, operator: str, spatial: Sequence[int]) -> dict[str, Any]:
    """The attributes of a window, of any version of the operator."""
    known = OPERATORS[operator].attributes
    given: dict[str, Any] = {"kernel_shape": [draw.integer(1, min(size, 4)) for size in spatial]}
    if draw.chance(70):
        given["strides"] = [draw.integer(1, 3) for _ in spatial]
    if "dilations" in known and draw.chance(30):
        given["dilations"] = [draw.integer(1, 3) for _ in spatial]
    padding = draw.integer(0, 3)
    if padding == 1:
        given["pads"] = [draw.integer(0, max(0, size - 1)) for size in given["kernel_shape"] * 2]
    elif padding == 2:
        given["auto_pad"] = draw.pick(("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"))
    for flag in ("ceil_mode", "count_include_pad", "storage_order"):
        if flag in known and draw.chance(40):
            given[flag] = 1
    if "p" in known:
        given["p"] = draw.integer(1, 4)
    return given


def wide_window(draw: Draw, operator: str, spatial: Sequence[int]) -> dict[str, Any]:
    """The attributes of any window that has a result, about which runtimes may disagree."""
    given = window(draw, operator, spatial)
    given["kernel_shape"] = [draw.integer(1, min(size + 1, 5)) for size in spatial]
    given.pop("pads", None)
    if draw.chance(60):
        given["pads"] = [draw.integer(0, size) for size in given["kernel_shape"] * 2]
    if given.get("auto_pad", "NOTSET") != "NOTSET" and any(given.get("pads", ())):
        del given["pads" if draw.chance(70) else "auto_pad"]
    if draw.chance(40):
        given["strides"] = [draw.integer(1, 5) for _ in spatial]
    return given


def wide_values(draw: Draw, x: Array) -> Array:
    """The elements, of which some are NaN or infinite in one of six arrays of floats."""
    if x.dtype.name not in ("int8", "uint8") and draw.chance(16):
        unusual = draw.pick(((math.nan,), (math.inf, -math.inf), (-math.inf,)))
        share = draw.pick((10, 40, 100))
        x = x.copy()
        for place in range(x.size):
            if draw.chance(share):
                x.flat[place] = draw.pick(unusual)
    return x


def silent(operator: str, spatial: Sequence[int], given: dict[str, Any]) -> str | None:
    """
    The rule of a pool about which the specification is silent; "" if it is not.

    None if runtimes are known to disagree about it, or if no window fits.
    """
    auto_pad, ceil = given.get("auto_pad", "NOTSET"), given.get("ceil_mode", 0)
    strides = given.get("strides", [1] * len(spatial))
    dilations = given.get("dilations", [1] * len(spatial))
    spans = [(k - 1) * d + 1 for k, d in zip(given["kernel_shape"], dilations, strict=True)]
    if auto_pad == "VALID" and ceil:
        return None
    if auto_pad.startswith("SAME") and any(s > span for s, span in zip(strides, spans, strict=True)):
        return None
    try:
        axes = axes_of(operator, spatial, given)
    except GeometryError:
        return None
    if not all(taps for axis in axes for taps in axis.taps):
        return None
    if not ceil or auto_pad.startswith("SAME"):
        return ""
    pads = given.get("pads", [0] * 2 * len(spatial))
    sizes = [size + begin + end for size, begin, end in zip(spatial, pads, pads[len(spatial):], strict=False)]
    up = [-(-(size - span) // s) + 1 for size, span, s in zip(sizes, spans, strides, strict=True)]
    overhanging = any(min(axis.counted) < k for axis, k in zip(axes, given["kernel_shape"], strict=True))
    if overhanging and given.get("count_include_pad"):
        return "d2" if operator == "AveragePool" else None
    return "" if [len(axis.taps) for axis in axes] == up else "d1 silent"


def attempt(draw: Draw, name: str, wide: bool = False) -> Case | None:
    """A random case, unless its windows turn out to be unusable."""
    operator = draw.pick(OPERATORS_DRAWN)
    known = OPERATORS[operator]
    dtype = draw.pick([dtype for dtype in ("float32", "float32", *known.dtypes) if dtype in known.dtypes])
    if dtype not in DTYPES:
        raise SuiteError(f"{name} needs the package ml_dtypes, for {dtype}; install it")
    inputs, attributes = sample(operator, rank=2, dtype=dtype)
    rule, outputs = ROUNDED.get(operator, MEANINGS[operator]), 1
    if operator in SLIDING or operator in GLOBAL or known.domain:
        rank = draw.pick((2, 2, 1, 3))
        spatial = [draw.integer(1, 9) for _ in range(rank)]
        shape = [draw.integer(1, 2), draw.integer(1, 3), *spatial]
        if math.prod(shape) > MOST_ELEMENTS:
            return None
        attributes = {}
        if operator in SLIDING and wide:
            attributes, rule = wide_window(draw, operator, spatial), "wide"
            try:
                axes_of(operator, spatial, attributes)
            except GeometryError:
                return None
        elif operator in SLIDING:
            attributes = window(draw, operator, spatial)
            found = silent(operator, spatial, attributes)
            if found is None or (found == "d2" and known.domain):
                return None
            rule = found if found and not known.domain else rule
        elif "p" in known.attributes:
            attributes = {"p": draw.integer(1, 4)}
        if operator == "NhwcMaxPool":
            shape = [shape[0], *spatial, shape[1]]
        x = values(draw, shape, dtype)
        inputs = (wide_values(draw, x) if wide else x, *inputs[1:])
        if operator == "MaxPool" and draw.chance(40):
            outputs = 2
            rule = rule if rule != MEANINGS[operator] else "indices"
    elif operator == "MaxUnpool":
        inputs = (values(draw, inputs[0].shape, dtype), inputs[1])
    else:
        first = [draw.integer(0, 16) / 4 for _ in range(2)]
        corners = [*first, *(place + draw.integer(4, 16) / 4 for place in first)]
        roi = np.array([[0, *corners] if operator == "MaxRoiPool" else corners]).astype(DTYPES[dtype])
        inputs = (values(draw, (1, 2, 6, 6), dtype), roi, *([np.array([0])] if operator == "RoiAlign" else []))
        attributes = {"pooled_shape": [2, 2]} if operator == "MaxRoiPool" else {
            "output_height": 2, "output_width": 2, "sampling_ratio": draw.integer(0, 2),
            "coordinate_transformation_mode": draw.pick(("half_pixel", "output_half_pixel"))}
    if attributes.get("storage_order") and outputs == 1:
        del attributes["storage_order"]
    if attributes.get("storage_order"):
        if len(attributes["kernel_shape"]) > 2:
            return None
        rule = rule if rule in ("d1 silent", "wide") else "storage order"
    first_opset = oldest(operator, attributes, dtype, outputs)
    opset = draw.pick([first_opset, *(version for version in known.versions if version > first_opset)])
    return Case(name, "wide" if wide else rule, operator, opset, inputs, attributes, outputs)


def random_case(seed: int, number: int, wide: bool = False) -> Case:
    """The random case of a seed and a number."""
    draw = Draw(f"{'wide:' if wide else ''}{seed}:{number}")
    while True:
        if made := attempt(draw, f"{'wide' if wide else 'random'}_{seed}_{number}", wide):
            return made


def random_cases(count: int, seed: int, wide: bool = False) -> Iterator[Case]:
    """Random cases with the numbers below a count, except those of dtypes that need a package."""
    for number in range(count):
        with contextlib.suppress(SuiteError):
            yield random_case(seed, number, wide)
