"""The task of a library: a workload with its arrays and the right answer."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..workloads import WORKLOADS, Call, Workload

# Maximum error of a peer, relative to the largest number in its answer.
TOLERANCES = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-2, "bfloat16": 5e-2}


class Problem(NamedTuple):
    """A workload with its arrays, and onnxpool's answer."""

    work: Workload
    inputs: tuple[np.ndarray, ...]
    answer: np.ndarray
    layout: str
    threads: int

    @classmethod
    def of(cls, name: str, call: Call, layout: str) -> "Problem":
        """The problem of a call that onnxpool has already run."""
        answer = call.out[0] if isinstance(call.out, tuple) else call.out
        return cls(WORKLOADS[name], call.inputs, answer, layout, call.threads)

    def attribute(self, name: str, default: int = 1) -> list[int]:
        """An attribute with a number for each spatial axis, or with two in the case of pads."""
        axes = len(self.work.shape) - 2
        return self.work.attributes.get(name, [default] * (2 * axes if name == "pads" else axes))

    def agrees(self, answer: np.ndarray) -> bool:
        """Whether the answer of another library is right."""
        if answer.shape != self.answer.shape or answer.dtype != self.answer.dtype:
            return False
        right, given = self.answer.astype(np.float64), answer.astype(np.float64)
        limit = TOLERANCES.get(answer.dtype.name, 0) * np.abs(right).max()
        if self.work.operator.startswith("QLinear"):
            limit = 1  # a last step may round the other way
        return bool(np.abs(right - given).max() <= limit)


class Prepared(NamedTuple):
    """A call that also keeps the memory it writes to, and a function that reads the result in the answer's layout."""

    call: Callable[[], object]
    result: Callable[[object], np.ndarray]  # takes the value that the call returned
