"""Relations between calls, which need no expected values. Each draws a random call and compares it with others."""

import math
from dataclasses import replace

import numpy as np
from calls import (
    FUNCTIONS,
    INDICES,
    POOLS,
    QLINEAR,
    REGIONS,
    SLIDING,
    STYLES,
    THREADS,
    UNPOOL,
    WINDOWED,
    layouts,
)
from calls_axes import draw_any
from inapplicable import InapplicableError, require
from onnxpool_conformance.oracle import (
    FORMATS,
    MAX,
    NHWC_MAX,
    QLINEAR_AVERAGE,
    QLINEAR_GLOBAL,
    covers_all,
    native,
    per_axis,
    widened,
)
from relations_axes import RELATIONS_ALONG_AXES
from support import assert_same_bits, assert_same_values, least, taps, to_first, to_last

import onnxpool

MAXIMA = (*MAX, INDICES)
GLOBAL = {"AveragePool": "GlobalAveragePool", "MaxPool": "GlobalMaxPool", "LpPool": "GlobalLpPool",
          QLINEAR_AVERAGE: QLINEAR_GLOBAL}
EXACT_P = (1, 2)  # norms whose roots are rounded as exactly as their sums
MOST_ELEMENTS = 20_000  # maximum elements of an input that a relation enlarges
MOST_TAPS = 10**6  # maximum taps of windows that NumPy reduces
MOST_DILATION = 3
MOST_BORDER = 12
SHIFT = 16  # makes all small integers positive


def results(call):
    """All results of a call, channels first. A call that is refused is skipped."""
    try:
        y = call.run(onnxpool)
    except (onnxpool.PoolError, onnxpool.PoolTypeError) as reason:
        raise InapplicableError from reason
    return [to_first(part, call.channels_last) for part in (y if isinstance(y, tuple) else (y,))]


def same(first, second):
    """Assert that results have the same bits."""
    for one, other in zip(first, second, strict=True):
        assert_same_bits(np.ascontiguousarray(one), np.ascontiguousarray(other))


def equal(first, second):
    """Assert that results have the same values, whatever the sign of a zero."""
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        assert_same_values(one, other)


# Random calls


def drawn(choices, operators):
    """A random call without `out`, which is not made in parts."""
    call = draw_any(choices, operators)
    return replace(call, out="absent", style="plan" if call.style == "tiles" else call.style)


def whole(choices, call):
    """The call on small integers, whose sums, and sums of powers, are exact in every order."""
    attributes = dict(call.attributes)
    if "p" in attributes:
        attributes["p"] = choices.pick(EXACT_P)
        attributes["p"] = float(attributes["p"]) if call.opset == 1 else attributes["p"]
    low = 0 if call.x.dtype.kind == "u" else -9
    generator = np.random.default_rng(choices.integer(0, 2**32 - 1))
    values = generator.integers(low, 10, call.x.shape).astype(call.x.dtype)
    return with_array(replace(call, attributes=attributes, values="whole"), values)


def with_array(call, x):
    """The call on another array in the same kind of memory."""
    ways = layouts(np.asarray(x, native(call.x.dtype)), call.channels_last)
    return replace(call, x=ways[call.memory if "broadcast" not in call.memory else "C"]())


def with_first(call, x):
    """The call on a channels-first array, which is converted to the call's layout."""
    return with_array(call, to_last(x, call.channels_last))


def spatial(call):
    """The sizes of the spatial axes."""
    return call.x.shape[1:-1] if call.channels_last else call.x.shape[2:]


def plain_window(call):
    """The call without `auto_pad` and `ceil_mode`, and the kernel, strides, dilations and pads of every axis."""
    rank = len(spatial(call))
    attributes = {name: value for name, value in call.attributes.items() if name not in ("auto_pad", "ceil_mode")}
    found = (per_axis(attributes["kernel_shape"], rank, None), per_axis(attributes.get("strides"), rank, 1),
             per_axis(attributes.get("dilations"), rank, 1), per_axis(attributes.get("pads"), 2 * rank, 0))
    return replace(call, attributes=attributes), *found


