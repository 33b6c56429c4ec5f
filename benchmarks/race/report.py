"""Results: one row for each workload, dtype, layout, start of arrays and number of threads, as text and Markdown."""

from collections.abc import Iterable, Iterator
from itertools import product
from statistics import median
from typing import NamedTuple

from ..workloads import BOUNDS, BYTES, FLOATS, GROUPS, LAYOUTS, STARTS
from .peers import PEERS
from .rounds import COPY, OURS

EVEN = 0.97  # a ratio within 3 % of a peer is no difference
HOLE = 0.7  # a row below is a mistake
SLOWEST = 20  # length of the list of rows that are furthest from the copy


class Row(NamedTuple):
    """The times of all libraries on a workload, in seconds per call, one number per round."""

    workload: str
    dtype: str
    layout: str
    start: str
    threads: int
    bytes: int  # read and written
    times: dict[str, list[float]]
    left_out: dict[str, str]  # peers that did not take part, and why

    @property
    def best(self) -> dict[str, float]:
        """The best time of each library."""
        return {name: min(rounds) for name, rounds in self.times.items()}

    @property
    def peer(self) -> str | None:
        """The fastest peer."""
        return min((name for name in self.times if name in PEERS), key=self.best.__getitem__, default=None)

    @property
    def speedup(self) -> float | None:
        """The time of the fastest peer divided by onnxpool's."""
        return self.best[self.peer] / self.best[OURS] if self.peer else None

    @property
    def share(self) -> float:
        """The share of a copy's bandwidth that onnxpool reaches."""
        return self.best[COPY] / self.best[OURS]

    @property
    def noise(self) -> float:
        """By how much onnxpool's median round exceeds its best round."""
        return median(self.times[OURS]) / self.best[OURS] - 1

    @property
    def group(self) -> str:
        """The kind of workload."""
        return next(title for title, works in GROUPS.items() if self.workload in works)


def microseconds(seconds: float | None) -> str:
    """A time for a table."""
    if seconds is None:
        return "-"
    return f"{seconds * 1e6:.0f}" if seconds >= 1e-4 else f"{seconds * 1e6:.1f}"


def times(ratio: float | None) -> str:
    """A ratio for a table."""
    return "-" if ratio is None else f"{ratio:.2f}x"


def line(row: Row) -> str:
    """A row as text."""
    others = "  ".join(f"{name} {microseconds(seconds)}" for name, seconds in row.best.items() if name != OURS)
    return (f"t{row.threads} {row.dtype:8} {row.layout:5} {row.start:7} {row.workload:26} "
            f"{microseconds(row.best[OURS]):>8} us {times(row.speedup):>8} {row.peer or 'no peer':11} "
            f"copy {100 * row.share:4.0f}%   {others}")


def table(titles: Iterable[str], lines: Iterable[Iterable[object]], left: int = 1) -> Iterator[str]:
    """A table in Markdown, whose first columns are text."""
    titles = list(titles)
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * left}{'--:|' * (len(titles) - left)}"
    for cells in lines:
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""


Kind = tuple[str, str, str, int]


def parts(rows: list[Row]) -> Iterator[tuple[Kind, list[Row]]]:
    """The rows by dtype, layout, start and threads."""
    threads = sorted({row.threads for row in rows})
    for kind in product(FLOATS + BYTES, LAYOUTS, STARTS, threads):
        part = [row for row in rows if row[1:5] == kind]
        if part:
            yield kind, part


def summary(rows: list[Row]) -> Iterator[list[object]]:
    """Medians and the worst row of each part."""
    for kind, part in parts(rows):
        raced = sorted((row for row in part if row.peer), key=lambda row: row.speedup)
        ratios = [row.speedup for row in raced]
        slower, holes = (sum(ratio < limit for ratio in ratios) for limit in (EVEN, HOLE))
        worst = f"{times(ratios[0])} {raced[0].workload}" if raced else "-"
        share = f"{100 * median(row.share for row in part):.0f} %"
        yield [*kind, len(raced), times(median(ratios) if ratios else None), worst, slower, holes, share]


Key = tuple[str, str, str, str, int]


def second_thread(rows: list[Row]) -> dict[Key, float]:
    """The speed-up over one thread of each row with more threads."""
    alone = {row[:4]: row.best[OURS] for row in rows if row.threads == 1}
    return {row[:5]: alone[row[:4]] / row.best[OURS] for row in rows if row.threads > 1 and row[:4] in alone}


