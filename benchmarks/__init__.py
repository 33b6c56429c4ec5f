"""The benchmarks, for asv: see docs/benchmarking.md."""