def changed(call, **attributes):
    """The call with other attributes."""
    return replace(call, attributes=call.attributes | attributes)


def exact(choices, operators):
    """A random call whose results do not depend on the order in which they are computed."""
    call = drawn(choices, operators)
    return call if call.operator in (*MAXIMA, *QLINEAR) else whole(choices, call)


# Relations


def threads_and_styles(choices):
    """Neither the number of threads nor the way of calling changes a bit of the result."""
    call = drawn(choices, tuple(FUNCTIONS))
    first = results(call)
    for threads, style in zip(THREADS, STYLES * 2, strict=False):
        same(first, results(replace(call, num_threads=threads, style=style)))


def memory(choices):
    """Strides, byte order and alignment change no bit of a windowed pool, nor of any other on small integers."""
    call = drawn(choices, tuple(FUNCTIONS))
    call = call if call.operator in SLIDING else whole(choices, call)
    ways = layouts(np.ascontiguousarray(call.x).astype(call.x.dtype, copy=False), call.channels_last)
    usable = [way for way in ways if "broadcast" not in way]
    y = results(call)
    equal(y, results(replace(call, x=ways[choices.pick(usable)]())))


def layout(choices):
    """A call on the transposed array returns the transposed result. For global sums, this holds on small integers."""
    call = drawn(choices, tuple(name for name in FUNCTIONS if name != NHWC_MAX))
    call = call if call.operator in (*SLIDING, UNPOOL, *REGIONS) else whole(choices, call)
    other = not call.channels_last
    further = list(call.further)
    if call.operator == UNPOOL:
        further[0] = to_last(to_first(further[0], call.channels_last), other)
        if len(further) > 1 and further[1] is not None:
            require(len(further[1]) == call.x.ndim)
            shape = further[1].tolist()
            batch, channels, *rest = (shape[0], shape[-1], *shape[1:-1]) if call.channels_last else shape
            further[1] = np.array([batch, *rest, channels] if other else [batch, channels, *rest])
    turned = replace(call, x=to_last(to_first(call.x, call.channels_last), other), channels_last=other,
                     further=tuple(further))
    check = same if call.operator in (*SLIDING, UNPOOL) else equal
    check(results(call), results(turned))


def batch(choices):
    """The images of a batch, and the regions of interest of a call, are independent, bit for bit."""
    call = drawn(choices, tuple(name for name in FUNCTIONS if name != UNPOOL))
    regions = call.operator in REGIONS
    count = len(call.further[0]) if regions else len(call.x)
    require(count > 0)
    y = results(call)
    parts = []
    for n in range(count):
        alone = replace(call, further=tuple(given[n:n + 1] for given in call.further)) if regions else \
            replace(call, x=call.x[n:n + 1])
        parts.append(results(alone))
        if call.operator == INDICES:
            places = parts[-1][1]
            parts[-1][1] = np.where(places < 0, places, places + n * math.prod(call.x.shape[1:]))
    same(y, [np.concatenate(several) for several in zip(*parts, strict=True)])


def channels(choices):
    """Permuting the channels permutes the result, bit for bit. For global pools, this holds in one kind of memory."""
    call = drawn(choices, tuple(name for name in FUNCTIONS if name != UNPOOL))
    if call.operator.startswith("Global"):
        call = replace(call, x=np.ascontiguousarray(call.x), memory="C")
    axis = -1 if call.channels_last else 1
    order = np.random.default_rng(choices.integer(0, 2**32 - 1)).permutation(call.x.shape[axis])
    y = results(call)
    permuted = results(replace(call, x=call.x.take(order, axis)))
    if call.operator == INDICES:
        for places in (y, permuted):
            places[1] = np.where(places[1] < 0, places[1], places[1] % math.prod(spatial(call)))
    same([part.take(order, 1) for part in y], permuted)


