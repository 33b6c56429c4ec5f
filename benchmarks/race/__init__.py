"""onnxpool against other libraries, in the same process: see docs/benchmarking.md."""
