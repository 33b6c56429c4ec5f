"""Comparison with the results of other runtimes: the largest difference, and tolerances."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

from ..dtypes import DTYPES, FLOATS
from ..threads import get_num_threads
from .protos import Array, one_line

RTOL, ATOL = 1e-3, 1e-7  # the onnx package's tolerances for its models
ROUNDING = 1e-6  # error of float32 sums whose terms cancel, relative to the largest input
LAYERS = 1e-4  # accumulated rounding error of many layers, relative to the largest output
OTHERS = "OSUc"  # kinds of dtypes without a difference in float64: strings, complex numbers, and no value
COARSE = 8  # the same for coarse dtypes, in half units in the last place of the largest output


class Tolerance(NamedTuple):
    """The allowed difference: `atol` + `rtol` * abs(expected). The default of `atol` depends on the comparison."""

    rtol: float = RTOL
    atol: float | None = None


def distance(actual: Array, expected: Array) -> Array:
    """Absolute differences of two arrays of one shape: 0 between NaNs, infinity between a NaN and a number."""
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return np.where(np.isnan(apart), np.inf, apart)


def largest_difference(actual: Array, expected: Array) -> float:
    """The largest difference. It is infinite for arrays of different shapes, and for strings that differ."""
    if actual.shape != expected.shape:
        return float("inf")
    if actual.dtype.kind in OTHERS:
        return 0.0 if (actual == expected).all() else float("inf")
    return float(distance(actual, expected).max(initial=0.0))


def arrays_of(value: Any) -> list[Array]:
    """The arrays of an output, which may be a sequence or a map."""
    if isinstance(value, Mapping):
        return [np.asarray([*value]), *arrays_of([*value.values()])]
    return [array for one in value for array in arrays_of(one)] if isinstance(value, (list, tuple)) else [
        np.asarray(value)]


def agrees(actual: Array, expected: Array, rtol: float = RTOL, atol: float = ATOL) -> bool:
    """Whether two arrays have the same shape, and all elements agree within the tolerances."""
    if actual.shape != expected.shape:
        return False
    size = np.where(np.isfinite(expected), np.abs(expected), 0).astype(np.float64)
    return bool(np.all(distance(actual, expected) <= atol + rtol * size))


def node_agrees(x: Array, outputs: Sequence[Array], theirs: Sequence[Array], tolerance: Tolerance) -> bool:
    """Whether the outputs of a pooling node agree with another runtime's. Indices must be equal."""
    rtol, atol = tolerance
    if outputs[0].dtype.kind in "iu":
        rtol, atol = 0.0, atol or 0.0
    elif atol is None:
        wide = x.astype(np.float64)
        atol = ROUNDING * float(np.abs(wide).max(initial=0.0, where=np.isfinite(wide)))
    first, *indices = zip(outputs, theirs, strict=False)
    return agrees(*first, rtol, atol) and all(agrees(ours, other, 0, 0) for ours, other in indices)


class Whole(NamedTuple):
    """
    Comparison of a whole model with onnxruntime.

    Attributes
    ----------
    agrees : bool, optional
        True if all outputs of onnxruntime are within the tolerances. False if they are not, or if the model is refused,
        but only because of onnxruntime's optimisers. None if there is another reason.
    difference : float, optional
        Largest difference of an output.
    remark : str
        Cause of the difference, or the reason why there is no comparison.
    """

    agrees: bool | None
    difference: float | None = None
    remark: str = ""


def output_agrees(ours: Array, theirs: Array, tolerance: Tolerance) -> bool:
    """Whether an output of a whole model agrees. By default, of all integers only 8-bit integers may differ, by 1."""
    if ours.dtype.kind in "iu":
        return agrees(ours, theirs, 0.0, (ours.dtype.itemsize == 1) if tolerance.atol is None else tolerance.atol)
    if ours.dtype.name not in FLOATS:
        return ours.shape == theirs.shape and bool((ours == theirs).all())
    wide = theirs.astype(np.float64)
    largest = float(np.abs(wide).max(initial=0.0, where=np.isfinite(wide)))
    rounding = max(LAYERS, COARSE * 2.0 ** -DTYPES[ours.dtype.name].digits) * largest
    return agrees(ours, theirs, tolerance.rtol, rounding if tolerance.atol is None else tolerance.atol)


