"""
Random geometries for the C API, most of them with something wrong: python tests/capi/corrupted_handles.py --calls 10000

Each is refused where the Python call of the same attributes is refused, with a PoolError or a PoolTypeError, or gives a
handle. It runs on arrays next to inaccessible pages, and gives the bits of the Python call; if nothing was wrong with
it, also the results of the oracle. Runs with a wrong pointer, index or number of threads return their status, and write
nothing.
"""

import ctypes
import math
import sys
from dataclasses import replace
from pathlib import Path

FOLDER = Path(__file__).parents[1]
sys.path[:0] = [str(FOLDER / name) for name in ("helpers", "oracle", "../conformance/src")]

import native  # noqa: E402
import numpy as np  # noqa: E402
from calls import INDICES, POOLS, QLINEAR, SLIDING, SeededChoices, draw_pool  # noqa: E402
from corruption import CORRUPTIONS, NUMBERS, SLOTS, describe, parser_of, repeat, same  # noqa: E402
from onnxpool_conformance.oracle import DTYPES, LP, GeometryError  # noqa: E402
from tolerance import judge  # noqa: E402
from truths import truths  # noqa: E402

import onnxpool  # noqa: E402

OPERATORS = (*POOLS, INDICES)
OTHERS = tuple(kind for kind in CORRUPTIONS if kind.__name__ in ("bad_attribute", "bad_element", "far_windows"))
ROOM = 160  # elements that a corrupted number of axes can read from each list of a geometry
LISTS = ("shape", "kernel_shape", "strides", "pads", "dilations")
NAMES = {number: name for name, number in native.OPERATIONS.items()}
ELEMENTS = {number: name for name, number in native.DTYPES.items()}
PADDINGS = {0: None, 1: "SAME_UPPER", 2: "SAME_LOWER", 3: "VALID"}
FIELDS = {name: kind for name, kind in native.Geometry._fields_ if not name.endswith("_strides")}
FLAGS = ("ceil_mode", "count_include_pad", "storage_order")
WRONG_RUNS = {native.NULL_POINTER: ("handle", "x", "y"), native.BAD_INDICES: ("indices",),
              native.BAD_THREADS: ("threads",)}


class InexpressibleError(Exception):
    """The struct cannot express a call."""


def fields_of(call):
    """The fields of a call's geometry, whatever attributes the call has."""
    spatial = call.x.ndim - 2
    if type(call.opset or 0) is not int or abs(call.opset or 0) >= 2**31:
        raise InexpressibleError
    fields = {"operation": native.OPERATIONS[call.operator.split()[0]], "dtype": native.DTYPES[call.x.dtype.name],
              "opset": call.opset or 0, "ndim": call.x.ndim, "channels_last": int(call.channels_last),
              "return_indices": int(call.operator == INDICES), "shape": call.x.shape}
    for name, value in call.attributes.items():
        number = isinstance(value, int) and not isinstance(value, bool)
        if name == "auto_pad" and isinstance(value, str) and value in native.AUTO_PADS:
            fields[name] = native.AUTO_PADS[value]
        elif name == "p" and isinstance(value, (int, float)):
            fields[name] = float(value)
        elif name in FLAGS and number and abs(value) < 2**31:
            fields[name] = value
        elif name in LISTS and (number or isinstance(value, (list, tuple))):
            count = 2 * spatial if name == "pads" else spatial
            values = (value,) * count if number else tuple(value)
            if len(values) != count or not all(type(item) is int and -(2**63) <= item < 2**63 for item in values):
                raise InexpressibleError
            fields[name] = values
        else:
            raise InexpressibleError
    if call.operator in QLINEAR:
        further = [0 if value is None else value.item() for value in call.further]
        fields |= dict(zip(("x_scale", "x_zero_point", "y_scale", "y_zero_point"), further, strict=True))
    return fields