def identity(choices):
    """A window of one element with stride 1 returns the input, or |x| for a norm, and the places of the input."""
    call = drawn(choices, SLIDING)
    call = call if call.operator in MAXIMA else whole(choices, call)
    rank = len(spatial(call))
    require(rank > 0)
    keep = {name: call.attributes[name] for name in ("p", "count_include_pad") if name in call.attributes}
    call = replace(call, attributes=keep | {"kernel_shape": (1,) * rank})
    if call.operator == QLINEAR_AVERAGE:
        require(math.prod(spatial(call)) > 1)
        call = replace(call, further=(call.further[0], call.further[1]) * 2)
    y = results(call)
    x = to_first(call.x, call.channels_last)
    wanted = [np.abs(x) if call.operator == "LpPool" else x]
    if call.operator == INDICES:
        wanted.append(np.arange(x.size).reshape(x.shape))
    equal(y, [part.astype(result.dtype) for part, result in zip(wanted, y, strict=True)])


def minimum(choices):
    """The maximum of -x is minus the minimum of x, which NumPy computes tap by tap. Bytes are complemented."""
    call = drawn(choices, ("MaxPool", INDICES, NHWC_MAX))
    call, kernel, strides, dilations, pads = plain_window(call)
    x = to_first(call.x, call.channels_last)
    require(x.size * math.prod(kernel) < MOST_TAPS and max(pads) <= MOST_BORDER)
    wide = widened(x) if x.dtype.name in FORMATS else x.astype(np.int64)
    turned = -wide if wide.dtype == np.float64 else -1 - wide if x.dtype == np.int8 else 255 - wide
    y = results(with_first(call, turned))[0].astype(wide.dtype)
    y = -y if wide.dtype == np.float64 else -1 - y if x.dtype == np.int8 else 255 - y
    nothing = math.inf if wide.dtype == np.float64 else np.iinfo(x.dtype).max
    assert_same_values(y, np.minimum.reduce(list(taps(wide, kernel, strides, dilations, pads, value=nothing))))


def monotone(choices):
    """If no element becomes smaller, no maximum, mean or quantised mean does."""
    call = drawn(choices, tuple(name for name in POOLS if "Lp" not in name))
    call = whole(choices, call)
    more = np.random.default_rng(choices.integer(0, 2**32 - 1)).integers(0, 3, call.x.shape)
    larger = with_array(call, call.x.astype(np.int64) + more)
    (y,), (other,) = results(call), results(larger)
    with np.errstate(invalid="ignore"):  # comparing bfloat16 with a NaN warns
        assert np.all((y <= other) | ((y != y) & (other != other)))


def maxima(choices):
    """The pool of an elementwise maximum is the elementwise maximum of the pools."""
    call = drawn(choices, MAXIMA)
    low = 0 if call.x.dtype.kind == "u" else -2
    other = np.random.default_rng(choices.integer(0, 2**32 - 1)).integers(low, 3, call.x.shape).astype(call.x.dtype)
    with np.errstate(invalid="ignore"):
        first, second, both = (results(replace(call, x=x)) for x in (call.x, other, np.maximum(call.x, other)))
        expected = np.maximum(first[0], second[0])
    assert_same_values(both[0], expected)


def powers_of_two(choices):
    """Scaling the input by a power of two, or adding a whole number, has the same effect on means. Norms are scaled."""
    call = whole(choices, drawn(choices, ("AveragePool", "LpPool", "GlobalAveragePool", "GlobalLpPool")))
    x = call.x.astype(np.float64)
    form = FORMATS[call.x.dtype.name]
    y = results(call)[0].astype(np.float64)
    power = choices.integer(-8, 4)
    scaled = results(with_array(call, np.ldexp(x, power)))[0].astype(np.float64)
    with np.errstate(over="ignore"):  # beyond the range of the dtype, both are infinite
        wanted = np.ldexp(y, power).astype(call.x.dtype).astype(np.float64)
    sizes = np.minimum(np.abs(y), np.abs(np.ldexp(y, power)))
    normal = (y != y) | (sizes >= math.ldexp(1.0, form.precision - 1 - form.unit))
    assert_same_values(scaled[normal], wanted[normal])
    assert np.all(np.abs(scaled[y == 0]) <= math.ldexp(1.0, max(power, 0) - form.unit))
    if "Average" in call.operator and not call.attributes.get("count_include_pad"):
        moved = results(with_array(call, x + SHIFT))[0].astype(np.float64)
        assert np.all((np.abs(moved - SHIFT - y) <= 2 * SHIFT * 2.0 ** (1 - form.precision)) | (y != y))


