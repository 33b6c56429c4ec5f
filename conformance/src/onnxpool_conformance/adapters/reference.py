"""onnx's ReferenceEvaluator: pip install onnx"""

from typing import Any

import onnx
from onnx.reference import ReferenceEvaluator

VERSION = f"ReferenceEvaluator of onnx {onnx.__version__}"


class Prepared:
    """An evaluator."""

    def __init__(self, model: Any) -> None:
        self.evaluator = ReferenceEvaluator(model)

    def run(self, inputs: list[Any]) -> list[Any]:
        """The outputs for some inputs."""
        return list(self.evaluator.run(None, dict(zip(self.evaluator.input_names, inputs, strict=True))))


def prepare(model: Any, device: str = "CPU") -> Prepared:
    """A model, ready to run."""
    return Prepared(model)
