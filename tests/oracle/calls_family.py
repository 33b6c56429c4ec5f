"""Random calls of the operators with further input arrays: MaxUnpool, MaxRoiPool and RoiAlign."""

import math

import numpy as np
from calls import (
    FUNCTIONS,
    INDICES,
    OUTS,
    QLINEAR_AVERAGE,
    REGIONS,
    STYLES,
    THREADS,
    UNPOOL,
    WINDOWED,
    Call,
    draw_dtype,
    draw_opset,
    draw_pool,
    draw_shape,
    draw_values,
    layouts,
)
from onnxpool_conformance.oracle_unpool import inferred

MOST_CELLS = 4000  # maximum elements of a result
MOST_SAMPLES = 6000  # maximum samples of a call of RoiAlign
MOST_BINS = 60  # enough that floor and ceil of float32 products decide which elements a bin contains
BAD_PLACES = (-1, -2, 2**31, 2**40, 2**63 - 1, -(2**63))
SCALES = (1.0, 0.5, 0.0625, 0.1, 2.0, 1 / 3)


def draw_memory(choices, array, channels_last=False):
    """The array in some kind of memory."""
    ways = layouts(array, channels_last)
    usable = tuple(way for way in ways if "broadcast" not in way and (way != "transposed" or array.ndim > 1))
    return ways[choices.pick(usable) if choices.chance(60) else "C"]()


def rounded(number, dtype):
    """An attribute rounded to the precision of coordinates. Calls on float64 data would not round the attribute
    otherwise."""
    return number if dtype.name != "float64" else float(np.float32(number))


def assemble(choices, operator, opset, attributes, x, values, channels_last, further):
    """A call with these arguments, in some memory, style and number of threads."""
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
        further=further,
        out=choices.pick(OUTS),
        num_threads=choices.pick(THREADS),
        style=choices.pick(STYLES),
    )


# MaxUnpool


