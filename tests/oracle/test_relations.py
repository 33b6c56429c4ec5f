"""Results obey the relations that hold between calls, whatever their values are."""

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import UnsatisfiedAssumption
from inapplicable import InapplicableError
from relations import RELATIONS
from strategies import DrawnChoices, pools


@pytest.mark.parametrize("examples", [12, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", RELATIONS)
def test_relation(name, examples):
    """A relation holds for random calls of every operator that it concerns, in any dtype, layout and memory."""

    @settings(pools, max_examples=examples, suppress_health_check=[*HealthCheck])
    @given(st.data())
    def holds(data):
        try:
            RELATIONS[name](DrawnChoices(data.draw))
        except InapplicableError as reason:
            raise UnsatisfiedAssumption from reason

    holds()
