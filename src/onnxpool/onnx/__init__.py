"""Support for the onnx package: nodes, models, the reference evaluator and a backend."""
