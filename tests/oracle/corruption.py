"""Make many calls with something wrong in them: python tests/oracle/corruption.py --calls 10000 --seed 1

Each must end in a PoolError, a PoolTypeError or a result of the right shape. Inputs are write-protected, and inputs
and results lie next to inaccessible pages, so that a wrong access kills the process and reports where. Every call has
a seed of its own: --only SEED repeats that call.
"""

import argparse
import faulthandler
import inspect
import json
import math
import operator
import resource
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "conformance" / "src"))

import numpy as np
from calls import FUNCTIONS, INDICES, NHWC_MAX, QLINEAR, UNPOOL, SeededChoices
from calls_family import WEIGHTED, draw_call
from guarded import Slot, moved
from onnxpool_conformance.oracle import DTYPES, GeometryError, native
from shapes import result_shapes

import onnxpool

SLOTS = [Slot(64) for _ in range(8)]
MOST_SECONDS = 20  # seconds of one call, after which it is considered to hang
MOST_BYTES = 3 * 2**30  # address space, limited so that a result of billions of elements raises MemoryError
LARGE_RESULT = 2**26  # elements; computing this many takes a large part of a second
HUGE_RESULT = 2**29
LARGE = "large result"  # the name of how calls end that are not timed
MOST_REPORTS = 20

NUMBERS = (0, -1, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63), 2**64)
LENGTHS = (0, 1, 2, 3, 4, 5, 9)
ODD = (math.nan, math.inf, 2.5, 2.0, "x", "", b"VALID", None, True, {}, [[2, 2]], [2, None], [2.5, 2], np.array([2.5]),
       np.array([[2]]), 1 + 2j, print)  # fmt: skip
OPSETS = (0, -1, 1, 7, 29, 2**31, 2**70, "11", 11.0, math.nan, True)
OTHER_DTYPES = ("int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32", "float64", "bool",
                "complex64", "longdouble", "object", "U3", "S2", "M8[s]", "i4,f4", ">f4", ">i8")  # fmt: skip
OUTS = (0, "x", [], (), np.float32(1), np.zeros(0), np.zeros((1, 1)), np.zeros((1, 1, 1, 1), object))
THREAD_COUNTS = (0, -1, 2**31, 2**70, "2", 2.0, math.nan, True)
LAYOUTS = (2, -1, "x", None, 0.5, math.nan)


def own_attributes(name):
    """The ONNX attributes that the function of the operator accepts."""
    parameters = inspect.signature(getattr(onnxpool, FUNCTIONS[name])).parameters.values()
    inputs = {"x", "indices", "rois", "batch_indices", "output_shape", "x_scale", "y_scale"}
    inputs |= {"x_zero_point", "y_zero_point", "out", "num_threads", "opset", "channels_last", "return_indices", "axes",
               "keepdims"}
    return [parameter.name for parameter in parameters if parameter.name not in inputs]


# Corruptions: each changes one thing about a call


def bad_attribute(choices, call):
    """Set an attribute to an entirely different value."""
    names = own_attributes(call.operator)
    if not names:
        return bad_option(choices, call)
    name = choices.pick(names)
    length = choices.pick(LENGTHS)
    value = choices.pick((choices.pick(NUMBERS), choices.pick(ODD), [choices.pick((0, 1, 2))] * length))
    return replace(call, attributes={**call.attributes, name: value})


def bad_element(choices, call):
    """Change, add or remove one element of an attribute."""
    lists = [name for name, value in call.attributes.items() if isinstance(value, (tuple, list)) and value]
    if not lists:
        return bad_attribute(choices, call)
    name = choices.pick(lists)
    value = list(call.attributes[name])
    place = choices.integer(0, len(value) - 1)
    kind = choices.pick(("number", "odd", "shorter", "longer"))
    if kind == "shorter":
        del value[place]
    elif kind == "longer":
        value.insert(place, 1)
    else:
        value[place] = choices.pick(NUMBERS if kind == "number" else ODD)
    return replace(call, attributes={**call.attributes, name: value})


def far_windows(choices, call):
    """Set windows far apart, or far before or beyond all elements. The combination may be valid."""
    names = own_attributes(call.operator)
    shape = getattr(call.x, "shape", ())
    if call.operator == UNPOOL or "kernel_shape" not in names or len(shape) < 3:
        return bad_attribute(choices, call)
    candidates = {"kernel_shape": (1, 2, 3, 2**40, 2**60), "dilations": (1, 1, 2, 2**31, 2**58)}
    given = {name: [choices.pick(candidates[name]) for _ in shape[2:]] for name in candidates if name in names}
    given["strides"] = [choices.pick((1, 2, 2**31, 2**45, 2**60)) for _ in shape[2:]]
    given["pads"] = [stride * choices.pick((0, 1, 2)) for stride in given["strides"] * 2]
    if choices.chance(30):
        given |= {"auto_pad": choices.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))}
        del given["pads"]
    return replace(call, attributes={**{k: v for k, v in call.attributes.items() if k != "auto_pad"}, **given})


