"""
Sessions of one pooling node, many with something wrong: python tests/onnxruntime/corrupted_sessions.py --calls 1000

Each session runs three times, on arrays next to inaccessible pages: with the inputs of its call, and twice with one of
them changed. It gives the bits of the Python call, or an error of onnxruntime. Where the Python call is refused, so is
the node. A node that Python accepts may still be refused by onnxruntime's own checks, but not by onnxpool.
"""

import math
import re
import sys
from dataclasses import replace
from pathlib import Path

FOLDER = Path(__file__).parents[1]
sys.path[:0] = [str(FOLDER / name) for name in ("helpers", "oracle", "../conformance/src")]

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from calls import INDICES, NHWC_MAX, QLINEAR, SeededChoices  # noqa: E402
from calls_family import WEIGHTED  # noqa: E402
from corruption import LARGE_RESULT, SLOTS, bad_shape, bad_value, describe, draw_corrupted, parser_of, repeat, same  # noqa: E402
from onnx import helper  # noqa: E402
from sessions import NEWEST_OPSET, TYPES, feeds, node_model, options  # noqa: E402

import onnxpool  # noqa: E402
from onnxpool.schemas import SCHEMAS  # noqa: E402

OPERATORS = (*WEIGHTED, "MaxUnpool")
MOST_BYTES = 8 * 2**30  # maximum address space, of which onnxruntime reserves more than onnxpool
LARGE = 2**20  # elements of a result that is compared
STATE = onnxruntime.capi.onnxruntime_pybind11_state
ERRORS = tuple(kind for kind in vars(STATE).values() if isinstance(kind, type) and issubclass(kind, Exception))
OURS = re.compile(r"(" + "|".join(sorted(SCHEMAS, key=len, reverse=True)) + r")(-\d+)?: ")


class UnusableError(Exception):
    """No node can stand for a call."""


def node_of(call):
    """The model of one node with the attributes and inputs of a call, and the attributes as onnxruntime sees them."""
    name = call.operator.split()[0]
    domain = "com.microsoft" if name in (*QLINEAR, NHWC_MAX) else ""
    arrays = call.inputs
    while arrays and arrays[-1] is None:
        arrays = arrays[:-1]
    usable = all(array is None or (type(array) is np.ndarray and array.dtype.name in TYPES) for array in arrays)
    if not usable or not arrays or arrays[0] is None:
        raise UnusableError
    rank = max(call.x.ndim - 2, 0)
    counts = {"kernel_shape": rank, "strides": rank, "dilations": rank, "pads": 2 * rank, "pooled_shape": 2}
    given = {key: [value] * counts[key] if key in counts and type(value) is int else value
             for key, value in call.attributes.items() if value is not None}
    if name in QLINEAR:
        given["channels_last"] = int(call.channels_last)
    dtype = call.x.dtype.name
    try:
        model = node_model(name, arrays, given, opset=call.opset or NEWEST_OPSET, domain=domain,
                           outputs=("y", "i") if call.operator == INDICES else ("y",), dtypes=(dtype, "int64"))
        (node,) = [node for node in model.graph.node if node.op_type == name]
        seen = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError):
        raise UnusableError from None
    return model, {key: value.decode(errors="replace") if isinstance(value, bytes) else value
                   for key, value in seen.items()}


def draw(choices):
    """A call that a node can stand for, with its model."""
    while True:
        call, kinds = draw_corrupted(choices, OPERATORS)
        while call.further and call.further[-1] is None:  # a node omits it
            call = replace(call, further=call.further[:-1])
        domain = call.operator in (*QLINEAR, NHWC_MAX)
        if not domain and type(call.opset or 0) is int:
            call = replace(call, opset=min(max(call.opset or NEWEST_OPSET, 1), NEWEST_OPSET), channels_last=False)
        if domain:
            call = replace(call, opset=None, channels_last=bool(call.channels_last is True))
        try:
            return call, kinds, *node_of(call)
        except UnusableError:
            continue


def python(call, attributes):
    """The results of the Python call, or its error, for arrays as onnxruntime has them."""
    inputs = [array if array is None else np.array(array, array.dtype.newbyteorder("="), order="C")
              for array in call.inputs]
    name = call.operator.split()[0]
    how = {"return_indices": True} if call.operator == INDICES else {}
    if call.opset is not None:
        how["opset"] = call.opset
    try:
        result = getattr(onnxpool, name)(**attributes, **how)(*inputs, num_threads=1)
    except (onnxpool.PoolError, TypeError, MemoryError) as error:  # an unknown attribute raises TypeError
        return None, error
    return result if isinstance(result, tuple) else (result,), None


