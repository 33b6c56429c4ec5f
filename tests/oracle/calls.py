"""Random calls of the library: every operator, opset, attribute, dtype, layout and kind of memory.

Every choice is made through a `Choices` object, so that a seed and a property-testing framework generate the
same calls. The simplest choice always comes first, because shrinking moves towards it.
"""

import math
from dataclasses import dataclass

import numpy as np
from onnxpool_conformance.oracle import DTYPES, FORMATS, NHWC_MAX, QLINEAR_AVERAGE, QLINEAR_GLOBAL, widened

FUNCTIONS = {
    "AveragePool": "average_pool",
    "MaxPool": "max_pool",
    "LpPool": "lp_pool",
    "GlobalAveragePool": "global_average_pool",
    "GlobalMaxPool": "global_max_pool",
    "GlobalLpPool": "global_lp_pool",
    QLINEAR_GLOBAL: "qlinear_global_average_pool",
    QLINEAR_AVERAGE: "qlinear_average_pool",
    NHWC_MAX: "nhwc_max_pool",
    "MaxPool Indices": "max_pool",
    "MaxUnpool": "max_unpool",
    "MaxRoiPool": "max_roi_pool",
    "RoiAlign": "roi_align",
}
INDICES = "MaxPool Indices"  # the calls of MaxPool that request its second output
UNPOOL = "MaxUnpool"
REGIONS = ("MaxRoiPool", "RoiAlign")
QLINEAR = (QLINEAR_GLOBAL, QLINEAR_AVERAGE)
WINDOWED = ("AveragePool", "MaxPool", "LpPool")
SLIDING = (*WINDOWED, INDICES, QLINEAR_AVERAGE, NHWC_MAX)
POOLS = tuple(name for name in FUNCTIONS if name not in (INDICES, UNPOOL, *REGIONS))  # one array in, one array out

# The first opset of each attribute that not every version of its operator has.
SINCE = {
    "AveragePool": {"count_include_pad": 7, "ceil_mode": 10, "dilations": 19},
    "MaxPool": {"storage_order": 8, "ceil_mode": 10, "dilations": 10},
    "LpPool": {"ceil_mode": 18, "dilations": 18},
    INDICES: {"storage_order": 8, "ceil_mode": 10, "dilations": 10},
    QLINEAR_AVERAGE: {"count_include_pad": 1, "dilations": None},
    NHWC_MAX: {},
    "MinPool": {"storage_order": 1},
}
FIRST_OPSETS = {INDICES: 8, UNPOOL: 9, "RoiAlign": 10}
BFLOAT16_SINCE = 22
INTEGER_MAX_SINCE = 12
INTEGER_P_SINCE = 2
NEWEST_OPSET = 28
VERSION_STARTS = (22, 1, 2, 7, 8, 9, 10, 11, 12, 16, 18, 19)

MOST_ELEMENTS = 3000
MOST_TAPS = 40_000
SHORT_AXIS, LONG_AXIS = 9, 150  # most axes are short; a long one exercises vectors and large windows
STYLES = ("function", "object", "plan")
MOST_PARTS = 4  # maximum parts of a result that is computed in parts
THREADS = (None, 1, 2, 3, 7)
AUTO_PADS = ("NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER")
OUTS = ("absent", "contiguous", "strided", "unaligned", "backwards", "transposed", "byte-swapped")
JUNK = 0x7E  # a byte that makes a large or NaN element in every dtype


class Choices:
    """A source of choices: subclasses define how an integer is chosen."""

    def integer(self, low, high):
        """An integer from low to high, both included."""
        raise NotImplementedError

    def pick(self, options):
        """One of the options."""
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent):
        """True with this probability, in percent."""
        return self.integer(0, 99) >= 100 - percent