def with_input(call, place, value):
    """The call with one input replaced."""
    inputs = list(call.inputs)
    inputs[place] = value
    return replace(call, x=inputs[0], further=tuple(inputs[1:]))


def pick_input(choices, call):
    """The position of an input that is an array, usually not the first one."""
    places = [place for place, value in enumerate(call.inputs) if isinstance(value, np.ndarray)]
    return choices.pick(places[1:] if len(places) > 1 and choices.chance(80) else places) if places else None


def bad_value(choices, call):
    """A bad value in an input: not an index, an image, a coordinate or a scale."""
    place = pick_input(choices, call)
    if place is None or call.inputs[place].size == 0 or call.inputs[place].dtype.kind not in "iufV":
        return bad_attribute(choices, call)
    array = np.array(call.inputs[place])
    flat = array.reshape(-1)
    spot = choices.integer(0, flat.size - 1)
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        flat[spot] = min(max(choices.pick(NUMBERS), limits.min), limits.max)
    elif array.dtype.names is None:
        with np.errstate(all="ignore"):
            wide = choices.pick((0.0, -1.0, 0.9, -0.5, math.nan, math.inf, -math.inf, 1e-45, 1e30, -1e30, 2.0**31))
            flat[spot] = np.array(wide).astype(array.dtype)
    return with_input(call, place, array)


def bad_shape(choices, call):
    """Give an input another shape."""
    place = pick_input(choices, call)
    if place is None:
        return bad_attribute(choices, call)
    array = call.inputs[place]
    axis = choices.integer(0, max(array.ndim - 1, 0))
    ways = [lambda: array[None], lambda: array[..., None], lambda: array.reshape(-1), lambda: np.zeros((), array.dtype)]
    if array.ndim:
        ways.append(lambda: array.take(range(0), axis))
        ways.append(lambda: array.take(range(max(array.shape[axis] - 1, 0)), axis))
        ways.append(lambda: np.concatenate([array, array], axis))
        if array.shape[axis]:
            ways.append(lambda: array.take(0, axis))
    return with_input(call, place, choices.pick(ways)())


def bad_dtype(choices, call):
    """Give an input another dtype."""
    place = pick_input(choices, call)
    if place is None:
        return bad_attribute(choices, call)
    dtype = choices.pick((*map(np.dtype, OTHER_DTYPES), DTYPES["bfloat16"]))
    return with_input(call, place, np.ones(call.inputs[place].shape, dtype))


def bad_kind(choices, call):
    """An input that is missing, superfluous, or not an array."""
    kind = choices.pick(("none", "list", "masked", "fewer", "more"))
    if kind == "fewer" and call.further:
        return replace(call, further=call.further[:-1], style="object")
    if kind == "more":
        return replace(call, further=(*call.further, np.zeros(1, np.int64)), style="object")
    place = choices.integer(0, len(call.inputs) - 1)
    value = {"none": None, "list": [[1, 2], [3]], "masked": np.ma.ones((1, 1, 4, 4))}.get(kind, "x")
    return replace(with_input(call, place, value), style="object")


def bad_option(choices, call):
    """A wrong opset, layout or number of threads."""
    name, values = choices.pick((("opset", OPSETS), ("channels_last", LAYOUTS), ("num_threads", THREAD_COUNTS)))
    if name == "channels_last" and call.operator in (*QLINEAR, NHWC_MAX):
        name, values = "opset", OPSETS
    return replace(call, **{name: choices.pick(values)})


def bad_out(choices, call):
    """An `out` that cannot store the result."""
    return replace(call, out=choices.integer(0, len(OUTS) - 1))


CORRUPTIONS = (bad_attribute, bad_element, far_windows, bad_value, bad_shape, bad_dtype, bad_kind, bad_option, bad_out)
LIKELY = (bad_attribute, bad_element, bad_value, bad_value, *CORRUPTIONS)


def draw_corrupted(choices, operators):
    """A call with two, one or no things wrong, and their names."""
    call = draw_call(choices, operators)
    kinds = [choices.pick(LIKELY) for _ in range(choices.pick((1, 1, 1, 2, 0)))]
    for kind in kinds:
        call = kind(choices, call)
    return call, [kind.__name__ for kind in kinds]


# Running a call


def guarded(choices, call):
    """The call with its arrays moved next to inaccessible pages, and the slots that hold them."""
    inputs, used = moved(call.inputs, SLOTS, lambda: choices.chance(70))
    return replace(call, x=inputs[0], further=tuple(inputs[1:])), used


def make_outs(choices, call, shapes):
    """The argument `out`, and the slots that hold it."""
    if isinstance(call.out, int):
        return OUTS[call.out], []
    dtypes = [native(call.x.dtype), np.dtype(np.int64)] if isinstance(call.x, np.ndarray) else []
    if call.out == "absent" or shapes is None or not dtypes or dtypes[0].hasobject:
        return None, []
    pairs = list(zip(shapes, dtypes, SLOTS[-2:], strict=False))
    if any(math.prod(max(size, 1) for size in shape) * 16 > slot.size for shape, _, slot in pairs):
        return None, []
    outs = tuple(slot.hold(shape, dtype, choices.chance(70)) for shape, dtype, slot in pairs)
    return (outs if call.operator == INDICES else outs[0]), [slot for *_, slot in pairs]


