"""
Derive rows of the table of disagreements from results of the conformance suite.

    onnxpool-conformance run --backend MODULE --kernels --wide 4000 --cases 'kernel_*' 'wide_*' --json RESULTS.json
    python tools/derive_disagreements.py RUNTIME RESULTS.json [RESULTS.json ...]

RUNTIME is a runtime's name in the table, such as tract. The cases of --kernels show which versions, dtypes and ranks it
runs. The cases of --wide lead to rows about its behaviour: the fewest and shortest conjunctions of CONDITIONS that hold
for every failure and for no case that passes. The script writes the rows to onnxpool/onnx/disagreements.json.

--check instead prints the misses and false alarms of rows on these results, which should come from another seed. The
cases of --random avoid everything that runtimes are known to disagree about, so a failure without a row is then a false
alarm of the suite.
"""

import argparse
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance" / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from onnxpool_conformance.__main__ import find
from onnxpool_conformance.cases import Case as Suite
from onnxpool_conformance.versions import OPERATORS
from peers import Example

from onnxpool.onnx.cases import RUNTIMES, WEB, Case, Disagreement
from onnxpool.onnx.derived import CONDITIONS, WITHOUT, held
from onnxpool.onnx.disagreements import OF_RUNS, RELATED, Filter, disagreements

FILE = Path(__file__).resolve().parents[1] / "src" / "onnxpool" / "onnx" / "disagreements.json"
LONGEST = 4  # literals of a conjunction
SHORTER = 0.7  # a longer conjunction must explain more by this factor
CHANCE = 0.2  # the fraction of cases with unusual values that may pass by chance
LEAST = 5  # failures that a row explains; fewer may be chance
UNUSUAL = ("NaN", "infinity")
LARGE = 1000  # magnitudes above this, or below its inverse, occur only among unusual values of wide cases
LARGE_HALF = 255  # a magnitude whose square leaves the range of float16


class Seen(NamedTuple):
    """A case, and what a runtime did."""

    name: str
    case: Case
    values: str  # the unusual values in the inputs
    outcome: str

    @property
    def failed(self) -> bool:
        """Whether the runtime differs."""
        return self.outcome != "passed"


def query(case: Suite) -> Case:
    """The facts of a case on which the table's conditions depend."""
    inputs = list(case.inputs)
    while inputs[-1] is None:  # the model lacks these inputs
        inputs.pop()
    return Example(case.operator, case.opset, tuple(inputs), case.attributes, case.outputs).case


def unusual(case: Suite) -> str:
    """The kind of unusual values of a case."""
    x = np.abs(case.x.astype(np.float64))
    if np.isnan(x).any():
        return "NaN"
    if np.isinf(x).any():
        return "infinity"
    if case.outputs > 1 and case.x.dtype.kind in "iu" and case.x.min() == np.iinfo(case.x.dtype).min:
        return "lowest"
    large = LARGE_HALF if case.x.dtype.name == "float16" else LARGE
    return "range" if x.max() > large or x[x > 0].min(initial=1) < 1 / LARGE else ""


def seen(results: Iterable[dict[str, Any]]) -> list[Seen]:
    """The random cases of a run."""
    names = ((find(each["name"]), each["outcome"]) for each in results if each["name"].startswith(("wide_", "random_")))
    return [Seen(case.name, query(case), unusual(case), outcome) for case, outcome in names]


# Kernels


