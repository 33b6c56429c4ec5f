"""`pytest --one-in N` runs about one in N cases of each test, and at least one case: the same cases in each run. The
mark `one_in` does so for one test, whose other cases count as slow."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = Path(__file__).parents[1]
CASES = 300
EXAMPLE = f"""
import pytest

def test_alone():
    pass

@pytest.mark.parametrize("case", range(2))
def test_few(case):
    pass

@pytest.mark.parametrize("case", range({CASES}))
def test_many(case):
    pass
"""


def ran(pytester: pytest.Pytester, *options: str, text: str = EXAMPLE) -> list[str]:
    """The tests of an example that passed."""
    pytester.syspathinsert(TESTS)
    pytester.makeini("[pytest]\nmarkers =\n  slow\n  one_in\n  packaging\n")
    passed, _, _ = pytester.inline_run("-p", "conftest", "-p", "no:cacheprovider", *options,
                                       pytester.makepyfile(test_example=text)).listoutcomes()
    return [report.nodeid.partition("::")[2] for report in passed]


def test_a_share_of_the_cases_runs(pytester: pytest.Pytester) -> None:
    some = ran(pytester, "--one-in", "3")
    assert ran(pytester, "--one-in", "3") == some
    assert 0.25 * CASES < sum(name.startswith("test_many") for name in some) < 0.42 * CASES
    assert {name.partition("[")[0] for name in some} == {"test_alone", "test_few", "test_many"}


def test_one_case_of_each_test_runs_at_least(pytester: pytest.Pytester) -> None:
    some = ran(pytester, "--one-in", f"{10**6}")
    assert [name.partition("[")[0] for name in some] == ["test_alone", "test_few", "test_many"]


def test_a_mark_makes_other_cases_slow(pytester: pytest.Pytester) -> None:
    marked = EXAMPLE.replace("@", "@pytest.mark.one_in(3)\n@")
    few, others = (ran(pytester, "-m", select, text=marked) for select in ("not slow", "slow"))
    assert 0.25 * CASES < sum(name.startswith("test_many") for name in few) < 0.42 * CASES
    assert sorted(few + others) == sorted(ran(pytester))


def test_all_cases_run_by_default(pytester: pytest.Pytester) -> None:
    assert len(ran(pytester)) == CASES + 3
