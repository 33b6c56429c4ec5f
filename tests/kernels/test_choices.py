"""The loops and tiles that are chosen for pools."""

import choices
import pytest

from onnxpool import kernels

PINNED = choices.pinned().get(kernels.isa, {})


def test_choices_are_those_of_the_file():
    """Nothing but a change of costs or budgets changes them; see helpers/choices.py."""
    if not PINNED:
        pytest.skip(f"no choices for {kernels.isa}")
    assert {name: choices.choice_of(plan, x) for name, plan, x in choices.pools()} == {
        name: choice for name, choice in PINNED.items() if not name.startswith(choices.DRAWN)}


def test_choices_for_random_pools_have_the_digests_of_the_file():
    """Forms, the solvers that fit, costs and tiles. Where one differs, see what has changed for pools with names."""
    digests = {name: digest for name, digest in PINNED.items() if name.startswith(choices.DRAWN)}
    if not digests:
        pytest.skip(f"no digests for {kernels.isa}")
    assert dict(choices.random_choices()) == digests
