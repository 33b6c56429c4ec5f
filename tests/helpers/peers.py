"""Pooling nodes as computed by onnxpool and its peers, and whether their results agree."""

import contextlib
import functools
import importlib.metadata
import importlib.util
import math
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

import onnxpool
from onnxpool.base import Operator
from onnxpool.onnx.cases import INFERENCE, OPENVINO, ORT, REFERENCE, Case
from onnxpool.onnx.disagreements import openvino_crashes
from onnxpool.planning.kinds import WindowPlan
from onnxpool.schemas import SCHEMAS

Array = np.ndarray[Any, np.dtype[Any]]
Inputs = Sequence[Array | None]
Results = list[Array] | None  # None: the peer has no answer
Run = Callable[[Inputs], Results]

MICROSOFT = "com.microsoft"
TORCH = "torch"
PACKAGES = {ORT: "onnxruntime", OPENVINO: "openvino", TORCH: "torch", REFERENCE: "onnx", INFERENCE: "onnx"}

# Maximum error of a peer's sums: a few roundings of each dtype, because the reference rounds after every step. It is
# relative to the mean of magnitudes for a mean, and to the largest number for others.
ROUNDING = {"float16": 2.0**-9, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-12}
TINY = 0.25  # relative to the smallest normal number, below which peers lose digits or flush to 0
UNWRITTEN = 0x5a  # bytes of large numbers in all dtypes
BLOCK = 8  # channels that onnxruntime's kernels process at a time; some process a multiple
MANY, LONG = 2**14, {"float16": 2e-3, "bfloat16": 0.1, "float32": 2e-3, "float64": 1e-9}  # above MANY elements
ADDED, TERMS = ("AveragePool", "LpPool", "GlobalAveragePool"), 64  # the reference sums at least this many in bfloat16
SCALED = 1.25  # instead of TINY: its bfloat16 norms are means times up to 300 taps, each half a digit off
MEANS = ("AveragePool", "GlobalAveragePool")
SUMS = ("AveragePool", "LpPool", "GlobalAveragePool", "GlobalLpPool", "RoiAlign")  # others must be equal


class Example(NamedTuple):
    """A node with its inputs; an input that is None is omitted."""

    operator: str
    opset: int
    inputs: Inputs
    attributes: dict[str, Any]
    outputs: int = 1

    @property
    def node(self) -> onnx.NodeProto:
        """The node."""
        names = ["" if value is None else f"x{i}" for i, value in enumerate(self.inputs)]
        return helper.make_node(self.operator, names, ["y", "i"][:self.outputs], domain=SCHEMAS[self.operator].domain,
                                **self.attributes)

    @property
    def x(self) -> Array:
        """The first input."""
        x = self.inputs[0]
        assert x is not None
        return x

    @property
    def library(self) -> Operator:
        """The operator of the library."""
        return onnxpool.from_node(self.node, {"": self.opset, MICROSOFT: 1})

    @property
    def case(self) -> Case:
        """The query for the table of disagreements."""
        operator, x = self.library, self.x
        plan = operator.plan(x.shape, x.dtype)
        return Case(operator, tuple(value is not None for value in self.inputs), x.dtype.name, x.shape,
                    plan.axes if isinstance(plan, WindowPlan) else (), plan.output_shape)

    def ours(self) -> list[Array]:
        """The outputs of the library."""
        inputs: Sequence[Any] = self.inputs
        result = self.library(*inputs)
        return list(result) if isinstance(result, tuple) else [result]

    def shown(self) -> str:
        """The example in words, for failure messages."""
        shapes = ", ".join("none" if x is None else f"{x.dtype.name}{list(x.shape)}" for x in self.inputs)
        return f"{helper.printable_node(self.node)} at opset {self.opset} of {shapes}"


def model_of(example: Example) -> onnx.ModelProto:
    """A model of the node at its own version."""
    node, version = example.node, example.library.version
    described = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                 for name, x in zip(node.input, example.inputs, strict=True) if x is not None]
    kind = helper.np_dtype_to_tensor_dtype(example.x.dtype)
    outputs = [helper.make_tensor_value_info(name, each, None)
               for name, each in zip(node.output, (kind, onnx.TensorProto.INT64), strict=False)]
    imports = [helper.make_opsetid("", 1 if node.domain else version)]
    if node.domain:
        imports.append(helper.make_opsetid(node.domain, version))
    return helper.make_model(helper.make_graph([node], "node", described, outputs), opset_imports=imports,
                             ir_version=helper.find_min_ir_version_for(imports, ignore_unknown=True))


