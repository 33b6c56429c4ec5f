"""TVM by its importer to Relax, compiled by LLVM: pip install apache-tvm"""

from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

VERSION = f"TVM {tvm.__version__}"


class Prepared:
    """A compiled model."""

    def __init__(self, model: Any) -> None:
        module = relax.transform.LegalizeOps()(from_onnx(model))
        self.machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())

    def run(self, inputs: list[Any]) -> list[Any]:
        """The outputs for some inputs."""
        found = self.machine["main"](*map(tvm.runtime.tensor, inputs))
        return [np.array(y.numpy()) for y in ([found] if hasattr(found, "numpy") else found)]


def prepare(model: Any, device: str = "CPU") -> Prepared:
    """A model, ready to run."""
    return Prepared(model)