def draw_places(choices, shape, size):
    """Indices of some shape into a tensor of `size` elements: distinct, repeated, all equal, or with one bad index."""
    generator = np.random.default_rng(choices.integer(0, 2**32 - 1))
    count = math.prod(shape)
    kind = choices.pick(("distinct", "any", "one", "near", "bad"))
    if size == 0 or count == 0:
        return np.zeros(shape, np.int64)
    if kind == "distinct" and count <= size:
        places = generator.permutation(size)[:count]
    elif kind == "one":
        places = np.full(count, generator.integers(size))
    elif kind == "near":
        places = np.minimum(np.arange(count) * size // count + generator.integers(0, 3, count), size - 1)
    else:
        places = generator.integers(0, size, count)
    places = places.astype(np.int64)
    if kind == "bad" and choices.chance(40):
        places[generator.integers(count)] = choices.pick((size, size + 1, *BAD_PLACES))
    return places.reshape(shape)


def draw_output_shape(choices, inner, channels_last):
    """The shape of the result, usually at least as large as the inferred shape."""
    shape = list(inner)
    for axis in range(2, len(shape)):
        shape[axis] += choices.pick((0, 1, 2, 5))
    if choices.chance(10):
        shape[choices.integer(0, len(shape) - 1)] += choices.pick((-1, 1))
    if channels_last:
        shape = [shape[0], *shape[2:], shape[1]]
    return np.array(shape, np.int64)


def draw_unpool(choices, operator):
    """One call of MaxUnpool. Its geometry and its indices may have to be refused."""
    opset = draw_opset(choices, operator)
    dtype = draw_dtype(choices, operator, opset)
    channels_last = choices.chance(50)
    shape = draw_shape(choices, operator, channels_last)
    spatial = shape[1:-1] if channels_last else shape[2:]
    planes = shape[0] * (shape[-1] if channels_last else shape[1])
    kernel = tuple(choices.integer(1, 5) for _ in spatial)
    given = {"kernel_shape": kernel}
    if len(set(kernel)) == 1 and choices.chance(30):
        given["kernel_shape"] = kernel[0]
    if choices.chance(70):
        given["strides"] = tuple(choices.pick((1, 2, 3, 4)) for _ in spatial)
    if choices.chance(40):
        given["pads"] = tuple(choices.pick((0, 0, 1, 2)) for _ in (*spatial, *spatial))
    if math.prod(max(1, size) for size in inferred(spatial, given)) * planes > MOST_CELLS * 4:
        given["strides"] = (1,) * len(spatial)
    x, values = draw_values(choices, dtype, shape)
    inner = (shape[0], shape[-1] if channels_last else shape[1], *inferred(spatial, given))
    places = draw_places(choices, shape, max(0, math.prod(inner)))
    further = [draw_memory(choices, places, channels_last)]
    if choices.chance(40):
        further.append(draw_memory(choices, draw_output_shape(choices, inner, channels_last)))
    elif choices.chance(10):
        further.append(None)
    return assemble(choices, operator, opset, given, x, values, channels_last, tuple(further))


# MaxRoiPool, RoiAlign


def draw_image(choices, dtype, channels_last):
    """x with two spatial axes."""
    batch = choices.pick((2, 1, 3))
    channels = 0 if choices.chance(3) else choices.pick((1, 2, 3, 5, 17, 67))
    longest = 40 if channels < 6 and choices.chance(20) else 9
    spatial = (choices.integer(1, longest), choices.integer(1, longest))
    shape = (batch, *spatial, channels) if channels_last else (batch, channels, *spatial)
    return draw_values(choices, dtype, shape)


def draw_corners(choices, generator, count, size, scale):
    """x1, y1, x2, y2 of some regions: inside, across the edge, outside, inverted, at integers and at halves."""
    height, width = size
    reach = np.array([width, height, width, height]) / scale
    kind = choices.pick(("inside", "around", "whole", "half", "tiny", "outside", "inverted", "edge", "far"))
    corners = generator.uniform(0, 1, (count, 4))
    if kind == "around":
        corners = corners * 2 - 0.5
    elif kind == "outside":
        corners += generator.choice([-3, 3], (count, 1))
    elif kind == "tiny":
        corners[:, 2:] = corners[:, :2] + generator.uniform(0, 0.05, (count, 2))
    elif kind == "edge":
        corners = generator.choice([0, 1, -1 / max(size), 1 - 1 / max(size)], (count, 4))
    elif kind == "far":
        powers = generator.uniform(0, choices.pick((32, 130)), (count, 4))
        corners = generator.choice([-1, 1], (count, 4)) * 2.0**powers
    if kind != "inverted":
        first, last = corners[:, :2], corners[:, 2:]
        corners = np.concatenate([np.minimum(first, last), np.maximum(first, last)], 1)
    corners = corners * reach
    if kind in ("whole", "half"):
        step = 1 if kind == "whole" else 0.5 / scale
        corners = np.rint(corners / step) * step
    return corners


def draw_rois(choices, dtype, images, size, scale, batch_first):
    """Regions in the dtype of the data, and the numbers of their images, which also precede regions if requested."""
    generator = np.random.default_rng(choices.integer(0, 2**32 - 1))
    count = 0 if choices.chance(5) else choices.integer(1, 5)
    corners = draw_corners(choices, generator, count, size, scale)
    places = generator.integers(0, images, count)
    if count and choices.chance(4):
        places[generator.integers(count)] = choices.pick((images, -1))
    rows = np.concatenate([places[:, None], corners], 1) if batch_first else corners
    with np.errstate(over="ignore"):  # far regions, whose corners then become infinite
        rows = rows.astype(dtype)
    if count and choices.chance(3):
        rows[generator.integers(count), -1] = choices.pick((math.nan, math.inf, -math.inf))
    return rows, places.astype(np.int64)


def draw_roi_align_attributes(choices, opset, dtype, scale, widest, channels):
    """Attributes of RoiAlign that keep the call small."""
    pooled = [choices.integer(1, 5) for _ in range(2)]
    given = {}
    if choices.chance(90):
        given["output_height"], given["output_width"] = pooled
    if choices.chance(60):
        given["sampling_ratio"] = choices.pick((0, 1, 2, 3, 4))
    if scale != 1 or choices.chance(20):
        given["spatial_scale"] = scale
    if choices.chance(60):
        given["mode"] = choices.pick(("avg", "max"))
    if (opset is None or opset >= 16) and choices.chance(60):
        given["coordinate_transformation_mode"] = choices.pick(("half_pixel", "output_half_pixel"))
    ratio = given.get("sampling_ratio", 0)
    per_axis = max(5 * ratio, 3 * widest) if ratio else 3 * widest
    if channels * per_axis**2 > MOST_SAMPLES:
        given["sampling_ratio"] = 1
    return given


def draw_regions(choices, operator):
    """One call on regions of interest. A few of these calls have to be refused."""
    opset = draw_opset(choices, operator)
    dtype = draw_dtype(choices, operator, opset)
    channels_last = choices.chance(50)
    x, values = draw_image(choices, dtype, channels_last)
    size = x.shape[1:3] if channels_last else x.shape[2:]
    channels = x.shape[-1 if channels_last else 1]
    scale = rounded(choices.pick(SCALES), dtype)
    rois, places = draw_rois(choices, dtype, len(x), size, scale, operator == "MaxRoiPool")
    further = [draw_memory(choices, rois)]
    if operator == "MaxRoiPool":
        most = MOST_BINS if channels * len(rois) <= 4 and choices.chance(30) else 6
        given = {"pooled_shape": (choices.integer(1, most), choices.integer(1, most))}
        if scale != 1 or choices.chance(20):
            given["spatial_scale"] = scale
    else:
        given = draw_roi_align_attributes(choices, opset, dtype, scale, max(size), max(1, channels * len(rois)))
        further.append(draw_memory(choices, places))
    return assemble(choices, operator, opset, given, x, values, channels_last, tuple(further))


DRAWERS = {UNPOOL: draw_unpool, **dict.fromkeys(REGIONS, draw_regions)}
WEIGHTED = (*WINDOWED, *WINDOWED, *FUNCTIONS, INDICES, QLINEAR_AVERAGE)


def draw_call(choices, operators=WEIGHTED):
    """A call of an operator that is drawn from those given."""
    operator = choices.pick(operators)
    return DRAWERS.get(operator, draw_pool)(choices, operator)
