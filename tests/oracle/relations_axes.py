"""Relations between calls with named axes, and between results and their parts, which need no expected values."""

import math
from dataclasses import replace

import numpy as np
from calls import REGIONS, STYLES, THREADS, UNPOOL, layouts
from calls_axes import FUNCTIONS_ALONG_AXES, NAMED, SLIDING_NAMES, AxesCall, draw_any
from inapplicable import InapplicableError, require
from onnxpool_conformance.oracle import FORMATS, SLIDING, native, per_axis, widened
from support import assert_same_bits

import onnxpool

WINDOWED = tuple(name for name in FUNCTIONS_ALONG_AXES if name in SLIDING_NAMES)
WHOLE = tuple(name for name in FUNCTIONS_ALONG_AXES if name not in WINDOWED)
EXTREMA = tuple(name for name in FUNCTIONS_ALONG_AXES if "Max" in name or "Min" in name)
MEANS = tuple(name for name in FUNCTIONS_ALONG_AXES if "Average" in name)
OF_ONNX = tuple(name for name in FUNCTIONS_ALONG_AXES if "Min" not in name)
EXACT_P = (1, 2)  # norms whose roots are rounded as exactly as their sums
LARGEST = {1: 3, 2: 60}  # largest integers, by bytes of a dtype, whose sums are exact; 1000 for wider dtypes
PADDING = (0, 1, 5, 300, 70_000, 2**20, 2**33)
MOST_PARTS = 9
MOST_SECONDS = 0.002  # maximum time of a measurement


def results(call):
    """All results of a call. A call that is refused is skipped."""
    try:
        y = call.run(onnxpool)
    except (onnxpool.PoolError, onnxpool.PoolTypeError) as reason:
        raise InapplicableError from reason
    return list(y) if isinstance(y, tuple) else [y]


def held(y):
    """A result whose elements have an order: times as integers, bools by their truth."""
    return y.view(np.int64) if y.dtype.kind in "mM" else y.view(np.uint8) != 0 if y.dtype.kind == "b" else y


def same(first, second):
    """Assert that results have the same bits."""
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        assert_same_bits(*(np.ascontiguousarray(held(y)).reshape(y.shape) for y in (one, other)))


def equal(first, second):
    """Assert that results have the same values, whatever the sign of a zero."""
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        one, other = (widened(y) if y.dtype.name in FORMATS else held(y) for y in (one, other))
        np.testing.assert_array_equal(one, other, strict=True)


def drawn(choices, operators):
    """A random call without `out`, whose axes are numbered from 0."""
    call = replace(draw_any(choices, operators), out="absent")
    require(not call.misplaced)
    axes = (call.axes,) if isinstance(call.axes, int) else call.axes
    require(all(-call.x.ndim <= axis < call.x.ndim for axis in axes))
    return replace(call, axes=tuple(axis % call.x.ndim for axis in axes))


def with_values(call, x):
    """The call on another array in the same kind of memory."""
    x = np.asarray(x)
    ways = layouts(x, False)
    usable = call.memory in ways and "broadcast" not in call.memory and (x.ndim > 1 or call.memory != "transposed")
    return replace(call, x=ways[call.memory if usable else "C"]())


def whole(choices, call):
    """The call on small integers, whose sums, and sums of powers, are exact in every order."""
    attributes = dict(call.attributes)
    if "p" in attributes:
        p = choices.pick(EXACT_P)
        attributes["p"] = float(p) if call.opset == 1 else p
    dtype = native(call.x.dtype)
    require(dtype.kind not in "cg")
    most = LARGEST.get(dtype.itemsize, 1000) if dtype.kind != "b" else 1
    generator = np.random.default_rng(choices.integer(0, 2**32 - 1))
    values = generator.integers(0 if dtype.kind in "ub" else -most, most + 1, call.x.shape)
    made = values.view(np.int64).view(dtype) if dtype.kind in "mM" else values.astype(dtype)
    return with_values(replace(call, attributes=attributes, values="whole"), made)


def exact(choices, operators):
    """A random call whose results do not depend on the order in which they are computed."""
    call = drawn(choices, operators)
    return call if call.operator in EXTREMA else whole(choices, call)


