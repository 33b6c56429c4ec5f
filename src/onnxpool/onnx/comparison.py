"""How far results are from what others compute: the largest difference, and whether it is within tolerances."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

from ..threads import get_num_threads
from .protos import Array

RTOL, ATOL = 1e-3, 1e-7  # what the onnx package allows its models
ROUNDING = 1e-6  # of the largest input: what sums in float32 lose where their terms cancel


class Tolerance(NamedTuple):
    """How far results may be apart: `atol` + `rtol` * abs(expected). Without `atol` it depends on what is compared."""

    rtol: float = RTOL
    atol: float | None = None


def distance(actual: Array, expected: Array) -> Array:
    """The absolute differences of two arrays of one shape: NaN agrees with NaN, and nothing else is near it."""
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return np.where(np.isnan(apart), np.inf, apart)


def largest_difference(actual: Array, expected: Array) -> float:
    """The largest of the differences; infinity for arrays of different shapes."""
    return float(distance(actual, expected).max(initial=0.0)) if actual.shape == expected.shape else float("inf")


def agrees(actual: Array, expected: Array, rtol: float = RTOL, atol: float = ATOL) -> bool:
    """Whether two arrays have one shape, and each element is within the tolerances of the expected one."""
    if actual.shape != expected.shape:
        return False
    size = np.where(np.isfinite(expected), np.abs(expected), 0).astype(np.float64)
    return bool(np.all(distance(actual, expected) <= atol + rtol * size))


def node_agrees(x: Array, outputs: Sequence[Array], theirs: Sequence[Array], tolerance: Tolerance) -> bool:
    """Whether the outputs of a pooling node agree with another runtime's; Indices must be equal."""
    rtol, atol = tolerance
    if outputs[0].dtype.kind in "iu":
        rtol, atol = 0.0, atol or 0.0
    elif atol is None:
        wide = x.astype(np.float64)
        atol = ROUNDING * float(np.abs(wide).max(initial=0.0, where=np.isfinite(wide)))
    first, *indices = zip(outputs, theirs, strict=False)
    return agrees(*first, rtol, atol) and all(agrees(ours, other, 0, 0) for ours, other in indices)


class Rival(NamedTuple):
    """The outputs of one node as onnxruntime computes them, and what computes them again."""

    outputs: list[Array]
    again: Callable[[], Any]


def by_onnxruntime(node: onnx.NodeProto, opsets: Mapping[str, int], version: int, inputs: Sequence[Any],
                   outputs: Sequence[Array]) -> Rival:
    """One node in a session of onnxruntime, at the model's opset or at the operator's own version."""
    try:
        return run_node(node, opsets[node.domain], inputs, outputs)
    except Exception:  # an opset newer than onnxruntime, say: the operator may be older
        return run_node(node, version, inputs, outputs)


def run_node(node: onnx.NodeProto, opset: int, inputs: Sequence[Any], outputs: Sequence[Array]) -> Rival:
    """One node in a session of onnxruntime, with as many threads as calls use here."""
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
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = get_num_threads()
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def again() -> Any:
        return session.run(list(results), feeds)

    return Rival([np.asarray(result) for result in again()], again)
