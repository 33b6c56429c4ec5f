"""
Write the table of docs/reference/decision_cases.md: which runtimes pass the cases about each decision.

    python tools/write_decisions_table.py

Each installed runtime runs each case. If its result differs, the cell names the rows of the disagreement table that
explain why. Install the versions in tests/onnx/versions.txt.
"""

import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance" / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from onnxpool_conformance.cases import Case
from onnxpool_conformance.table import table as every_case
from peers import PEERS, Example, agrees, release

from onnxpool.onnx.cases import INFERENCE, OPENVINO, ORT, REFERENCE
from onnxpool.onnx.disagreements import Filter, disagreements

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "decision_cases.md"
RUNTIMES = (ORT, OPENVINO, REFERENCE, INFERENCE)
TABLE = re.compile(r"^\| case \|.*\n(?:\|.*\n)+", re.MULTILINE)
CASES = [case for case in every_case().values() if case.decided.decision and not case.error]


def example(case: Case) -> Example:
    """The case in the form that peers run."""
    return Example(case.operator, case.opset, case.inputs, case.attributes, case.outputs)


def passes(case: Case, runtime: str) -> bool | None:
    """Whether an installed runtime returns the library's results; None if shape inference has no answer."""
    with warnings.catch_warnings(action="ignore"):  # the reference warns about empty arrays
        try:
            run = PEERS[runtime](example(case))
        except Exception:  # each runtime raises exceptions of its own for a node that it cannot run
            return False
        return agrees(example(case), run, case.inputs)


def unusual(case: Case) -> set[str]:
    """The kinds of unusual values in a case: NaNs, and the powers of an infinite norm, which overflow."""
    kinds = {"NaN"} if any(np.isnan(value).any() for value in case.inputs if value is not None) else set()
    return kinds | ({"range"} if case.attributes.get("p") == np.inf else set())


def rows_of(case: Case, runtime: str) -> list[str]:
    """The names of the disagreement rows that explain a runtime's result."""
    found = disagreements(example(case).case, Filter(values=True, runtimes={runtime: release(runtime)}))
    return [row.name for row in found if not row.values or row.values in unusual(case)]


def verdict(case: Case, runtime: str) -> str:
    """A cell of the table."""
    passed = passes(case, runtime)
    if passed is not False:
        return "passes" if passed else ""
    return ", ".join(f"`{name}`" for name in rows_of(case, runtime)) or "fails"


def table() -> Iterator[str]:
    """The lines of the table on the page."""
    yield f"| case | {' | '.join(RUNTIMES)} |"
    yield "|---" * (1 + len(RUNTIMES)) + "|"
    verdicts = [[verdict(case, runtime) for runtime in RUNTIMES] for case in CASES]
    passed = (f"{cells.count('passes')} of {len(cells) - cells.count('')}" for cells in zip(*verdicts, strict=True))
    yield f"| all | {' | '.join(passed)} |"
    for case, cells in zip(CASES, verdicts, strict=True):
        yield f"| `{case.name}` | {' | '.join(cells)} |"


if __name__ == "__main__":
    lines = "".join(f"{line}\n" for line in table())
    PAGE.write_text(TABLE.sub(lambda _: lines, PAGE.read_text("utf-8")), "utf-8")
