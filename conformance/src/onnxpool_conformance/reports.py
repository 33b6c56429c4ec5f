"""Results as text, JSON, JUnit's XML and Markdown, and the file of expected failures."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from .errors import SuiteError
from .files import Stored, check_empty
from .rules import TIERS
from .runner import OUTCOMES, Result, described


class Run(NamedTuple):
    """A runtime's results, and which of them decide the exit status."""

    runtime: str
    results: Sequence[Result]
    counted: Sequence[str]  # tiers whose failures make the run fail
    expected: dict[str, str]  # names of the cases that are expected to fail, with the reasons

    @property
    def unexpected(self) -> list[Result]:
        """The failures that are not expected, of all tiers."""
        return [each for each in self.results if each.outcome != "passed" and each.name not in self.expected]

    @property
    def fixed(self) -> list[Result]:
        """The cases that pass although they are expected to fail."""
        return [each for each in self.results if each.outcome == "passed" and each.name in self.expected]

    @property
    def ok(self) -> bool:
        """Whether the run succeeds."""
        return not self.fixed and not any(each.tier in self.counted for each in self.unexpected)


def expected_failures(path: Path, known: set[str]) -> dict[str, str]:
    """The names in a file, one per line, with the reasons after #."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(f"cannot read the expected failures in {path}: {error}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        name, _, reason = (part.strip() for part in line.partition("#"))
        if name and name not in known and not name.startswith(("random_", "wide_", "kernel_")):
            raise SuiteError(f"{path}, line {number}: there is no case {name!r}; remove the line, or see "
                             "onnxpool-conformance list")
        if name:
            found[name] = reason
    return found


def counts(results: Sequence[Result], key: Callable[[Result], str], order: Sequence[str] = ()) -> list[list[str]]:
    """A table of outcomes: a row for each group, and one for all."""
    groups = {name: Counter[str]() for name in order}
    for each in results:
        groups.setdefault(key(each), Counter())[each.outcome] += 1
    rows = [(name, group) for name, group in groups.items() if group]
    rows.append(("all", Counter(each.outcome for each in results)))
    return [["", *OUTCOMES], *([name, *(str(group[outcome]) for outcome in OUTCOMES)] for name, group in rows)]


def tables(run: Run) -> list[list[list[str]]]:
    """The outcomes by tier, and by operator."""
    operators = sorted({each.operator for each in run.results})
    return [counts(run.results, lambda each: each.tier, TIERS),
            counts(run.results, lambda each: each.operator, operators)]


def text(run: Run) -> str:
    """The report for a terminal. Its list of failures is in the format of a file of expected failures."""
    lines = [run.runtime]
    for table in tables(run):
        width = max(len(row[0]) for row in table)
        lines += ["", *("  ".join([row[0].ljust(width), *(f"{cell:>8}" for cell in row[1:])]) for row in table)]
    if run.unexpected:
        lines += ["", "# failures"]
        lines += [f"{each.name}  # {each.tier}, {each.outcome}: {each.detail}" for each in run.unexpected]
    if run.fixed:
        lines += ["", "# expected to fail, but passed: remove them from the expected failures"]
        lines += [each.name for each in run.fixed]
    tiers = " and ".join(run.counted) or "no tier"
    lines += ["", "ok" if run.ok else f"failed (failures of {tiers} count, and passes of expected failures)"]
    return "\n".join(lines)


def as_json(run: Run) -> str:
    """All results as JSON."""
    results = [{**each._asdict(), "expected_failure": each.name in run.expected} for each in run.results]
    about = {"runtime": run.runtime, "ok": run.ok, "counted": list(run.counted)}
    return json.dumps({**about, "results": results}, indent=1)


def as_junit(run: Run) -> str:
    """All results as JUnit's XML: a suite for each tier. Failures that do not count are skipped tests."""
    root = ElementTree.Element("testsuites", name=run.runtime)
    failing = {each.name for each in run.unexpected if each.tier in run.counted} | {each.name for each in run.fixed}
    for tier in TIERS:
        results = [each for each in run.results if each.tier == tier]
        skipped = [each for each in results if each.outcome != "passed" and each.name not in failing]
        suite = ElementTree.SubElement(root, "testsuite", name=tier, tests=str(len(results)), errors="0",
                                       failures=str(sum(each.name in failing for each in results)),
                                       skipped=str(len(skipped)))
        for each in results:
            case = ElementTree.SubElement(suite, "testcase", classname=f"{tier}.{each.operator}", name=each.name,
                                          time=f"{each.seconds:.3f}")
            if each.name in failing:
                problem = "expected to fail, but passed" if each.outcome == "passed" else each.detail
                ElementTree.SubElement(case, "failure", type=each.outcome, message=problem)
            elif each.outcome != "passed":
                why = run.expected.get(each.name) or "not counted"
                ElementTree.SubElement(case, "skipped", message=f"{each.outcome} ({why}): {each.detail}")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def as_markdown(run: Run) -> str:
    """The tables, and a line for each failure."""
    lines = [f"# {run.runtime}"]
    for table in tables(run):
        lines += ["", *(f"| {' | '.join(row)} |" for row in table)]
        lines.insert(-len(table) + 1, "|---" * len(table[0]) + "|")
    if run.unexpected:
        lines += ["", "| case | tier | outcome | |", "|---|---|---|---|"]
        lines += [f"| `{each.name}` | {each.tier} | {each.outcome} | {each.detail.replace('|', chr(92) + '|')} |"
                  for each in run.unexpected]
    return "\n".join(lines)


