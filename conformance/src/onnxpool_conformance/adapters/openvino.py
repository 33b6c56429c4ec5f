"""OpenVINO on the CPU, in the precision of the model: pip install openvino ml_dtypes"""

from typing import Any

import ml_dtypes
import numpy as np
import openvino

VERSION = f"OpenVINO {openvino.__version__.partition('-')[0]}"
SETTINGS = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}


def tensor(x: Any) -> Any:
    """An input. OpenVINO takes and returns bfloat16 as bits of another type."""
    if x.dtype == ml_dtypes.bfloat16:
        return openvino.Tensor(x.view(np.uint16), x.shape, openvino.Type.bf16)
    made = openvino.Tensor(openvino.Type(x.dtype), x.shape)
    made.data[...] = x
    return made


class Prepared:
    """A compiled model."""

    def __init__(self, model: Any) -> None:
        core = openvino.Core()  # a new one: with one for all models, float16 RoiAlign ends the process
        self.compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", SETTINGS)

    def run(self, inputs: list[Any]) -> list[Any]:
        """The outputs for some inputs."""
        request = self.compiled.create_infer_request()
        request.infer([tensor(x) for x in inputs])
        found = [request.get_output_tensor(place) for place in range(len(self.compiled.outputs))]
        return [np.array(each.data).view(ml_dtypes.bfloat16) if each.element_type == openvino.Type.bf16
                else np.array(each.data) for each in found]


def prepare(model: Any, device: str = "CPU") -> Prepared:
    """A model, ready to run."""
    return Prepared(model)
