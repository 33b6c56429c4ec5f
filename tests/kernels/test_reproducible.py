"""The same bits for every thread count, instruction set, batch split, channel order and (for windows) layout.

Run as a program, this file prints the digests of all results and the instruction set that computed them.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from calls import NHWC_MAX
from numpy.typing import NDArray
from programs import launch
from support import BYTE_NAMES, FLOAT_NAMES, INSTRUCTION_SETS, to_first, to_last

import onnxpool

DTYPES = {
    "AveragePool": FLOAT_NAMES,
    "GlobalAveragePool": FLOAT_NAMES,
    "GlobalLpPool": FLOAT_NAMES,
    "GlobalMaxPool": FLOAT_NAMES,
    "LpPool": FLOAT_NAMES,
    "MaxPool": (*FLOAT_NAMES, *BYTE_NAMES),
    "NhwcMaxPool": BYTE_NAMES,
    "QLinearAveragePool": BYTE_NAMES,
    "QLinearGlobalAveragePool": BYTE_NAMES,
}
WINDOWED = ("AveragePool", "LpPool", "MaxPool", "NhwcMaxPool", "QLinearAveragePool")

# Channels first. The last three are for elements of one byte. Wider dtypes take narrower ones, so that each is slightly
# more than 1 MiB and runs in parallel, with many planes to distribute, with one, and with a few.
SHAPES = {
    "line": (3, 7, 301),
    "image": (2, 19, 37, 41),
    "volume": (2, 5, 9, 11, 13),
    "many_planes": (2, 64, 96, 96),
    "one_plane": (1, 1, 1100, 1100),
    "few_planes": (2, 3, 480, 481),
}
KINDS: dict[str, dict[str, Any]] = {
    "overlapping": {"kernel_shape": 3, "strides": 2, "pads": 1},
    "apart": {"kernel_shape": 2, "strides": 2, "ceil_mode": 1},
    "dilated": {"kernel_shape": 3, "dilations": 3, "auto_pad": "SAME_LOWER"},
    "wide": {"kernel_shape": 9, "pads": 4},
}
# Small data is pooled with every kind of window, large data with one each.
LARGE_KINDS = {"many_planes": ("overlapping",), "one_plane": ("wide",), "few_planes": ("dilated",)}
EXPONENTS = (1, 2, 3, 5)
THREADS = (1, 2, 3, 7)


def shape_of(name: str, dtype: np.dtype[Any]) -> tuple[int, ...]:
    shape = SHAPES[name]
    return (*shape[:-1], shape[-1] // dtype.itemsize) if name in LARGE_KINDS else shape


def dtype_named(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


@cache
def data(shape: str, dtype: str, salted: bool) -> NDArray[Any]:
    """Values over six powers of ten, so that a different order of summation shows, with some NaN, infinity and -0."""
    random = np.random.default_rng(len(shape))
    size = shape_of(shape, dtype_named(dtype))
    if dtype in BYTE_NAMES:
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, size, dtype, endpoint=True)
    x = random.standard_normal(size) * 10 ** random.uniform(-3, 3, size)
    if salted:
        where = random.integers(0, x.size, x.size // 200)
        x.flat[where] = np.resize([np.nan, np.inf, -np.inf, -0.0, 0.0, -0.0], where.size)
    x = x.astype(dtype_named(dtype))
    x.flags.writeable = False
    return x


class Call(NamedTuple):
    """One call of an operator on data of a shape and dtype."""

    operator: str
    shape: str
    dtype: str
    last: bool
    kind: str

    def __str__(self) -> str:
        return "-".join([self.operator, self.shape, self.dtype, "last" if self.last else "first", self.kind])

    @property
    def x(self) -> NDArray[Any]:
        """The input, channels first."""
        return data(self.shape, self.dtype, self.operator in WINDOWED)

    def attributes(self) -> dict[str, Any]:
        attributes = dict(KINDS.get(self.kind, {}))
        if self.operator == "QLinearAveragePool":
            attributes.pop("dilations", None)
        if self.operator in ("AveragePool", "QLinearAveragePool"):
            attributes["count_include_pad"] = int(self.kind == "wide")
        if "Lp" in self.operator:
            attributes["p"] = EXPONENTS[(len(self.shape) + len(self.kind)) % len(EXPONENTS)]
        return attributes

    def __call__(self, x: NDArray[Any], num_threads: int | None = None) -> NDArray[Any]:
        """The result for channels-first data, converted to channels first, but computed in the layout of the call."""
        layout = {} if self.operator == NHWC_MAX else {"channels_last": self.last}
        operator = getattr(onnxpool, self.operator)(**layout, **self.attributes())
        inputs = [to_last(x, self.last)]
        if self.operator.startswith("QLinear"):
            kind = np.dtype(self.dtype).type
            inputs += [np.float32(0.02), kind(3), np.float32(0.003), kind(5)]
        y = operator(*inputs, num_threads=num_threads)
        return to_first(y, self.last)

    def digest(self) -> str:
        return hashlib.sha256(bits(self(self.x))).hexdigest()[:16]


def bits(y: NDArray[Any]) -> bytes:
    """Dtype, shape and bits, with one bit pattern for every NaN, because payloads are not guaranteed."""
    if y.dtype.kind != "i" and y.dtype.kind != "u":
        y = np.where(np.isnan(y), y.dtype.type(np.nan), y)
    return f"{y.dtype} {y.shape} ".encode() + y.tobytes()


def calls(operator: str) -> list[Call]:
    return [
        Call(operator, shape, dtype, last, kind)
        for shape in SHAPES
        for dtype in DTYPES[operator]
        for last in ((True,) if operator == NHWC_MAX else (False, True))
        for kind in (LARGE_KINDS.get(shape, KINDS) if operator in WINDOWED else ("whole",))
    ]


def every_call() -> Iterator[Call]:
    return (call for operator in DTYPES for call in calls(operator))


def in_use() -> tuple[str, list[str]]:
    """The instruction set in use, and those available."""
    found = onnxpool.config()
    return found["instruction_set"], found["available"]


@cache
def expected() -> dict[str, str]:
    """The digests of this process."""
    return {str(call): call.digest() for call in every_call()}


@pytest.mark.parametrize("isa", [*INSTRUCTION_SETS, "x86_v9"])
def test_instruction_sets_give_the_same_bits(isa: str) -> None:
    """ONNXPOOL_ISA selects the instruction set and changes no bit of any result; one that is unavailable is refused."""
    program = launch(__file__, ONNXPOOL_ISA=isa)

    available = in_use()[1]
    if isa in available:
        assert program.stderr == ""
        answer = json.loads(program.stdout)
        assert answer["isa"] == isa
        assert {name for name, digest in answer["digests"].items() if digest != expected()[name]} == set()
        assert len(answer["digests"]) == len(expected())
    else:
        assert program.returncode != 0
        assert re.search(rf"ImportError: .*{isa}.*{available[0]}", program.stderr)


def test_results_are_many_and_differ() -> None:
    """The digests distinguish results: a call that ignored its attributes or data would have the digest of another."""
    layouts = {name.replace("-last-", "-first-") for name in expected() if not name.startswith(NHWC_MAX)}

    assert len(expected()) >= 200
    assert len(set(expected().values())) >= len(layouts)
    for name, digest in expected().items():
        assert not name.startswith(NHWC_MAX) or digest == expected()[name.replace(NHWC_MAX, "MaxPool")]
    assert in_use()[0] in INSTRUCTION_SETS
    assert in_use()[1][0] == in_use()[0] or "ONNXPOOL_ISA" in os.environ


@pytest.mark.parametrize("operator", DTYPES)
def test_thread_counts_give_the_same_bits(operator: str) -> None:
    """The number of threads changes no bit, for small and large data, in many planes and in one."""
    for call in calls(operator):
        assert call.x.nbytes > 2**20 or call.shape not in LARGE_KINDS
        for threads in THREADS:
            y = call(call.x, num_threads=threads)
            assert hashlib.sha256(bits(y)).hexdigest()[:16] == expected()[str(call)], (str(call), threads)


@pytest.mark.parametrize("operator", DTYPES)
def test_batch_split_gives_the_same_bits(operator: str) -> None:
    """The images of a batch give the same bits alone as together."""
    for call in calls(operator):
        parts = [call(call.x[i : i + 1]) for i in range(len(call.x))]

        assert hashlib.sha256(bits(np.concatenate(parts))).hexdigest()[:16] == expected()[str(call)], str(call)


@pytest.mark.parametrize("operator", DTYPES)
def test_channel_order_gives_the_same_bits(operator: str) -> None:
    """Permuted channels give the permuted result, bit for bit, and so does each channel alone, except for sums of
    global pools, channels last, whose order depends on all adjacent channels.
    """
    for call in calls(operator):
        order = np.random.default_rng(7).permutation(call.x.shape[1])
        y = call(call.x)
        mixed = call(np.ascontiguousarray(call.x[:, order]))
        alone = call(np.ascontiguousarray(call.x[:, -1:]))

        assert bits(mixed) == bits(y[:, order]), str(call)
        if not (call.last and operator in ("GlobalAveragePool", "GlobalLpPool")):
            assert bits(alone) == bits(y[:, -1:]), str(call)


@pytest.mark.smoke
@pytest.mark.parametrize("operator", [name for name in WINDOWED if name != NHWC_MAX])
def test_layouts_give_the_same_bits(operator: str) -> None:
    """A windowed operator gives the same bits in both layouts."""
    for call in calls(operator):
        assert expected()[str(call._replace(last=True))] == expected()[str(call._replace(last=False))], str(call)


if __name__ == "__main__":
    json.dump({"isa": in_use()[0], "digests": expected()}, sys.stdout)