def compare_whole(model: bytes | str, feeds: Mapping[str, Any], outputs: Mapping[str, Any],
                  tolerance: Tolerance) -> Whole:
    """
    Run a whole model on onnxruntime, and compare its outputs.

    Optimisers can merge other nodes into pools, which a comparison of single nodes cannot reveal. If the outputs differ
    or the model is refused, a session without optimisers shows whether they are the cause.
    """
    import onnxruntime

    ours, levels = [*map(arrays_of, outputs.values())], onnxruntime.GraphOptimizationLevel

    def run(level: Any) -> list[list[Array]] | str:
        """The outputs, or the reason why onnxruntime refuses the model."""
        options = session_options()
        options.graph_optimization_level = level
        try:
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            return [*map(arrays_of, session.run(list(outputs), dict(feeds)))]
        except Exception as error:
            return one_line(error)

    def agree(theirs: list[list[Array]] | str) -> bool:
        return not isinstance(theirs, str) and all(
            len(one) == len(other) and all(map(output_agrees, one, other, [tolerance] * len(one)))
            for one, other in zip(ours, theirs, strict=True))

    def apart(theirs: list[list[Array]]) -> float:
        return max((largest_difference(*pair) if len(one) == len(other) else float("inf")
                    for one, other in zip(ours, theirs, strict=True) for pair in zip(one, other, strict=False)),
                   default=0.0)

    optimised = run(levels.ORT_ENABLE_ALL)
    if not isinstance(optimised, str) and agree(optimised):
        return Whole(True, apart(optimised))
    plain = run(levels.ORT_DISABLE_ALL)
    if isinstance(optimised, str):
        if isinstance(plain, str):
            return Whole(None, remark=f"onnxruntime cannot run the whole model: {optimised}")
        return Whole(False, remark=f"onnxruntime refuses the model after optimising it: {optimised}")
    difference = apart(optimised)
    if agree(plain):
        return Whole(False, difference, "but not without its optimisers")
    return Whole(None, difference, "optimised or not")


class Rival(NamedTuple):
    """The outputs of a node on onnxruntime, and a function that computes them again."""

    outputs: list[Array]
    again: Callable[[], Any]


def by_onnxruntime(node: onnx.NodeProto, opsets: Mapping[str, int], version: int, inputs: Sequence[Any],
                   outputs: Sequence[Array]) -> Rival:
    """Run a node on onnxruntime, at the model's opset or else at the operator's own version."""
    try:
        return run_node(node, opsets[node.domain], inputs, outputs)
    except Exception:  # such as an opset that onnxruntime does not know yet, although it knows the operator's version
        return run_node(node, version, inputs, outputs)


def session_options() -> Any:
    """Options of a session that logs nothing, with onnxpool's default number of threads."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = get_num_threads()
    return options


def run_node(node: onnx.NodeProto, opset: int, inputs: Sequence[Any], outputs: Sequence[Array]) -> Rival:
    """Run a node on onnxruntime, as a model of its own."""
    import onnxruntime
    feeds = {name: np.asarray(value) for name, value in zip(node.input, inputs, strict=False) if name}
    results = {name: value for name, value in zip(node.output, outputs, strict=False) if name}

    def described(name: str, value: Array, shape: Sequence[int] | None) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)

    graph = helper.make_graph([node], "node", [described(name, value, value.shape) for name, value in feeds.items()],
                              [described(name, value, None) for name, value in results.items()])
    imports = [helper.make_opsetid(node.domain, opset)]
    if node.domain:
        imports.append(helper.make_opsetid("", 1))
    version = helper.find_min_ir_version_for(imports, ignore_unknown=True)
    model = helper.make_model(graph, opset_imports=imports, ir_version=version)
    session = onnxruntime.InferenceSession(model.SerializeToString(), session_options(),
                                           providers=["CPUExecutionProvider"])

    def again() -> Any:
        return session.run(list(results), feeds)

    return Rival([np.asarray(result) for result in again()], again)