def in_order(row, order):
    """The values of some axes."""
    return tuple(row[place] for place in order)


# Relations


def axes_in_any_order(choices):
    """Permuting axes together with attribute values, or counting axes from the end, changes no bit of the result."""
    call = drawn(choices, tuple(FUNCTIONS_ALONG_AXES))
    rank, attributes = len(call.axes), dict(call.attributes)
    order = np.random.default_rng(choices.integer(0, 2**32 - 1)).permutation(rank).tolist()
    for name in ("kernel_shape", "strides", "dilations"):
        if name in attributes:
            attributes[name] = in_order(per_axis(attributes[name], rank, None), order)
    if "pads" in attributes:
        pads = per_axis(attributes["pads"], 2 * rank, 0)
        attributes["pads"] = in_order(pads, (*order, *(rank + place for place in order)))
    axes = tuple(axis - call.x.ndim if choices.chance(50) else axis for axis in in_order(call.axes, order))
    same(results(call), results(replace(call, axes=axes, attributes=attributes)))


def axes_of_the_transposed(choices):
    """The result for a transposed array is the transposed result."""
    call = exact(choices, tuple(FUNCTIONS_ALONG_AXES))
    call = replace(call, keepdims=None)
    order = np.random.default_rng(choices.integer(0, 2**32 - 1)).permutation(call.x.ndim).tolist()
    other = replace(call, x=call.x.transpose(order), axes=tuple(order.index(axis) for axis in call.axes))
    y, turned = results(call)[:1], results(other)[:1]  # Indices address another array
    equal([y[0].transpose(order)], turned)


def dropped_axes(choices):
    """Without `keepdims`, the result has the same bits, and lacks the pooled axes."""
    call = replace(drawn(choices, WHOLE), keepdims=False)
    (y,), (kept,) = results(call), results(replace(call, keepdims=True))
    assert y.flags.c_contiguous
    same([y], [kept.squeeze(call.axes)])


def axes_of_onnx(choices):
    """A call of ONNX equals the call with the spatial axes as `axes`."""
    call = replace(draw_any(choices, tuple(name.removesuffix(NAMED) for name in OF_ONNX)), out="absent")
    call = replace(call, style=choices.pick(STYLES))
    windows = call.operator.split()[0] in SLIDING
    rank, first = call.x.ndim - 2, 1 if call.channels_last else 2
    require(rank > 0)
    if not windows and "Max" not in call.operator:
        call = whole(choices, call)
    named = AxesCall(call.operator + NAMED, call.opset, call.attributes, call.x, call.values, call.memory, False,
                     axes=tuple(range(first, first + rank)), num_threads=call.num_threads, style=call.style)
    y, other = results(call), results(named)
    (same if windows else equal)(y[:1], other[:1])


def with_numbers_left_out(choices):
    """Skipping NaNs equals replacing them: by -inf or inf for extrema, and otherwise by zeros that do not count."""
    call = drawn(choices, tuple(FUNCTIONS_ALONG_AXES))
    require(call.x.dtype.name in FORMATS and "Indices" not in call.operator)
    call = replace(call, attributes={name: value for name, value in call.attributes.items()
                                     if name != "count_include_pad"})
    missing = np.random.default_rng(choices.integer(0, 2**32 - 1)).random(call.x.shape) < choices.pick((0.3, 0.05, 0.9))
    filling = math.inf if "Min" in call.operator else -math.inf if "Max" in call.operator else 0
    call = whole(choices, call)
    numbers = call.x.astype(native(call.x.dtype))
    skipped, = results(replace(with_values(call, np.where(missing, np.nan, numbers).astype(numbers.dtype)),
                               skipna=True))
    filled, = results(replace(with_values(call, np.where(missing, filling, numbers).astype(numbers.dtype)),
                              skipna=False))
    skipped, filled = widened(skipped), widened(filled)
    valid = (~missing).astype(np.float64)
    mean = replace(with_values(call, valid), operator=("Global" if "Global" in call.operator else "") +
                   "AveragePool" + NAMED, dtype=None, skipna=False,
                   attributes={name: value for name, value in call.attributes.items()
                               if name not in ("p", "storage_order")})
    share, = results(mean)
    none = ~(share > 0)
    assert (np.isnan(skipped) == none).all()
    if "Average" in call.operator:
        near = 1e-2 if numbers.itemsize == 2 else 1e-5
        np.testing.assert_allclose((skipped * share)[~none], filled[~none], near, near)
    else:
        np.testing.assert_array_equal(skipped[~none], filled[~none])