def bad_field(choices, fields):
    """Set a field to another number, change an element of a list, or remove a list."""
    name = choices.pick([name for name in FIELDS if name not in ("size", "operation", "dtype")])
    if name in LISTS:
        if fields.get(name) is None or choices.chance(15):
            return fields | {name: None if fields.get(name) else (1,) * min(64, max(0, 2 * (fields["ndim"] - 2)))}
        values = list(fields[name])
        if values:
            values[choices.integer(0, len(values) - 1)] = min(choices.pick(NUMBERS), 2**63 - 1)
        return fields | {name: tuple(values)}
    if FIELDS[name] is ctypes.c_int32:
        value = choices.pick((0, 1, 2, 3, -1, 5, 65, 2**31 - 1, -(2**31)))
    else:
        value = choices.pick((0.0, 1.0, -1.0, 2.5, 0.5, 1e300, math.inf, -math.inf, math.nan))
    return fields | {name: value}


def bad_head(choices, fields):
    """Set another operator, dtype or size, or bytes behind the struct."""
    name, values = choices.pick((("operation", range(-1, 12)), ("dtype", range(-1, 18)),
                                 ("size", (0, -1, 135, 144, 4096, 4097, 2**40, 2**63 - 1)), ("behind", (1,))))
    return fields | {name: choices.pick(values)} | ({"size": 144} if name == "behind" else {})


def draw(choices):
    """A random call, and the fields of its geometry, which may be corrupted."""
    call = draw_pool(choices, choices.pick(OPERATORS))
    if not call.x.dtype.isnative:
        call = replace(call, x=call.x.astype(call.x.dtype.newbyteorder("=")))
    kinds = []
    if choices.chance(40):
        kind = choices.pick(OTHERS)
        changed = kind(choices, call)
        try:
            fields_of(changed)
            call, kinds = changed, [kind.__name__]
        except InexpressibleError:
            pass
    fields = fields_of(call)
    for _ in range(choices.pick((0, 0, 1, 1, 2))):
        kind = choices.pick((bad_field, bad_field, bad_field, bad_head))
        fields, kinds = kind(choices, fields), [*kinds, kind.__name__]
    return call, fields, kinds


def described(fields):
    """The Python call that a geometry stands for, or None if there is none."""
    names = ELEMENTS.get(fields["dtype"]), NAMES.get(fields["operation"])
    least = 3 if names[1] in SLIDING else 2
    usable = (None not in names and fields.get("size", native.SIZE) in (native.SIZE, 144, 4096)
              and not fields.get("behind") and least <= fields["ndim"] <= 64 and fields.get("shape") is not None
              and fields.get("auto_pad", 0) in PADDINGS)
    if not usable:
        return None
    rank = fields["ndim"] - 2
    counts = {"kernel_shape": rank, "strides": rank, "pads": 2 * rank, "dilations": rank}
    attributes = {name: padded(fields[name])[:count] for name, count in counts.items() if fields.get(name) is not None}
    if fields.get("auto_pad"):
        attributes["auto_pad"] = PADDINGS[fields["auto_pad"]]
    attributes |= {name: fields[name] for name in FLAGS if fields.get(name)}
    opset, p = fields.get("opset") or None, fields.get("p")
    if p:
        integer = names[1] in LP and math.isfinite(p) and p == math.floor(p) and (opset is None or opset >= 2)
        attributes["p"] = int(p) if integer else p
    return names[1], opset, attributes, padded(fields["shape"])[: fields["ndim"]], DTYPES[names[0]]


def padded(values):
    """The values of a list as they lie in memory."""
    return (*values, *[1] * (ROOM - len(values)))


def python_plan(fields):
    """The plan with the same attributes, and the inputs after X. Raises what the library raises."""
    made = described(fields)
    if made is None:
        raise onnxpool.PoolError("no operator")
    name, opset, attributes, shape, dtype = made
    flags = {key: fields.get(key, 0) for key in ("channels_last", "return_indices") if fields.get(key)}
    operator = onnxpool.base.by_name(name, opset, attributes, **flags)
    further = (fields.get("x_scale", 0.0), fields.get("x_zero_point", 0), fields.get("y_scale", 0.0),
               fields.get("y_zero_point", 0))
    plan = operator.plan(shape, dtype)
    plan._rule(further if operator.quantised or any(further) else ())
    return plan, further if operator.quantised else ()


