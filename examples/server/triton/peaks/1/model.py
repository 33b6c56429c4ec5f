"""
A model for Triton's Python backend: the ``model.onnx`` next to this file, with its pooling nodes on onnxpool.

Nothing here is specific to one model: its inputs and outputs are those of config.pbtxt, whose parameter ``threads`` is
the number of threads that pool for each instance. Triton gives every instance a process of its own.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

import onnxpool
from onnxpool.onnx.reference import Evaluator, NodeError

BFLOAT16 = 16  # the number in onnx.TensorProto


class TritonPythonModel:
    """The class that Triton calls."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the model."""
        config = json.loads(args["model_config"])
        self.inputs = [tensor["name"] for tensor in config["input"]]
        self.threads = int(config.get("parameters", {}).get("threads", {}).get("string_value", "1"))
        self.evaluator = Evaluator(Path(args["model_repository"], args["model_version"], "model.onnx"))

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer requests, each with its outputs or its own error."""
        with onnxpool.num_threads(self.threads):
            return [self.answer(request) for request in requests]

    def answer(self, request: Any) -> Any:
        """The response to one request."""
        # from_dlpack reads Triton's memory in place, even bfloat16, which as_numpy cannot; no reference to it is kept.
        tensors = {name: pb_utils.get_input_tensor_by_name(request, name) for name in self.inputs}
        try:
            feeds = {name: onnxpool.from_dlpack(tensor) for name, tensor in tensors.items() if tensor is not None}
            names = list(request.requested_output_names())
            arrays = self.evaluator.run(names, feeds)
            outputs = [made(name, array) for name, array in zip(names, arrays, strict=True)]
        except NodeError as error:
            return failed(str(error), pb_utils.TritonError.INVALID_ARG)
        except Exception as error:  # an exception would fail every request of the batch
            return failed(f"{type(error).__name__}: {error}", pb_utils.TritonError.INTERNAL)
        return pb_utils.InferenceResponse(output_tensors=outputs)


def made(name: str, array: np.ndarray) -> Any:
    """An output tensor; NumPy cannot export bfloat16, but an OrtValue can."""
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    if array.dtype.name != "bfloat16":
        return pb_utils.Tensor(name, array)
    from onnxruntime import OrtValue
    value = OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), BFLOAT16)
    return pb_utils.Tensor.from_dlpack(name, value)


def failed(text: str, code: int) -> Any:
    """A response that is an error."""
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(text, code))
