"""The benchmarks run, on arrays so small that a run takes almost no time."""

import inspect
import json
import random
import re
import tomllib
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import onnxpool
from benchmarks import build, cliffs, memory, overhead, pooling, ratios, tracked, workloads, zoo
from benchmarks.once import OneSetup
from benchmarks.race import __main__ as race
from benchmarks.race import chance, pages, report, rounds
from benchmarks.race.peers import PEERS, missing
from benchmarks.race.problem import Problem
from benchmarks.workloads import WORKLOADS, Call, Workload

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("time_", "peakmem_", "track_")


def shrunk(work: Workload) -> Workload:
    """The same windows on few images and channels, with at most two windows and a remainder along each axis."""
    n, channels, *spatial = work.shape
    axes = len(spatial)
    kernel = work.attributes.get("kernel_shape", [3] * axes)
    gaps, steps = (work.attributes.get(name, [1] * axes) for name in ("dilations", "strides"))
    least = [(k - 1) * gap + step + 2 for k, gap, step in zip(kernel, gaps, steps, strict=True)]
    shape = (min(n, 2), min(channels, 3), *map(min, spatial, least))
    return work._replace(shape=shape)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, work in WORKLOADS.items():
        monkeypatch.setitem(WORKLOADS, name, shrunk(work))
    monkeypatch.setattr(workloads, "REGIONS", 3)
    monkeypatch.setattr(ratios, "ROUNDS", 1)
    monkeypatch.setattr(ratios, "SECONDS", 0)
    monkeypatch.setattr(rounds, "PATIENCE", 0)


def benchmarks_of(module: ModuleType) -> list[tuple[type, str]]:
    """Pairs of a class and a benchmark in it, as asv finds them."""
    return [(cls, name) for cls_name, cls in vars(module).items()
            if inspect.isclass(cls) and cls.__module__ == module.__name__ and not cls_name.startswith("_")
            for name in dir(cls) if name.startswith(KINDS)]


ALL = [pair for module in (memory, overhead, pooling, ratios, tracked) for pair in benchmarks_of(module)]


@pytest.mark.parametrize(("cls", "name"), ALL, ids=[f"{cls.__name__}.{name}" for cls, name in ALL])
def test_a_benchmark_runs_with_all_its_parameters(cls: type, name: str) -> None:
    """Each benchmark is set up and called once for each of its parameters."""
    ran = 0
    for values in product(*getattr(cls, "params", ())):
        case: Any = cls()
        try:
            if hasattr(cls, "setup"):
                case.setup(*values)
            measured = getattr(case, name)(*values)
        except NotImplementedError:  # asv shows such a case as n/a
            continue
        assert measured is None or measured >= 0
        ran += 1
    assert ran > 0


@pytest.mark.parametrize(("cls", "name"), [pair for pair in ALL if pair[1].startswith("time_")])
def test_arrays_are_made_once(cls: type, name: str) -> None:
    """Arrays are made once: asv sets a benchmark up before each call that it times, and the setup reuses the arrays."""
    assert issubclass(cls, OneSetup) or not hasattr(cls, "setup")
    if issubclass(cls, OneSetup):
        case: Any = cls()
        (first, *_, last) = product(*cls.params)  # type: ignore[attr-defined]
        case.setup(*first)
        call = case.call
        case.setup(*first)
        assert case.call is call
        case.setup(*last)
        assert case.call is not call


def test_every_workload_is_in_a_benchmark_and_in_one_group() -> None:
    """Every workload is in a benchmark, and in exactly one group."""
    timed = [name for cls, _ in benchmarks_of(pooling) for name in cls.params[0]]  # type: ignore[attr-defined]
    assert sorted(timed) == sorted(WORKLOADS)
    assert sorted(name for group in workloads.GROUPS.values() for name in group) == sorted(WORKLOADS)


@pytest.mark.parametrize("memory", ["", "transposed", "sliced", "stepped"])
@pytest.mark.parametrize("layout", workloads.LAYOUTS)
def test_values_do_not_depend_on_memory(layout: str, memory: str) -> None:
    """An input in another memory layout has the same values, and really has that layout."""
    x = workloads.array((2, 3, 4, 5), "float32")
    laid = workloads.lay(x, layout, memory)
    np.testing.assert_array_equal(laid, x if layout == "first" else np.moveaxis(x, 1, -1))
    assert laid.flags.c_contiguous == (memory == "")
    other = np.moveaxis(laid, *((1, -1) if layout == "first" else (-1, 1)))
    assert other.flags.c_contiguous == (memory == "transposed")


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
def test_aligned_arrays_begin_at_a_cache_line(dtype: str) -> None:
    """Aligned inputs and outputs have the same values, and begin at a cache line, unless the workload is a view."""
    for name in ("max_dilated", "indices_sppf_max5x5s1"):
        call, usual = (Call(name, dtype, "last", "1", start) for start in ("aligned", "numpy"))
        outs = call.out if isinstance(call.out, tuple) else (call.out,)
        assert [a.ctypes.data % 64 for a in (*call.inputs, *outs)] == [0] * (1 + len(outs))
        np.testing.assert_array_equal(call.inputs[0], usual.inputs[0])
        np.testing.assert_array_equal(outs[0], usual.out[0] if isinstance(usual.out, tuple) else usual.out)
    assert Call("gap_sliced", "float32", "first", "1", "aligned").inputs[0].flags.c_contiguous is False