def attempt(seed):
    """Make one session and run it three times. Return what is wrong, the names of all outcomes, and what was tried."""
    choices = SeededChoices(seed)
    call, kinds, model, attributes = draw(choices)
    tried = [call]
    for _ in range(2):
        changed = choices.pick((bad_shape, bad_value))(choices, call)
        if changed.attributes is call.attributes and len(changed.inputs) == len(call.inputs):
            tried.append(replace(changed, opset=call.opset))  # a run cannot change the opset

    def text():
        return f"{kinds} {attributes}\n  " + "\n  ".join(map(describe, tried))

    name = call.operator.split()[0]
    try:
        made = options("all" if not model.opset_import[-1].domain else [name], threads=choices.pick((1, 1, 1, 2)))
        session = onnxruntime.InferenceSession(model.SerializeToString(), made, providers=["CPUExecutionProvider"])
    except ERRORS as error:
        return judged(python(call, attributes)[1], error), f"session refused {whose(error)}", text
    except Exception as error:  # any other kind of failure is a finding
        return f"the session raised {type(error).__name__}: {error}", "", text
    endings = []
    for one in tried:
        problem, ending = run(choices, session, one, attributes)
        if problem:
            return problem, "", text
        endings.append(ending)
    return None, ", ".join(sorted(set(endings))), text


def judged(refusal, error):
    """What is wrong with an error, if the Python call was refused with another error or not at all."""
    if refusal is not None or not OURS.search(str(error)):
        return None
    return f"onnxpool's node refuses what Python accepts: {error}"


def whose(error):
    """Who has refused something."""
    return "by onnxpool" if OURS.search(str(error)) else "by onnxruntime"


def guarded(choices, slot, array):
    """The array next to an inaccessible page."""
    held = slot.hold(array.shape, array.dtype, choices.chance(70))
    held[...] = array
    return held


def run(choices, session, call, attributes):
    """Run a session on the inputs of a call."""
    if not all(array is None or (type(array) is np.ndarray and array.dtype.name in TYPES) for array in call.inputs):
        return None, "not run"
    expected, refusal = python(call, attributes)
    if isinstance(refusal, MemoryError) or sum(map(np.size, expected or ())) > LARGE_RESULT:
        return None, "not run"
    names = {one.name: one.type for one in session.get_inputs()}
    given = {name: array for name, array in feeds(call.inputs).items() if name in names}
    outputs = [one.name for one in session.get_outputs()]
    if any(array.nbytes > SLOTS[0].size for array in given.values()):
        return None, "not run"
    binding = session.io_binding()
    slots = SLOTS[: len(given)]
    held = [guarded(choices, slot, array) for slot, array in zip(slots, given.values(), strict=True)]
    results = [np.asarray(y) for y in expected or ()]
    plain = [y.astype(np.float32) if y.dtype.name == "bfloat16" else y for y in results]
    fitting = expected is not None and all(0 < y.nbytes <= SLOTS[0].size for y in plain)
    outs = [slot.hold(y.shape, y.dtype.newbyteorder("="), choices.chance(70))
            for slot, y in zip(SLOTS[-2:], plain, strict=False)] if fitting else []
    for slot in slots:
        slot.freeze()
    try:
        for name, array in zip(given, held, strict=True):
            binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        for place, name in enumerate(outputs):
            if fitting:
                out = outs[place]
                binding.bind_output(name, "cpu", 0, out.dtype.type, out.shape, out.ctypes.data)
            else:
                binding.bind_output(name, "cpu")
        session.run_with_iobinding(binding)
        found = outs if fitting else binding.copy_outputs_to_cpu()
    except (*ERRORS, RuntimeError) as error:
        problem = judged(refusal, error)
        if problem is None and fitting and not all(slot.untouched(array_too=False) for slot in SLOTS[-2:]):
            problem = "wrote around its results"
        return problem, f"run refused {whose(error)}"
    finally:
        for slot in slots:
            slot.thaw()
    if refusal is not None:
        return f"results of {[y.shape for y in found]} where Python raises {refusal!r}", ""
    if fitting and not all(slot.untouched(array_too=False) for slot in SLOTS[-2:][: len(outs)]):
        return "wrote around its results", ""
    for one, other in zip(found, plain, strict=True):
        if one.shape != other.shape or (math.prod(one.shape) < LARGE and not same(one, other)):
            return f"other results than Python: {one.tolist()} and {other.tolist()}"[:600], ""
    return None, "results"


if __name__ == "__main__":
    sys.exit(repeat(attempt, parser_of(__doc__).parse_args(), MOST_BYTES))
