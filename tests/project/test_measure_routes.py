"""The tool that times routes and fits costs runs, and finds known costs. No time is asserted."""

import itertools
import math
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from onnxpool import kernels
from onnxpool.planning import layout, planner
from onnxpool.planning.costs import COSTS
from tools import measure_routes as tool

UNITS = {name: set(costs) for name, costs in COSTS[layout.REGISTER].items()}


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(COSTS, layout.REGISTER, COSTS[layout.REGISTER])
    yield
    monkeypatch.undo()
    planner.prepare(kernels.units, kernels.REGISTER, kernels.PICKS, layout.REGISTER)


def few(seed: int) -> list[tool.Timed]:
    """Some small cases. Each of their routes ran once."""
    found = (tool.measured(case, 0) for case in itertools.islice(filter(tool.is_small, tool.cases(seed)), 60))
    return [timed for timed in found if timed is not None]


def test_a_quick_run_prints_regrets_and_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = tmp_path / "times"
    tool.main(["--quick", "--fit", "--save", str(times)])
    measured = capsys.readouterr().out
    for name in UNITS:
        assert f'    "{name}": ' in measured
    tool.main(["--load", str(times)])
    loaded = capsys.readouterr().out
    assert "  worst " in loaded


def test_every_work_has_costs() -> None:
    """Choosing a route fails for a unit of work without costs. Costs without work mean nothing."""
    for timed in few(1):
        for run in timed.runs:
            forms = timed.planner
            place = forms.place_of(run.planar)
            assert set(forms.amounts(place, run.solver)) == UNITS[tool.FILES[run.solver]]
            assert math.isfinite(forms.cost(place, run.solver))
            assert min(forms.amounts(place, run.solver).values()) >= 0


def test_a_fit_finds_costs_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """If all times follow other costs, a fit that starts from today's costs finds costs that choose as well."""
    rng = np.random.default_rng(3)
    monkeypatch.setattr(tool, "TURNS", 500)
    field = few(2)
    other = {name: {unit: cost * 3 ** rng.uniform(-1, 1) for unit, cost in costs.items()}
             for name, costs in COSTS[layout.REGISTER].items()}
    known = []
    for timed in field:
        runs = []
        for run in timed.runs:
            work, nanoseconds = tool.work_of(timed, run)
            expected = sum(amount * other[name][unit] for (name, unit), amount in work.items())
            runs.append(run._replace(seconds=run.seconds * expected / nanoseconds))
        known.append(timed._replace(runs=runs))

    def regret() -> float:
        return float(np.mean([math.log(timed.regret) for timed in known]))

    before = regret()
    COSTS[layout.REGISTER] = tool.fit(known)
    planner.prepare(kernels.units, kernels.REGISTER, kernels.PICKS, layout.REGISTER)
    assert regret() < before / 2


def test_regrets_after_a_fit_are_those_of_its_costs(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = tmp_path / "times"
    times.write_bytes(pickle.dumps(few(4)))
    dear = {name: {unit: cost if name == "passes" else 1e6 for unit, cost in costs.items()}
            for name, costs in COSTS[layout.REGISTER].items()}
    monkeypatch.setattr(tool, "fit", lambda field: dear)
    tool.main(["--load", str(times), "--fit"])
    before, after = [
        {line.split()[0] for line in text.splitlines() if line.endswith("above 1.3")}
        for text in capsys.readouterr().out.split("With these costs:")]
    assert {"direct", "slide"} & before
    assert not {"direct", "slide"} & after
