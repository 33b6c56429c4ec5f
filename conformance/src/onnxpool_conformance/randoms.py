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
from .oracle import DTYPES, FORMATS, SLIDING, GeometryError, axes_of
from .oracle_unpool import inferred
from .table import GLOBAL, MEANINGS, WINDOWED
from .versions import OPERATORS, oldest

T = TypeVar("T")
NAME = re.compile(r"(random|wide)_(\d+)_(\d+)")
MOST_ELEMENTS, MOST_TAPS = 9000, 9000
LONGEST = (4, 4, 4, 40, MOST_ELEMENTS)  # maximum lengths of windows
OPERATORS_DRAWN = (*WINDOWED * 3, *GLOBAL, *OPERATORS)
ROUNDED = {"QLinearAveragePool": "quantised rounding", "QLinearGlobalAveragePool": "quantised rounding",
           "MaxRoiPool": "rounding of regions"}  # the rules of operators whose random results depend on rounding


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
    """
    Numbers with few digits, which every type can represent: any, low, high or equal numbers, mostly zeros, or floats of
    many magnitudes. Bytes cover their whole range.
    """
    floats = dtype in FORMATS
    low, high = (-99, 99) if floats else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    divisor = draw.pick((1, 1, 8, 64)) if floats else 1
    kind = draw.pick(("any", "any", "low", "high", "equal", "sparse", "spread"))
    count = math.prod(shape)
    low, high = (low, low + 20) if kind == "low" else (high - 20, high) if kind == "high" else (low, high)
    drawn = [draw.integer(low, high) / divisor] * count if kind == "equal" else [
        draw.integer(low, high) / divisor if kind != "sparse" or draw.chance(10) else 0.0 for _ in range(count)]
    if kind == "spread" and divisor == 1 and floats:
        drawn = [number * 2.0 ** draw.integer(-9, 3) for number in drawn]
    return np.asarray(np.array(drawn).reshape(shape).astype(DTYPES[dtype]))


def extent(draw: Draw, rank: int) -> list[int]:
    """The sizes of an array, most of them small."""
    channels, longest = draw.pick(((3, 9),) * 8 + ((40, 5), (2, 40), (1, MOST_ELEMENTS)))
    spatial = [draw.integer(1, min(longest, 9)) for _ in range(rank)]
    spatial[draw.integer(0, rank - 1)] = draw.integer(1, longest)
    return [draw.integer(1, 2), draw.integer(1, channels), *spatial]


def window(draw: Draw, operator: str, spatial: Sequence[int]) -> dict[str, Any]:
    """The attributes of a window, of any version of the operator."""
    known, longest = OPERATORS[operator].attributes, draw.pick(LONGEST)
    given: dict[str, Any] = {"kernel_shape": [draw.integer(1, min(size, longest)) for size in spatial]}
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
    longest = draw.pick(LONGEST) + 1
    given["kernel_shape"] = [draw.integer(1, min(size + 1, longest)) for size in spatial]
    given.pop("pads", None)
    if draw.chance(60):
        given["pads"] = [draw.integer(0, size) for size in given["kernel_shape"] * 2]
    if given.get("auto_pad", "NOTSET") != "NOTSET" and any(given.get("pads", ())):
        del given["pads" if draw.chance(70) else "auto_pad"]
    if draw.chance(40):
        given["strides"] = [draw.integer(1, 5) for _ in spatial]
    return given


