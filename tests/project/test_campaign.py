"""The lists of the campaign do not rot: seeded faults fit the compiled code."""

from collections import Counter

import pytest

from tests.campaign import faults, lines


@pytest.mark.parametrize("fault", faults.listed(), ids=lambda fault: fault.name)
def test_each_fault_changes_one_place(fault):
    """The text of a seeded fault occurs once in its file, and differs from what replaces it."""
    assert fault.occurrences() == 1
    assert fault.before != fault.after


def test_faults_have_names_of_their_own():
    """The table of faults names each fault once."""
    assert max(Counter(fault.name for fault in faults.listed()).values()) == 1


def test_ranges_of_lines():
    """Lists of lines are short."""
    assert lines.ranges([7, 1, 2, 3, 9, 10]) == "1-3, 7, 9-10"
