"""What onnxruntime's own tools make of models that packages ship: optimised, quantised and float16 models."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, numpy_helper, version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.transformers.float16 import convert_float_to_float16
from real_models import MODELS
from sessions import options

LARGE = 1 << 23  # elements of a weight, beyond which a network is cut off
QUANTISED_OPSET = 17  # quantisers leave MaxPool alone before opset 12
Feeds = dict[str, NDArray[Any]]


# Models with weights

def weight(node: NodeProto, port: int, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[Any]:
    """Random weights that keep the magnitude of values from layer to layer."""
    if node.op_type == "BatchNormalization":
        scale, variance = (0.4, 1), (0.5, 1.5)  # scales are low so that sums of branches do not overflow in float16
        ranges = {1: scale, 4: variance}
        drawn = random.uniform(*ranges[port], shape) if port in ranges else random.normal(0, 0.1, shape)
    else:
        drawn = random.standard_normal(shape) * np.sqrt(2 / max(float(np.prod(shape[1:])), 50.0))
    return drawn.astype(np.float32)


def filled(model: ModelProto, seed: int) -> ModelProto:
    """
    A model whose weights are random instead of made by ConstantOfShape.

    It ends before the first weight that is too large, and before a Softmax, which would make 0 and 1 of random values.
    """
    made, random = ModelProto(), np.random.default_rng(seed)
    made.CopyFrom(model)
    graph = made.graph
    given = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    shapes = {node.output[0]: tuple(given[node.input[0]]) for node in graph.node
              if node.op_type == "ConstantOfShape" and node.input[0] in given}
    if not shapes:
        return made
    weights, kept = {}, []
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            continue
        ports = [(port, name) for port, name in enumerate(node.input) if name in shapes]
        if node.op_type == "Softmax" or any(np.prod(shapes[name]) > LARGE for _, name in ports):
            graph.output[0].CopyFrom(onnx.ValueInfoProto(name=node.input[0], type=graph.output[0].type))
            graph.output[0].type.tensor_type.ClearField("shape")
            break
        weights.update({name: weight(node, port, shapes[name], random) for port, name in ports})
        kept.append(node)
    used = {name for node in kept for name in node.input}
    initializers = [tensor for tensor in graph.initializer if tensor.name in used]
    initializers += [numpy_helper.from_array(array, name) for name, array in weights.items()]
    names = {tensor.name for tensor in initializers}
    inputs = [value for value in graph.input if value.name not in given and value.name not in names]
    for field, values in (("node", kept), ("initializer", initializers), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(values)
    made.ir_version = max(made.ir_version, 4)  # since then, weights need not be inputs
    return made


def samples_of(model: ModelProto, name: str, seed: int, count: int = 3) -> list[Feeds]:
    """Random inputs of a model of one input, where `name` is its file."""
    given, random = model.graph.input[0], np.random.default_rng(seed)
    declared = tuple(size.dim_value for size in given.type.tensor_type.shape.dim)
    shape = MODELS[name][0] if name in MODELS else declared
    return [{given.name: random.uniform(-1, 1, shape).astype(np.float32)} for _ in range(count)]


# Tools

class Samples(CalibrationDataReader):  # type: ignore[misc]
    """The data with which a static quantiser finds the ranges of values."""

    def __init__(self, samples: list[Feeds]) -> None:
        self.left = iter(samples)

    def get_next(self) -> Feeds | None:
        return next(self.left, None)


Tool = Callable[[Path, Path, list[Feeds]], None]  # source, target, samples


def optimised(level: str, ops: str | None) -> Tool:
    """A tool that saves what a session's optimisers make of a model, with onnxpool registered unless `ops` is None."""
    def convert(source: Path, target: Path, samples: list[Feeds]) -> None:
        chosen = options(ops)
        chosen.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level.upper()}")
        chosen.optimized_model_filepath = str(target)
        onnxruntime.InferenceSession(str(source), chosen, providers=["CPUExecutionProvider"])
    return convert


def prepared(source: Path) -> Path:
    """A model as quantisers need it: of a newer opset, and with initialisers instead of nodes that make constants."""
    newer, folded = source.with_name("newer.onnx"), source.with_name("folded.onnx")
    onnx.save(version_converter.convert_version(onnx.load(source), QUANTISED_OPSET), newer)
    optimised("basic", None)(newer, folded, [])
    return folded


def dynamic(weights: QuantType) -> Tool:
    """A tool that quantises weights, and activations as they come."""
    def convert(source: Path, target: Path, samples: list[Feeds]) -> None:
        quantize_dynamic(prepared(source), target, weight_type=weights)
    return convert


def static(form: QuantFormat, kind: QuantType, per_channel: bool = False) -> Tool:
    """A tool that quantises weights and activations, in one of two forms."""
    def convert(source: Path, target: Path, samples: list[Feeds]) -> None:
        quantize_static(prepared(source), target, Samples(samples), quant_format=form, activation_type=kind,
                        weight_type=QuantType.QInt8, per_channel=per_channel)
    return convert


def half(keep_io: bool) -> Tool:
    """A tool that converts floats to float16, except for inputs and outputs if these are to be kept."""
    def convert(source: Path, target: Path, samples: list[Feeds]) -> None:
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=keep_io), target)
    return convert


TOOLS: dict[str, Tool] = {
    **{f"optimised, {level}{f', onnxpool for {ops}' if ops else ''}": optimised(level, ops)
       for level in ("basic", "extended", "all") for ops in (None, "all")},
    "dynamic int8": dynamic(QuantType.QInt8), "dynamic uint8": dynamic(QuantType.QUInt8),
    **{f"static {form.name} {kind.name[1:].lower()}": static(form, kind)
       for form in QuantFormat for kind in (QuantType.QUInt8, QuantType.QInt8)},
    "static QDQ uint8, per channel": static(QuantFormat.QDQ, QuantType.QUInt8, True),
    "float16": half(False), "float16, inputs kept": half(True),
}


def conversions(model: ModelProto, samples: list[Feeds], folder: Path,
                tools: dict[str, Tool] = TOOLS) -> Iterator[tuple[str, ModelProto | str]]:
    """The name of each tool with what it makes of a model, or with the reason why it fails."""
    source, target = folder / "source.onnx", folder / "target.onnx"
    onnx.save(model, source)
    for name, convert in tools.items():
        target.unlink(missing_ok=True)
        try:
            convert(source, target, samples)
            yield name, onnx.load(target)
        except Exception as error:
            yield name, f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