def wide_values(draw: Draw, x: Array) -> Array:
    """
    The elements. One in three float arrays gets unusual ones.

    Unusual elements are NaNs, infinities, numbers of all magnitudes, or numbers whose powers reach the type's limits.
    """
    form = FORMATS.get(x.dtype.name)
    if form is None or draw.chance(67):
        return x
    x, share, kind = x.copy(), draw.pick((10, 40, 100)), draw.pick(("special", "limits", "spread"))
    unusual = draw.pick(((math.nan,), (math.inf, -math.inf), (-math.inf,)))
    low, high = -form.unit, form.top - 7  # the exponents of whole numbers below 2**7
    common = min(max(draw.pick((low, high)) // draw.integer(1, 4) + draw.integer(-8, 8), low), high)
    for place in range(x.size):
        if draw.chance(share):
            number, exponent = draw.integer(-99, 99), draw.integer(low, high) if kind == "spread" else common
            x.flat[place] = draw.pick(unusual) if kind == "special" else math.ldexp(number, exponent)
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


def quantisation(draw: Draw, operator: str, dtype: str) -> list[Array | None]:
    """Scales and zero points, which QLinearAveragePool may do without."""
    limits, given = np.iinfo(dtype), list[Array | None]()
    for _ in range(2):
        scale, point = draw.pick((1, 0.5, 0.25, 0.1, 3)), draw.integer(limits.min, limits.max)
        given += [np.array(scale, np.float32), np.array(point, dtype)]
        if operator == "QLinearAveragePool" and draw.chance(20):
            given[-1] = None
    return given


def pooling(draw: Draw, name: str, operator: str, dtype: str, wide: bool) -> Case | None:
    """A random pool of windows or of whole channels."""
    known, rule, outputs = OPERATORS[operator], ROUNDED.get(operator, MEANINGS[operator]), 1
    shape = extent(draw, draw.pick((2, 2, 1, 3)))
    spatial, attributes = shape[2:], dict[str, Any]()
    if math.prod(shape) > MOST_ELEMENTS:
        return None
    if operator in SLIDING:
        attributes = (wide_window if wide else window)(draw, operator, spatial)
        found = silent(operator, spatial, attributes)
        try:
            axes = axes_of(operator, spatial, attributes)
        except GeometryError:
            return None
        if math.prod(shape[:2]) * math.prod(sum(map(len, axis.taps)) for axis in axes) > MOST_TAPS:
            return None
        if not wide and (found is None or (found == "d2" and known.domain)):
            return None
        rule = found if found and not known.domain else rule
    elif "p" in known.attributes:
        attributes = {"p": draw.integer(1, 4)}
    last = operator == "NhwcMaxPool"
    if "channels_last" in known.attributes and draw.chance(30):
        attributes["channels_last"], last = 1, True
    if last:
        shape = [shape[0], *spatial, shape[1]]
    x = values(draw, shape, dtype)
    inputs: tuple[Array | None, ...] = (wide_values(draw, x) if wide else x,)
    if "QLinear" in operator:
        inputs += (*quantisation(draw, operator, dtype),)
    if operator == "MaxPool" and draw.chance(40):
        outputs = 2
        rule = "indices" if rule == MEANINGS[operator] else rule
        if attributes.get("storage_order"):
            if len(spatial) > 2:
                return None
            rule = "storage order" if rule != "d1 silent" else rule
    else:
        attributes.pop("storage_order", None)
    return drawn(draw, name, "wide" if wide else rule, operator, inputs, attributes, outputs)


def unpooling(draw: Draw, name: str, dtype: str, wide: bool) -> Case | None:
    """A random MaxUnpool, whose elements go to different places of their own channels, perhaps of a larger result."""
    shape = [draw.integer(1, 2), draw.integer(1, 3), *(draw.integer(1, 4) for _ in range(draw.pick((2, 1, 3))))]
    attributes = {name: [draw.integer(1, 3) for _ in shape[2:]] for name in ("kernel_shape", "strides")}
    if draw.chance(30):
        attributes["pads"] = [draw.integer(0, (size - 1) // 2) for size in attributes["kernel_shape"] * 2]
    room, count = math.prod(inferred(shape[2:], attributes)), math.prod(shape[2:])
    if room < count:
        return None
    places = []
    for plane in range(math.prod(shape[:2])):
        left = list(range(plane * room, (plane + 1) * room))
        places += [left.pop(draw.integer(0, len(left) - 1)) for _ in range(count)]
    inputs = [values(draw, shape, dtype), np.array(places).reshape(shape)]
    if wide and draw.chance(50):
        sizes = inferred(shape[2:], attributes)
        inputs.append(np.array([*shape[:2], *(size + draw.integer(0, 2) for size in sizes)]))
    return drawn(draw, name, "wide" if wide else "unpool", "MaxUnpool", (*inputs,), attributes)


def regions(draw: Draw, name: str, operator: str, dtype: str) -> Case:
    """A random operator on regions, some of which reach beyond the image."""
    count, pooled = draw.integer(1, 3), [draw.integer(1, 3) for _ in range(2)]
    shape = [draw.integer(1, 2), draw.integer(1, 3), draw.integer(1, 9), draw.integer(1, 9)]
    x, images = values(draw, shape, dtype), [draw.integer(0, shape[0] - 1) for _ in range(count)]
    rois = []
    for image in images:
        first = [draw.integer(-8, 32) / 4 for _ in range(2)]
        corners = [*first, *(place + draw.integer(4, 24) / 4 for place in first)]
        rois.append([image, *corners] if operator == "MaxRoiPool" else corners)
    attributes: dict[str, Any] = {"spatial_scale": draw.pick((0.5, 2.0))} if draw.chance(30) else {}
    inputs, rule = (x, np.array(rois).astype(DTYPES[dtype])), ROUNDED.get(operator, MEANINGS[operator])
    if operator == "MaxRoiPool":
        return drawn(draw, name, rule, operator, inputs, attributes | {"pooled_shape": pooled})
    attributes |= {"output_height": pooled[0], "output_width": pooled[1], "sampling_ratio": draw.integer(0, 3)}
    if draw.chance(70):
        attributes["coordinate_transformation_mode"] = draw.pick(("half_pixel", "output_half_pixel"))
    if draw.chance(20):
        attributes["mode"], rule = "max", "d16 maximum"
    return drawn(draw, name, rule, operator, (*inputs, np.array(images)), attributes)


def drawn(draw: Draw, name: str, rule: str, operator: str, inputs: tuple[Array | None, ...],
          attributes: dict[str, Any], outputs: int = 1) -> Case:
    """The case at a random opset."""
    assert inputs[0] is not None
    first = oldest(operator, attributes, inputs[0].dtype.name, outputs)
    opset = draw.pick([first, *(version for version in OPERATORS[operator].versions if version > first)])
    return Case(name, rule, operator, opset, inputs, attributes, outputs)


def attempt(draw: Draw, name: str, wide: bool = False) -> Case | None:
    """A random case, unless its windows turn out to be unusable."""
    operator = draw.pick(OPERATORS_DRAWN)
    known = OPERATORS[operator]
    dtype = draw.pick([dtype for dtype in ("float32", "float32", *known.dtypes) if dtype in known.dtypes])
    if dtype not in DTYPES:
        raise SuiteError(f"{name} needs the package ml_dtypes, for {dtype}; install it")
    if operator == "MaxUnpool":
        return unpooling(draw, name, dtype, wide)
    if operator in ("MaxRoiPool", "RoiAlign"):
        return regions(draw, name, operator, dtype)
    return pooling(draw, name, operator, dtype, wide)


def random_case(seed: int, number: int, wide: bool = False) -> Case:
    """The random case for a seed and a number."""
    draw = Draw(f"{'wide:' if wide else ''}{seed}:{number}")
    while True:
        if made := attempt(draw, f"{'wide' if wide else 'random'}_{seed}_{number}", wide):
            return made


def random_cases(count: int, seed: int, wide: bool = False) -> Iterator[Case]:
    """Random cases with the numbers below a count, except cases of dtypes that need a package."""
    for number in range(count):
        with contextlib.suppress(SuiteError):
            yield random_case(seed, number, wide)
