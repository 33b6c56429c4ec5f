"""Relations between random calls, which hold without expected values (tests/oracle/relations.py)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from .figures import Figure, none

QUICK, FULL = 200, 50_000  # cases of each relation
SHARE = 200  # cases per task
SHOWN = 20  # maximum broken relations that are shown


def attempt(name: str, first: int) -> tuple[int, list[str]]:
    """The number of calls to which a relation applies, and the seeds of the calls for which it does not hold."""
    from calls import SeededChoices
    from inapplicable import InapplicableError
    from relations import RELATIONS

    applied, broken = 0, []
    for seed in range(first, first + SHARE):
        try:
            applied += 1
            RELATIONS[name](SeededChoices(seed))
        except InapplicableError:
            applied -= 1
        except Exception as error:  # no exception is expected, of any type
            broken.append(f"{name} of SeededChoices({seed}): {type(error).__name__}: {' '.join(str(error).split())}")
    return applied, broken


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Try each relation on all processors."""
    from relations import RELATIONS

    seeds = range(seed * 10**7, seed * 10**7 + (QUICK if quick else FULL), SHARE)
    tasks = [(name, first) for name in RELATIONS for first in seeds]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        shares = list(pool.map(attempt, *zip(*tasks, strict=True)))
    applied = Counter[str]()
    for (name, _), (count, _) in zip(tasks, shares, strict=True):
        applied[name] += count
    broken = [text for _, texts in shares for text in texts]
    for text in broken[:SHOWN]:
        print(f"  {text[:400]}")
    rarest = min(applied, key=lambda name: applied[name])
    yield none("broken relations", len(broken), applied.total(), "cases",
               f"{len(RELATIONS)} relations; the rarest, {rarest}, concerns {applied[rarest]:,}")
    yield Figure("relations that concern some calls", sum(count > 0 for count in applied.values()), len(RELATIONS),
                 "relations", least=len(RELATIONS))
