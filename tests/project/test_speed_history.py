"""The published history of speed: which commits are measured and how they are built, and the pages of results."""

import json
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from benchmarks import build, history

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "publish_benchmarks.py"
CONFIG = json.loads((ROOT / "asv.conf.json").read_text(encoding="utf-8"))
POOL = "tracked.Max.time_plan"


def commits(*arguments: str) -> list[str]:
    """Commits of this repository, if it has its history."""
    try:
        return history.git("rev-list", "--first-parent", *arguments).split()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no history")


def test_the_configuration_of_asv_names_this_repository() -> None:
    """Pages link to the project and its commits, and every file that the configuration names exists."""
    home = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
    assert (CONFIG["project_url"], CONFIG["show_commit_url"]) == (home, f"{home}/commit/")
    (command,) = CONFIG["build_command"]
    script = re.search(r"\{conf_dir\}/(\S+)", command)
    assert script
    assert (ROOT / script[1]).is_file()
    assert (ROOT / CONFIG["benchmark_dir"]).is_dir()


def test_the_configuration_works_in_any_folder() -> None:
    """All its paths are absolute, and changes win."""
    settings = history.configuration(build_cache_size=3)
    assert settings["build_cache_size"] == 3
    assert [settings[name] for name in ("repo", "results_dir")] == [str(ROOT), str(ROOT / ".asv" / "results")]
    assert str(ROOT / "benchmarks" / "build.py") in settings["build_command"][0]


def test_old_commits_are_built_without_options_that_they_lack(tmp_path: Path) -> None:
    """Commits that know instruction sets compile one of them; older ones get no option."""
    native = "-Csetup-args=-Dinstruction_sets=native"
    assert native in build.command(ROOT, tmp_path)
    (tmp_path / "meson.options").write_text("option('openmp', type: 'feature')")
    assert native not in build.command(tmp_path, tmp_path)
    assert native not in build.command(tmp_path / "none", tmp_path)
    assert build.command(Path("folder"), tmp_path)[-1] == str(Path.cwd() / "folder")  # pip takes a name for a package


@pytest.mark.parametrize(("count", "chosen"), [(1, "z"), (2, "az"), (3, "amz"), (26, "abcdefghijklmnopqrstuvwxyz")])
def test_commits_are_evenly_spaced(count: int, chosen: str) -> None:
    """The first and the last are among them, and none is chosen twice."""
    alphabet = [chr(ord("a") + i) for i in range(26)]
    assert "".join(history.spread(alphabet, count)) == chosen
    for n in range(2, 40):
        spread = history.spread(alphabet, n)
        assert (len(spread), spread) == (min(n, 26), sorted(set(spread)))


def test_the_commits_are_those_that_changed_the_loops() -> None:
    """They are of the branch itself, in order, and the newest commit is among them."""
    branch = commits("HEAD")
    if len(branch) < 100:
        pytest.skip("the history is cut off")
    found = history.candidates(branch="HEAD")
    assert found == [commit for commit in reversed(branch) if commit in found]
    assert (found[0], found[-1]) == (commits("-1", "54a4096")[0], branch[0])
    assert 100 < len(found) < len(branch)
    assert history.candidates(branch[1], "HEAD") == branch[:1]
    assert history.candidates(branch[0], "HEAD") == []


