"""Runtimes as modules with the interface of onnx.backend: `prepare(model, device).run(inputs)` returns the outputs."""
