"""Agreement with onnxruntime on random problems, restricted to those that onnxruntime computes as ONNX says."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import pytest
from calls import SINCE
from numpy.typing import NDArray
from onnx import TensorProto, helper
from sessions import TYPES, answers, session

import onnxpool

CASES = 100
NEVER = 99  # no opset
RELATIVE = 1e-5  # onnxruntime sums in float32; relative to the mean of |x|, which cancellation does not shrink

# The opsets at which onnxruntime has a kernel.
OPSETS = {
    "AveragePool": (7, 9, 10, 11, 13, 18, 19, 21, 22),
    "GlobalAveragePool": (1, 7, 13, 22),
    "GlobalLpPool": (2, 7, 13, 21),
    "GlobalMaxPool": (1, 7, 13, 22),
    "LpPool": (2, 7, 11, 13, 18, 21, 22),
    "MaxPool": (1, 7, 8, 10, 11, 12, 13, 22),
}


class Axis(NamedTuple):
    """One spatial axis of a problem."""

    size: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int

    def windows(self, ceil: int) -> Iterator[range]:
        """The positions that the taps of each window read."""
        span = (self.kernel - 1) * self.dilation + 1
        room = self.size + self.begin + self.end - span
        count = -(-room // self.stride) + 1 if ceil else room // self.stride + 1
        for start in range(-self.begin, -self.begin + count * self.stride, self.stride):
            yield range(start, start + span, self.dilation)

    def agreed(self, ceil: int) -> bool:
        """Whether ONNX and onnxruntime agree: the kernel fits, and every window that starts in data or left of it
        reads some data.
        """
        fits = (self.kernel - 1) * self.dilation < self.size + self.begin + self.end
        return fits and all(
            any(0 <= tap < self.size for tap in window) for window in self.windows(ceil) if window.start < self.size
        )


def integers(random: np.random.Generator, low: int, high: int) -> int:
    return int(random.integers(low, high + 1))


def axis(random: np.random.Generator, dilated: bool, padded: bool, ceil: int) -> Axis:
    """A random axis on which ONNX and onnxruntime agree; without explicit pads, strides are at most the kernel."""
    while True:
        kernel = integers(random, 1, 5)
        pads = [integers(random, 0, kernel - 1) if padded else 0 for _ in range(2)]
        stride = integers(random, 1, 4 if padded else min(kernel, 4))
        dilation = integers(random, 1, 3) if dilated else 1
        candidate = Axis(integers(random, 1, 14), kernel, stride, dilation, *pads)
        if candidate.agreed(ceil):
            return candidate


def values(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Random data of a dtype, offset half of the time, so that sums cancel in some problems and grow in others."""
    if dtype in ("int8", "uint8"):
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return (random.standard_normal(shape) + 3 * random.integers(0, 2)).astype(dtype)


class Problem(NamedTuple):
    x: NDArray[Any]
    opset: int
    attributes: dict[str, Any]