@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_agrees(peer: str) -> None:
    """Each library that supports a workload returns onnxpool's results, so that the race compares the same work."""
    if reason := missing(peer):
        pytest.skip(reason)
    races, ran = race.Races([peer], rounds.QUICK), 0
    different = {str(work): name for name, work in WORKLOADS.items()}  # still different when shrunk
    for number, name in enumerate(different.values()):
        work = WORKLOADS[name]
        ways = [*product(work.dtypes, work.layouts)]
        dtype, layout = ways[number % len(ways)]
        entry, reason = races.enter(peer, name, Problem.of(name, Call(name, dtype, layout, "1"), layout))
        ran += entry is not None
        assert reason != "gives another result", (name, dtype, layout)
    assert ran > 3


def test_an_answer_that_is_wrong_disagrees() -> None:
    """A peer that computes something else does not take part."""
    problem = Problem.of("avg31x31s1", Call("avg31x31s1", "float32", "first", "1"), "first")
    assert problem.agrees(problem.answer * np.float32(1.000001))
    assert not problem.agrees(problem.answer * np.float32(1.001))
    assert not problem.agrees(problem.answer.astype(np.float64))
    assert not problem.agrees(problem.answer[:, :, 1:])


def test_the_race_writes_what_it_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text, Markdown and JSON have every row."""
    page, data = tmp_path / "page.md", tmp_path / "data.json"
    rows = race.main(["--quick", "--only", "^max_(un)?dilated", "--dtypes", "float32", "uint8", "--layouts", "first",
                      "--starts", *workloads.STARTS, "--json", str(data), "--markdown", str(page)])
    assert [row["workload"] for row in json.loads(data.read_text())["rows"]] == [row.workload for row in rows]
    text, printed = page.read_text(), capsys.readouterr().out
    assert {(row.start, row.threads) for row in rows} == {*product(workloads.STARTS, (1, 2))}
    for row in rows:
        assert f"\n| {row.workload} | " in text
        assert report.line(row) in printed
    assert "| max_dilated | max_undilated | 1.20x |" in text
    read = {row[:5]: row for row in pages.rows(page)}
    assert len(read) == len(rows)
    for row in rows:
        again, best = read[row[:5]], row.best
        assert again.times == pytest.approx({name: 1e6 * best[name] for name in again.times}, rel=0.01, abs=0.051)
        assert set(again.times) == set(best)
        assert again.speedup == (None if row.peer is None else pytest.approx(row.speedup, abs=0.0051))


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_chance_makes_pools_that_run(dtype: str, capsys: pytest.CaptureFixture[str],
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """Random layers of the zoo have the dtype and a size within the limit, and the worst are shown first."""
    rng = np.random.default_rng(1)
    for work in (chance.pool(rng, dtype) for _ in range(200)):
        assert np.prod(work.shape) <= zoo.MOST
        assert dtype in work.dtypes
        getattr(onnxpool, work.operator)(**work.attributes).plan(work.shape, dtype)
    if missing("onnxruntime"):
        pytest.skip("there is no peer to race")
    monkeypatch.setattr(chance, "PACE", rounds.QUICK)
    found = chance.main(["--dtype", dtype, "--pools", "8", "--worst", "2", "--layouts", "first"])
    printed = capsys.readouterr().out.splitlines()
    assert found
    assert found == sorted(found)
    assert printed == [*(text for _, text in found[:2]), printed[-1]]
    assert printed[-1].startswith(f"{len(found)} pools, median ")


def test_cliffs_draws_pools_of_all_operators_and_dtypes() -> None:
    """Every operator has calls of each of its dtypes, along both axes and along rows. The calls do the stated work."""
    for operator, (_, dtypes, _) in cliffs.OPERATORS.items():
        for dtype, layout, square in product(dtypes, ("first", "last"), (False, True)):
            case = cliffs.Case(operator, dtype, layout, 2, 5, 6, 3, 2, 1, 1, square)
            found = cliffs.prepared(case)
            assert found
            call, work = found
            assert call() is not None
            results = 2 * (3 if square else 5) * 3
            assert work == (60 + 2 * results, results, results * (9 if square else 3))
    assert cliffs.prepared(case._replace(kernel=9)) is None
    drawn = [cliffs.drawn(random.Random(seed), ["LpPool", "MinPool"], ["float32", "uint8"]) for seed in range(200)]
    assert {(case.operator, case.dtype) for case, _ in drawn} == {
        ("LpPool", "float32"), ("MinPool", "float32"), ("MinPool", "uint8")}
    assert {name for _, name in drawn} == {*cliffs.SWEEPS}


def test_cliffs_are_changes_beyond_the_work(monkeypatch: pytest.MonkeyPatch,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    """Times may grow or shrink as much as any amount of work. A second measurement has to agree."""
    seconds = {1: 1e-5, 2: 4e-5, 3: 9e-5, 4: 16e-5, 5: 60e-5, 6: 60e-5, 7: 20e-5, 8: 20e-5}

    def timed(case: cliffs.Case, turns: int) -> cliffs.Timed | None:
        if case.kernel not in seconds:
            return None
        once = 9.0 if case.kernel == 8 and turns == cliffs.TURNS else 1.0  # a disturbed call
        return cliffs.Timed(case, once * seconds[case.kernel], (100, 50, 50 * case.kernel**2))

    monkeypatch.setattr(cliffs, "timed", timed)
    case = cliffs.Case("MaxPool", "uint8", "first", 1, 9, 9, 1, 1, 1, 0, True)
    found = [*cliffs.cliffs(case, "kernel", 1.5)]
    assert [pair and (round(pair[0], 2), pair[1].case.kernel) for pair in found] == [
        None, None, None, (2.4, 4), None, (3.0, 6), None]
    monkeypatch.setattr(cliffs, "drawn", lambda *_: (case, "kernel"))
    assert cliffs.main(["--draws", "1", "--dtypes", "uint8"]) == 2
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith(" 3.00  kernel 6 -> 7: 600.0 -> 200.0 us  MaxPool uint8 layout=first")
    assert second.startswith(" 2.40  kernel 4 -> 5: ")
    assert last == "2 cliffs above 1.5 in 7 pairs of neighbours, seed 0"
    with pytest.raises(SystemExit):
        cliffs.main(["--operators", "LpPool", "--dtypes", "uint8"])


def row(**rounds_of: list[float]) -> report.Row:
    """A row with these times."""
    return report.Row("tiny_max2x2", "float32", "first", "numpy", 1, 1000, {"copy": [0.5], **rounds_of}, {})


def test_a_row_is_read_against_the_fastest_peer() -> None:
    """A row compares onnxpool's best round with the best round of the fastest peer."""
    raced = row(onnxpool=[2.0, 1.0], torch=[3.0, 5.0], onednn=[4.0, 2.5])
    assert (raced.peer, raced.speedup, raced.share) == ("onednn", 2.5, 0.5)
    alone = row(onnxpool=[1.0])
    assert (alone.peer, alone.speedup) == (None, None)


