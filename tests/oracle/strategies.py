"""Hypothesis strategies for calls, which hypothesis can shrink."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
from calls import FUNCTIONS, POOLS, Choices
from calls_axes import draw_any
from calls_family import draw_call
from hypothesis import HealthCheck, assume, settings
from onnxpool_conformance.oracle import DTYPES, GeometryError
from truths import truths

pools = settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


class DrawnChoices(Choices):
    """Choices made by hypothesis, which can shrink them."""

    def __init__(self, draw):
        self.draw = draw

    def integer(self, low, high):
        return self.draw(st.integers(low, high))


@st.composite
def any_call(draw, operators=tuple(FUNCTIONS)):
    """Any call of some operators."""
    return draw_any(DrawnChoices(draw), operators)


@st.composite
def legal_call(draw, operators=POOLS):
    """A call that fits its input, without `out`."""
    call = draw_call(DrawnChoices(draw), operators)
    try:
        truths(call)
    except GeometryError:
        assume(False)
    return replace(call, out="absent")


@st.composite
def plain_window(draw, ranks=(1, 2, 3), dtypes=("float32", "float64")):
    """An input of small integers and a kernel that fits it, channels first."""
    rank = draw(st.sampled_from(ranks))
    spatial = tuple(draw(st.integers(1, 9)) for _ in range(rank))
    kernel = tuple(draw(st.integers(1, size)) for size in spatial)
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *spatial)
    dtype = DTYPES[draw(st.sampled_from(dtypes))]
    x = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).integers(-50, 51, shape).astype(dtype)
    return x, kernel
