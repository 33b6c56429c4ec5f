"""Results for every number of threads, instruction set, layout, split and state: one hash for each case, pinned."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from .builds import command
from .figures import Figure, none

PROGRAM = Path(__file__).parents[1] / "helpers" / "pinned.py"


def found_on(instruction_set: str, quick: bool) -> tuple[int, dict[str, dict[str, str]]]:
    """How many results a process computed, and for each case the first circumstance of each of its hashes."""
    count, found = json.loads(command(sys.executable, PROGRAM, *["--few"] * quick, ONNXPOOL_ISA=instruction_set))
    return count, found


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Compare instruction sets one after another. The cases are fixed, so the seed has no effect."""
    import pinned

    from onnxpool import kernels

    expected, computed, several, wrong = pinned.pinned(), 0, set(), set()
    for instruction_set in kernels.available():
        count, found = found_on(instruction_set, quick)
        computed += count
        if found.keys() != expected.keys():
            raise RuntimeError(f"other cases than in {pinned.FILE}: {sorted(found.keys() ^ expected.keys())[:3]}; "
                               f"python {PROGRAM} --write")
        for name, hashes in found.items():
            if len(hashes) > 1:
                several.add(name)
                print(f"  {instruction_set}: {name}: {', '.join(f'{one} ({where})' for one, where in hashes.items())}")
            if hashes.keys() != {expected[name]}:
                wrong.add(name)
    note = f"{computed:,} results, {', '.join(kernels.available())}"
    yield none("cases with several hashes on an instruction set", len(several), len(expected), "cases", note)
    yield none("cases with another hash than the pinned one", len(wrong), len(expected), "cases")
