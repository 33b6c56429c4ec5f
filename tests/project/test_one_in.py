"""`pytest --one-in N` runs about one in N cases of each test, and at least one: the same ones in each run. The mark
`one_in` does so for one test, whose other cases count as slow."""

import subprocess
import sys
from pathlib import Path

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


def ran(folder: Path, *options: str, text: str = EXAMPLE) -> list[str]:
    """The tests of an example that passed."""
    file = folder / "test_example.py"
    file.write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-rps", *options, file]
    environment = {"PYTHONPATH": f"{TESTS}"}
    run = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return [line.partition("::")[2] for line in run.stdout.splitlines() if line.startswith("PASSED")]


def test_a_share_of_the_cases_runs(tmp_path: Path) -> None:
    some = ran(tmp_path, "--one-in", "3")
    assert ran(tmp_path, "--one-in", "3") == some
    assert 0.25 * CASES < sum(name.startswith("test_many") for name in some) < 0.42 * CASES
    assert {name.partition("[")[0] for name in some} == {"test_alone", "test_few", "test_many"}


def test_one_case_of_each_test_runs_at_least(tmp_path: Path) -> None:
    some = ran(tmp_path, "--one-in", f"{10**6}")
    assert [name.partition("[")[0] for name in some] == ["test_alone", "test_few", "test_many"]


def test_a_mark_makes_other_cases_slow(tmp_path: Path) -> None:
    marked = EXAMPLE.replace("@", "@pytest.mark.one_in(3)\n@")
    few, others = (ran(tmp_path, "-m", select, text=marked) for select in ("not slow", "slow"))
    assert 0.25 * CASES < sum(name.startswith("test_many") for name in few) < 0.42 * CASES
    assert sorted(few + others) == sorted(ran(tmp_path))


def test_all_cases_run_by_default(tmp_path: Path) -> None:
    assert len(ran(tmp_path)) == CASES + 3
