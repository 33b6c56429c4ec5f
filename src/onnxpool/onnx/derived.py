"""Rows of the table of disagreements that follow from runs of the conformance suite: disagreements.json."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any

from onnxpool.dtypes import DTYPES
from onnxpool.schemas import SCHEMAS

from .cases import (
    EVERY,
    NAMES,
    REGIONS,
    Case,
    Disagreement,
    divides_by_fewer,
    pads_reach_kernel,
    room,
)

DERIVED: dict[str, dict[str, Any]] = json.loads(
    resources.files("onnxpool.onnx").joinpath("disagreements.json").read_text("utf-8"))
MOST_SPATIAL = 5  # spatial axes of the cases from which ranks are derived

# Conditions of derived rows.
CONDITIONS: dict[str, Callable[[Case], bool]] = {
    "padding": lambda case: case.padded,
    "dilations": lambda case: case.dilated,
    "ceil_mode": lambda case: case.ceil,
    "SAME_*": lambda case: case.same,
    "SAME_LOWER": lambda case: case.mode == "SAME_LOWER",
    "auto_pad=VALID": lambda case: case.mode == "VALID",
    "count_include_pad": lambda case: case.has("count_include_pad"),
    "storage_order": lambda case: case.has("storage_order"),
    "Indices": lambda case: case.operator.return_indices,
    "strides": lambda case: any(axis.stride > 1 for axis in case.axes),
    "windows without elements": lambda case: case.empty,
    "windows that ceil_mode drops": lambda case: case.drops,
    "windows that overhang": lambda case: case.overhangs(),
    "a divisor that ceil_mode cuts": divides_by_fewer,
    "SAME_* of strides beyond the kernel": lambda case: case.negative(),
    "pads as large as the kernel": pads_reach_kernel,
    "kernels beyond the padded input": lambda case: any(room(axis) < 0 for axis in case.axes),
    "uneven pads": lambda case: any(axis.pads[0] != axis.pads[1] for axis in case.axes),
    "windows of several elements": lambda case: case.most > 1,
    "kernels of several elements": lambda case: case.taps > 1,
    "several channels": lambda case: isinstance(case.channels, int) and case.channels > 1,
    "several images": lambda case: case.shape is not None and isinstance(case.shape[0], int) and case.shape[0] > 1,
    "several spatial axes": lambda case: (case.rank or 0) > 1,
    "three spatial axes or more": lambda case: (case.rank or 0) > 2,
    "channels_last": lambda case: case.has("channels_last"),
    "p": lambda case: "p" in case.operator.attributes,
    "p=1": lambda case: case.p == 1,
    "p=2": lambda case: case.p == 2,
    "an even p": lambda case: case.p % 2 == 0,
    "sampling_ratio=0": lambda case: not case.has("sampling_ratio"),
    "output_half_pixel":
        lambda case: case.operator.attributes.get("coordinate_transformation_mode") == "output_half_pixel",
    **{name: lambda case, name=name: case.dtype == name for name in DTYPES},  # type: ignore[misc]
    **{f"versions since {since}": lambda case, since=since: case.version >= since  # type: ignore[misc]
       for since in (2, 7, 8, 10, 11, 12, 16, 18, 19, 22)},
}
WITHOUT = "without "  # before a condition: its opposite


def held(literal: str, case: Case, related: Mapping[str, Disagreement]) -> bool:
    """Whether a literal of a derived row holds: a condition, the name of a related runtime's row, or the opposite."""
    name = literal.removeprefix(WITHOUT)
    row = related.get(name)
    holds = CONDITIONS[name](case) if row is None else case.name in row.operators and row.holds(case)
    return holds != literal.startswith(WITHOUT)


def kernel_rows(prefix: str, runtime: str, ranked: bool = True) -> Iterator[Disagreement]:
    """The rows about operators, versions, dtypes and, if `ranked`, ranks that a runtime lacks."""
    seen: dict[str, dict[str, Any]] = DERIVED[NAMES[runtime]]
    kernels, ranks = seen["kernels"], seen["ranks"]

    def lacks(case: Case) -> bool:
        found, opset = kernels[case.name], tested(case.name, case.operator.opset, case.version)
        return opset not in (itertools.chain(*found.values()) if case.dtype is None else found.get(case.dtype, ()))

    def limited(case: Case) -> bool:
        return case.rank is not None and min(case.rank, MOST_SPATIAL) not in ranks[case.name]

    missing = tuple(name for name in EVERY if not kernels[name])
    kept = [name for name in EVERY if name not in missing]
    partial = tuple(name for name in kept if any(
        opsets != {*kernels[name].get(dtype, ())} for dtype, opsets in opsets_of(name).items()))
    few = tuple(name for name in kept if name not in REGIONS and not {*range(1, MOST_SPATIAL + 1)} <= {*ranks[name]})
    if missing:
        yield Disagreement(f"{prefix}-missing", runtime, missing, lambda case: True, "does not have this operator")
    if partial:
        yield Disagreement(f"{prefix}-kernel", runtime, partial, lacks, "has no kernel for this version and dtype")
    if few and ranked:
        yield Disagreement(f"{prefix}-rank", runtime, few, limited, "refuses this number of spatial axes")


def tested(name: str, opset: int, version: int) -> int:
    """The tested opset that represents an opset: only the first and the last opset of each version are tested."""
    later = [each.since for each in SCHEMAS[name].versions if each.since > version]
    return version if opset == version or not later else min(later) - 1


def opsets_of(name: str) -> dict[str, set[int]]:
    """The tested opsets in which an operator has each dtype."""
    found: dict[str, set[int]] = {}
    for version in SCHEMAS[name].versions:
        for dtype in version.dtypes:
            found.setdefault(dtype, set()).update(tested(name, opset, version.since)
                                                  for opset in (version.since, version.since + 1))
    return found


def behaviour_rows(runtime: str, related: Mapping[str, Disagreement]) -> Iterator[Disagreement]:
    """The derived rows about results. If a related runtime has the same row, its text is used."""
    for number, row in enumerate(DERIVED[runtime]["rows"], 1):
        when = tuple(row["when"])
        conditions = ", ".join(sorted(when, key=lambda each: each.startswith(WITHOUT)))
        text = f"{row['does']}: {conditions}" if when else row["does"]
        if len(when) == 1 and when[0] in related:
            text = related[when[0]].text

        def holds(case: Case, when: tuple[str, ...] = when) -> bool:
            return all(held(each, case, related) for each in when)

        yield Disagreement(f"{runtime}-{number}", runtime, tuple(row["operators"]), holds, text, values=row["values"])
