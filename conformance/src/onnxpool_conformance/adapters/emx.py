"""C code that emx-onnx-cgen generates, and the compiler of the machine compiles: pip install emx-onnx-cgen"""

from importlib import metadata

from emx_onnx_cgen.onnx_backend import prepare

__all__ = ["VERSION", "prepare"]

VERSION = f"emx-onnx-cgen {metadata.version('emx-onnx-cgen')}"