def nothing_to_leave_out(choices):
    """Skipping NaNs changes no value if there are none, except in windows entirely in padding."""
    call = whole(choices, drawn(choices, tuple(FUNCTIONS_ALONG_AXES)))
    y, skipped = (results(replace(call, skipna=skipna)) for skipna in (False, True))
    kept = skipped[0] == skipped[0]
    equal([part[kept] for part in y], [part[kept] for part in skipped])


def means_of_integers(choices):
    """A mean of integers equals the mean of the same numbers in float64, or the integer nearest to it."""
    call = whole(choices, drawn(choices, MEANS))
    require(call.x.dtype.kind in "biu")
    mean, = results(replace(with_values(call, call.x.astype(np.float64)), dtype=None, skipna=False))
    equal([mean], results(replace(call, dtype=choices.pick((None, "float64")))))
    if call.x.dtype.kind != "b":
        y, = results(replace(call, dtype=call.x.dtype))
        nearest = np.rint(np.where(np.isnan(mean), 0, mean)).astype(y.dtype)
        np.testing.assert_array_equal(y, nearest)
    half, = results(replace(call, dtype="float32"))
    np.testing.assert_allclose(half, mean, 2.0**-23)


def wider_means(choices):
    """A mean in a wider dtype equals the mean of the converted array."""
    call = drawn(choices, MEANS)
    require(call.x.dtype.name in ("float16", "bfloat16", "float32"))
    wider = np.dtype(choices.pick(("float32", "float64")))
    with np.errstate(invalid="ignore"):
        converted = with_values(call, call.x.astype(wider))
    same(results(replace(call, dtype=wider)), results(replace(converted, dtype=None)))


def complements(choices):
    """A minimum is the complement of the maximum of complements, and so is its index."""
    call = drawn(choices, tuple(name for name in EXTREMA if "Min" in name))
    x = call.x.astype(native(call.x.dtype))
    require(x.dtype.kind not in "cg")

    def complement(y):
        if y.dtype.kind in "mM":
            numbers = y.view(np.int64)
            return np.where(numbers == np.iinfo(np.int64).min, numbers, -numbers).view(y.dtype)
        return ~y if y.dtype.kind in "iu" else y.view(np.uint8) == 0 if y.dtype.kind == "b" else -y

    other = replace(with_values(call, complement(x)), operator=call.operator.replace("Min", "Max"))
    (least, *first), (most, *place) = results(call), results(other)
    equal([least, *first], [complement(most), *place])


def truth_of_bools(choices):
    """A bool is true for any byte but 0."""
    call = drawn(choices, (*EXTREMA, *MEANS))
    require(call.x.dtype.kind == "b")
    equal(results(call), results(with_values(call, np.ascontiguousarray(call.x).view(np.uint8) != 0)))


def whole_in_padding(choices):
    """A global pool equals a windowed pool with one window, which has any amount of padding around the array."""
    call = exact(choices, tuple(name for name in WHOLE if "Min" not in name or "Global" in name))
    sizes = [call.x.shape[axis] for axis in call.axes]
    begin, end = (tuple(choices.pick(PADDING) for _ in sizes) for _ in "be")
    kernel = tuple(map(sum, zip(sizes, begin, end, strict=True)))
    require(math.prod(kernel) < 2**62)
    operator = call.operator.removeprefix("Global")
    attributes = call.attributes | {"kernel_shape": kernel, "pads": begin + end}
    wide = replace(call, operator=operator, keepdims=None, attributes=attributes, style=choices.pick(STYLES))
    equal(results(replace(call, keepdims=None)), results(wide))


def threads_and_styles_along_axes(choices):
    """Neither the number of threads nor the way of calling changes a bit of the result."""
    call = drawn(choices, tuple(FUNCTIONS_ALONG_AXES))
    if call.operator in WHOLE and call.style == "tiles":  # tiles sum whole axes in row-major order
        call = replace(call, style="plan")
    first = results(call)
    for threads, style in zip(THREADS, STYLES * 2, strict=False):
        same(first, results(replace(call, num_threads=threads, style=style)))


