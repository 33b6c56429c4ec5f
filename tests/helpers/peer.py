"""The answers of onnxruntime for single nodes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from calls import Call
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as errors
from sessions import SILENT, answers

REFUSALS = (errors.Fail, errors.InvalidArgument, errors.InvalidGraph, errors.NotImplemented, errors.RuntimeException)

onnxruntime.set_default_logger_severity(SILENT)


def ask(operator: str, inputs: Sequence[NDArray[Any] | None], outputs: Sequence[str], attributes: dict[str, Any], *,
        opset: int, domain: str = "") -> Any:
    """The outputs of one node; `outputs` are their dtypes, and an input that is None is omitted."""
    names = [f"y{place}" for place in range(len(outputs))]
    return answers(operator, inputs, attributes, None, outputs=names, dtypes=outputs, opset=opset, domain=domain)


def agreed_window(call: Call) -> bool:
    """Whether onnxruntime follows ONNX for a call of a windowed operator that the library accepts.

    It does for at most three spatial axes if no window lies entirely in the padding, except for partial windows of
    kernels larger than the input (D10), and for SAME_*, which ignores dilations and shifts windows smaller than a
    stride.
    """
    spatial = call.x.shape[1:-1] if call.channels_last else call.x.shape[2:]
    kernel, strides, dilations = (
        np.broadcast_to(call.attributes.get(name, 1), len(spatial)) for name in ("kernel_shape", "strides", "dilations")
    )
    spans = (kernel - 1) * dilations + 1
    if len(spatial) > 3 or call.x.size == 0 or (spans > spatial).any():
        return False
    if np.max(call.attributes.get("pads", 0)) >= kernel.min():
        return False
    same = call.attributes.get("auto_pad", "").startswith("SAME")
    return not (same and ((dilations > 1).any() or (strides > kernel).any()))


def explicit(call: Call) -> dict[str, Any]:
    """The attributes as in a node, with a kernel size for each axis."""
    kernel = np.broadcast_to(call.attributes["kernel_shape"], call.x.ndim - 2)
    return {**call.attributes, "kernel_shape": kernel.tolist()}
