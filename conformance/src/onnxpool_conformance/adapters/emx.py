"""C code that emx-onnx-cgen generates, and the compiler of the machine compiles: pip install emx-onnx-cgen"""

from functools import partial
from importlib import metadata

from emx_onnx_cgen.codegen import c_emitter
from emx_onnx_cgen.onnx_backend import prepare
from jinja2 import Environment, FileSystemBytecodeCache

__all__ = ["VERSION", "prepare"]

VERSION = f"emx-onnx-cgen {metadata.version('emx-onnx-cgen')}"
c_emitter.Environment = partial(Environment, bytecode_cache=FileSystemBytecodeCache())  # or each model takes seconds
