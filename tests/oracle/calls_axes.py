"""Random calls with named axes, and random calls of any kind: long windows and other spellings of arguments among them.

This module does not change the calls that `calls` and `calls_family` draw, so that seeds repeat those calls.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from calls import (
    INDICES,
    MOST_ELEMENTS,
    MOST_TAPS,
    NHWC_MAX,
    OUTS,
    QLINEAR,
    QLINEAR_AVERAGE,
    REGIONS,
    SHORT_AXIS,
    STYLES,
    THREADS,
    UNPOOL,
    WINDOWED,
    Call,
    any_nans,
    draw_opset,
    draw_p,
    draw_values,
    draw_window,
    layouts,
    taps_bound,
)
from calls_family import WEIGHTED, draw_call
from onnxpool_conformance.oracle import DTYPES, FORMATS, native
from oracle_axes import ALL, INTEGERS, TIMES

NAMED = " along axes"
FUNCTIONS_ALONG_AXES = {name + NAMED: function for name, function in {
    "AveragePool": "average_pool",
    "MaxPool": "max_pool",
    "MinPool": "min_pool",
    "LpPool": "lp_pool",
    INDICES: "max_pool",
    "MinPool Indices": "min_pool",
    "GlobalAveragePool": "global_average_pool",
    "GlobalMaxPool": "global_max_pool",
    "GlobalMinPool": "global_min_pool",
    "GlobalLpPool": "global_lp_pool",
}.items()}
EVERY = (*WEIGHTED, *WEIGHTED, *FUNCTIONS_ALONG_AXES, *FUNCTIONS_ALONG_AXES, "AveragePool along axes")
BFLOAT16_NORMS_SINCE = 22
STRANGE = ("complex64", "complex128", "longdouble", "datetime64[s]", "timedelta64[ns]")  # dtypes, most of them refused
WRONG_DTYPES = ("float16", "int64", "uint8", "bool", "complex64")  # for means; refused for most dtypes of x
BATCH = (1, 2, 3, 5, 17, 67)
LONG_LINE = 300  # maximum elements along some of the pooled axes

# Numbers of taps at which loops, accumulators or formulas change, and some that exceed every array.
THRESHOLDS = (16, 17, 64, 255, 256, 257, 258, 32767, 32768, 32769, 65535, 65536, 65537, 2**20, 2**31 - 1, 2**31, 2**32)
FULL = (255, 256, 257, 258, 32767, 32768, 32769, 65536, 65537)  # tap counts of windows that are full of elements
MOST_WINDOWS = 5  # maximum windows along the axis of a long window
LENGTHLESS = ("ceil_mode", "count_include_pad", "storage_order", "p")  # attributes without a value for each axis
MOST_DIVISOR = 2**62


@dataclass(frozen=True)
class AxesCall(Call):
    """One call with named axes. None means that an argument is not given."""

    axes: tuple | int | None = ()
    keepdims: bool | None = None
    dtype: object = None
    skipna: bool | None = None

    @property
    def base(self):
        """The operator."""
        return self.operator.split()[0]

    @property
    def indexed(self):
        """Whether the call requests Indices."""
        return "Indices" in self.operator

    @property
    def function(self):
        return FUNCTIONS_ALONG_AXES[self.operator]

    @property
    def layout(self):
        return "NaNs left out" if self.skipna else "NaNs kept"

    @property
    def keywords(self):
        given = {"axes": self.axes, "opset": self.opset, "keepdims": self.keepdims, "dtype": self.dtype,
                 "channels_last": self.channels_last or None, "skipna": self.skipna,
                 "return_indices": self.indexed or None}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def misplaced(self):
        """Whether arguments exclude each other, or are given without axes."""
        return self.channels_last or self.axes is None


# Values


def draw_integers(choices, dtype, shape):
    """An array of integers, bools or times, and the name of its kind of values."""
    generator = np.random.default_rng(choices.integer(0, 2**32 - 1))
    if dtype.kind == "b":
        kind = choices.pick(("canonical", "any byte"))
        most = 2 if kind == "canonical" else 256
        low = generator.integers(0, most, shape, np.uint8)
        return np.where(generator.random(shape) < generator.random(), np.uint8(0), low).view(bool), kind
    held = np.dtype(np.int64) if dtype.kind in "mM" else dtype
    limits = np.iinfo(held)
    kind = choices.pick(("whole", "few", "largest", "limits", "seldom"))
    if kind == "whole":
        x = generator.integers(limits.min, limits.max, shape, held, endpoint=True)
    elif kind == "few":  # means in the middle between two integers
        x = generator.integers(0 if held.kind == "u" else -2, 3, shape, held)
    elif kind == "largest":
        x = np.full(shape, generator.choice(np.array([limits.max, limits.min + 1, limits.max - 1], held)), held)
    elif kind == "limits":
        x = generator.choice(np.array([limits.min, limits.max, limits.max - 1], held), shape)
    else:
        x = np.where(generator.random(shape) < 0.1, generator.integers(1, 100, shape, held), held.type(0))
    return np.ascontiguousarray(x, held).view(dtype), kind


def draw_elements(choices, dtype, shape, skipna):
    """An array of any dtype, and the name of its kind of values."""
    if dtype.name not in FORMATS:
        return draw_integers(choices, dtype, shape)
    x, kind = draw_values(choices, dtype, shape)
    if not skipna:
        return x, kind
    generator = np.random.default_rng(choices.integer(0, 2**32 - 1))
    share = choices.pick((0.3, 0.02, 0.9, 1.0))
    x[generator.random(shape) < share] = math.nan
    return any_nans(generator, x), f"{kind} and NaN"


# Axes


def draw_dtype_along_axes(choices, base, opset):
    """A dtype that the operator accepts along axes or, seldom, another dtype."""
    if choices.chance(2):
        return np.dtype(choices.pick(STRANGE))
    floats = [name for name in ("float32", "float64", "float16", "bfloat16") if name in DTYPES]
    if "Lp" in base:
        known = opset is None or opset >= BFLOAT16_NORMS_SINCE
        return ALL[choices.pick([name for name in floats if known or name != "bfloat16"])]
    if choices.chance(40):
        return ALL[choices.pick(floats)]
    return ALL[choices.pick((*INTEGERS, *TIMES) if "Average" not in base else INTEGERS)]


def draw_result(choices, dtype):
    """The argument `dtype` of a mean in one of its spellings, or None. Seldom, the argument must be refused."""
    if choices.chance(3):
        return choices.pick(WRONG_DTYPES)
    own = [] if dtype.kind == "b" else [dtype.name]
    larger = {"float64": [], "float32": ["float64"], "complex64": [], "complex128": []}
    names = [*own, *larger.get(dtype.name, ["float32", "float64"])]
    chosen = choices.pick((None, *own, *names))
    if chosen is None or chosen not in ALL:
        return None
    made = ALL[chosen]
    spellings = [made, made.type] if chosen == "bfloat16" else [chosen, made, made.type, made.newbyteorder()]
    return choices.pick(spellings)


def draw_places(choices, ndim):
    """Some axes in any order, counted from either end. Seldom, an axis does not exist or occurs twice."""
    places = list(range(ndim))
    for place in range(ndim - 1):
        other = choices.integer(place, ndim - 1)
        places[place], places[other] = places[other], places[place]
    axes = [axis - ndim if choices.chance(30) else axis for axis in places[:choices.integer(1, ndim)]]
    if choices.chance(2):
        axes[0] = choices.pick((ndim, -ndim - 1, axes[-1]))
    return axes[0] if len(axes) == 1 and choices.chance(50) else tuple(axes)


def draw_along_axes(choices, operator):
    """One call with named axes. Its geometry, axes or dtype may have to be refused."""
    base = operator.removesuffix(NAMED)
    own = "Min" in base
    opset = None if own else draw_opset(choices, base)
    dtype = draw_dtype_along_axes(choices, base, opset)
    ndim = choices.pick((2, 1, 3, 4, 5))
    axes = draw_places(choices, ndim)
    named = (axes,) if isinstance(axes, int) else axes
    pooled = list(dict.fromkeys(axis % ndim for axis in named))
    shape = [1] * ndim
    for axis in pooled + [axis for axis in range(ndim) if axis not in pooled]:
        room = max(1, MOST_ELEMENTS // max(1, math.prod(shape)))
        if axis in pooled:
            shape[axis] = choices.integer(1, min(room, LONG_LINE if choices.chance(10) else SHORT_AXIS))
        else:
            shape[axis] = 0 if choices.chance(2) else min(room, choices.pick(BATCH))
    sizes = [shape[axis % ndim] for axis in named]
    attributes = {}
    if not base.startswith("Global"):
        known = "MinPool" if own else base
        attributes = draw_window(choices, known, opset, sizes)
        batch = math.prod(shape) // max(1, math.prod(sizes))
        if batch * taps_bound(attributes, sizes) > MOST_TAPS:
            attributes["strides"] = tuple(max(2, size // 2) for size in sizes)
    if "Lp" in base and (p := draw_p(choices, opset)) is not None:
        attributes["p"] = p
    return assembled(choices, operator, opset, dtype, tuple(shape), attributes, axes)


def assembled(choices, operator, opset, dtype, shape, attributes, axes):
    """A call with these arguments, on any values, in some memory, style and number of threads."""
    skipna = choices.pick((None, True, False, True))
    if dtype.name not in ALL:
        x, values = np.zeros(shape, dtype), "zero"
    else:
        x, values = draw_elements(choices, dtype, shape, skipna)
    ways = layouts(x, False) if x.ndim > 1 else {name: way for name, way in layouts(x, False).items()
                                                 if name != "transposed"}
    memory = choices.pick(tuple(ways)) if choices.chance(60) else "C"
    return AxesCall(
        operator=operator,
        opset=opset,
        attributes=attributes,
        x=ways[memory](),
        values=values,
        memory=memory,
        channels_last=False,
        out=choices.pick(OUTS),
        num_threads=choices.pick(THREADS),
        style=choices.pick((*STYLES, "tiles")),
        axes=axes,
        keepdims=choices.pick((None, False, True)) if operator.startswith("Global") else None,
        dtype=draw_result(choices, dtype) if "Average" in operator else None,
        skipna=skipna,
    )


# Long windows


def draw_long_axis(choices, size, kernel):
    """Stride and pads of an axis with few windows, which may be much longer than the axis."""
    begin = choices.pick((0, 1, kernel - 1, kernel // 2, kernel, choices.integer(0, kernel)))
    end = max(0, kernel - size - begin) + choices.pick((0, 1, 5, kernel - 1, choices.integer(0, kernel)))
    room = size + begin + end - kernel
    stride = max(1, -(-room // choices.integer(1, MOST_WINDOWS)))
    return stride + choices.pick((0, 1)), begin, end


def draw_long_window(choices, attributes, sizes):
    """Windows whose taps reach a threshold along at least one axis. `attributes` has flags and `p`."""
    rows = []
    room = MOST_DIVISOR
    long = choices.integer(0, len(sizes) - 1)
    for axis, size in enumerate(sizes):
        kernel = choices.pick(THRESHOLDS) if axis == long or choices.chance(40) else choices.integer(1, size)
        kernel = min(kernel, room)
        room //= kernel
        rows.append((kernel, *draw_long_axis(choices, size, kernel)))
    kernels, strides, begins, ends = zip(*rows, strict=True)
    keep = {name: attributes[name] for name in LENGTHLESS if name in attributes}
    return {**keep, "kernel_shape": kernels, "strides": strides, "pads": (*begins, *ends)}


def draw_long(choices, operator):
    """One call with long windows, mostly in padding. Seldom, windows are full of elements along one axis."""
    named = operator in FUNCTIONS_ALONG_AXES
    call = draw_along_axes(choices, operator) if named else draw_call(choices, (operator,))
    dtype = native(call.x.dtype)
    if dtype.name not in ALL:
        return call
    sizes = [choices.integer(1, 9) for _ in range(choices.integer(1, 2))]
    attributes = draw_long_window(choices, call.attributes, sizes)
    if choices.chance(5):
        kernel = choices.pick(FULL)
        sizes = [max(1, kernel + choices.pick((0, 1, -1, 3)))]
        stride, *pads = draw_long_axis(choices, sizes[0], kernel)
        attributes |= {"kernel_shape": kernel, "strides": stride, "pads": tuple(pads)}
    batch = choices.integer(1, 3)
    if named:
        first = choices.integer(0, 1)
        shape = (batch, *sizes) if first else (*sizes, batch)
        call = replace(call, axes=tuple(range(first, first + len(sizes))))
    else:
        shape = (1, *sizes, batch) if call.channels_last else (1, batch, *sizes)
    x, values = draw_elements(choices, dtype, shape, named and call.skipna)
    return replace(call, attributes=attributes, x=x, values=values, memory="C")


SLIDING_NAMES = tuple(name for name in (*WINDOWED, INDICES, QLINEAR_AVERAGE, NHWC_MAX,
                                        *(name for name in FUNCTIONS_ALONG_AXES if not name.startswith("Global"))))
LONG = 6  # percent of windowed calls that have long windows


# Spellings


def respelled(choices, call):
    """The same call with arguments in another form: one number for all axes, Python scalars, or a part at a time."""
    attributes = dict(call.attributes)
    for name in ("kernel_shape", "strides", "dilations", "pads", "pooled_shape"):
        row = attributes.get(name)
        if row is None or isinstance(row, int):
            continue
        ways = [row, list(row), tuple(map(np.int64, row)), np.array(row)]
        ways += [row[0]] * 3 if len(set(row)) == 1 else []
        attributes[name] = choices.pick(ways)
    for name in ("ceil_mode", "count_include_pad", "storage_order"):
        if name in attributes:
            attributes[name] = choices.pick((attributes[name], bool(attributes[name])))
    change = {"attributes": attributes}
    if call.operator in (*QLINEAR, NHWC_MAX) and choices.chance(30):
        change["opset"] = 1
    if call.operator in QLINEAR and choices.chance(30):
        change["further"] = tuple(value if value is None else value.item() for value in call.further)
    if call.style == "plan" and call.operator not in (UNPOOL, *REGIONS) and choices.chance(50):
        change["style"] = "tiles"
    return replace(call, **change)


def misplaced(choices, call):
    """The call with arguments that exclude each other: the library has to refuse the call."""
    if "Min" in call.operator:  # it has no other layout, and `axes` has no default
        return call
    if call.skipna or call.dtype is not None:
        return replace(call, axes=None, keepdims=None)
    return replace(call, channels_last=choices.pick((True, 1)))


def draw_any(choices, operators=EVERY):
    """A call of any kind, whose operator is drawn from those given."""
    operator = choices.pick(operators)
    if operator in SLIDING_NAMES and choices.chance(LONG):
        call = draw_long(choices, operator)
    elif operator in FUNCTIONS_ALONG_AXES:
        call = draw_along_axes(choices, operator)
        call = misplaced(choices, call) if choices.chance(1) else call
    else:
        call = draw_call(choices, (operator,))
    return respelled(choices, call) if choices.chance(30) else call
