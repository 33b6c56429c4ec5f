"""Random calls agree with the oracle."""

import pytest
from calls import FUNCTIONS, SeededChoices
from calls_axes import FUNCTIONS_ALONG_AXES, draw_any
from campaign import check
from hypothesis import given, settings
from strategies import any_call, pools

OPERATORS = (*FUNCTIONS, *FUNCTIONS_ALONG_AXES)


@pytest.mark.smoke
@pytest.mark.parametrize("operator", OPERATORS)
def test_any_call_agrees_with_the_oracle(operator):
    """A call with any opset, attributes, dtype, layout, memory and style returns the true result within its bound."""

    @settings(pools, max_examples=60)
    @given(any_call(operators=(operator,)))
    def agrees(call):
        outcome = check(call)
        assert outcome.problem is None, f"{call.describe()}: {outcome.problem}"

    agrees()


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
def test_many_calls_agree_with_the_oracle(operator):
    """Thousands of calls, which seeds determine, agree with the oracle."""
    for seed in range(3000):
        call = draw_any(SeededChoices(seed), (operator,))
        outcome = check(call)
        assert outcome.problem is None, f"{seed}: {call.describe()}: {outcome.problem}"