def global_pool(choices):
    """A global pool is the windowed pool whose kernel is the whole plane."""
    call = exact(choices, tuple(GLOBAL.values()))
    sizes = spatial(call)
    require(len(sizes) > 0)
    windowed = {name: other for other, name in GLOBAL.items()}[call.operator]
    attributes = call.attributes | {"kernel_shape": sizes}
    equal(results(call), results(replace(call, operator=windowed, attributes=attributes)))


def stride(choices):
    """A pool with stride s has every s-th result of the pool without strides."""
    call, _, strides, _, _ = plain_window(exact(choices, SLIDING))
    plain = changed(call, strides=(1,) * len(strides))
    require(not same_formula(call) and not same_formula(plain))
    steps = (..., *(slice(None, None, step) for step in strides))
    equal(results(call), [part[steps] for part in results(plain)])


def same_formula(call):
    """Whether QLinearAveragePool computes this call like a global pool, whose roundings differ."""
    return call.operator == QLINEAR_AVERAGE and covers_all(call.attributes, spatial(call))


def border(choices):
    """Pads act like a border: of -inf for a maximum, of zeros for a norm and for a mean that counts them."""
    call = exact(choices, SLIDING)
    call, kernel, _, _, pads = plain_window(call)
    require(max(pads, default=0) <= MOST_BORDER)
    if call.operator in ("AveragePool", QLINEAR_AVERAGE):
        require(call.opset is None or call.opset >= 7)
        call = changed(call, count_include_pad=1)
    x = to_first(call.x, call.channels_last)
    value = least(x.dtype) if call.operator in MAXIMA else 0
    if call.operator == QLINEAR_AVERAGE:
        value = 0 if call.further[1] is None else np.asarray(call.further[1]).item()
    rank = len(kernel)
    padded = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)], constant_values=value)
    require(padded.size <= MOST_ELEMENTS)
    bare = with_first(changed(call, pads=(0,) * 2 * rank), padded)
    require(not same_formula(call) and not same_formula(bare))
    equal(results(call)[:1], results(bare)[:1])  # Indices address another array


def axis_of_one(choices):
    """A further spatial axis of size 1 changes no value, no place and no mean of whole planes."""
    call = exact(choices, (*POOLS, INDICES))
    x = to_first(call.x, call.channels_last)
    rank = x.ndim - 2
    place = choices.integer(0, rank)
    attributes = dict(call.attributes)
    if call.operator in SLIDING:
        call, kernel, strides, dilations, pads = plain_window(call)
        rows = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
        attributes = dict(call.attributes)
        for name, row in rows.items():
            if name in attributes:
                attributes[name] = (*row[:place], 1, *row[place:])
        if "pads" in attributes:
            attributes["pads"] = (*pads[:place], 0, *pads[place:rank], *pads[rank:rank + place], 0,
                                  *pads[rank + place:])
    more = with_first(replace(call, attributes=attributes), np.expand_dims(x, place + 2))
    equal(results(call), [part.squeeze(place + 2) for part in results(more)])


def separable(choices):
    """A maximum equals maxima along each axis in turn."""
    call, kernel, strides, dilations, pads = plain_window(drawn(choices, ("MaxPool", NHWC_MAX)))
    rank = len(kernel)
    y, first = results(call), to_first(call.x, call.channels_last)
    for axis in range(rank):
        def only(row, default, axis=axis):
            return tuple(value if k % rank == axis else default for k, value in enumerate(row))
        alone = {"kernel_shape": only(kernel, 1), "strides": only(strides, 1), "pads": only(pads, 0)}
        if "dilations" in call.attributes:
            alone["dilations"] = only(dilations, 1)
        first, = results(with_first(replace(call, attributes=call.attributes | alone), first))
    equal(y, [first])


