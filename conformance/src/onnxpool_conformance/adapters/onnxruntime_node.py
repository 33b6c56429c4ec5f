"""onnxruntime-node, in Node: npm install onnxruntime-node, in the current directory"""

from typing import Any

from .in_node import Node, Prepared

NODE = Node("onnxruntime-node")
VERSION = f"onnxruntime-node {NODE.version}"


def prepare(model: Any, device: str = "CPU") -> Prepared:
    """A model, ready to run."""
    return Prepared(NODE, model)