def bounds(rows: list[Row]) -> Iterator[list[object]]:
    """The worst ratio to the simpler workload for each workload with a bound."""
    ours = {row[:5]: row.best[OURS] for row in rows}
    for (large, small), limit in BOUNDS.items():
        ratios = [(ours[large, *key] / seconds, key) for (name, *key), seconds in ours.items()
                  if name == small and (large, *key) in ours]
        if ratios:
            worst, (dtype, layout, start, threads) = max(ratios)
            yield [large, small, times(limit), times(median(ratio for ratio, _ in ratios)), times(worst),
                   f"{dtype}, {layout}, {start}, {threads} threads"]


PLACE = ("workload", "dtype", "channels", "arrays", "threads")


def place(row: Row) -> list[object]:
    """The cells that identify a row."""
    return [row.workload, row.dtype, row.layout, row.start, row.threads]


def full(rows: list[Row]) -> Iterator[str]:
    """All times, in a table for each dtype, layout, start and number of threads."""
    scaling = second_thread(rows)
    for (dtype, layout, start, threads), part in parts(rows):
        yield f"### {dtype}, channels {layout}, {start} arrays, {threads} thread{'s' * (threads > 1)}\n"
        titles = ["workload", OURS, *PEERS, COPY, "speed-up", "of copy"]
        yield from table(titles + ["over 1 thread"] * (threads > 1), (
            [row.workload, *(f"**{microseconds(row.best.get(name))}**" if name == row.peer
                             else microseconds(row.best.get(name)) for name in (OURS, *PEERS, COPY)),
             times(row.speedup), f"{100 * row.share:.0f} %", *[times(scaling.get(row[:5]))] * (threads > 1)]
            for row in part))


def markdown(rows: list[Row], facts: dict[str, str]) -> str:
    """The whole page of results."""
    return "\n".join([PREFACE, *table(("", ""), facts.items(), 2), *sections(rows), "## All rows\n", *full(rows)])


def sections(rows: list[Row]) -> Iterator[str]:
    """Summaries of the rows, with the best-known peers first."""
    for title in GROUPS:
        chosen = [row for row in rows if row.group == title]
        if chosen:
            yield f"## Against the fastest peer: {title}\n"
            yield from table(("dtype", "channels", "arrays", "threads", "rows raced", "median", "worst",
                              f"below {EVEN}", f"below {HOLE}", "median of copy"), summary(chosen), 3)
    slower = sorted((row for row in rows if row.peer and row.speedup < EVEN), key=lambda row: row.speedup)
    yield f"## Slower than a peer by more than 3 %: {len(slower)} of {sum(row.peer is not None for row in rows)}\n"
    yield from table((*PLACE, "speed-up", "peer"),
                     ([*place(row), times(row.speedup), row.peer] for row in slower), 4)
    yield f"## Furthest from the copy: {SLOWEST} rows\n"
    yield from table((*PLACE, "of copy", "GB/s"), (
        [*place(row), f"{100 * row.share:.1f} %", f"{row.bytes / row.best[OURS] / 1e9:.2f}"]
        for row in sorted(rows, key=lambda row: row.share)[:SLOWEST]), 4)
    yield "## Large windows, dilation, many axes\n"
    yield from table(("workload", "against", "bound", "median", "worst", "where"), bounds(rows), 2)
    scaling = second_thread(rows)
    if scaling:
        ordered = sorted(scaling.items(), key=lambda item: item[1])
        yield f"## More threads over one: median {times(median(scaling.values()))}, and the worst {SLOWEST} rows\n"
        yield from table((*PLACE, "over 1 thread"), ([*key, times(ratio)] for key, ratio in ordered[:SLOWEST]), 4)


PREFACE = """# Results

Made by `python -m benchmarks.race --markdown FILE` with the options below; `docs/benchmarking.md` says how it measures
and how to read it. Times are microseconds per call, each the best of several rounds. The fastest peer is bold, and the
speed-up is its time divided by onnxpool's. *Arrays* are as NumPy allocates them, or *aligned* to cache lines. *Copy* is
the time to copy as many bytes as the call reads and writes, with the same number of threads. *Of copy* is that time
divided by onnxpool's. It can exceed 100 % if little is written.
"""
