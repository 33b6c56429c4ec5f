"""onnxruntime sessions: random graphs at all levels of optimisation.

They run for an hour, or for as many seconds as ONNXPOOL_CAMPAIGN_SESSIONS says.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from .figures import Figure, none

QUICK, FULL = 10, 3600  # seconds of random graphs
SHARE = 500  # graphs per process
CPUS = len(os.sched_getaffinity(0))


def graphs(seed: int, seconds: float) -> tuple[Counter[str], dict[int, list[str]]]:
    """How many graphs of each kind were run, and the problems by seed. Each processor has its own seeds."""
    from graph_campaign import outcomes

    kinds, problems, end = Counter[str](), dict[int, list[str]](), time.monotonic() + seconds

    def run(share: int) -> None:
        first = seed * 10**7 + share * SHARE
        while time.monotonic() < end:
            for one, outcome in outcomes(list(range(first, first + SHARE))):
                kinds[outcome.kind] += 1
                if outcome.problems:
                    problems[one] = outcome.problems
                if time.monotonic() > end:
                    break
            first += CPUS * SHARE

    with ThreadPoolExecutor(CPUS) as pool:
        list(pool.map(run, range(CPUS)))
    return kinds, problems


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Run random graphs, and count the graphs whose results differ."""
    seconds = float(os.environ.get("ONNXPOOL_CAMPAIGN_SESSIONS", QUICK if quick else FULL))
    kinds, problems = graphs(seed, seconds)
    for one, lines in list(problems.items())[:20]:
        print(f"  python tests/onnxruntime/graph_campaign.py {one}", *lines, sep="\n    ")
    yield none("graphs with another value or error", len(problems), kinds.total(), "graphs",
               ", ".join(f"{kinds[kind]:,} {kind}" for kind in sorted(kinds)))