def fed(example: Example, inputs: Inputs) -> dict[str, Array]:
    """The inputs by name."""
    return {name: np.asarray(x) for name, x in zip(example.node.input, inputs, strict=True) if x is not None}


def onnxruntime_runs(example: Example) -> Run:
    """An onnxruntime session. onnxruntime's kernels for blocked channels end the process if they compute no window."""
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)

    def session(level: Any) -> Any:
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        options.graph_optimization_level = level
        return onnxruntime.InferenceSession(model_of(example).SerializeToString(), options,
                                            providers=["CPUExecutionProvider"])

    levels, blocked = onnxruntime.GraphOptimizationLevel, example.x.ndim > 1 and example.x.shape[1] % BLOCK == 0
    optimised, plain = session(levels.ORT_ENABLE_ALL), session(levels.ORT_DISABLE_ALL) if blocked else None

    def run(inputs: Inputs) -> Results:
        feeds = fed(example, inputs)
        with contextlib.suppress(Exception):  # kernels for blocked channels need not raise
            if plain is not None and not (results := plain.run(None, feeds))[0].size:
                return [np.asarray(y) for y in results]
        return [np.asarray(y) for y in optimised.run(None, feeds)]

    return run


COMPILE = """
import sys, openvino
core = openvino.Core()
core.compile_model(core.read_model(sys.stdin.buffer.read()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
"""


def openvino_runs(example: Example) -> Run:
    """A model compiled by OpenVINO for a CPU, with float32 precision throughout."""
    import openvino
    core = openvino.Core()
    serialised = model_of(example).SerializeToString()
    if openvino_crashes(example.case):
        done = subprocess.run([sys.executable, "-c", COMPILE], input=serialised, capture_output=True, check=False)
        if done.returncode < 0:
            raise RuntimeError(f"OpenVINO ended the process with signal {-done.returncode}")
    model = core.read_model(serialised)
    compiled = core.compile_model(model, "CPU", {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1})
    wide = example.x.dtype.name == "bfloat16"  # a dtype of ml_dtypes, which OpenVINO takes and returns as bits

    def tensor(x: Array) -> Any:
        if x.dtype == example.x.dtype and wide:
            return openvino.Tensor(x.view(np.uint16), x.shape, openvino.Type.bf16)
        made = openvino.Tensor(openvino.Type(x.dtype), x.shape)
        made.data[...] = x
        return made

    request = compiled.create_infer_request()

    def run(inputs: Inputs) -> Results:
        results = [request.get_output_tensor(i).data for i in range(example.outputs)]
        for result in results:
            result.view(np.uint8)[...] = UNWRITTEN  # a result that is not written keeps this
        request.infer([tensor(x) for x in inputs if x is not None])
        y, *indices = map(np.array, results)
        return [y.view(example.x.dtype) if wide else y, *indices]

    return run


def reference_runs(example: Example) -> Run:
    """onnx's own ReferenceEvaluator."""
    node = example.node
    graph = helper.make_graph([node], "g", [onnx.ValueInfoProto(name=name) for name in node.input if name],
                              [onnx.ValueInfoProto(name=name) for name in node.output])
    evaluator = ReferenceEvaluator(graph, opsets={"": example.opset, MICROSOFT: 1})

    def run(inputs: Inputs) -> Results:
        with np.errstate(all="ignore"):
            return [np.asarray(y) for y in evaluator.run(None, fed(example, inputs))]

    return run


def inference_runs(example: Example) -> Run:
    """onnx's shape inference: onnxpool's results if inference finds their shapes, and no results if inference finds no
    shape."""
    inferred = onnx.shape_inference.infer_shapes(model_of(example), strict_mode=True, data_prop=True)
    shapes = [output.type.tensor_type.shape.dim for output in inferred.graph.output
              if output.type.tensor_type.HasField("shape")]

    def fits(shape: Any, y: Array) -> bool:
        return len(shape) == y.ndim and all(not dim.HasField("dim_value") or dim.dim_value == size
                                            for dim, size in zip(shape, y.shape, strict=True))

    def run(inputs: Inputs) -> Results:
        ours = example._replace(inputs=inputs).ours()
        return [y for shape, y in zip(shapes, ours, strict=True) if fits(shape, y)] if shapes else None

    return run


