"""onnxruntime on the CPU, with its own optimisations: pip install onnxruntime"""

from typing import Any

import onnxruntime

VERSION = f"onnxruntime {onnxruntime.__version__}"


class Prepared:
    """A session."""

    def __init__(self, model: Any) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                    providers=["CPUExecutionProvider"])

    def run(self, inputs: list[Any]) -> list[Any]:
        """The outputs for some inputs. NumPy has no bfloat16, so values must name their type."""
        values = {each.name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view("uint16"), 16)
                  if array.dtype.name == "bfloat16" else onnxruntime.OrtValue.ortvalue_from_numpy(array)
                  for each, array in zip(self.session.get_inputs(), inputs, strict=True)}
        return [value.numpy() for value in self.session.run_with_ort_values(None, values)]


def prepare(model: Any, device: str = "CPU") -> Prepared:
    """A model, ready to run."""
    return Prepared(model)
