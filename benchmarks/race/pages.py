"""Reads the pages that `report` writes."""

import re
from pathlib import Path
from typing import NamedTuple

from .peers import PEERS
from .rounds import COPY, OURS

PART = re.compile(
    r"^### (\w+), channels (\w+), (\w+) arrays, (\d+) threads?\n\n\| (.*) \|\n.*\n((?:\|.*\n)+)", re.MULTILINE)


class PageRow(NamedTuple):
    """A row of a page: the microseconds of each library that took part and of the copy, and the speed-up."""

    workload: str
    dtype: str
    channels: str
    start: str
    threads: int
    times: dict[str, float]
    speedup: float | None  # over the fastest peer, from times before rounding

    @property
    def ours(self) -> float:
        """The time of onnxpool."""
        return self.times[OURS]

    @property
    def fastest(self) -> float | None:
        """The time of the fastest peer."""
        return min((time for name, time in self.times.items() if name in PEERS), default=None)


def rows(page: Path) -> list[PageRow]:
    """All rows of a page."""
    found = []
    for dtype, channels, start, threads, head, body in PART.findall(page.read_text(encoding="utf-8")):
        names = head.split(" | ")
        for line in body.splitlines():
            cells = dict(zip(names, line.strip("| ").split(" | "), strict=True))
            times = {name: float(cells[name].strip("*")) for name in (OURS, *PEERS, COPY) if cells[name] != "-"}
            ratio = cells["speed-up"]
            found.append(PageRow(cells["workload"], dtype, channels, start, int(threads), times,
                                 None if ratio == "-" else float(ratio.strip("x"))))
    return found