def test_a_close_or_unsure_race_goes_on() -> None:
    """The race ends when the times of all leaders are confirmed and far apart."""
    sure = [1.0, 1.01]
    assert rounds.undecided({"onnxpool": sure, "copy": sure, "torch": [3.0, 3.0]}) == []
    assert rounds.undecided({"onnxpool": [1.0, 1.2], "copy": sure, "torch": [3.0, 3.0], "onednn": [9.0]}) == [
        "onnxpool", "copy", "torch"]
    assert rounds.undecided({"onnxpool": sure, "copy": sure, "torch": [1.1, 1.1], "onednn": [9.0]}) == [
        "onnxpool", "copy", "torch"]
    assert rounds.undecided({"onnxpool": sure, "copy": [0.4, 0.5]}) == ["onnxpool", "copy"]


def test_the_configuration_of_asv_names_this_repository() -> None:
    """Pages link to the project and its commits, and every file that the configuration names exists."""
    config = json.loads((ROOT / "asv.conf.json").read_text(encoding="utf-8"))
    home = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
    assert (config["project_url"], config["show_commit_url"]) == (home, f"{home}/commit/")
    (command,) = config["build_command"]
    script = re.search(r"\{conf_dir\}/(\S+)", command)
    assert script
    assert (ROOT / script[1]).is_file()
    assert all((ROOT / config[name]).is_dir() for name in ("benchmark_dir", "results_dir"))


def test_old_commits_are_built_without_options_that_they_lack(tmp_path: Path) -> None:
    """Commits with the option for instruction sets compile one instruction set. Older commits get no option."""
    native = "-Csetup-args=-Dinstruction_sets=native"
    assert native in build.command(ROOT, tmp_path)
    (tmp_path / "meson.options").write_text("option('openmp', type: 'feature')")
    assert native not in build.command(tmp_path, tmp_path)
    assert native not in build.command(tmp_path / "none", tmp_path)
    assert build.command(Path("folder"), tmp_path)[-1] == str(Path.cwd() / "folder")  # pip takes a name for a package
