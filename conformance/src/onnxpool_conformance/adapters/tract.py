"""tract, with its optimisations: pip install tract"""

import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import tract

VERSION = f"tract {metadata.version('tract')}"


class Prepared:
    """An optimised model, which tract reads from a file."""

    def __init__(self, model: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            self.runnable = tract.onnx().load(path).into_model().into_runnable()

    def run(self, inputs: list[Any]) -> list[Any]:
        """The outputs for some inputs."""
        return [np.array(each.to_numpy()) for each in self.runnable.run(inputs)]


def prepare(model: Any, device: str = "CPU") -> Prepared:
    """A model, ready to run."""
    return Prepared(model)
