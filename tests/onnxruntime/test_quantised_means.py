"""Quantised global means of random arrays have the bits of onnxruntime's."""

from functools import cache
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from sessions import TYPES, session

import onnxpool


def integers(random: np.random.Generator, low: int, high: int) -> int:
    """An integer in [low, high]."""
    return int(random.integers(low, high + 1))


@cache
def quantised_session(dtype: str, rank: int, last: int) -> onnxruntime.InferenceSession:
    """One node of the quantised global mean, whose scales and zero points are inputs."""
    kinds = {"x": TYPES[dtype], "x_scale": TensorProto.FLOAT, "x_zero_point": TYPES[dtype]}
    kinds |= {"y_scale": TensorProto.FLOAT, "y_zero_point": TYPES[dtype]}
    inputs = [
        helper.make_tensor_value_info(name, kind, [f"d{i}" for i in range(rank + 2)] if name == "x" else [])
        for name, kind in kinds.items()
    ]
    node = helper.make_node("QLinearGlobalAveragePool", list(kinds), ["y"], domain="com.microsoft", channels_last=last)
    graph = helper.make_graph([node], "q", inputs, [helper.make_tensor_value_info("y", TYPES[dtype], None)])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    return session(helper.make_model(graph, opset_imports=opsets, ir_version=8))


def quantisation(random: np.random.Generator, dtype: str) -> dict[str, Any]:
    """Scales and zero points that a quantiser might choose, and some with which most results saturate."""
    limits = np.iinfo(dtype)
    zeros = random.integers(limits.min, limits.max, 2, dtype, endpoint=True)
    x_scale = np.float32(np.exp(random.uniform(-8, 2)))
    y_scale = x_scale * np.float32(np.exp(random.choice([0.0, random.uniform(-0.5, 1), random.uniform(-3, 4)])))
    return {"x_scale": x_scale, "x_zero_point": zeros[0], "y_scale": y_scale, "y_zero_point": zeros[1]}


@pytest.mark.parametrize("last", [0, 1], ids=["channels_first", "channels_last"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantised_mean_is_bit_exact(dtype: str, rank: int, last: int) -> None:
    """The quantised global mean equals onnxruntime's in every element of hundreds of random results."""
    random = np.random.default_rng([rank, last, *dtype.encode()])
    compared = saturated = 0
    for _ in range(100):
        spatial = tuple(integers(random, 1, (60, 16, 7)[rank - 1]) for _ in range(rank))
        batch, channels = integers(random, 1, 3), integers(random, 1, 12)
        shape = (batch, *spatial, channels) if last else (batch, channels, *spatial)
        # A narrow range around a random level keeps the means of large images apart.
        limits = np.iinfo(dtype)
        level, width = integers(random, limits.min, limits.max), integers(random, 0, 60)
        x = np.clip(random.integers(level - width, level + width + 1, shape), limits.min, limits.max).astype(dtype)
        inputs = {"x": x, **quantisation(random, dtype)}
        theirs = quantised_session(dtype, rank, last).run(
            None, {name: np.asarray(value) for name, value in inputs.items()}
        )[0]

        ours = onnxpool.qlinear_global_average_pool(*inputs.values(), channels_last=last)

        np.testing.assert_array_equal(ours, theirs, strict=True, err_msg=str(inputs))
        compared += ours.size
        saturated += int(((ours == limits.min) | (ours == limits.max)).sum())

    assert compared >= 500
    assert 0 < saturated < 0.6 * compared
