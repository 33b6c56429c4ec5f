"""Small random graphs around pooling nodes, of the kinds that onnxruntime's optimisers rewrite."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper
from sessions import NEWEST_OPSET, TYPES

OPSETS = [opset for opset in (7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 19, 20, 21, 22) if opset <= NEWEST_OPSET]
SINCE = {"count_include_pad": {"AveragePool": 7}, "storage_order": {"MaxPool": 8},
         "ceil_mode": {"AveragePool": 10, "MaxPool": 10, "LpPool": 18},
         "dilations": {"AveragePool": 19, "MaxPool": 10, "LpPool": 18}}
WINDOWED, GLOBAL = ("AveragePool", "MaxPool", "LpPool"), ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
PAD_BY_INPUTS = 11
QUANTISING = 10  # the first opset of QuantizeLinear
WRONG: tuple[dict[str, Any], ...] = (
    {"stride": [2]}, {"ceilmode": 1}, {"pad": [1, 1]}, {"paddings": 2.0}, {"kernel": "x"})


class Graph(NamedTuple):
    """A model, its inputs, and the random choices behind it."""

    model: ModelProto
    feeds: dict[str, NDArray[Any]]
    opset: int
    quantised: bool  # whether optimisers may replace a pool by an operator of com.microsoft
    constant: bool  # whether a pool can be evaluated before a session runs
    wrong: bool  # whether a pooling node has an attribute that does not exist

    def has(self, dtype: str) -> bool:
        """Whether values of a dtype are inputs, outputs, or the target of a cast."""
        graph, number = self.model.graph, TYPES[dtype]
        return any(value.type.tensor_type.elem_type == number for value in (*graph.input, *graph.output)) or any(
            attribute.i == number for node in graph.node if node.op_type == "Cast" for attribute in node.attribute)


class Drawing:
    """A graph that grows at its end; `value` is the input of the next node."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = int(self.random.choice(OPSETS))
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self.value, self.dtype = "x", str(self.random.choice(["float32"] * 6 + ["float16", "float64"]))
        self.channels = int(self.random.choice([1, 3, 8, 16]))
        self.spatial = int(self.random.choice([1, 2, 2, 2, 2, 3]))
        self.sizes = [self.integer(3, 9) for _ in range(self.spatial)]
        self.quantised = self.empty = self.wrong = self.whole = self.constant = False
        self.half = self.dtype == "float16"
        self.outputs: list[tuple[str, str]] = []

    def integer(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def values(self, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
        """Values with few digits, so that most sums are exact; often all negative, where zeros differ from padding."""
        if dtype in ("int8", "uint8"):
            return self.random.integers(0, 100, shape).astype(dtype)
        return (self.random.integers(-32, 32, shape) / 4 - (20 if self.chance(0.3) else 0)).astype(dtype)

    def add_constant(self, array: NDArray[Any]) -> str:
        """A constant, as an initialiser or as a node."""
        name = f"c{len(self.constants)}_{len(self.nodes)}"
        if self.chance(0.2):
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name)))
        else:
            self.constants[name] = array
        return name

    def add(self, operator: str, *others: str, outputs: int = 1, name: str = "", **attributes: Any) -> None:
        """Add a node whose inputs are the current value and others, and whose first output is the next value."""
        made = [f"v{len(self.nodes)}", f"i{len(self.nodes)}"][:outputs]
        self.nodes.append(helper.make_node(operator, [self.value, *others], made, name, **attributes))
        self.value = made[0]

    # Nodes before and after pools

    def relu(self) -> None:
        self.add("Relu")

    def pad(self) -> None:
        rank = self.spatial + 2
        pads = [self.integer(0, 2) if axis % rank > 1 or self.chance(0.03) else 0 for axis in range(2 * rank)]
        mode = str(self.random.choice(["constant"] * 4 + ["edge", "reflect"]))
        if mode == "reflect" and any(pads):
            pads = [min(pad, 1) * (axis % rank > 1) for axis, pad in enumerate(pads)]
        self.channels += pads[1] + pads[rank + 1]
        filler = float(self.random.choice([0.0, 0.0, 1.5, -40.0]))
        given: dict[str, Any] = {} if mode == "constant" and self.chance(0.5) else {"mode": mode}
        if self.opset < PAD_BY_INPUTS:
            given |= {"value": filler} if filler else {}
            self.add("Pad", pads=pads, **given)
        else:
            value = [self.add_constant(np.array(filler, self.dtype))] if filler or self.chance(0.3) else []
            self.add("Pad", self.add_constant(np.array(pads)), *value, **given)

    def conv(self) -> None:
        if self.whole or self.dtype == "float64":  # onnxruntime has no Conv of float64
            return self.relu()
        filters, taps = int(self.random.choice([4, 8, 16])), int(self.random.choice([1, 3]))
        weights = self.values((filters, self.channels, *[taps] * self.spatial), self.dtype) / 4
        self.add("Conv", self.add_constant(weights.astype(self.dtype)), pads=[taps // 2] * 2 * self.spatial)
        self.channels = filters
        if self.chance(0.5):
            self.relu()
        return None

    def transposed(self) -> None:
        """Transpose to channels last, perhaps add a Relu, and transpose back again."""
        rank = self.spatial + 2
        self.add("Transpose", perm=[0, *range(2, rank), 1])
        if self.chance(0.5):
            self.relu()
        self.add("Transpose", perm=[0, rank - 1, *range(1, rank - 1)])

    def cast(self) -> None:
        self.dtype = str(self.random.choice(["float16", "float32", "float64"]))
        self.half |= self.dtype == "float16"
        self.add("Cast", to=TYPES[self.dtype])

    def scaled(self) -> None:
        self.add(str(self.random.choice(["Add", "Mul"])), self.add_constant(np.array([0.5], self.dtype)))

    def quantise(self) -> None:
        kind = str(self.random.choice(["int8", "uint8"]))
        self.scales = (self.add_constant(np.array(0.25, np.float32)), self.add_constant(np.array(40, kind)))
        self.add("QuantizeLinear", *self.scales)

    def fake_quantised(self) -> None:
        """Q and DQ, between which optimisers move or merge pools. Values of few digits would round differently."""
        if self.dtype != "float32" or self.opset < QUANTISING or self.empty or self.half:
            return self.relu()
        self.quantised = True
        self.quantise()
        return self.add("DequantizeLinear", *self.scales)

    # Pools

    def pool(self) -> None:
        if self.chance(0.25):
            operator = str(self.random.choice(GLOBAL))
            attributes: dict[str, Any] = {}
            if operator == "GlobalLpPool" and self.chance(0.5):
                attributes["p"] = self.integer(1, 3)
            self.whole = True
        else:
            operator = str(self.random.choice(["AveragePool", "AveragePool", "MaxPool", "MaxPool", "LpPool"]))
            attributes = self.windows(operator)
        if self.chance(0.02):
            self.wrong = True
            attributes |= WRONG[self.integer(0, len(WRONG) - 1)]
        indices = operator == "MaxPool" and self.opset >= SINCE["storage_order"]["MaxPool"] and self.chance(0.15)
        self.add(operator, outputs=1 + indices, name=f"pool{len(self.nodes)}", **attributes)
        if indices:
            self.outputs.append((self.nodes[-1].output[1], "int64"))

    def windows(self, operator: str) -> dict[str, Any]:
        """Random attributes. Default values are given or omitted."""
        def has(name: str) -> bool:
            return self.opset >= SINCE[name].get(operator, 99) and self.chance(0.4)

        kernel = [self.integer(1, 3) for _ in range(self.spatial)]
        attributes: dict[str, Any] = {"kernel_shape": kernel}
        if self.chance(0.7):
            attributes["strides"] = [self.integer(1, min(side, 2)) for side in kernel]
        padding = self.random.random()
        if padding < 0.5:
            self.empty |= self.chance(0.1) and not self.quantised  # the result of an empty window cannot be quantised
            attributes["pads"] = [self.integer(0, side - (not self.empty)) for side in kernel * 2]
        elif padding < 0.7:
            attributes["auto_pad"] = str(self.random.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]))
        same = attributes.get("auto_pad", "").startswith("SAME")  # where onnxruntime ignores dilations in pads
        if has("dilations") and not same:
            attributes["dilations"] = [self.integer(1, 2) for _ in kernel]
        for name in ("ceil_mode", "count_include_pad", "storage_order"):
            if has(name):
                attributes[name] = self.integer(0, 1)
        if operator == "LpPool" and self.chance(0.5):
            attributes["p"] = self.integer(1, 3)
        return attributes