def torch_runs(example: Example) -> Run:
    """The function of torch for a node, if it has one: with symmetric pads, and nothing specific to ONNX."""
    import torch
    functions = torch.nn.functional
    case, given = example.case, example.attributes
    rank, whole = case.rank, case.name.startswith("Global")
    pads = [axis.pads for axis in case.axes]
    if (rank not in (1, 2, 3) or not (whole or case.axes) or case.same or case.has("storage_order")
            or any(begin != end for begin, end in pads)):
        return lambda inputs: None
    kernel, strides, dilations = ([getattr(axis, name) for axis in case.axes]
                                  for name in ("kernel", "stride", "dilation"))
    padding, plane = [begin for begin, _ in pads], math.prod(example.x.shape[2:])

    def pooled(x: Any) -> Any:
        if case.name == "MaxPool":
            return getattr(functions, f"max_pool{rank}d")(
                x, kernel, strides, padding, dilations, case.ceil, case.operator.return_indices)
        if case.name == "AveragePool" and not case.dilated:
            return getattr(functions, f"avg_pool{rank}d")(
                x, kernel, strides, padding, case.ceil, case.has("count_include_pad"))
        if case.name == "LpPool" and not case.dilated and not case.padded:
            kernel_, strides_ = (kernel[0], strides[0]) if rank == 1 else (kernel, strides)
            return getattr(functions, f"lp_pool{rank}d")(x, float(given.get("p", 2)), kernel_, strides_, case.ceil)
        if case.name == "GlobalMaxPool":
            return getattr(functions, f"adaptive_max_pool{rank}d")(x, 1)
        if case.name == "GlobalAveragePool":
            return getattr(functions, f"adaptive_avg_pool{rank}d")(x, 1)
        return None

    def run(inputs: Inputs) -> Results:
        x = inputs[0]
        assert x is not None
        bits = torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if case.dtype == "bfloat16" else \
            torch.from_numpy(x)
        try:
            result = pooled(bits)
        except (RuntimeError, NotImplementedError):  # there is no kernel for the dtype, or pads exceed half a window
            return None
        if result is None:
            return None
        y, *indices = result if isinstance(result, tuple) else (result,)
        y = y.view(torch.int16).numpy().view(x.dtype) if case.dtype == "bfloat16" else y.numpy()
        first = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * (x.ndim - 2)) * plane
        return [y, *(i.numpy() + first for i in indices)]

    return run


PEERS: dict[str, Callable[[Example], Run]] = {
    ORT: onnxruntime_runs, OPENVINO: openvino_runs, REFERENCE: reference_runs, INFERENCE: inference_runs,
    TORCH: torch_runs}


@functools.cache
def release(peer: str) -> tuple[int, ...]:
    """The installed release of a peer."""
    return tuple(map(int, re.findall(r"\d+", importlib.metadata.version(PACKAGES[peer]))[:3]))


def installed() -> list[str]:
    """The peers that are installed."""
    return [peer for peer, package in PACKAGES.items() if importlib.util.find_spec(package)]


def equal(example: Example, inputs: Inputs, ours: Array, theirs: Array) -> bool:
    """
    Whether results have the same shape and dtype, and are equal except for rounding in sums.

    Subnormal numbers of bfloat16 may be 0: the instructions of AVX512-BF16, which OpenVINO uses, flush subnormals.
    """
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    if example.operator not in SUMS or ours.dtype.kind in "iu":
        if ours.dtype.name == "bfloat16":
            flushed = (theirs == 0) & (np.abs(ours) < ml_dtypes.finfo(ours.dtype).smallest_normal)
            ours = np.where(flushed, theirs, ours)
        return bool(np.all((ours == theirs) | ((ours != ours) & (theirs != theirs))))
    assert inputs[0] is not None
    magnitudes = np.abs(inputs[0])
    taps = math.prod(example.attributes.get("kernel_shape", magnitudes.shape[2:]))
    added = example.operator in ADDED and ours.dtype.name == "bfloat16" and taps >= TERMS
    rounding = (LONG if added or magnitudes.size > MANY else ROUNDING)[ours.dtype.name]
    tiny = float(ml_dtypes.finfo(ours.dtype).smallest_normal) * (
        SCALED if added and example.operator == "LpPool" else TINY)
    if example.operator in MEANS:
        terms, = example._replace(inputs=(magnitudes,)).ours()
        scale = terms.astype(np.float64)
    else:
        wide = magnitudes.astype(np.float64)
        scale = wide.max(initial=0, where=np.isfinite(wide))
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= rounding * np.maximum(np.abs(a), scale) + tiny
        return bool(np.all((a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(a) & np.isfinite(b) & near)))


def agrees(example: Example, run: Run, inputs: Inputs) -> bool | None:
    """Whether a peer returns the library's results for these inputs; None if it has no answer."""
    ours = example._replace(inputs=inputs).ours()
    try:
        theirs = run(inputs)
    except Exception:
        return False
    if theirs is None:
        return None
    return len(ours) == len(theirs) and all(equal(example, inputs, a, b) for a, b in zip(ours, theirs, strict=True))
