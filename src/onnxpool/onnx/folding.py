"""
Constant folding: small tensors, such as pads and shapes, that exporters compute by nodes.

onnx's inference reads such values only from constants, and computes few of them itself. Here, its ReferenceEvaluator
computes them. A model may be hostile, so folding is limited to the operators in the table, to results that are known to
be small, and to a maximum number in total.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import external_data_helper, helper, numpy_helper

from .protos import LARGEST_KEPT, Array, Scope, bodies, is_large, sizes_of
from .surroundings import constant_of

OPAQUE = "onnxpool.survey"  # a domain that onnx does not know, to which pooling nodes are moved
FOLDED = "folded by onnxpool"  # the description of constants that replace nodes

MOST_EVALUATIONS = 5000  # different nodes of a model; each takes less than a millisecond
MOST_ELEMENTS = 2**18  # elements of all constants that replace nodes
MOST_READ = 8 * LARGEST_KEPT  # elements of all inputs of a node
KINDS = "biuf"  # kinds of NumPy dtypes


class Value(NamedTuple):
    """A tensor whose elements may be unknown, as in the shape of an input with a batch of any size."""

    array: Array
    known: Array  # bool, of the same shape

    @property
    def whole(self) -> bool:
        """Whether all elements are known."""
        return bool(self.known.all())


def exact(array: Array) -> Value:
    """A tensor with known elements."""
    return Value(array, np.broadcast_to(True, array.shape))


def held_by(source: onnx.TensorProto | onnx.NodeProto) -> list[Value]:
    """The value of a tensor or of a Constant node, or nothing if it is large, not a number, or invalid."""
    try:
        array = constant_of(source)
    except Exception:  # the onnx package and NumPy may raise anything, because a tensor may have any content
        return []
    return [] if array is None or array.dtype.kind not in KINDS or array.size > LARGEST_KEPT else [exact(array)]


Inputs = Sequence[Array | None]
Size = Callable[[onnx.NodeProto, Inputs], float]  # an upper bound on the elements of the results


def numbers(array: Array | None) -> list[int]:
    """The elements of a tensor that holds integers."""
    return [] if array is None else [int(value) for value in array.ravel()]


def product(sizes: Sequence[int]) -> int:
    """The product of sizes. Sizes below 1 count as 1, because intermediate results may lack these axes."""
    return math.prod(max(1, abs(size)) for size in sizes)


def first(node: onnx.NodeProto, inputs: Inputs) -> float:
    """Operators whose results have no more elements than their first input."""
    return inputs[0].size if inputs and inputs[0] is not None else math.inf


def sum_of_all(node: onnx.NodeProto, inputs: Inputs) -> float:
    """Concat."""
    return sum(array.size for array in inputs if array is not None)


def broadcast(node: onnx.NodeProto, inputs: Inputs) -> float:
    """Operators on elements."""
    return math.prod(np.broadcast_shapes(*(array.shape for array in inputs if array is not None)))


def quotients(node: onnx.NodeProto, inputs: Inputs) -> float:
    """Div and Mod. How runtimes round negative quotients of integers, or divide by zero, is not certain."""
    for array, least in zip(inputs, (0, 1), strict=True):
        if array is None or (array.dtype.kind in "iu" and array.size and array.min() < least):
            return math.inf
    return broadcast(node, inputs)


def pieces(node: onnx.NodeProto, inputs: Inputs) -> float:
    """Split."""
    wanted = max((attribute.i for attribute in node.attribute if attribute.name == "num_outputs"), default=0)
    return first(node, inputs) if wanted <= len(node.output) else math.inf


def gathered(node: onnx.NodeProto, inputs: Inputs) -> float:
    """Gather."""
    data, indices = inputs
    if data is None or indices is None:
        return math.inf
    others: list[int] = list(data.shape)
    others.pop(next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0))
    return int(indices.size) * math.prod(others)


def indexed(node: onnx.NodeProto, inputs: Inputs) -> float:
    """GatherElements."""
    return math.inf if inputs[1] is None else inputs[1].size


def filled(node: onnx.NodeProto, inputs: Inputs) -> float:
    """ConstantOfShape."""
    return product(numbers(inputs[0]))


def expanded(node: onnx.NodeProto, inputs: Inputs) -> float:
    """Expand."""
    return math.inf if inputs[0] is None else product(np.broadcast_shapes(inputs[0].shape, tuple(numbers(inputs[1]))))


def repeated(node: onnx.NodeProto, inputs: Inputs) -> float:
    """Tile."""
    return first(node, inputs) * product(numbers(inputs[1]))


def steps(node: onnx.NodeProto, inputs: Inputs) -> float:
    """Range."""
    start, limit, delta = (math.nan if array is None else array.item() for array in inputs)
    count = (limit - start) / delta if delta else math.inf
    return max(0.0, count) + 1 if math.isfinite(count) else math.inf


def places(node: onnx.NodeProto, inputs: Inputs) -> float:
    """NonZero."""
    return first(node, inputs) * max(1, inputs[0].ndim if inputs[0] is not None else 1)


# Operators that move elements, with the number of inputs that hold elements. Further inputs determine their places.
MOVES: dict[str, tuple[Size, int]] = {
    **dict.fromkeys(("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Cast"),
                    (first, 1)),
    "Split": (pieces, 1), "Gather": (gathered, 1), "GatherElements": (indexed, 1), "Concat": (sum_of_all, 2**31),
}
# Operators on elements.
MAPS: dict[str, Size] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Min", "Max", "Sum", "Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Not",
                     "And", "Or", "Xor", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Where",
                     "Clip"), broadcast),
    "Div": quotients, "Mod": quotients,
}
# Operators that need all elements.
OTHERS: dict[str, Size] = {
    **dict.fromkeys(("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "CumSum", "ScatterElements", "ScatterND"),
                    first),
    "ConstantOfShape": filled, "Expand": expanded, "Tile": repeated, "Range": steps, "NonZero": places,
}
SIZES: dict[str, Size] = {**{name: size for name, (size, _) in MOVES.items()}, **MAPS, **OTHERS}


class Folder:
    """
    Replaces nodes of a model with constants.

    Results are cached, because each shape inference visits the nodes again.

    Attributes
    ----------
    inputs : dict of int to dict of int to ndarray
        Known inputs of each pooling node, by the numbers of the node and the input.
    """

    def __init__(self, opset: int) -> None:
        self.inputs: dict[int, dict[int, Array]] = {}
        self._opset, self._room = opset, MOST_ELEMENTS
        self._results: dict[Any, list[Array]] = {}

    def fold(self, graph: onnx.GraphProto, types: Scope, outer: Mapping[str, Value]) -> bool:
        """Fold the nodes of a graph and of its bodies, and return whether there were any."""
        types, values = dict(types), dict(outer)
        for value in (*graph.input, *graph.value_info, *graph.output):
            types[value.name] = value.type
            values.pop(value.name, None)
        for tensor in graph.initializer:
            types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
            values.pop(tensor.name, None)
            if not is_far(tensor):
                values.update(zip([tensor.name], held_by(tensor), strict=False))
        nodes: list[onnx.NodeProto] = []
        changed = False
        for node in graph.node:
            for body in bodies(node):
                changed |= self.fold(body, types, values)
            names, results = [name for name in node.output if name], self._values(node, types, values)
            for name in names:
                values.pop(name, None)
            if len(results) == len(names):
                values.update(zip(names, results, strict=True))
            size = sum(value.array.size + 1 for value in results)
            if node.op_type != "Constant" and names and size <= self._room and all(
                    name in values and values[name].whole for name in names):
                nodes.extend(constant(name, values[name].array) for name in names)
                self._room -= size
                changed = True
            else:
                nodes.append(node)
            if node.domain == OPAQUE:
                self.inputs[int(node.doc_string)] = {
                    i: values[name].array for i, name in enumerate(node.input) if name in values and values[name].whole}
        if len(nodes) != len(graph.node) or any(new is not old for new, old in zip(nodes, graph.node, strict=True)):
            copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
            del graph.node[:]
            graph.node.extend(copies)
        return changed

    def _values(self, node: onnx.NodeProto, types: Scope, values: Mapping[str, Value]) -> list[Value]:
        """The results of a node, or nothing if they are unknown."""
        if node.domain or not is_plain(node):
            return []
        if node.op_type == "Constant":
            return held_by(node)
        if node.op_type in ("Shape", "Size"):
            return shape_of(node, types)
        if node.op_type not in SIZES or any(name and name not in values for name in node.input):
            return []
        inputs = [values[name] if name else None for name in node.input]
        if all(one is None or one.whole for one in inputs):
            return [exact(array) for array in self._run(node, [None if one is None else one.array for one in inputs])]
        return self._partly(node, inputs)

    def _partly(self, node: onnx.NodeProto, inputs: Sequence[Value | None]) -> list[Value]:
        """The results of a node whose inputs are known only in part."""
        moved = MOVES[node.op_type][1] if node.op_type in MOVES else 0
        if node.op_type not in MAPS and not all(one is None or one.whole for one in inputs[moved:]):
            return []
        arrays = [None if one is None else one.array for one in inputs]
        results = self._run(node, arrays)
        if not results:
            return []
        if node.op_type in MAPS:
            known = [one.known for one in inputs if one is not None]
            return [Value(result, np.logical_and.reduce(np.broadcast_arrays(*known))) for result in results]
        masks = [array if one is None or i >= moved else one.known.astype(one.array.dtype)
                 for i, (array, one) in enumerate(zip(arrays, inputs, strict=True))]
        return [Value(*both) for both in zip(results, [mask != 0 for mask in self._run(node, masks)], strict=False)]

    def _run(self, node: onnx.NodeProto, inputs: Inputs) -> list[Array]:
        """The results of a node for these inputs. Nothing, if they are too large, or if the node is not valid."""
        if sum(array.size + 1 for array in inputs if array is not None) > MOST_READ:
            return []
        alone = onnx.NodeProto(op_type=node.op_type, attribute=node.attribute)
        alone.input.extend("" if array is None else str(i) for i, array in enumerate(inputs))
        alone.output.extend(f"y{i}" if name else "" for i, name in enumerate(node.output))
        key = alone.SerializeToString(deterministic=True), *[
            None if array is None else (array.dtype.str, array.shape, array.tobytes()) for array in inputs]
        if key not in self._results and len(self._results) < MOST_EVALUATIONS:
            try:
                self._results[key] = evaluated(alone, self._opset, inputs)
            except Exception:  # an invalid node can raise anything in the onnx package or in NumPy
                self._results[key] = []
        return self._results.get(key, [])


def is_plain(node: onnx.NodeProto) -> bool:
    """Whether a node has neither bodies nor large or external tensors nor attributes of a caller."""
    return not any(attribute.ref_attr_name or attribute.HasField("g") or attribute.graphs or is_far(attribute.t)
                   for attribute in node.attribute)


def is_far(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor is large or stored in another file."""
    return is_large(tensor) or external_data_helper.uses_external_data(tensor)