FORMATS = {"json": as_json, "junit": as_junit, "markdown": as_markdown}


def write(path: str, report: str) -> None:
    """Write a report to a file, or to the standard output if the path is -."""
    if path == "-":
        sys.stdout.write(f"{report}\n")
        return
    try:
        Path(path).write_text(f"{report}\n", encoding="utf-8")
    except OSError as error:
        raise SuiteError(f"cannot write {path}: {error.strerror}") from error


# Reports for maintainers


def kinds(results: Iterable[Result]) -> dict[tuple[str, str, str], list[Result]]:
    """The failures by operator, outcome, and what their cases test."""
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for each in results:
        if each.outcome != "passed":
            groups.setdefault((each.operator, each.outcome, each.tests), []).append(each)
    return groups


def smallest(case: Stored) -> tuple[int, int, str]:
    """The sort key of cases, by which the simplest one comes first."""
    elements = sum(int(np.prod(each["shape"])) for each in (*case.entry["inputs"], *case.entry["outputs"]))
    return elements, len(case.entry["attributes"]), case.name


def report(run: Run, results: Sequence[Result], cases: dict[str, Stored]) -> str:
    """One kind of failure, with its smallest case: the model as text, and what is expected."""
    import onnx
    first = min((cases[each.name] for each in results), key=smallest)
    result, entry = next(each for each in results if each.name == first.name), first.entry
    given = [f"{each['name']}: {described(x)}" for each, x in zip(entry["inputs"], first.inputs(), strict=True)]
    wanted = [described(y) for y, _ in first.outputs()] or [f"an error: {entry['error']}"]
    why = {"spec": "The specification", "consensus": f"Silence of the specification, and {entry['agreed']}",
           "choice": "A choice of onnxpool, because the specification is silent"}[entry["tier"]]
    further = [f"`{each.name}`" for each in results if each is not result]
    return "\n".join([
        f"# {run.runtime}: {result.operator} {result.outcome}: {result.tests}", "",
        f"Case `{first.name}` of onnxpool-conformance, the smallest of {len(results)} of this kind.", "",
        "## Model", "", "```", onnx.printer.to_text(onnx.load(first.model)).strip(), "```", "",
        "## Inputs", "", "```", *given, "```", "", "## Expected", "", "```", *wanted, "```", "",
        f"{why}: {entry['reason']}", "", "## Got", "", "```", *(result.got or [result.outcome]), "```", "",
        result.detail, *(["", f"Further cases: {', '.join(further)}"] if further else []), ""])


def write_reports(folder: Path, run: Run, cases: Iterable[Stored]) -> None:
    """Write a file for each kind of failure to a new or empty folder."""
    check_empty(folder)
    folder.mkdir(exist_ok=True)
    known = {case.name: case for case in cases}
    for key, results in kinds(run.results).items():
        name = re.sub(r"[^a-z0-9]+", "-", " ".join(key).lower()).strip("-")
        (folder / f"{name}.md").write_text(report(run, results, known), encoding="utf-8")
