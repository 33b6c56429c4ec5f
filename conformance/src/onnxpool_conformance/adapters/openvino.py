"""OpenVINO on the CPU, in the precision of the model: pip install openvino"""

from typing import Any

import openvino

VERSION = f"OpenVINO {openvino.__version__.partition('-')[0]}"


class Prepared:
    """A compiled model."""

    def __init__(self, model: Any) -> None:
        core = openvino.Core()
        self.compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU",
                                           {"INFERENCE_PRECISION_HINT": "f32"})

    def run(self, inputs: list[Any]) -> list[Any]:
        """The outputs for some inputs."""
        found = self.compiled(inputs)
        return [found[place] for place in range(len(self.compiled.outputs))]


def prepare(model: Any, device: str = "CPU") -> Prepared:
    """A model, ready to run."""
    return Prepared(model)
