"""onnxruntime-web, in Node: npm install onnxruntime-web, in the current directory"""

from typing import Any

from .in_node import Node, Prepared

NODE = Node("onnxruntime-web")
VERSION = f"onnxruntime-web {NODE.version}"


def prepare(model: Any, device: str = "CPU") -> Prepared:
    """A model, ready to run."""
    return Prepared(NODE, model)