def support(results: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The versions that a runtime supports for each dtype, and the ranks."""
    kernels: dict[str, dict[str, list[int]]] = {operator: {} for operator in OPERATORS}
    ranks: dict[str, set[int]] = {operator: set() for operator in OPERATORS}
    operators = {operator.lower(): operator for operator in OPERATORS}
    for each in results:
        if each["name"].startswith("kernel_") and each["outcome"] in ("passed", "wrong"):
            name, version, dtype, rank = each["name"].removeprefix("kernel_").split("_")
            operator = operators[name]
            ranks[operator].add(int(rank[:-1]))
            if rank == "2d":
                kernels[operator].setdefault(dtype, []).append(int(version))
    return {"kernels": kernels, "ranks": {operator: sorted(found) for operator, found in ranks.items()}}


# Conjunctions


def bits(flags: Iterable[bool]) -> int:
    """Flags as the bits of a number."""
    return int("".join("01"[flag] for flag in flags)[::-1] or "0", 2)


def literals(cases: Sequence[Case], related: Mapping[str, Disagreement]) -> dict[str, int]:
    """Each condition and its opposite, with the cases for which it holds. Of conditions with the same cases, only the
    first."""
    every, found = (1 << len(cases)) - 1, dict[str, int]()
    for name in (*related, *CONDITIONS):
        held_by = bits(held(name, case, related) for case in cases)
        for literal, mask in ((name, held_by), (WITHOUT + name, every & ~held_by)):
            if mask not in (0, every) and mask not in found.values():
                found[literal] = mask
    return found


def conjunctions(cases: Sequence[Case], failed: int, passed: int,
                 related: Mapping[str, Disagreement], chance: float) -> Iterator[tuple[list[str], int]]:
    """
    Conjunctions, found greedily: each explains most of the remaining failures, and holds for no case that passes.

    An empty conjunction means that all cases fail, except for a fraction that passes by chance.
    """
    known, left = literals(cases, related), failed
    if failed.bit_count() >= LEAST and passed.bit_count() <= chance * failed.bit_count():
        yield [], failed
        return
    for name in related:  # they say more than other conditions that hold for the same cases
        mask = known.get(name, 0)
        if not mask & passed and (mask & left).bit_count() >= LEAST:
            yield [name], mask & left
            left &= ~mask
    while left:
        best: tuple[float, list[str]] = (0, [])
        for length in range(1, LONGEST + 1):
            for names in itertools.combinations(known, length) if length < 3 else grown(known, left, passed, length):
                mask = (1 << len(cases)) - 1
                for name in names:
                    mask &= known[name]
                explained = (mask & left).bit_count()
                if not mask & passed and explained >= LEAST and explained * SHORTER**length > best[0]:
                    best = (explained * SHORTER**length, list(names))
        if not best[1]:
            return
        mask = (1 << len(cases)) - 1
        for name in best[1]:
            mask &= known[name]
        yield best[1], mask & left
        left &= ~mask


def grown(known: dict[str, int], left: int, passed: int, length: int, width: int = 60) -> Iterator[tuple[str, ...]]:
    """Conjunctions of this length, extended from those that best separate failures from passes."""
    beam: list[tuple[str, ...]] = [()]
    for _ in range(length):
        scored = {}
        for names in beam:
            mask = -1
            for name in names:
                mask &= known[name]
            for name, other in known.items():
                if name not in names:
                    both = mask & other
                    right, wrong = (both & left).bit_count(), (both & passed).bit_count()
                    if right >= LEAST:
                        scored[tuple(sorted((*names, name), key=list(known).index))] = right / (right + 4 * wrong + 1)
        beam = sorted(scored, key=lambda names: -scored[names])[:width]
    yield from beam


def described(outcomes: set[str]) -> str:
    """What a runtime does."""
    if "wrong" not in outcomes:
        return "ends the process" if outcomes <= {"crashed"} else "refuses the node"
    return "returns other results" if outcomes == {"wrong"} else "returns other results, or refuses the node"


def rows(cases: Sequence[Seen], known: Filter, related: Mapping[str, Disagreement]) -> Iterator[dict[str, Any]]:
    """Rows for each operator: first about ordinary values, then about unusual values that other rows do not explain."""
    for operator in OPERATORS:
        explained: set[int] = set()
        of_operator = [each for each in cases if each.case.name == operator and not disagreements(each.case, known)]
        for values in ("", *UNUSUAL):
            group = [(place, each) for place, each in enumerate(of_operator)
                     if each.values == values and place not in explained]
            failed, passed = (bits(each.failed == wanted for _, each in group) for wanted in (True, False))
            for names, mask in conjunctions([each.case for _, each in group], failed, passed, related,
                                             CHANCE if values else 0):
                outcomes = {group[i][1].outcome for i in range(len(group)) if mask >> i & 1}
                yield {"operator": operator, "when": names, "values": values,
                       "does": described(outcomes).replace("returns", "may return" if values else "returns")}
                if not values:
                    explained |= {place for place, each in enumerate(of_operator)
                                  if all(held(name, each.case, related) for name in names)}


def merged(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge rows that differ only in their operator."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for row in found:
        groups.setdefault((tuple(row["when"]), row["values"], row["does"]), []).append(row["operator"])
    return [{"operators": operators, "when": [*when], "values": values, "does": does}
            for (when, values, does), operators in groups.items()]


def main() -> int:
    """Derive rows, or check them."""
    parser = argparse.ArgumentParser(description=str(__doc__).strip().partition("\n")[0])
    parser.add_argument("runtime", choices=RUNTIMES)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    runtime = RUNTIMES[arguments.runtime]
    runs = [json.loads(path.read_text("utf-8")) for path in arguments.results]
    results = [each for run in runs for each in run["results"]]
    if arguments.check:
        return check(runtime, seen(results))
    kept = json.loads(FILE.read_text("utf-8"))
    entry = kept.setdefault(arguments.runtime, {})
    entry["described"] = runs[0]["runtime"]
    if any(each["name"].startswith("kernel_") for each in results):
        entry.update(support(results))
    if wide := seen(results):
        behaviour = [row.name for row in OF_RUNS if row.name.rpartition("-")[2].isdecimal()]
        related = RELATED if runtime == WEB else {}
        entry["rows"] = merged(rows(wide, Filter(runtimes={runtime: ()}, ignored=behaviour), related))
    FILE.write_text(text(kept), "utf-8")
    return 0


def text(kept: dict[str, Any]) -> str:
    """The file, with a line for each row and operator."""
    def lines(value: Any, depth: int) -> str:
        if depth == 3 or not isinstance(value, (dict, list)) or not value:
            return json.dumps(value)
        pairs = [f"{json.dumps(key)}: {lines(one, depth + 1)}" for key, one in value.items()] if isinstance(
            value, dict) else [lines(one, depth + 1) for one in value]
        begin, end = "{}" if isinstance(value, dict) else "[]"
        return begin + ",".join(f"\n{' ' * (depth + 1)}{pair}" for pair in pairs) + end
    return f"{lines(kept, 0)}\n"


def explanations(runtime: str, each: Seen) -> list[Disagreement]:
    """The rows about a case."""
    return [row for row in disagreements(each.case, Filter(values=True, runtimes={runtime: ()}))
            if row.values in ("", each.values)]


def unexplained(runtime: str, cases: Iterable[Seen]) -> list[Seen]:
    """The failures without a row."""
    return [each for each in cases if each.failed and not explanations(runtime, each)]


def check(runtime: str, cases: Sequence[Seen]) -> int:
    """Print the failures without a row, and the rows without a failure."""
    missed = unexplained(runtime, cases)
    for each in missed:
        print("without a row:", each.name, each.outcome)
    alleged = 0
    for each in cases:
        found = [row.name for row in explanations(runtime, each) if not row.values]
        if each.name.startswith("wide_") and not each.values and not each.failed and found:
            alleged += 1
            print("false alarm:", each.name, ", ".join(found))
    failures = sum(each.failed for each in cases)
    print(f"{len(cases)} cases, {failures} failures, {len(missed)} without a row, {alleged} false alarms")
    return 1 if alleged or any(each.name.startswith("random_") for each in missed) else 0


if __name__ == "__main__":
    sys.exit(main())
