"""tinygrad on the device that it chooses; DEV=PYTHON needs no compiler: pip install tinygrad"""

import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from tinygrad import Tensor, dtypes
from tinygrad.nn.onnx import OnnxRunner

VERSION = f"tinygrad {metadata.version('tinygrad')}"


def array(y: Any) -> Any:
    """An output. tinygrad returns bfloat16 as float32."""
    if not isinstance(y, Tensor):
        return np.asarray(y)
    return y.numpy().astype(ml_dtypes.bfloat16) if y.dtype == dtypes.bfloat16 else y.numpy()


class Prepared:
    """A model, which tinygrad reads from a file."""

    def __init__(self, model: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            self.runner = OnnxRunner(path)

    def run(self, inputs: list[Any]) -> list[Any]:
        """The outputs for some inputs."""
        found = self.runner(dict(zip(self.runner.graph_inputs, inputs, strict=True)))
        return [array(y) for y in found.values()]


def prepare(model: Any, device: str = "CPU") -> Prepared:
    """A model, ready to run."""
    return Prepared(model)