def windowed(operator: str, dtype: str, seed: int) -> Problem:
    """A random windowed problem that onnxruntime accepts and computes as ONNX says."""
    random = np.random.default_rng([seed, *operator.encode(), *dtype.encode()])
    first = {"float64": 8, "int8": 12, "uint8": 12}.get(dtype, 1)
    opset = int(random.choice([number for number in OPSETS[operator] if number >= first]))

    def has(name: str) -> bool:
        return opset >= SINCE[operator].get(name, NEVER) and bool(random.integers(0, 2))

    ceil, count, dilated = int(has("ceil_mode")), int(has("count_include_pad")), has("dilations")
    auto_pad = "NOTSET" if dilated else str(random.choice(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    # Padding of SAME is chosen by the attribute, so only NOTSET and VALID need axes that fit.
    axes = [axis(random, dilated, auto_pad == "NOTSET", ceil) for _ in range(integers(random, 1, 3))]
    attributes: dict[str, Any] = {"kernel_shape": [a.kernel for a in axes], "strides": [a.stride for a in axes]}
    if auto_pad == "NOTSET":
        attributes["pads"] = [a.begin for a in axes] + [a.end for a in axes]
    else:
        attributes["auto_pad"] = auto_pad
    attributes |= {"ceil_mode": 1} if ceil else {}
    attributes |= {"count_include_pad": 1} if count else {}
    attributes |= {"dilations": [a.dilation for a in axes]} if dilated else {}
    attributes |= {"p": integers(random, 1, 4)} if operator == "LpPool" else {}
    shape = (integers(random, 1, 2), integers(random, 1, 5), *(a.size for a in axes))
    return Problem(values(random, shape, dtype), opset, attributes)


def whole(operator: str, dtype: str, seed: int) -> Problem:
    """A random global problem."""
    random = np.random.default_rng([seed, *operator.encode(), *dtype.encode()])
    spatial = [integers(random, 1, 20) for _ in range(integers(random, 1, 3))]
    shape = (integers(random, 1, 3), integers(random, 1, 20), *spatial)
    attributes = {"p": integers(random, 1, 4)} if operator == "GlobalLpPool" else {}
    return Problem(values(random, shape, dtype), int(random.choice(OPSETS[operator])), attributes)


def pool(operator: str, x: NDArray[Any], opset: int, attributes: dict[str, Any], *, last: bool = False) -> NDArray[Any]:
    return getattr(onnxpool, operator)(opset=opset, channels_last=last, **attributes)(x)


PEERS = [
    ("AveragePool", "float32"),
    ("GlobalAveragePool", "float32"),
    ("GlobalLpPool", "float32"),
    ("GlobalMaxPool", "float32"),
    ("LpPool", "float32"),
    ("MaxPool", "float32"),
    ("MaxPool", "float64"),
    ("MaxPool", "int8"),
    ("MaxPool", "uint8"),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize(("operator", "dtype"), PEERS)
def test_random_problem(operator: str, dtype: str, seed: int) -> None:
    """A random problem has onnxruntime's values: the same bits for a maximum, close for a mean or norm."""
    problem = (whole if "Global" in operator else windowed)(operator, dtype, seed)
    theirs = answers(operator, [problem.x], problem.attributes, None, opset=problem.opset)[0]

    ours = pool(operator, *problem)
    last = np.moveaxis(pool(operator, np.moveaxis(problem.x, 1, -1), *problem[1:], last=True), -1, 1)

    for y in (ours, last):
        assert y.dtype == theirs.dtype
        if "Max" in operator:
            np.testing.assert_array_equal(y, theirs, strict=True)
            continue
        # A norm has no cancellation: its own size is the scale. For a mean, it is the mean of |x| over its windows.
        scale = theirs if "Lp" in operator else pool(operator, abs(problem.x), *problem[1:])
        assert y.shape == theirs.shape
        assert (abs(y - theirs) <= RELATIVE * scale).all(), (problem.opset, problem.attributes, problem.x.shape)


@pytest.mark.parametrize("operator", ["AveragePool", "LpPool", "MaxPool"])
def test_random_problems_reach_every_attribute(operator: str) -> None:
    """The random problems use every opset, rank and attribute of the operator, and more than one window."""
    problems = [windowed(operator, "float32", seed) for seed in range(CASES)]

    assert {problem.opset for problem in problems} == set(OPSETS[operator])
    assert {problem.x.ndim for problem in problems} == {3, 4, 5}
    assert {problem.attributes.get("auto_pad", "") for problem in problems} == {"", "VALID", "SAME_UPPER", "SAME_LOWER"}
    assert {name for problem in problems for name in problem.attributes} >= {
        name for name in SINCE[operator] if name != "storage_order"
    }
    assert sum(pool(operator, *problem).size > 4 for problem in problems) > CASES // 2


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
    """Scales and zero points as a quantiser might choose them, and some with which most results saturate."""
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
