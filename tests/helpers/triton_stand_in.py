"""A stand-in for ``triton_python_backend_utils`` of Triton's Python backend, with the parts that our models use."""

from collections.abc import Sequence
from typing import Any

import numpy as np


class Tensor:
    """A tensor; a bfloat16 one can only be read through DLPack."""

    def __init__(self, name: str, array: Any) -> None:
        if not isinstance(array, np.ndarray) or array.dtype.name == "bfloat16":
            raise TypeError("Tensor takes arrays of NumPy's own types")
        self._name, self._held = name, array

    @classmethod
    def from_dlpack(cls, name: str, held: Any) -> "Tensor":
        """A tensor of another framework, with the strides of C order, which NumPy's arrays without elements lack."""
        assert hasattr(held, "__dlpack__")
        assert hasattr(held, "__dlpack_device__")
        if isinstance(held, np.ndarray) and (not held.size or not held.flags.c_contiguous):
            raise RuntimeError("DLPack tensor is not contiguous")
        tensor = cls(name, np.empty(0))
        tensor._held = held
        return tensor

    def name(self) -> str:
        """Its name."""
        return self._name

    def as_numpy(self) -> Any:
        """The array of a tensor whose type NumPy has."""
        assert isinstance(self._held, np.ndarray)
        return self._held

    def __dlpack__(self, stream: Any = None) -> Any:
        """The capsule, of the first version of the protocol."""
        return self._held.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Any:
        """The CPU."""
        return self._held.__dlpack_device__()


class TritonError:
    """An error of one request."""

    INTERNAL, INVALID_ARG = 1, 3

    def __init__(self, message: str, code: int = INTERNAL) -> None:
        self.text, self.code = message, code


class InferenceRequest:
    """A request."""

    def __init__(self, inputs: Sequence[Tensor], requested: Sequence[str]) -> None:
        self.inputs, self.requested = inputs, requested

    def requested_output_names(self) -> Sequence[str]:
        """The requested outputs."""
        return self.requested


class InferenceResponse:
    """A response: tensors or an error."""

    def __init__(self, output_tensors: Sequence[Tensor] = (), error: TritonError | None = None) -> None:
        self.outputs, self.error = {tensor.name(): tensor for tensor in output_tensors}, error


def get_input_tensor_by_name(request: InferenceRequest, name: str) -> Tensor | None:
    """An input of a request, or None if it has none of that name."""
    return next((tensor for tensor in request.inputs if tensor.name() == name), None)