class Behind(ctypes.Structure):
    """A geometry that is followed by further bytes."""

    _fields_ = (("known", native.Geometry), ("more", ctypes.c_uint8 * 4096))


def geometry(fields, **strides):
    """The struct, with spare memory after the struct and after each list."""
    whole = Behind()
    whole.known.size = native.SIZE
    lists = {name: padded(value) for name, value in fields.items() if name in LISTS and value is not None}
    plain = {name: value for name, value in fields.items() if name not in LISTS and name != "behind"}
    native.fill(whole.known, plain | lists | strides)
    if fields.get("behind"):
        whole.more[3] = fields["behind"]
    return whole


def memory_orders(choices, shape, itemsize):
    """Strides in bytes of an array without gaps, with axes in some order and direction, and the place of its first
    element."""
    order = list(range(len(shape)))
    if choices.chance(40):
        order = [choices.pick(order[i:]) if i == 0 else axis for i, axis in enumerate(order)]
        order = [*dict.fromkeys([order[0], *range(len(shape))])]
    strides, step = [0] * len(shape), itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= max(1, shape[axis])
    start = 0
    if choices.chance(15):
        axis = choices.integer(0, len(shape) - 1)
        start = max(0, shape[axis] - 1) * strides[axis]
        strides[axis] = -strides[axis]
    return tuple(strides), start


def attempt(seed):
    """Prepare and run one geometry. Return what is wrong with the outcome, its name, and what was tried."""
    choices = SeededChoices(seed)
    call, fields, kinds = draw(choices)
    problem, ending = compare(choices, call, fields, kinds)
    return problem, ending, lambda: f"{kinds} {fields}\n  {describe(call)}"


def compare(choices, call, fields, kinds):
    """Compare a geometry with Python."""
    try:
        plan, further = python_plan(fields)
        shape, result, refusal = plan.shape, plan.output_shape, None
    except (onnxpool.PoolError, onnxpool.PoolTypeError) as error:
        shape, refusal = call.x.shape, error
    itemsize = call.x.dtype.itemsize if refusal else plan.dtype.itemsize
    x_strides, x_start = memory_orders(choices, shape, itemsize)
    strides = {"x_strides": padded(x_strides)}
    if refusal is None:
        y_strides, y_start = memory_orders(choices, result, itemsize)
        i_strides, i_start = memory_orders(choices, result, 8)
        strides |= {"y_strides": padded(y_strides), "indices_strides": padded(i_strides)}
    if any(abs(stride) >= 2**63 for values in strides.values() for stride in values):
        strides = {}
    given = geometry(fields, **strides)
    try:
        handle = native.prepare_geometry(ctypes.cast(ctypes.byref(given), ctypes.POINTER(native.Geometry)))
    except (onnxpool.PoolError, onnxpool.PoolTypeError) as error:
        if refusal is None and not beyond_memory(plan, str(error)):
            return f"refused what Python accepts: {error}", ""
        if refusal is None:
            return None, "too large for any array"
        same = described(fields) is None or (type(error), str(error)) == (type(refusal), str(refusal))
        return (None if same else f"refused by {error!r}, but by Python with {refusal!r}"), type(error).__name__
    except Exception as error:  # any other kind of failure is a finding
        return f"raised {type(error).__name__}: {error}", ""
    try:
        if refusal is not None:
            return f"a handle of {native.shape_of(handle)} where Python raises {refusal!r}", ""
        if native.shape_of(handle) != tuple(result):
            return f"shape {native.shape_of(handle)}, expected {result}", ""
        room = max(math.prod(map(max, each, [1] * len(each))) for each in (shape, result)) * 8
        if room > SLOTS[0].size or not strides:
            return None, "a handle that is too large to run"
        return run(choices, call, plan, further, handle, (x_strides, x_start), (y_strides, y_start),
                   (i_strides, i_start), not kinds)
    finally:
        native.release(handle)


