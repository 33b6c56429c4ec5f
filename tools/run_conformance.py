"""
Run the conformance suite on the runtimes of conformance/runtimes.toml, and write docs/conformance.md.

    python tools/run_conformance.py [IDS ...] [--environments DIR] [--reports DIR]
    python tools/run_conformance.py [IDS ...] [--environments DIR] --random N [--seed N]
    python tools/run_conformance.py --page

Each runtime gets a virtual environment in DIR (build/runtimes), which is created if necessary. Failures are stored in
conformance/results. With --page, the script only writes the page from these files. With --reports, DIR gets a folder
for each runtime, with a report for its maintainers about each kind of failure.

With --random, the script runs random cases instead, and counts the failures that the table of disagreements explains.
This needs onnxpool.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance" / "src"))

from onnxpool_conformance.cases import Case
from onnxpool_conformance.rules import TIERS
from onnxpool_conformance.table import table
from onnxpool_conformance.versions import OPERATORS

ROOT = Path(__file__).resolve().parents[1]
SUITE = ROOT / "conformance"
SOURCE = SUITE / "src"
RESULTS, PAGE = SUITE / "results", ROOT / "docs" / "conformance.md"
BASIS = ("numpy", "onnx", "ml_dtypes")  # packages that the runner needs
LONGEST = 110  # characters of a detail
FOLDERS = re.compile(r"(?<![\w./])/(?:[\w.+-]+/)+")  # of absolute paths, which differ from run to run
SHOWN = ("passed", "wrong", "refused", "accepted", "crashed", "timeout")


class Runtime(NamedTuple):
    """An entry of runtimes.toml."""

    id: str
    adapter: str
    install: Sequence[str] = ()
    npm: Sequence[str] = ()
    environment: Mapping[str, str] = MappingProxyType({})
    without: Sequence[str] = ()  # operators that are not run
    control: bool = False

    @property
    def how(self) -> str:
        """The command that installs it."""
        if self.npm:
            return f"npm install {' '.join(self.npm)}"
        return f"pip install {' '.join(self.install or ['onnx'])}"


class Stored(NamedTuple):
    """The stored results of a run: the runtime with its version, and the outcome and the detail of each failure."""

    runtime: Runtime
    name: str
    cases: Sequence[Case]
    failures: dict[str, tuple[str, str]]
    random: dict[str, Any]  # a run of random cases; empty if there was none

    def outcome(self, case: Case) -> str:
        """The outcome of a case."""
        return self.failures.get(case.name, ("passed",))[0]

    def counts(self, cases: Iterable[Case]) -> Counter[str]:
        """The number of cases of each outcome."""
        return Counter(self.outcome(case) for case in cases)


def runtimes() -> list[Runtime]:
    """The entries of runtimes.toml."""
    return [Runtime(**entry) for entry in tomllib.loads((SUITE / "runtimes.toml").read_text("utf-8"))["runtime"]]


# Runs


def environment(runtime: Runtime, folder: Path) -> Path:
    """The environment of a runtime, created if necessary."""
    place = folder / runtime.id
    if not place.exists():
        venv.create(place, with_pip=True)
        pip = [place.absolute() / "bin" / "pip", "install", "-q"]
        subprocess.run([*pip, *BASIS, *runtime.install], cwd=ROOT, check=True)
        if runtime.npm:
            subprocess.run(["npm", "install", "--ignore-scripts", *runtime.npm], cwd=place, check=True)
    return place


def ran(runtime: Runtime, folder: Path, *options: object) -> dict[str, Any]:
    """The report of a run of the suite."""
    place = environment(runtime, folder)
    operators = [name for name in OPERATORS if name not in runtime.without]
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "results.json"
        command = [place.absolute() / "bin" / "python", "-m", "onnxpool_conformance", "run", "--timeout", "120",
                   "--backend", f"onnxpool_conformance.adapters.{runtime.adapter}", "--fail-on", "--json", path,
                   "--operators", *operators, *map(str, options)]
        subprocess.run(command, cwd=place, check=True, env={**os.environ, "PYTHONPATH": str(SOURCE),
                                                            **runtime.environment})
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return found


def run(runtime: Runtime, folder: Path, reports: Path | None) -> None:
    """Run the table of cases, and store the failures."""
    found = ran(runtime, folder, *(["--reports", reports.absolute() / runtime.id] if reports else []))
    failures = {each["name"]: (each["outcome"], FOLDERS.sub("", each["detail"])[:LONGEST])
                for each in found["results"] if each["outcome"] != "passed"}
    keep(runtime, {"runtime": found["runtime"], "cases": len(found["results"]), "failures": failures})


def run_random(runtime: Runtime, folder: Path, count: int, seed: int) -> None:
    """Run random cases, and store how many fail, and which failures no row of the table of disagreements explains."""
    from derive_disagreements import RUNTIMES, seen, unexplained
    found = ran(runtime, folder, "--random", count, "--seed", seed, "--cases", "random_*")
    cases = seen(found["results"])
    keep(runtime, {"random": {"runtime": found["runtime"], "seed": seed, "cases": len(cases),
                              "failures": sum(each.failed for each in cases),
                              "unexplained": [each.name for each in unexplained(RUNTIMES[runtime.id], cases)]}})


def keep(runtime: Runtime, found: Mapping[str, object]) -> None:
    """Store the results of a run beside the results of other runs."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{runtime.id}.json"
    kept = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(f"{json.dumps({**kept, **found}, indent=0, sort_keys=True)}\n", "utf-8")