def constant(name: str, array: Array) -> onnx.NodeProto:
    """A node with this result."""
    return helper.make_node("Constant", [], [name], doc_string=FOLDED, value=numpy_helper.from_array(array))


def shape_of(node: onnx.NodeProto, types: Scope) -> list[Value]:
    """The result of Shape or Size. Unknown sizes are unknown elements."""
    shape = sizes_of(types.get(node.input[0] if node.input else "", onnx.TypeProto()))
    if shape is None or len(shape) > LARGEST_KEPT or len(node.output) != 1:
        return []
    if node.op_type == "Size":
        size = math.prod(size for size in shape if isinstance(size, int))
        fits = all(isinstance(size, int) for size in shape) and size < 2**63
        return [exact(np.array(size, np.int64))] if fits else []
    cut = {attribute.name: attribute.i for attribute in node.attribute}
    sizes = shape[cut.get("start", 0):cut.get("end", len(shape))]
    return [Value(np.array([size if isinstance(size, int) else 1 for size in sizes], np.int64),
                  np.array([isinstance(size, int) for size in sizes], bool))]


def evaluated(node: onnx.NodeProto, opset: int, inputs: Inputs) -> list[Array]:
    """The results of a node, if they are small."""
    if not SIZES[node.op_type](node, inputs) <= LARGEST_KEPT:
        return []
    from onnx.reference import ReferenceEvaluator  # takes a while

    feeds = {str(i): array for i, array in enumerate(inputs) if array is not None}
    graph = helper.make_graph([node], "alone", [onnx.ValueInfoProto(name=name) for name in feeds],
                              [onnx.ValueInfoProto(name=name) for name in node.output if name])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        results = [np.asarray(result) for result in ReferenceEvaluator(model).run(None, feeds)]
    if any(result.dtype.kind not in KINDS or result.size > LARGEST_KEPT for result in results):
        return []
    casts = node.op_type == "Cast" and results[0].dtype.kind in "iu"
    if casts and not np.array_equal(results[0], np.trunc(feeds["0"])):  # NaN, or out of range: runtimes differ
        return []
    return results
