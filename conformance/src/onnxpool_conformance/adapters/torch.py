"""torch by onnx2torch: pip install torch==2.13.0 onnx2torch"""

from importlib import metadata
from typing import Any

import numpy as np
import torch
from onnx2torch import convert

VERSION = f"torch {torch.__version__.partition('+')[0]} by onnx2torch {metadata.version('onnx2torch')}"


def tensor(x: Any) -> torch.Tensor:
    """An input. NumPy's bfloat16 is unknown to torch."""
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def array(y: torch.Tensor) -> Any:
    """An output."""
    if y.dtype == torch.bfloat16:
        import ml_dtypes
        return y.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return y.numpy()


class Prepared:
    """A module."""

    def __init__(self, model: Any) -> None:
        self.module = convert(model)

    def run(self, inputs: list[Any]) -> list[Any]:
        """The outputs for some inputs."""
        with torch.inference_mode():
            found = self.module(*map(tensor, inputs))
        return [array(y) for y in (found if isinstance(found, (tuple, list)) else [found])]


def prepare(model: Any, device: str = "CPU") -> Prepared:
    """A model, ready to run."""
    return Prepared(model)