def memory_along_axes(choices):
    """Strides, byte order and alignment change no value of a windowed pool, nor of any other on small integers."""
    call = drawn(choices, tuple(FUNCTIONS_ALONG_AXES))
    call = call if call.operator in WINDOWED else whole(choices, call)
    ways = layouts(np.ascontiguousarray(call.x).reshape(call.x.shape), False)
    usable = [way for way in ways if "broadcast" not in way and (way != "transposed" or call.x.ndim > 1)]
    equal(results(call), results(replace(call, x=ways[choices.pick(usable)]())))


# Plans


def limit(choices, nbytes):
    """Arguments that cut a result or an input into a few parts."""
    return {"n": choices.integer(1, MOST_PARTS)} if choices.chance(50) else {
        "max_bytes": max(1, nbytes // choices.integer(1, MOST_PARTS) + 64)}


def planned(call):
    """The plan of a call."""
    try:
        return call.planned(onnxpool)
    except (onnxpool.PoolError, onnxpool.PoolTypeError) as reason:
        raise InapplicableError from reason


def cut(choices, size):
    """A slice of an axis."""
    begin, end = sorted(choices.integer(0, size) for _ in "be")
    return slice(begin, end)


def parts(choices):
    """Parts of a result have the bits of the whole result."""
    call = replace(draw_any(choices), out="absent")
    require(call.operator not in (UNPOOL, *REGIONS))
    call = replace(call, x=np.ascontiguousarray(call.x).reshape(call.x.shape))
    plan = planned(call)
    y = plan(*call.inputs, num_threads=call.num_threads)
    y = y if isinstance(y, tuple) else (y,)
    try:
        cuts = list(plan.tiles(**limit(choices, call.x.nbytes + y[0].nbytes)))
    except onnxpool.PoolError as reason:
        raise InapplicableError from reason
    cuts.append(plan.tile(tuple(cut(choices, size) for size in plan.output_shape)))
    seen = np.zeros(plan.output_shape, np.uint8)
    for part in cuts:
        found = part(call.x[part.inputs], *call.further, num_threads=call.num_threads)
        same([whole[part.outputs] for whole in y], found if isinstance(found, tuple) else (found,))
        seen[part.outputs] += part is not cuts[-1]
    assert (seen == 1).all()


def shares(choices):
    """The partial results of an input's shares combine to the result. Small integers give the same values."""
    call = exact(choices, WHOLE)
    plan = planned(call)
    y = plan(call.x)
    try:
        found = plan.combine([share(call.x[share.inputs]) for share in plan.partials(
            **limit(choices, 2 * call.x.nbytes))])
    except onnxpool.PoolError as reason:
        raise InapplicableError from reason
    if y.dtype.name not in FORMATS or call.operator in EXTREMA:
        equal([y], [found])
    else:
        unit = 2.0 ** -FORMATS[y.dtype.name].precision
        largest = float(np.abs(call.x).max(initial=0))
        np.testing.assert_allclose(widened(found), widened(y), 32 * unit, 32 * unit * largest)


def measured(choices):
    """The fastest way to compute a result gives the same bits as the usual one."""
    call = replace(draw_any(choices), out="absent")
    require(call.operator not in (UNPOOL, *REGIONS))
    plan = planned(call)
    y = plan(*call.inputs)
    given = {"x": choices.pick((None, call.x)), "num_threads": choices.pick(THREADS[:3])}
    other = plan.tuned(**given, seconds=choices.pick((MOST_SECONDS / 4, MOST_SECONDS)))(*call.inputs)
    same(*(found if isinstance(found, tuple) else (found,) for found in (y, other)))


RELATIONS_ALONG_AXES = {function.__name__: function for function in (
    axes_in_any_order, axes_of_the_transposed, dropped_axes, axes_of_onnx, with_numbers_left_out, nothing_to_leave_out,
    means_of_integers, wider_means, complements, truth_of_bools, whole_in_padding, threads_and_styles_along_axes,
    memory_along_axes, parts, shares, measured)}
