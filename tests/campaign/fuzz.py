"""Random valid calls against the oracle: operators, dtypes, layouts, memory, `out`, threads and instruction sets."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from .figures import Figure, none

QUICK, FULL = 4000, 1_000_000
SHARE = 500  # calls per task


def choose(instruction_set: str) -> None:
    """Choose the instruction set, in a process that has not imported onnxpool yet."""
    os.environ["ONNXPOOL_ISA"] = instruction_set


def compare(first: int) -> tuple[int, list[str], float]:
    """How many of some calls were legal, what is wrong with others, and the largest error in units of the bound."""
    import campaign
    from calls import SeededChoices
    from calls_axes import draw_any

    legal, problems, worst = 0, [], 0.0
    for seed in range(first, first + SHARE):
        call = draw_any(SeededChoices(seed))
        outcome = campaign.check(call)
        legal += not outcome.refused
        if outcome.problem is None:
            worst = max(worst, outcome.worst)
        else:
            problems.append(f"--only {seed}: {call.describe()}: {outcome.problem}")
    return legal, problems, worst


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Compare calls on all processors. Each instruction set gets an equal part of them."""
    from onnxpool.kernels import available

    calls = QUICK if quick else FULL
    begins = range(seed * 10**7, seed * 10**7 + calls, SHARE)
    sets = available()
    shares, counts = [], Counter[str]()
    for place, name in enumerate(sets):
        with ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("spawn"), choose,
                                 (name,)) as pool:
            mine = list(pool.map(compare, begins[place::len(sets)]))
        counts[name] = SHARE * len(mine)
        for problem in [problem for share in mine for problem in share[1]][:20]:
            print(f"  ONNXPOOL_ISA={name} python tests/oracle/campaign.py {problem}")
        shares += mine
    shown = ", ".join(f"{count:,} with {name}" for name, count in counts.items())
    yield none("wrong results", sum(len(share[1]) for share in shares), counts.total(), "calls", shown)
    legal = sum(share[0] for share in shares)
    yield Figure("largest error", max(share[2] for share in shares), legal, "results", "of the bound", most=1)