def draw(seed: int) -> Graph:
    """The random graph of a seed."""
    drawing = Drawing(seed)
    others: list[Callable[[], None]] = [drawing.relu, drawing.pad, drawing.pad, drawing.pad, drawing.conv, drawing.conv,
                                        drawing.transposed, drawing.cast, drawing.scaled, drawing.fake_quantised,
                                        drawing.fake_quantised]

    def some(most: int) -> None:
        for _ in range(drawing.integer(0, most)):
            others[drawing.integer(0, len(others) - 1)]()

    shape = (drawing.integer(1, 2), drawing.channels, *drawing.sizes)
    x = drawing.values(shape, drawing.dtype)
    given = drawing.dtype
    drawing.constant = drawing.chance(0.1)
    if drawing.constant:
        drawing.value = drawing.add_constant(x)
    some(3)
    drawing.pool()
    some(2)
    if drawing.chance(0.25) and not drawing.whole and not drawing.empty:  # runtimes differ for NaN and -inf
        drawing.pool()
        some(1)
    drawing.outputs.insert(0, (drawing.value, drawing.dtype))
    declared: Any = shape if drawing.chance(0.7) else [None] * len(shape)
    graph = helper.make_graph(
        drawing.nodes, "g", [helper.make_tensor_value_info("x", TYPES[given], declared)],
        [helper.make_tensor_value_info(name, TYPES[dtype], None) for name, dtype in drawing.outputs],
        [numpy_helper.from_array(array, name) for name, array in drawing.constants.items()])
    imports = [helper.make_opsetid("", drawing.opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    return Graph(model, {"x": x}, drawing.opset, drawing.quantised, drawing.constant, drawing.wrong)