def expected_shapes(call):
    """The shapes of the results; None if the call has to be refused."""
    try:
        shapes = tuple(tuple(map(operator.index, shape)) for shape in result_shapes(call))
        return None if any(min(shape) < 0 for shape in shapes) else shapes
    except (GeometryError, TypeError, ValueError, ArithmeticError, AttributeError, LookupError):
        return None


def attempt(choices, call):
    """Make the call. Return what is wrong with its outcome, and the name of the outcome."""
    shapes = expected_shapes(call)
    call, slots = guarded(choices, call)
    out, out_slots = make_outs(choices, call, shapes)
    for slot in slots:
        slot.freeze()
    try:
        result = call.run(onnxpool, out)
    except (onnxpool.PoolError, onnxpool.PoolTypeError) as error:
        ending = type(error).__name__
    except MemoryError:
        items = max(map(math.prod, shapes)) if shapes else 0
        return (None, "MemoryError") if items > HUGE_RESULT else ("MemoryError for a small result", "")
    except Exception as error:  # any other kind of failure is a finding
        return f"raised {type(error).__name__}: {error}", ""
    else:
        ending = "result"
        problem = wrong_result(call, result, shapes)
        if problem:
            return problem, ""
    finally:
        for slot in slots:
            slot.thaw()
    if not all(slot.untouched(array_too=ending != "result") for slot in out_slots):
        return f"{ending}, but out was written", ""
    large = ending == "result" and shapes and max(map(math.prod, shapes)) > LARGE_RESULT
    return None, LARGE if large else ending


def wrong_result(call, result, shapes):
    """What is wrong with a result."""
    results = result if isinstance(result, tuple) else (result,)
    if shapes is None:
        return f"a result of {[getattr(y, 'shape', y) for y in results]} where a refusal is due"
    if not all(isinstance(y, np.ndarray) for y in results) or [y.shape for y in results] != list(shapes):
        return f"shapes {[getattr(y, 'shape', y) for y in results]}, expected {shapes}"
    return None if results[0].dtype == native(np.asarray(call.x).dtype) else f"dtype {results[0].dtype}"


def same(one, other):
    """Whether arrays have the same bits, except for the bits of NaNs."""
    if one.tobytes() == other.tobytes():
        return True
    if one.dtype.kind not in "fV":
        return False
    one, other = (array.astype(np.float64) for array in (one, other))
    return bool(((one == other) & (np.signbit(one) == np.signbit(other)) | np.isnan(one) & np.isnan(other)).all())


def describe(call):
    """The call without the elements of large arrays."""
    inputs = ", ".join(
        f"{a.dtype}{list(a.shape)}" if isinstance(a, np.ndarray) and a.size > 30 else repr(a) for a in call.inputs
    )
    options = {"out": call.out, "num_threads": call.num_threads, "channels_last": call.channels_last}
    return f"{call.operator} ({call.style}) opset={call.opset} {call.attributes} {options}: {inputs}"


def parser_of(description):
    """The parser of a program that makes such calls."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=int, metavar="SEED", help="make the one call of this seed")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    return parser


def repeat(one, options, most_bytes=MOST_BYTES):
    """Make the call of each seed, by a function that returns what is wrong, how the call ended, and a description.

    The exit status is 1 if anything is wrong with a call. A call that takes too long ends the process.
    """
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    seeds = range(options.seed * 10**7, options.seed * 10**7 + options.calls)
    findings, endings, slowest = 0, Counter(), 0.0
    for seed in [options.only] if options.only is not None else seeds:
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        start = time.process_time()
        problem, ending, text = one(seed)
        if ending != LARGE:
            slowest = max(slowest, time.process_time() - start)
        faulthandler.cancel_dump_traceback_later()
        endings[ending] += 1
        if problem:
            findings += 1
            if findings <= MOST_REPORTS:
                print(f"FINDING --only {seed} {text()}\n  {problem}", flush=True)
        if options.only is not None:
            print(f"{text()}: {ending}")
    if options.json:
        counts = {"calls": sum(endings.values()), "findings": findings, "slowest": slowest, "endings": endings}
        print(json.dumps(counts))
    else:
        print(f"{sum(endings.values())} calls, {findings} findings: {dict(endings)}")
    return bool(findings)


def main(arguments=None):
    """Run the calls. The exit status is 1 if any call ends in another way."""
    parser = parser_of(__doc__)
    parser.add_argument("--operators", nargs="+", choices=tuple(FUNCTIONS), default=(*WEIGHTED, UNPOOL))
    options = parser.parse_args(arguments)

    def one(seed):
        choices = SeededChoices(seed)
        call, kinds = draw_corrupted(choices, options.operators)
        return *attempt(choices, call), lambda: f"{kinds} {describe(call)}"

    return repeat(one, options)


if __name__ == "__main__":
    sys.exit(main())
