"""The loops and tiles that are chosen for pools."""

import choices
import pytest

from onnxpool import kernels


def test_choices_are_those_of_the_file():
    """Only changing costs or budgets changes choices; see helpers/choices.py."""
    pinned = choices.pinned()
    if kernels.isa not in pinned:
        pytest.skip(f"no choices for {kernels.isa}")
    assert choices.choices() == pinned[kernels.isa]
