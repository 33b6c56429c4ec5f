"""
The model that the server serves by default: the peaks of a heat map, as in keypoint detectors.

``python peaks.py FILE`` writes it; `direct` computes its outputs with calls of onnxpool and NumPy only.
"""

import sys
from typing import Any

import numpy as np
import onnx.parser
from numpy.typing import NDArray

import onnxpool

TEXT = """
<ir_version: 10, opset_import: ["" : 22]>
peaks (float[N, C, H, W] heat) => (float[N, C, H, W] peaks, float[N, C, P, Q] thumbnail, float[N, C, 1, 1] energy) {
    highest = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (heat)
    is_peak = Equal (heat, highest)
    zero = Constant <value_float = 0.0> ()
    peaks = Where (is_peak, heat, zero)
    thumbnail = AveragePool <kernel_shape = [3, 3], strides = [2, 2]> (heat)
    energy = GlobalLpPool <p = 2> (heat)
}
"""


def model() -> onnx.ModelProto:
    """The model."""
    return onnx.parser.parse_model(TEXT)


def direct(heat: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """The outputs for a heat map."""
    highest = onnxpool.max_pool(heat, 3, pads=(1, 1, 1, 1), opset=22)
    return {
        "peaks": np.where(heat == highest, heat, np.float32(0)),
        "thumbnail": onnxpool.average_pool(heat, 3, strides=2, opset=22),
        "energy": onnxpool.global_lp_pool(heat, p=2, opset=22),
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python peaks.py FILE")
    onnx.save(model(), sys.argv[1])
