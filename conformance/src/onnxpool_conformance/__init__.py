"""A conformance suite for the ONNX pooling operators: cases, an exact oracle, and a runner for any runtime."""

__version__ = "0.1.0"
