"""IREE on the CPU: pip install iree-base-compiler[onnx] iree-base-runtime"""

import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from iree import runtime
from iree.compiler import tools
from iree.compiler.tools.import_onnx.__main__ import main as import_onnx
from iree.compiler.tools.import_onnx.__main__ import parse_arguments

VERSION = f"IREE {metadata.version('iree-base-compiler')}"


class Prepared:
    """A compiled model."""

    def __init__(self, model: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path, text = Path(folder) / "model.onnx", Path(folder) / "model.mlir"
            path.write_bytes(model.SerializeToString())
            if import_onnx(parse_arguments([str(path), "-o", str(text)])):
                raise ValueError("cannot be imported")
            compiled = tools.compile_file(str(text), input_type="onnx", target_backends=["llvm-cpu"],
                                          extra_args=["--iree-llvmcpu-target-cpu=host"])
        self.module = runtime.load_vm_flatbuffer(compiled, driver="local-sync")
        names = self.module.vm_module.function_names  # the synchronous function does not begin with _
        self.name = next(name for name in names if name[0] != "_" and "$" not in name)

    def run(self, inputs: list[Any]) -> list[Any]:
        """The outputs for some inputs."""
        found = self.module[self.name](*inputs)
        return [np.array(y) for y in (found if isinstance(found, (tuple, list)) else [found])]


def prepare(model: Any, device: str = "CPU") -> Prepared:
    """A model, ready to run."""
    return Prepared(model)