def stored() -> list[Stored]:
    """Read the stored results, and refuse them if the cases of the suite have changed since."""
    found = []
    for runtime in runtimes():
        path = RESULTS / f"{runtime.id}.json"
        if path.exists():
            kept = json.loads(path.read_text("utf-8"))
            cases = [case for case in table().values() if case.operator not in runtime.without]
            if kept["cases"] != len(cases) or not set(kept["failures"]) <= set(table()):
                raise SystemExit(f"{path} describes other cases: run {Path(__file__).name} {runtime.id}")
            found.append(Stored(runtime, kept["runtime"], cases, kept["failures"], kept.get("random", {})))
    return found


# The page


def row(cells: Iterable[object]) -> str:
    """A row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def ratio(counts: Counter[str]) -> str:
    """The numbers of passed, wrong, refused and accepted cases. A user does not notice wrong results."""
    if not counts:
        return "not run"
    wrong, other = counts["wrong"], counts["refused"] + counts["crashed"] + counts["timeout"]
    parts = [str(counts["passed"]), *([f"**{wrong} wrong**"] if wrong else []),
             *([f"{other} refused"] if other else []), *([f"{counts['accepted']} accepted"] * bool(counts["accepted"]))]
    return ", ".join(parts)


def totals(found: Sequence[Stored]) -> Iterator[str]:
    """A row for each runtime, with its results in each tier."""
    cases = list(table().values())
    yield row(("runtime", *(f"{tier} ({sum(case.tier == tier for case in cases)})" for tier in TIERS), "install"))
    yield "|---" * (len(TIERS) + 2) + "|"
    for each in found:
        tiers = (ratio(each.counts(case for case in each.cases if case.tier == tier)) for tier in TIERS)
        yield row((each.name, *tiers, f"`{each.runtime.how}`"))


def by_operator(found: Sequence[Stored], tier: str) -> Iterator[str]:
    """A row for each operator, and a column for each runtime."""
    yield row(("operator", *(each.name for each in found)))
    yield "|---" * (len(found) + 1) + "|"
    for operator in OPERATORS:
        yield row((operator, *(ratio(each.counts(
            case for case in each.cases if case.operator == operator and case.tier == tier)) for each in found)))


def whole_words(detail: str) -> str:
    """A detail without its last word if it was cut off."""
    return detail if len(detail) < LONGEST else f"{detail.rpartition(' ')[0]} ..."


def kinds(each: Stored) -> Iterator[str]:
    """A line for each kind of failure: the subject of its cases, the operators, the number of cases, and an example."""
    missing = [operator for operator in OPERATORS if operator not in each.runtime.without and all(
        each.outcome(case) == "refused" for case in each.cases if case.operator == operator and not case.error)]
    if missing:
        yield f"* has no {', '.join(missing)}"
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in each.cases:
        if case.operator not in missing and (outcome := each.outcome(case)) != "passed":
            groups.setdefault((outcome, case.decided.tests, case.tier), []).append(case)
    for (outcome, tests, tier), cases in sorted(groups.items(), key=lambda item: (
            SHOWN.index(item[0][0]), TIERS.index(item[0][2]), item[0][1])):
        operators = ", ".join(name for name in OPERATORS if any(case.operator == name for case in cases))
        first = min(cases, key=lambda case: (case.x.size, case.name))
        detail = whole_words(each.failures[first.name][1]).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
        count = f"{len(cases)} cases, such as " if len(cases) > 1 else ""
        why = "" if outcome == "accepted" else f": {detail}"
        yield f"* {outcome} ({tier}), {operators}: {tests}; {count}`{first.name}`{why}"


def random_runs(found: Sequence[Stored]) -> Iterator[str]:
    """A row for each run of random cases."""
    yield row(("runtime", "cases", "seed", "pass", "fail as the table of disagreements says", "false alarms"))
    yield "|---" * 6 + "|"
    for kept in filter(None, (each.random for each in found)):
        alarms = len(kept["unexplained"])
        yield row((kept["runtime"], f"{kept['cases']:,}", kept["seed"], f"{kept['cases'] - kept['failures']:,}",
                   f"{kept['failures'] - alarms:,}", alarms))


def page(found: Sequence[Stored]) -> str:
    """The page."""
    cases = list(table().values())
    current = [each for each in found if not each.runtime.control]
    lines = [
        "# Conformance of runtimes", "",
        "Made by `python tools/run_conformance.py` from `conformance/results`; do not edit.", "",
        f"The [conformance suite](../conformance/README.md) has {len(cases)} cases of "
        f"{len(OPERATORS)} operators. The tier of a case says what decides its results: `spec`, a sentence or the "
        "schema of the specification; `consensus`, the agreement of runtimes where the text is silent; `choice`, a "
        "[decision](reference/decisions.md) of onnxpool where runtimes disagree. A runtime is free to differ from "
        "choices.", "",
        "A cell states how many cases pass. **Wrong** results raise no error, so only a comparison finds them. "
        "*Refused* stands for errors, crashes and time limits. *Accepted* stands for invalid cases that a runtime "
        "runs, such as nodes with an attribute that the version of the operator does not have. Every runtime runs on "
        "a CPU, with its own optimisations, through its Python adapter.", "",
        "## By tier", "", *totals(current), ""]
    if controls := [each for each in found if each.runtime.control]:
        lines += ["Old releases with known bugs are controls, which show that the suite finds these bugs:", "",
                  *totals(controls), ""]
    lines += ["## Random cases", "",
              "If the suite itself were wrong, correct runtimes would fail it. Random cases test this. They avoid most "
              "questions about which runtimes disagree. A runtime may fail a random case only if the "
              "[table of disagreements](onnx.md#onnxpool-check) predicts that, for example because the runtime "
              "lacks a dtype.", "", *random_runs(found), ""]
    for tier in TIERS:
        lines += [f"## Tier {tier}, by operator", "", *by_operator(current, tier), ""]
    for each in found:
        failures = list(kinds(each))
        lines += [f"## {each.name}", "", *(failures or ["All cases pass."]), ""]
    return "\n".join(lines)


def main() -> int:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", maxsplit=1)[0].strip())
    parser.add_argument("ids", nargs="*", metavar="ID", help="runtimes (default: all)")
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "runtimes", metavar="DIR")
    parser.add_argument("--reports", type=Path, metavar="DIR")
    parser.add_argument("--random", type=int, metavar="N", help="run N random cases instead of the table")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random cases (default: 0)")
    parser.add_argument("--page", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    known = {runtime.id: runtime for runtime in runtimes()}
    if unknown := set(arguments.ids) - set(known):
        parser.error(f"there is no runtime {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    failed = []
    arguments.environments.mkdir(parents=True, exist_ok=True)
    if arguments.reports:
        arguments.reports.mkdir(parents=True, exist_ok=True)
    for runtime in [] if arguments.page else [known[name] for name in arguments.ids or known]:
        try:
            if arguments.random:
                run_random(runtime, arguments.environments, arguments.random, arguments.seed)
            else:
                run(runtime, arguments.environments, arguments.reports)
        except subprocess.CalledProcessError as error:
            failed.append(runtime.id)
            print(f"{runtime.id}: {error}", file=sys.stderr)
    PAGE.write_text(page(stored()), "utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
