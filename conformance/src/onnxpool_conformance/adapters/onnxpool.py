"""onnxpool: pip install 'onnxpool[onnx]'"""

import onnxpool
from onnxpool.onnx.backend import prepare

__all__ = ["VERSION", "prepare"]
VERSION = f"onnxpool {onnxpool.__version__}"
