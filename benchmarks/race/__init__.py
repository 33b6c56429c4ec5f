"""onnxpool against other libraries, side by side in one process: see docs/benchmarking.md."""