def beyond_memory(plan, message):
    """Whether a plan, which needs no memory, is for arrays that no memory can hold, and the message says so."""
    whole, result = (math.prod(filter(None, shape)) for shape in (plan.shape, plan.output_shape))
    sizes = {"X": whole * plan.dtype.itemsize, "the result": result * plan.dtype.itemsize}
    if plan.reduction.indexed:
        sizes["Indices"] = result * 8
    if "need a 64-bit dtype" in message:
        return plan.reduction.indexed and whole > 2**30
    return "too large for any array" in message and any(
        f": {name} of shape" in message and size > sys.maxsize for name, size in sizes.items())


def placed(choices, slot, shape, dtype, strides, start):
    """An array with these strides, next to an inaccessible page."""
    flat = slot.hold((math.prod(shape),), dtype, choices.chance(70))
    if not flat.size:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, flat.view(np.uint8).data, start, strides)


def run(choices, call, plan, further, handle, x_place, y_place, i_place, legal):
    """Run a handle with wrong and with valid arguments, and compare the results."""
    indexed = plan.reduction.indexed
    x = placed(choices, SLOTS[0], plan.shape, plan.dtype, *x_place)
    y = placed(choices, SLOTS[1], plan.output_shape, plan.dtype, *y_place)
    indices = placed(choices, SLOTS[2], plan.output_shape, np.dtype(np.int64), *i_place)
    if call.x.shape == x.shape and call.x.dtype == x.dtype:
        x[...] = call.x
    elif x.size:
        generator = np.random.default_rng(choices.integer(0, 2**32 - 1))
        x[...] = generator.integers(0, 100, x.shape).astype(x.dtype)
    right = {"handle": handle, "x": x.ctypes.data, "y": y.ctypes.data,
             "indices": indices.ctypes.data if indexed else None, "threads": choices.pick((1, 1, 0, 2, 3, 2**31 - 1))}
    SLOTS[0].freeze()
    try:
        if y.size and x.size:
            status = choices.pick(tuple(WRONG_RUNS))
            name = choices.pick(WRONG_RUNS[status])
            other = {"threads": -1, "indices": None if indexed else indices.ctypes.data}.get(name)
            answer = native.run(*(right | {name: other}).values())
            if answer != status:
                return f"status {answer} of a run with {name}={other}, expected {status}", ""
            if not all(slot.untouched(array_too=True) for slot in SLOTS[1:3]):
                return f"a run with {name}={other} wrote something", ""
        answer = native.run(*right.values())
        if answer != native.OK:
            return f"status {answer}: {native.message(answer)}", ""
    finally:
        SLOTS[0].thaw()
    if not all(slot.untouched(array_too=False) for slot in SLOTS[:3]):
        return "wrote around its arrays", ""
    expected = plan(x, *numbers(further, plan.dtype))
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = (y, indices)[: len(expected)]
    for one, other in zip(found, expected, strict=True):
        if one.size and not same(one, other):
            return f"other bits than the plan: {one.tolist()} and {other.tolist()}"[:600], ""
    if not legal:
        return None, "result"
    try:
        judged = [judge(truth, np.ascontiguousarray(one)) for truth, one in zip(truths(call), found, strict=True)]
    except GeometryError as error:
        return f"a result where the oracle refuses: {error}", ""
    return next((problem for _, problem in judged if problem), None), "result that the oracle confirms"


def numbers(further, dtype):
    """Scales and zero points as a call takes them."""
    return tuple(np.float32(value) if place % 2 == 0 else dtype.type(value) for place, value in enumerate(further))


if __name__ == "__main__":
    sys.exit(repeat(attempt, parser_of(__doc__).parse_args()))