class SeededChoices(Choices):
    """Choices determined by a seed."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)

    def integer(self, low, high):
        return int(self.generator.integers(low, high + 1))


@dataclass(frozen=True)
class Call:
    """One call of the library: its operator, its arguments, and the way of calling."""

    operator: str
    opset: int | None
    attributes: dict
    x: np.ndarray
    values: str
    memory: str
    channels_last: bool
    further: tuple = ()  # the inputs after x
    out: str = "absent"
    num_threads: int | None = None
    style: str = "function"

    @property
    def inputs(self):
        """The inputs of the operator in ONNX order."""
        return (self.x, *self.further)

    @property
    def function(self):
        """The name of the function."""
        return FUNCTIONS[self.operator]

    @property
    def layout(self):
        """The layout in words."""
        return "channels last" if self.channels_last else "channels first"

    @property
    def keywords(self):
        """The arguments that are neither inputs nor attributes of ONNX."""
        keywords = {} if self.opset is None else {"opset": self.opset}
        if self.operator != NHWC_MAX:
            keywords["channels_last"] = int(self.channels_last) if self.operator in QLINEAR else self.channels_last
        if self.operator == INDICES:
            keywords["return_indices"] = True
        return keywords

    def run(self, library, out=None):
        """Make the call in its style."""
        options = {"out": out, "num_threads": self.num_threads}
        if self.style == "function":
            attributes = dict(self.attributes)
            window = [attributes.pop(name) for name in ("kernel_shape", "pooled_shape") if name in attributes]
            before = 2 if self.operator == UNPOOL else len(self.inputs)
            arguments = (*self.inputs[:before], *window, *self.inputs[before:])
            return getattr(library, self.function)(*arguments, **attributes, **self.keywords, **options)
        if self.style == "tiles":
            return tiled(self.planned(library), *self.inputs, **options)
        made = self.made(library) if self.style == "object" else self.planned(library)
        return made(*self.inputs, **options)

    def made(self, library):
        """The operator of the call."""
        return getattr(library, self.operator.split()[0])(**self.attributes, **self.keywords)

    def planned(self, library):
        """The plan of the call."""
        return self.made(library).plan(self.x.shape, self.x.dtype)

    def describe(self):
        """Everything about the call except the values of x."""
        given = {"opset": self.opset, **self.attributes, **self.keywords}
        given |= {"out": self.out, "num_threads": self.num_threads}
        arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
        x = f"{self.x.dtype.name}{list(self.x.shape)} of {self.values} values in {self.memory} memory"
        extra = "".join(f", {value!r}" for value in self.further)
        return f"{self.operator} ({self.style}) of {x}{extra}: {arguments}"


def tiled(plan, x, *further, out=None, num_threads=None):
    """The results of a plan, one part after another."""
    dtypes = [plan.result_dtype, np.dtype(np.int64)][:1 + plan.operator.return_indices]
    outs = out if isinstance(out, tuple) else (out,) * len(dtypes)
    results = [np.empty(plan.output_shape, dtype) if given is None else given
               for given, dtype in zip(outs, dtypes, strict=True)]
    for part in plan.tiles(MOST_PARTS):
        y = part(x[part.inputs], *further, num_threads=num_threads)
        for result, one in zip(results, y if isinstance(y, tuple) else (y,), strict=True):
            result[part.outputs] = one
    return tuple(results) if len(results) > 1 else results[0]


# Attributes


def draw_opset(choices, operator):
    """An opset, preferably the first of a version. Operators of com.microsoft have only one opset."""
    if operator in (*QLINEAR, NHWC_MAX):
        return None
    first = FIRST_OPSETS.get(operator, 1)
    if choices.chance(30):
        return choices.integer(first, NEWEST_OPSET)
    return choices.pick((None, *(start for start in VERSION_STARTS if start >= first)))


def draw_dtype(choices, operator, opset):
    """A dtype that this version of the operator accepts."""
    if operator in (*QLINEAR, NHWC_MAX):
        return DTYPES[choices.pick(("uint8", "int8"))]
    names = ["float32", "float64", "float16"]
    if "bfloat16" in DTYPES and (opset is None or opset >= BFLOAT16_SINCE):
        names.append("bfloat16")
    if operator in ("MaxPool", INDICES) and (opset is None or opset >= INTEGER_MAX_SINCE):
        names += ["uint8", "int8"]
    return DTYPES[choices.pick(names)]


def draw_p(choices, opset):
    """The exponent of a norm: a float at version 1, an integer later; None means not given."""
    if opset is not None and opset < INTEGER_P_SINCE:
        return choices.pick((None, 2.0, 1.0, 1.5, 3.0, math.inf, 0.5, 2.5))
    return choices.pick((None, 2, 1, 3, 4, 5, 7, 1000))


def draw_shape(choices, operator, channels_last):
    """A shape of at most MOST_ELEMENTS elements; N and C may be 0."""
    rank = choices.pick((2, 1, 3, 4, 5, 0) if operator in POOLS and operator not in SLIDING else (2, 1, 3, 4, 5))
    if operator == QLINEAR_GLOBAL:
        rank = max(rank, 1)
    batch = 0 if choices.chance(3) else choices.pick((1, 2, 3))
    channels = 0 if choices.chance(3) else choices.pick((1, 2, 3, 5, 17, 67))
    spatial = []
    for _ in range(rank):
        room = MOST_ELEMENTS // math.prod((max(batch, 1), max(channels, 1), *spatial))
        longest = LONG_AXIS if choices.chance(15) else SHORT_AXIS
        spatial.append(choices.integer(1, max(1, min(longest, room))))
    return (batch, *spatial, channels) if channels_last else (batch, channels, *spatial)


def draw_axis(choices, size, dilated):
    """Kernel, stride, dilation and pads of one axis, usually but not always legal."""
    kernel = choices.integer(1, size + 2 if choices.chance(15) else min(size + 1, 6))
    if choices.chance(2):
        kernel = choices.pick((9, 64, 1280))
    dilation = choices.pick((1, 1, 2, 3)) if dilated else 1
    stride = choices.pick((1, 2, 3, 4, 9))
    begin, end = (choices.integer(0, min(kernel + 1, 6)) if choices.chance(50) else 0 for _ in range(2))
    short = (kernel - 1) * dilation + 1 - size - begin - end
    if short > 0 and choices.chance(90):
        end += short
    return kernel, stride, dilation, begin, min(end, 2 * SHORT_AXIS)


def draw_window(choices, operator, opset, spatial):
    """The attributes of a windowed operator."""

    def knows(attribute):
        since = SINCE[operator].get(attribute, 1)
        return since is not None and (opset is None or opset >= since)

    dilated = knows("dilations") and choices.chance(40)
    rows = [draw_axis(choices, size, dilated) for size in spatial]
    kernel, strides, dilations, begin, end = zip(*rows, strict=True)
    given = {"kernel_shape": kernel}
    if len(set(kernel)) == 1 and choices.chance(30):
        given["kernel_shape"] = kernel[0]
    if any(stride > 1 for stride in strides) and choices.chance(80):
        given["strides"] = strides
    if dilated:
        given["dilations"] = list(dilations)
    auto_pad = choices.pick((None, None, None, None, *AUTO_PADS))
    if auto_pad is not None:
        given["auto_pad"] = auto_pad
    if auto_pad in (None, "NOTSET", ""):
        if any(begin + end) or choices.chance(20):
            given["pads"] = begin + end
    elif choices.chance(20):
        given["pads"] = (0,) * 2 * len(spatial)
    for flag in ("ceil_mode", "count_include_pad", "storage_order"):
        if flag == "ceil_mode" or flag in SINCE[operator]:
            value = choices.pick((None, 0, 1, 1))
            if value is not None and knows(flag):
                given[flag] = value
    return given


def draw_attributes(choices, operator, opset, spatial):
    """The attributes of any of the operators."""
    given = draw_window(choices, operator, opset, spatial) if operator in SLIDING else {}
    if operator in ("LpPool", "GlobalLpPool"):
        p = draw_p(choices, opset)
        if p is not None:
            given["p"] = p
    return given


def taps_bound(attributes, spatial):
    """An upper bound on the number of taps of one plane (of its windows, inside the input)."""
    kernel = attributes["kernel_shape"]
    kernel = (kernel,) * len(spatial) if isinstance(kernel, int) else kernel
    strides = attributes.get("strides", (1,) * len(spatial))
    pads = attributes.get("pads", (0,) * 2 * len(spatial))
    padding = np.add(pads[: len(spatial)], pads[len(spatial) :])
    rows = zip(spatial, kernel, strides, padding.tolist(), strict=True)
    return math.prod(min(k, size) * ((size + pad) // stride + 1) for size, k, stride, pad in rows)


# Values


def largest(form):
    """The largest finite value of a float format."""
    return math.ldexp(2.0 - math.ldexp(1.0, 1 - form.precision), form.top - 1)


def special_values(form):
    """Values at the limits of a float format."""
    tiny = math.ldexp(1.0, -form.unit)
    normal = math.ldexp(1.0, form.precision - 1 - form.unit)
    huge = largest(form)
    return [math.nan, math.inf, -math.inf, -0.0, 0.0, tiny, -3 * tiny, normal, huge, -huge, 1.0, -1.0]


def draw_values(choices, dtype, shape):
    """An array with one kind of values, and the name of the kind."""
    generator = np.random.default_rng(choices.integer(0, 2**32 - 1))
    if dtype.name not in FORMATS:
        limits = np.iinfo(dtype)
        kind = choices.pick(("whole", "constant"))
        low, high = (limits.min, limits.max) if kind == "whole" else (limits.max, limits.max)
        return generator.integers(low, high, shape, np.int64, endpoint=True).astype(dtype), kind
    form = FORMATS[dtype.name]
    kind = choices.pick(("whole", "normal", "constant", "special", "signed zero", "subnormal", "huge", "spread"))
    if kind == "whole":
        wide = generator.integers(-9, 10, shape).astype(np.float64)
    elif kind == "constant":
        wide = np.full(shape, generator.choice([0.1, -7.0, *special_values(form)]))
    elif kind == "special":
        likely = generator.random() * 0.3
        wide = np.where(
            generator.random(shape) < likely,
            generator.choice(special_values(form), shape),
            generator.standard_normal(shape),
        )
    elif kind == "signed zero":
        wide = generator.choice([0.0, -0.0, -1.0], shape)
    elif kind == "subnormal":
        wide = np.ldexp(generator.integers(-(2**form.precision), 2**form.precision, shape).astype(float), -form.unit)
    elif kind == "huge":
        wide = generator.choice([1.0, -1.0, 0.9, 0.75], shape) * largest(form)
    elif kind == "spread":
        exponents = generator.integers(-form.unit, form.top - 1, shape)
        wide = np.ldexp(generator.uniform(-1, 1, shape), exponents)
    else:
        wide = generator.standard_normal(shape)
    x = wide.astype(dtype)
    return (any_nans(generator, x) if kind == "special" else x), kind


def any_nans(generator, x):
    """An array of floats whose NaNs have random signs and payloads. Some of them are signalling."""
    kind = np.dtype(f"u{x.dtype.itemsize}")
    bits = kind.itemsize * 8
    fraction = FORMATS[x.dtype.name].precision - 1
    exponent = (1 << bits - 1) - (1 << fraction)
    payloads = generator.integers(1, 1 << fraction, x.shape, np.uint64)
    payloads = np.where(generator.random(x.shape) < 0.3, np.uint64(1 << fraction - 1), payloads)
    signs = generator.integers(0, 2, x.shape, np.uint64) << np.uint64(bits - 1)
    nans = (signs | np.uint64(exponent) | payloads).astype(kind).view(x.dtype)
    return np.where(np.isnan(widened(x)), nans, x)


# Memory


def junk(shape, dtype):
    """An array filled with values that nobody should read."""
    size = math.prod(shape) * dtype.itemsize
    return np.full(size, JUNK, np.uint8).view(dtype).reshape(shape)


def gapped(shape, dtype):
    """A view of every second element of a larger array, and that array."""
    owner = junk(tuple(2 * size for size in shape), dtype)
    return owner[(slice(None, None, 2),) * len(shape)], owner


def layouts(x, channels_last):
    """The same array in every kind of memory: a dict from names to functions that make the view."""
    to, fro = ((1, -1), (-1, 1)) if not channels_last else ((-1, 1), (1, -1))
    backwards = (slice(None, None, -1),) * x.ndim

    def sliced():
        view = gapped(x.shape, x.dtype)[0]
        view[...] = x
        return view

    def broadcast(axis):
        return np.broadcast_to(x.take(range(min(1, x.shape[axis])), axis), x.shape)

    def at_offset(offset):
        view = np.frombuffer(bytearray(x.nbytes + offset), np.uint8)[offset:].view(x.dtype).reshape(x.shape)
        view[...] = x
        return view

    def read_only():
        view = x.copy()
        view.flags.writeable = False
        return view

    ways = {
        "C": x.copy,
        "Fortran": lambda: np.asfortranarray(x),
        "transposed": lambda: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, *to)), *fro),
        "backwards": lambda: np.ascontiguousarray(x[backwards])[backwards],
        "sliced": sliced,
        "first axis broadcast": lambda: broadcast(0),
        "last axis broadcast": lambda: broadcast(x.ndim - 1),
        "middle axis broadcast": lambda: broadcast(x.ndim // 2),
        "unaligned": lambda: at_offset(1),
        "read-only": read_only,
        "between vectors": lambda: at_offset(3 * x.dtype.itemsize),
    }
    if x.dtype.itemsize > 1 and x.dtype.name != "bfloat16":
        ways["byte-swapped"] = lambda: x.astype(x.dtype.newbyteorder())
    return ways


def draw_quantisation(choices, dtype, optional):
    """x_scale, x_zero_point, y_scale, y_zero_point. Missing zero points are None."""
    limits = np.iinfo(dtype)
    zero_points = [choices.pick((0, 1, -1, limits.min, limits.max, choices.integer(limits.min, limits.max)))]
    zero_points.append(choices.integer(limits.min, limits.max))
    zero_points = [dtype.type(min(max(zero, limits.min), limits.max)) for zero in zero_points]
    scales = [np.float32(choices.pick((1.0, 0.5, 0.1, 0.0173, 3.7, choices.integer(1, 10**6) / 10**6))) for _ in "xy"]
    values = (scales[0], zero_points[0], scales[1], zero_points[1])
    one_element = choices.chance(20)
    given = [np.array([value]) if one_element else np.array(value) for value in values]
    for place in (1, 3):
        if optional and choices.chance(10):
            given[place] = None
    return tuple(given)


def draw_pool(choices, operator):
    """One call of a pool with attributes and dtypes of its version. Its geometry may have to be refused."""
    opset = draw_opset(choices, operator)
    dtype = draw_dtype(choices, operator, opset)
    channels_last = operator == NHWC_MAX or choices.chance(50)
    shape = draw_shape(choices, operator, channels_last)
    spatial = shape[1:-1] if channels_last else shape[2:]
    attributes = draw_attributes(choices, operator, opset, spatial)
    planes = shape[0] * shape[-1 if channels_last else 1]
    if operator in SLIDING and planes * taps_bound(attributes, spatial) > MOST_TAPS:
        attributes["strides"] = tuple(max(2, size // 2) for size in spatial)
    x, values = draw_values(choices, dtype, shape)
    ways = layouts(x, channels_last)
    memory = choices.pick(tuple(ways)) if choices.chance(70) else "C"
    return Call(
        operator=operator,
        opset=opset,
        attributes=attributes,
        x=ways[memory](),
        values=values,
        memory=memory,
        channels_last=channels_last,
        further=draw_quantisation(choices, dtype, operator == QLINEAR_AVERAGE) if operator in QLINEAR else (),
        out=choices.pick(OUTS),
        num_threads=choices.pick(THREADS),
        style=choices.pick(STYLES),
    )


def make_out(kind, shape, dtype):
    """The array that a call passes for a result, and the whole memory around it."""
    if kind == "absent":
        return None, None
    if not shape:
        kind = "contiguous"
    if kind == "strided":
        return gapped(shape, dtype)
    if kind == "unaligned":
        memory = junk((math.prod(shape) + 2,), dtype).view(np.uint8)
        begin = dtype.itemsize + 1 if dtype.itemsize > 1 else 1
        return memory[begin:begin + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape), memory
    out = junk(shape, dtype)
    if kind == "backwards":
        out = out[(slice(None, None, -1),) * len(shape)]
    elif kind == "transposed":
        out = junk(shape[::-1], dtype).T
    elif kind == "byte-swapped" and dtype.itemsize > 1 and dtype.name != "bfloat16":
        out = out.view(dtype.newbyteorder())
    return out, out
