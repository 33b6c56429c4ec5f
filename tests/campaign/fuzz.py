"""Random valid calls against the oracle: every operator, dtype, opset, layout, kind of memory and number of threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from .figures import Figure, none

QUICK, FULL = 4000, 1_000_000
SHARE = 500  # calls of a task


def compare(first: int) -> tuple[int, list[str], float]:
    """How many of some calls were legal, what is wrong with others, and the largest error in units of the bound."""
    import campaign
    from calls import SeededChoices
    from calls_family import WEIGHTED, draw_call

    legal, problems, worst = 0, [], 0.0
    for seed in range(first, first + SHARE):
        call = draw_call(SeededChoices(seed), WEIGHTED)
        outcome = campaign.check(call)
        legal += not outcome.refused
        if outcome.problem is None:
            worst = max(worst, outcome.worst)
        else:
            problems.append(f"--only {seed}: {call.describe()}: {outcome.problem}")
    return legal, problems, worst


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Compare calls on all processors."""
    calls = QUICK if quick else FULL
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        shares = list(pool.map(compare, range(seed * 10**7, seed * 10**7 + calls, SHARE)))
    legal = sum(share[0] for share in shares)
    problems = [problem for share in shares for problem in share[1]]
    for problem in problems[:20]:
        print(f"  python tests/oracle/campaign.py {problem}")
    yield none("wrong results", len(problems), calls, "calls")
    yield Figure("largest error", max(share[2] for share in shares), legal, "results", "of the bound", most=1)
