"""The libraries against which onnxpool races."""

import importlib

from . import onednn, onnx_peers, torch_peer, xnnpack

PEERS = {  # by the names used in tables
    "onnxruntime": onnx_peers.onnxruntime,
    "torch": torch_peer.torch,
    "openvino": onnx_peers.openvino,
    "onednn": onednn.onednn,
    "xnnpack": xnnpack.xnnpack,
}


def missing(name: str) -> str | None:
    """The reason why a peer is missing from all races, or None."""
    try:
        if name == "onednn":
            onednn.library()
            onednn.openmp()
        elif name == "xnnpack":
            importlib.import_module("ai_edge_litert.interpreter")
        else:
            importlib.import_module(name)
            importlib.import_module("torch" if name == "torch" else "onnx")
    except (ImportError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return None
