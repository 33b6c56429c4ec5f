"""The neighbours of a pooling node that runtimes' optimisers merge with it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import external_data_helper, helper, numpy_helper

from .protos import bodies

PLAIN_VALUES = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
PAD_BY_INPUTS = 11  # since this opset, the pads of Pad are an input


class Quantised(NamedTuple):
    """
    QuantizeLinear or DequantizeLinear next to a pooling node.

    Attributes
    ----------
    signed : bool
        Whether its dtype is int8.
    zero_point : int, optional
        Zero point. None if it is not a single constant.
    paired : bool
        Whether its only other neighbour is its counterpart (Q or DQ).
    """

    signed: bool
    zero_point: int | None
    paired: bool


class Surroundings(NamedTuple):
    """
    Neighbours of a pooling node.

    Attributes
    ----------
    zeros : tuple of int
        Number of zeros that a Pad adds to X: at the beginning of each spatial axis, then at the end of each. Empty if
        there is no such Pad, or if other nodes read its result too.
    before : Quantised, optional
        DequantizeLinear that computes X.
    after : Quantised, optional
        QuantizeLinear that reads the result.
    readers : int
        How often the result is used, including as an output of the graph.
    """

    zeros: tuple[int, ...] = ()
    before: Quantised | None = None
    after: Quantised | None = None
    readers: int = 0


NOTHING = Surroundings()


def constant_of(source: onnx.TensorProto | onnx.NodeProto) -> NDArray[Any] | None:
    """The value of a tensor or of a Constant node. None if it was not read from its file, or for other nodes."""
    tensor = source if isinstance(source, onnx.TensorProto) else None
    if isinstance(source, onnx.NodeProto) and source.op_type == "Constant":
        for attribute in source.attribute:
            if attribute.ref_attr_name:  # it depends on the caller of a function
                return None
            if attribute.name in PLAIN_VALUES:
                return np.asarray(helper.get_attribute_value(attribute), PLAIN_VALUES[attribute.name])
            tensor = attribute.t if attribute.name == "value" else tensor
    if tensor is None or external_data_helper.uses_external_data(tensor):
        return None
    return numpy_helper.to_array(tensor)


class Wiring:
    """The connections of a graph or function: which nodes write and read each value. `outer` is the graph around a
    body."""

    def __init__(self, graph: Any, opset: int, outer: "Wiring | None" = None) -> None:
        self.opset, self._outer = opset, outer
        self.folded: Mapping[str, NDArray[Any]] = {}  # results of nodes that turned out to be constant
        self._writers = {name: node for node in graph.node for name in node.output if name}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        self._uses = Counter(getattr(value, "name", value) for value in graph.output)
        for node in graph.node:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
            self._uses.update(node.input)
            self._uses.update(name for body in bodies(node) for name in read_inside(body))
        self._constants = {tensor.name: tensor for tensor in getattr(graph, "initializer", ())}
        values = (*getattr(graph, "input", ()), *getattr(graph, "value_info", ()))
        self._inputs = {getattr(value, "name", value) for value in getattr(graph, "input", ())}
        self._types = {value.name: value.type.tensor_type.elem_type for value in values if not isinstance(value, str)}

    def constant(self, name: str) -> NDArray[Any] | None:
        """The value of a constant. None if it is not constant, or if its value was not read from its file."""
        if name in self.folded:
            return self.folded[name]
        tensor, writer = self._constants.get(name), self._writers.get(name)
        if tensor is None and writer is None and self._outer is not None and name not in self._inputs:
            return self._outer.constant(name)
        source = writer if tensor is None else tensor
        return None if source is None else constant_of(source)

    def around(self, node: onnx.NodeProto) -> Surroundings:
        """The neighbours of a node."""
        before = self._writers.get(node.input[0]) if node.input else None
        after = next((reader for reader in self._readers.get(node.output[0], ())
                      if reader.op_type == "QuantizeLinear"), None)
        dequantised = requantised = None
        if before is not None and before.op_type == "DequantizeLinear":
            source = self._writers.get(before.input[0])
            dequantised = self._quantised(before, source is not None and source.op_type == "QuantizeLinear")
        if after is not None:
            types = [reader.op_type for reader in self._readers.get(after.output[0], ())]
            requantised = self._quantised(after, types == ["DequantizeLinear"] and self._uses[after.output[0]] == 1)
        return Surroundings(self._zeros(node), dequantised, requantised, self._uses[node.output[0]])

    def _quantised(self, node: onnx.NodeProto, paired: bool) -> Quantised:
        """The description of a QuantizeLinear or DequantizeLinear."""
        name = node.input[2] if len(node.input) > 2 else ""
        point = self.constant(name) if name else np.zeros((), np.int8 if self._signed(node) else np.uint8)
        if point is None:
            return Quantised(False, None, paired)
        return Quantised(point.dtype == np.int8, int(point.item()) if point.size == 1 else None, paired)

    def _signed(self, node: onnx.NodeProto) -> bool:
        """Whether a QuantizeLinear or DequantizeLinear without a zero point has int8. By default, it has uint8."""
        if node.op_type == "QuantizeLinear":
            return any(attribute.name == "output_dtype" and attribute.i == onnx.TensorProto.INT8
                       for attribute in node.attribute)
        name = node.input[0]
        tensor, writer = self._constants.get(name), self._writers.get(name)
        if writer is not None and writer.op_type == "QuantizeLinear":
            point = self.constant(writer.input[2]) if len(writer.input) > 2 and writer.input[2] else None
            return self._signed(writer) if point is None else point.dtype == np.int8
        kind = self._types.get(name, 0) if tensor is None else tensor.data_type
        return bool(kind == onnx.TensorProto.INT8)

    def _zeros(self, node: onnx.NodeProto) -> tuple[int, ...]:
        """The numbers of zeros that a Pad before the node adds, with or without a Cast in between."""
        name = node.input[0] if node.input else ""
        pad = self._alone(name)
        if pad is not None and pad.op_type == "Cast" and self.opset >= PAD_BY_INPUTS:
            pad = self._alone(pad.input[0])
        if pad is None or pad.op_type != "Pad" or len(pad.input) > 3:
            return ()
        if any(attribute.ref_attr_name for attribute in pad.attribute):  # it depends on the caller of a function
            return ()
        given = {attribute.name: helper.get_attribute_value(attribute) for attribute in pad.attribute}
        if given.get("mode", b"constant") != b"constant":
            return ()
        if self.opset < PAD_BY_INPUTS:
            pads, value = np.asarray(given.get("pads", ())), np.asarray(given.get("value", 0.0))
        else:
            found = self.constant(pad.input[1])
            filler = self.constant(pad.input[2]) if "".join(pad.input[2:]) else np.zeros(())
            if found is None or filler is None:
                return ()
            pads, value = found, filler
        half = len(pads) // 2
        around = [*pads[:2], *pads[half:half + 2]]
        if half < 3 or any(around) or pads.min() < 0 or not pads.any() or value.any():
            return ()
        return tuple(int(size) for size in (*pads[2:half], *pads[half + 2:]))

    def _alone(self, name: str) -> onnx.NodeProto | None:
        """The node that writes a value, if the value is read exactly once."""
        return self._writers.get(name) if self._uses[name] == 1 else None


def read_inside(body: onnx.GraphProto) -> Iterator[str]:
    """The names that the nodes of a body read."""
    for node in body.node:
        yield from node.input
        for inner in bodies(node):
            yield from read_inside(inner)
