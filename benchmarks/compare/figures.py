"""Measure what the figures of docs/performance.md show, and write it to benchmarks/results/figures.json.

    taskset -c 0 python -m benchmarks.compare.figures

It measures time against window size, and the error against the exact mean, in about two minutes.
`tools/draw_figures.py` draws the figures.
"""

import importlib.metadata
import json
import platform
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime
import torch
from onnx import TensorProto, helper
from scipy import ndimage

import onnxpool

from . import shortest

FILE = Path(__file__).parents[1] / "results" / "figures.json"
PACKAGES = ("numpy", "scipy", "opencv-python-headless", "onnxruntime", "torch")
MACHINE = "two-core AMD EPYC (Zen 5, AVX-512)"

SIDE, KERNELS = 512, (3, 5, 7, 11, 15, 23, 31, 47, 63)
EXPONENTS, TRIALS = range(2, 25, 2), 12
LONGEST = 0.25  # seconds: libraries that take longer for one call are not timed with larger windows


def session(operator: str, shape: tuple[int, ...], **attributes: Any) -> Callable[[Any], Any]:
    """A pool in onnxruntime, on one thread."""
    node = helper.make_node(operator, ["x"], ["y"], **attributes)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in (("x", shape), ("y", None)))
    graph = helper.make_graph([node], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda x: made.run(None, {"x": x})[0]


def windows() -> Iterator[dict[str, Any]]:
    """Maxima and means of k x k windows around every pixel of an image, on one thread."""
    image = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    batch, slow = image[None, None], set()
    for k in KERNELS:
        pads, ones = k // 2, np.ones((k, k), np.uint8)
        onnx = {"kernel_shape": [k, k], "pads": [pads] * 4}
        maximum = session("MaxPool", batch.shape, **onnx)
        average = session("AveragePool", batch.shape, **onnx, count_include_pad=1)
        ours_max = onnxpool.MaxPool(kernel_shape=k, pads=pads, axes=(0, 1)).plan(image.shape, image.dtype)
        ours_mean = onnxpool.AveragePool(kernel_shape=k, pads=pads, axes=(0, 1), count_include_pad=1).plan(
            image.shape, image.dtype)
        calls: dict[str, dict[str, Callable[[], Any]]] = {
            "maxima": {"onnxpool": lambda plan=ours_max: plan(image, num_threads=1),
                       "OpenCV": lambda ones=ones: cv2.dilate(image, ones),
                       "SciPy": lambda k=k: ndimage.maximum_filter(image, k),
                       "onnxruntime": lambda run=maximum: run(batch)},
            "means": {"onnxpool": lambda plan=ours_mean: plan(image, num_threads=1),
                      "OpenCV": lambda k=k: cv2.boxFilter(image, -1, (k, k), borderType=cv2.BORDER_CONSTANT),
                      "SciPy": lambda k=k: ndimage.uniform_filter(image, k, mode="constant"),
                      "onnxruntime": lambda run=average: run(batch)}}
        for kind, ways in calls.items():
            results = [call() for name, call in ways.items() if (kind, name) not in slow]
            for result in results[1:]:
                np.testing.assert_allclose(np.squeeze(result), results[0], rtol=1e-3)
            timed = {name: call for name, call in ways.items() if (kind, name) not in slow}
            times = dict(zip(timed, shortest([*timed.values()]), strict=True))
            slow |= {(kind, name) for name, seconds in times.items() if seconds > LONGEST}
            yield {"kind": kind, "k": k, "us": {name: round(1e6 * seconds, 2) for name, seconds in times.items()}}


def accuracy() -> Iterator[dict[str, Any]]:
    """The largest error, over some arrays, of the mean of n numbers in [0, 1), in units of half an ulp of 0.5."""
    unit = 2.0**-25
    for exponent in EXPONENTS:
        n = 2**exponent
        worst = dict.fromkeys(("onnxpool", "NumPy", "torch", "onnxruntime", "OpenCV"), 0.0)
        rng = np.random.default_rng(exponent)
        run = session("GlobalAveragePool", (1, 1, 1, n))
        for _ in range(TRIALS if exponent < 20 else 3):
            x = rng.random(n, np.float32)
            # The numbers are multiples of 2^-24, so that their sum is exact as an integer.
            exact = Fraction(int((x.astype(np.float64) * 2**24).astype(np.int64).sum()), n * 2**24)
            batch = x.reshape(1, 1, 1, n)
            means = {"onnxpool": onnxpool.global_average_pool(batch), "NumPy": np.mean(x),
                     "torch": torch.nn.functional.adaptive_avg_pool2d(torch.from_numpy(batch), 1),
                     "onnxruntime": run(batch),
                     "OpenCV": cv2.reduce(x[None], 1, cv2.REDUCE_AVG)}
            for name, mean in means.items():
                error = abs(Fraction(float(np.asarray(mean).ravel()[0])) - exact)
                worst[name] = max(worst[name], float(error) / unit)
        yield {"n": n, "units": {name: round(error, 3) for name, error in worst.items()}}


if __name__ == "__main__":
    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    data = {"windows": list(windows()), "accuracy": list(accuracy()), "machine": MACHINE,
            "date": time.strftime("%Y-%m-%d"),
            "versions": {"python": platform.python_version(), "onnxpool": onnxpool.__version__,
                         **{package: importlib.metadata.version(package) for package in PACKAGES}}}
    lines = [f'"{name}": [\n  ' + ",\n  ".join(map(json.dumps, value)) + "\n]" if isinstance(value, list)
             else f'"{name}": {json.dumps(value)}' for name, value in sorted(data.items())]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