def dilation(choices):
    """Every d-th result of a pool with dilation d is the plain pool of every d-th element."""
    call, kernel, _, _, _ = plain_window(exact(choices, WINDOWED))
    rank = len(kernel)
    axis, step = choices.integer(0, rank - 1), choices.integer(2, MOST_DILATION)
    one = (1,) * rank
    attributes = {name: value for name, value in call.attributes.items() if name not in ("strides", "pads")}
    if isinstance(attributes.get("p"), float):
        attributes["p"] = int(attributes["p"])  # as the newest version demands
    attributes["kernel_shape"] = tuple(max(1, min(length, 1 + (size - 1) // step)) for length, size
                                       in zip(kernel, spatial(call), strict=True))
    attributes["dilations"] = (*one[:axis], step, *one[axis + 1:])
    dilated = replace(call, opset=None, attributes=attributes)
    y, = results(dilated)
    x = to_first(call.x, call.channels_last)
    for phase in range(min(step, y.shape[axis + 2])):
        part = (slice(None),) * (axis + 2) + (slice(phase, None, step),)
        equal([y[part]], results(with_first(changed(dilated, dilations=one), x[part])))


def places(choices):
    """The elements at the Indices of MaxPool are its values, bit for bit, except for empty windows."""
    call = drawn(choices, (INDICES,))
    y, indices = results(call)
    x = to_first(call.x, call.channels_last)
    if call.attributes.get("storage_order"):
        x = x.transpose(0, 1, *range(2, x.ndim)[::-1])
    flat = np.ascontiguousarray(x).reshape(-1)
    found = indices >= 0
    assert ((indices >= -1) & (indices < max(x.size, 1))).all()
    same([flat[indices[found]].astype(y.dtype)], [np.ascontiguousarray(y)[found]])


def there_and_back(choices):
    """Unpooling a maximum of non-negative numbers, and pooling that again, gives the same maximum."""
    call, kernel, strides, _, pads = plain_window(drawn(choices, (INDICES,)))
    rank = len(kernel)
    keep = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    # Indices refer to planes of the size that MaxUnpool infers for this number of windows, so x gets this size.
    counts = [max(1, min(size, 1 + size // step)) for size, step in zip(spatial(call), strides, strict=True)]
    sizes = [(count - 1) * step + length - begin - end for count, step, length, begin, end
             in zip(counts, strides, kernel, pads[:rank], pads[rank:], strict=True)]
    first = to_first(call.x, call.channels_last)
    require(min(sizes) > 0 and math.prod(sizes) * math.prod(first.shape[:2]) <= MOST_ELEMENTS)
    require(call.x.dtype.kind not in "iu")  # MaxUnpool refuses integers
    generator = np.random.default_rng(choices.integer(0, 2**32 - 1))
    call = with_first(replace(call, attributes=keep), generator.integers(0, 50, (*first.shape[:2], *sizes)))
    y, indices = results(call)
    require((indices >= 0).all())
    options = {**keep, "channels_last": call.channels_last}
    back = onnxpool.MaxUnpool(**options)(*(to_last(part, call.channels_last) for part in (y, indices)))
    assert back.shape == call.x.shape
    again = onnxpool.MaxPool(**options)(back)
    equal([y], [to_first(again, call.channels_last)])


def opsets(choices):
    """A call is the same at every opset that accepts its attributes and dtype."""
    call = drawn(choices, tuple(name for name in FUNCTIONS if name not in (*QLINEAR, NHWC_MAX, "RoiAlign")))
    y = results(call)
    same(y, results(replace(call, opset=choices.pick((None, 1, 7, 8, 9, 10, 11, 12, 18, 19, 22)))))


RELATIONS = {function.__name__: function for function in (
    threads_and_styles, memory, layout, batch, channels, identity, minimum, monotone, maxima, powers_of_two,
    global_pool, stride, border, axis_of_one, separable, dilation, places, there_and_back, opsets)}
RELATIONS |= RELATIONS_ALONG_AXES