def test_the_summary_of_processors_is_written_anew() -> None:
    """benchmarks/RESULTS.md is that of the pages."""
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "write_results.py"), "--check"], capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def result(commit: str, date: int, seconds: list[float]) -> dict[str, Any]:
    """A file of results as asv writes it."""
    return {
        "commit_hash": commit, "env_name": "virtualenv-py3.11", "date": date, "python": "3.11", "requirements": {},
        "env_vars": {}, "durations": {}, "version": 2,
        "params": {"arch": "x86_64", "cpu": "AMD EPYC", "machine": "zen5", "num_cpu": "2", "os": "Linux", "ram": "1",
                   "python": "3.11"},
        "result_columns": ["result", "params"],
        "results": {POOL: [seconds, [["'one'", "'two'"]]]},
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results of the last three commits, and of one that is not part of the history."""
    found = commits("-3", "HEAD")
    if len(found) < 3:
        pytest.skip("the history is cut off")
    folder = tmp_path / "results"
    (folder / "zen5").mkdir(parents=True)
    machine = {name: value for name, value in result("", 0, [])["params"].items() if name != "python"} | {"version": 1}
    (folder / "zen5" / "machine.json").write_text(json.dumps(machine))
    for number, commit in enumerate([*reversed(found), "0" * 40]):
        (folder / "zen5" / f"{commit[:8]}.json").write_text(
            json.dumps(result(commit, 1_700_000_000_000 + number, [2e-6 + number * 1e-6, 1e-3])))
    described = {"name": POOL, "type": "time", "unit": "seconds", "code": "", "version": "1", "timeout": 60.0,
                 "params": [["'one'", "'two'"]], "param_names": ["pool"]}
    (folder / "benchmarks.json").write_text(json.dumps(
        {POOL: described, "tracked.Other.time_plan": described | {"name": "tracked.Other.time_plan"}, "version": 2}))
    return folder


def test_only_measured_benchmarks_are_kept(results: Path) -> None:
    """asv lists all benchmarks of the suite, of which pages would show empty graphs."""
    history.keep_measured(results)
    assert set(json.loads((results / "benchmarks.json").read_text())) == {POOL, "version"}


@pytest.mark.slow
def test_pages_are_made_of_results(results: Path, tmp_path: Path) -> None:
    """The pages have the results of all known commits, link to the project and the site."""
    pytest.importorskip("asv")
    out = tmp_path / "site" / "benchmarks"
    for _ in range(2):  # the second time replaces the first
        done = subprocess.run([sys.executable, str(TOOL), str(out), "--results", str(results)], capture_output=True,
                              text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    assert "left out: zen5/00000000.json" in done.stdout
    assert done.stdout.endswith("pages of 3 results\n")

    index = json.loads((out / "index.json").read_text())
    assert [index[name] for name in ("project_url", "show_commit_url")] == [
        CONFIG[name] for name in ("project_url", "show_commit_url")]
    assert sorted(index["revision_to_hash"].values()) == sorted(commits("-3", "HEAD"))
    (graph,) = [path for path in (out / "graphs").rglob(f"{POOL}.json") if "summary" not in path.parts]
    assert [values for _, values in json.loads(graph.read_text())] == [[2e-6, 1e-3], [3e-6, 1e-3], [4e-6, 1e-3]]

    page = (out / "index.html").read_text(encoding="utf-8")
    local = re.findall(r'<(?:script|link)\b[^>]*?\b(?:src|href)="(?!https?:)([^"]*)"', page)
    assert "pages.css" in local
    assert [name for name in local if not (out / name.partition("?")[0]).is_file()] == []
    assert '<a href="../index.html">' in page


def test_other_folders_are_not_replaced(results: Path, tmp_path: Path) -> None:
    """A folder with files of something else stays as it is."""
    (tmp_path / "precious.txt").write_text("")
    publish = runpy.run_path(str(TOOL))["main"]
    with pytest.raises(SystemExit, match="has other files"):
        publish([str(tmp_path), "--results", str(results)])
    with pytest.raises(SystemExit, match="has no results of this history: measure them"):
        publish([str(tmp_path / "new"), "--results", str(tmp_path / "none")])
    assert not (tmp_path / "new").exists()


def test_a_page_of_asv_that_has_changed_is_an_error() -> None:
    """What is not found in it is named."""
    adapted = runpy.run_path(str(TOOL))["adapted"]
    page = '<html><head><title>airspeed velocity</title></head><li id="nav-li-" class="active"></li></html>'
    assert '<link href="pages.css"' in adapted(page)
    with pytest.raises(SystemExit, match="it lacks <title>"):
        adapted("<html></html>")
