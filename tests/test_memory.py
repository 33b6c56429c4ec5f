"""What a call holds beside its arrays."""

import pytest

from benchmarks.memory import LARGEST, Scratch
from benchmarks.workloads import LAYOUTS

PROMISED = 1 << 20  # bytes for each thread


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "uint8"])
@pytest.mark.parametrize("operator", LARGEST)
def test_a_call_holds_a_mebibyte_at_most(operator: str, dtype: str, layout: str) -> None:
    """Beside its input and output; divisors of many windows once took half a mebibyte more."""
    scratch = Scratch()
    try:
        scratch.setup(operator, dtype, layout, "1")
        held = scratch.track_scratch()
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    assert held <= PROMISED
