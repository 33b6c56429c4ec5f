"""The cases, the oracle and the runner of the conformance suite for ONNX pooling."""

__version__ = "0.1.0"
