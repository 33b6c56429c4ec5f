"""The pages that `report` writes, read again: their facts and rows."""

import re
from pathlib import Path
from typing import NamedTuple

from .peers import PEERS
from .rounds import COPY, OURS

FACT = re.compile(r"^\| ([^|]+) \| (.*) \|$", re.MULTILINE)
PART = re.compile(
    r"^### (\w+), channels (\w+), (\w+) arrays, (\d+) threads?\n\n\| (.*) \|\n.*\n((?:\|.*\n)+)", re.MULTILINE)
GROUP = re.compile(r"^## Against the fastest peer: (.*)\n\n((?:\|.*\n)+)", re.MULTILINE)


class Summary(NamedTuple):
    """A line of a page about all workloads of a group, with the numbers that `report.summary` rounds only once."""

    group: str
    dtype: str
    channels: str
    start: str
    threads: int
    raced: int
    median: str
    slower: int
    holes: int


class PageRow(NamedTuple):
    """A row of a page: the microseconds of each library that took part and of the copy, and the speed-up."""

    workload: str
    dtype: str
    channels: str
    start: str
    threads: int
    times: dict[str, float]
    speedup: float | None  # over the fastest peer, of times that are not rounded

    @property
    def ours(self) -> float:
        """The time of onnxpool."""
        return self.times[OURS]

    @property
    def fastest(self) -> float | None:
        """The time of the fastest peer."""
        return min((time for name, time in self.times.items() if name in PEERS), default=None)


def facts(page: Path) -> dict[str, str]:
    """The machine, the software and the options."""
    return dict(FACT.findall(page.read_text(encoding="utf-8").partition("\n## ")[0]))


def summaries(page: Path) -> list[Summary]:
    """All lines about groups."""
    found = []
    for group, body in GROUP.findall(page.read_text(encoding="utf-8")):
        for line in body.splitlines()[2:]:
            dtype, channels, start, threads, raced, median, _, slower, holes, _ = line.strip("| ").split(" | ")
            found.append(Summary(
                group, dtype, channels, start, int(threads), int(raced), median, int(slower), int(holes)))
    return found


def rows(page: Path) -> list[PageRow]:
    """All rows."""
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
