"""Models whose pooling nodes run on onnxpool: in onnx's evaluator, or in an onnxruntime session."""

import queue
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx
from onnx.helper import tensor_dtype_to_np_dtype
from protocol import DATATYPES, Array, RequestError, Signature

import onnxpool
from onnxpool.onnx.reference import Evaluator, NodeError

FATAL = 4  # log level of onnxruntime: mistakes in a request are reported to its client instead


class Runtime(Protocol):
    """Something that runs a model, from any thread."""

    def run(self, outputs: list[str], feeds: dict[str, Array]) -> Sequence[Array]:
        """The outputs with these names; RequestError if a node refuses the inputs."""


class Evaluators:
    """Evaluators of onnx for threads: onnx's operators may keep state, so no two threads share an evaluator."""

    platform = "onnx_evaluator"

    def __init__(self, model: onnx.ModelProto, workers: int, threads: int) -> None:
        self._threads = threads
        self._idle: queue.SimpleQueue[Evaluator] = queue.SimpleQueue()
        for _ in range(workers):
            self._idle.put(Evaluator(model))

    def run(self, outputs: list[str], feeds: dict[str, Array]) -> Sequence[Array]:
        """The outputs with these names."""
        evaluator = self._idle.get()
        try:
            with onnxpool.num_threads(self._threads):
                return [np.asarray(array) for array in evaluator.run(outputs, feeds)]
        except NodeError as error:
            raise RequestError(str(error)) from error
        finally:
            self._idle.put(evaluator)


class Session:
    """An onnxruntime session with all its pooling nodes on onnxpool."""

    platform = "onnxruntime_onnx"

    def __init__(self, model: onnx.ModelProto, workers: int, threads: int) -> None:
        import onnxruntime

        import onnxpool.onnxruntime

        opsets = {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in model.opset_import}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        operators = {row["operator"] for row in onnxpool.supported()
                     if row["domain"] in opsets and row["version"] <= opsets[row["domain"]]}
        onnxpool.onnxruntime.register(options, ops=operators, opset=opsets.get(""))
        self._options = onnxruntime.RunOptions()
        options.log_severity_level = self._options.log_severity_level = FATAL
        self._value = onnxruntime.OrtValue
        self._refused = onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument
        self._session = onnxruntime.InferenceSession(model.SerializeToString(), options)

    def run(self, outputs: list[str], feeds: dict[str, Array]) -> Sequence[Array]:
        """The outputs with these names."""
        values = {name: self._of(array) for name, array in feeds.items()}
        try:
            return [onnxpool.from_dlpack(value) if value.element_type() == onnx.TensorProto.BFLOAT16 else value.numpy()
                    for value in self._session.run_with_ort_values(outputs, values, self._options)]
        except self._refused as error:
            raise RequestError(str(error)) from error

    def _of(self, array: Array) -> Any:
        """An array in the form that onnxruntime accepts: aligned, and bfloat16 as 16-bit integers."""
        array = np.require(array, requirements=["C", "A"])
        if array.dtype.name == "bfloat16":
            return self._value.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), onnx.TensorProto.BFLOAT16)
        return self._value.ortvalue_from_numpy(array)


RUNTIMES: dict[str, type[Evaluators] | type[Session]] = {"onnx": Evaluators, "onnxruntime": Session}


class Model:
    """
    A model as the server offers it.

    Parameters
    ----------
    path : Path
        An .onnx file; its stem is the model's name.
    runtime : {"onnx", "onnxruntime"}
    workers : int
        How many threads run models.
    threads : int
        The number of threads of each run.

    Raises
    ------
    ValueError
        If the model is not valid, or has an input or output that is not a tensor of numbers.
    """

    version = "1"

    def __init__(self, path: Path, runtime: str = "onnx", workers: int = 1, threads: int = 1) -> None:
        onnx.checker.check_model(path, full_check=True)
        model = onnx.load(path)
        graph = onnx.shape_inference.infer_shapes(model).graph
        valued = {tensor.name for tensor in graph.initializer}
        self.name = path.stem
        self.inputs = [signature(info, info.name in valued) for info in graph.input]
        self.outputs = [signature(info) for info in graph.output]
        unranked = [info.name for info in graph.input if not info.type.tensor_type.HasField("shape")]
        if unranked:
            raise ValueError(f"model {self.name!r}: input {unranked[0]!r} has no shape; give it one in the model")
        made = RUNTIMES[runtime]
        self.platform = made.platform
        self.runtime: Runtime = made(model, workers, threads)

    def metadata(self) -> dict[str, Any]:
        """The metadata as the protocol defines them."""
        return {"name": self.name, "versions": [self.version], "platform": self.platform,
                "inputs": [info.metadata() for info in self.inputs],
                "outputs": [info.metadata() for info in self.outputs]}

    def configuration(self) -> dict[str, Any]:
        """The configuration as Triton defines it; batches are as large as a request makes them."""
        described = self.metadata()
        return {"name": self.name, "platform": self.platform, "max_batch_size": 0, **{
            side: [{"name": info["name"], "data_type": f"TYPE_{info['datatype']}", "dims": info["shape"]}
                   for info in described[f"{side}s"]] for side in ("input", "output")}}


def signature(info: onnx.ValueInfoProto, optional: bool = False) -> Signature:
    """An input or output of a graph; one without a shape is treated as having a single open size."""
    tensor = info.type.tensor_type
    known = info.type.HasField("tensor_type") and tensor.elem_type
    datatype = DATATYPES.get(tensor_dtype_to_np_dtype(tensor.elem_type)) if known else None
    if datatype is None:
        raise ValueError(f"{info.name!r} is not a tensor of numbers or truth values; the protocol cannot carry it")
    sizes = [size.dim_value if size.HasField("dim_value") else size.dim_param or None for size in tensor.shape.dim]
    return Signature(info.name, datatype, tuple(sizes) if tensor.HasField("shape") else (None,), optional)
