"""Faults that are put into the compiled code one by one: how many of them the conformance suite finds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from onnxpool_conformance.files import export
from onnxpool_conformance.randoms import random_cases
from onnxpool_conformance.rules import TIERS
from onnxpool_conformance.table import table as every_case

from .builds import Build, folder
from .faults import Fault, finding, listed, search, table
from .figures import Figure, all_of, none

CASES = 2000  # random cases, and as many wide cases
# The C library checks its blocks of memory when they are freed, so that writes beyond a result end the process.
CHECKED = {"LD_PRELOAD": "libc_malloc_debug.so.0", "GLIBC_TUNABLES": "glibc.malloc.check=3"}


def run(seed: int, quick: bool, chosen: slice = slice(None)) -> Iterator[Figure]:
    """
    Export cases, build the package, and run onnxpool with each fault that shows in values. `--quick` tries none.

    Faults with tests of their own are left out, because no random call can show them. Faults that no case can show are
    left out, too.
    """
    if quick:
        return
    with folder("conformance") as where:
        cases = Path(where) / "cases"
        if not cases.exists():
            export([*every_case().values(), *random_cases(CASES, seed), *random_cases(CASES, seed, wide=True)], cases)
        method = {"conformance": ["-m", "onnxpool_conformance", "run", "--from", str(cases), "--backend",
                                  "onnxpool_conformance.adapters.onnxpool", "--fail-on", *TIERS]}
        build = Build(Path(where))
        alarms = sum(bool(finding(build, words, **CHECKED)) for words in method.values())
        yield none("false alarms", alarms, 1, "builds")
        rows: list[tuple[Fault, str, str]] = []
        for fault in [fault for fault in listed() if not (fault.tests or fault.needs or fault.unseen)][chosen]:
            start = time.monotonic()
            rows.append((fault, *search(build, fault, method, **CHECKED)))
            print(f"  {next(table(rows[-1:]))} {time.monotonic() - start:.0f} s", flush=True)
    yield all_of("faults found", sum(bool(name) for _, name, _ in rows), len(rows), "faults")
