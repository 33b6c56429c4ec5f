"""Time a pool next to busy processes: on one thread, by default, and with onnxruntime, alternating in one process.

Run it on an otherwise idle machine: `python tools/measure_latency.py`. It prints the median and the 99th percentile
of each in microseconds, next to 0, 1 and 2 processes that each keep a core busy.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import onnxpool

SHAPE, WINDOW = (1, 64, 112, 112), {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
PAUSE = 0.0005  # seconds between calls


def by_onnxruntime(x: np.ndarray, threads: int) -> Callable[[], Any]:
    """A function that runs the same pool in an onnxruntime session."""
    import onnx
    import onnxruntime

    node = onnx.helper.make_node("MaxPool", ["x"], ["y"], **WINDOW)
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "xy"]
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return lambda: session.run(None, {"x": x})


def timed(call: Callable[[], Any]) -> float:
    """Microseconds of a call."""
    time.sleep(PAUSE)
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=4000, help="calls of each, for each number of busy processes")
    parser.add_argument("--onnxruntime", action="store_true", help="time onnxruntime as well")
    args = parser.parse_args()
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    plan = onnxpool.MaxPool(**WINDOW).plan(x.shape, x.dtype)
    y, threads = plan(x), onnxpool.get_num_threads()
    calls: dict[str, Callable[[], Any]] = {"one thread": lambda: plan(x, out=y, num_threads=1),
                                           f"{threads} threads": lambda: plan(x, out=y)}
    if args.onnxruntime:
        calls[f"onnxruntime, {threads}"] = by_onnxruntime(x, threads)
    print("busy processes  " + "".join(f"{name:>22}" for name in calls))
    for busy in range(3):
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
        time.sleep(0.5)
        row = f"{busy:<16}"
        for call in calls.values():  # one after the other, because threads that spin would disturb the next call
            times = sorted(timed(call) for _ in range(args.calls))
            row += f"{times[len(times) // 2]:>12.0f} / {times[len(times) * 99 // 100]:<7.0f}"
        print(row, flush=True)
        for other in others:
            other.kill()
            other.wait()


if __name__ == "__main__":
    main()
