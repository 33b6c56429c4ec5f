"""
Write benchmarks/RESULTS.md, which compares the processors, from the pages of the race in benchmarks/results.

    python tools/write_results.py [--check]

Each page is one measurement. To add a processor, store its page there, named after it:
`python -m benchmarks.race --only '_b1$' --markdown benchmarks/results/zen5.md`. --check only reports a stale summary.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.race.pages import PageRow, Summary, facts, rows, summaries  # noqa: E402
from benchmarks.race.peers import PEERS  # noqa: E402
from benchmarks.race.report import EVEN, HOLE, table, times  # noqa: E402
from benchmarks.race.rounds import COPY, OURS  # noqa: E402
from benchmarks.workloads import GROUPS, LAYOUTS, ZOO  # noqa: E402

FOLDER, PAGE = ROOT / "benchmarks" / "results", ROOT / "benchmarks" / "RESULTS.md"
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8")
WORST = 5  # rows in the list of each processor
PREFACE = f"""# Results by processor

Made by `python tools/{Path(__file__).name}` from the pages of [the race](../docs/benchmarking.md#the-race), which have
all rows, times and versions. A speed-up is the time of the fastest peer divided by onnxpool's. The yardstick is the
zoo, the pooling layers of about 60 networks with a batch of one. Arrays are as NumPy allocates them, or *aligned* to
cache lines, as frameworks allocate them. Pages without a commit were measured before pages had one.

To add a processor, or to replace what is here:

```sh
python -m benchmarks.race --only '_b1$' --markdown benchmarks/results/NAME.md
python tools/{Path(__file__).name}
```
"""


class Measured(NamedTuple):
    """What a page has for one start of arrays."""

    page: Path
    start: str
    summaries: list[Summary]
    zoo: list[PageRow]

    @property
    def cells(self) -> list[object]:
        """The first cells of each line: the processor, which the name of the page begins with, and the arrays."""
        name = self.page.stem.partition("_")[0].replace("-", " ")
        return [re.sub(r"(?<=[a-z])(?=\d)", " ", name).title(), self.start]


def measured() -> Iterator[Measured]:
    """All measurements."""
    for page in sorted(FOLDER.glob("*.md")):
        lines, zoo = summaries(page), [row for row in rows(page) if row.workload in ZOO]
        for start in sorted({line.start for line in lines}, reverse=True):
            yield Measured(page, start, [line for line in lines if line.start == start],
                           [row for row in zoo if row.start == start])


def machines(all_measured: Iterable[Measured]) -> Iterator[list[object]]:
    """What was measured, when and where."""
    for one in all_measured:
        known, (processor, start) = facts(one.page), one.cells
        yield [f"[{processor}](results/{one.page.name})", start, known["date"], known.get("commit", "not recorded"),
               known["processor"], known["instruction set of onnxpool"], known["caches"], known["cores"],
               known["other processes"].removesuffix(" on average").removeprefix("used ")]


def speedups(all_measured: Iterable[Measured]) -> Iterator[list[object]]:
    """The median speed-up of each dtype in the zoo."""
    zoo = next(title for title, works in GROUPS.items() if works is ZOO)
    for one in all_measured:
        known = {(line.channels, line.threads, line.dtype): line.median
                 for line in one.summaries if line.group == zoo}
        for threads, channels in product(sorted({line.threads for line in one.summaries}), LAYOUTS):
            yield [*one.cells, channels, threads, *(known.get((channels, threads, dtype), "-") for dtype in DTYPES)]


def peers(all_measured: Iterable[Measured]) -> Iterator[list[object]]:
    """The median speed-up over each peer, with float32 and one thread."""
    for one, channels in product(all_measured, LAYOUTS):
        part = [row for row in one.zoo if (row.dtype, row.threads, row.channels) == ("float32", 1, channels)]
        ratios = {peer: [row.times[peer] / row.ours for row in part if peer in row.times] for peer in PEERS}
        yield [*one.cells, channels, *(times(median(found) if found else None) for found in ratios.values()),
               f"{100 * median(row.times[COPY] / row.ours for row in part):.0f} %"]


def slower(all_measured: Iterable[Measured]) -> Iterator[list[object]]:
    """The number of rows that are slower than a peer."""
    for one in all_measured:
        for threads in sorted({line.threads for line in one.summaries}):
            part = [line for line in one.summaries if line.threads == threads]
            yield [*one.cells, threads, *(sum(column) for column in zip(
                *((line.raced, line.slower, line.holes) for line in part), strict=True))]


def worst(all_measured: Iterable[Measured]) -> Iterator[list[object]]:
    """The rows that are slowest beside a peer."""
    for one in all_measured:
        raced = sorted((row for row in one.zoo if row.speedup is not None), key=lambda row: row.speedup or 0)
        for row in raced[:WORST]:
            peer = min((name for name in row.times if name in PEERS), key=row.times.__getitem__)
            yield [*one.cells, row.workload, row.dtype, row.channels, row.threads, peer, times(row.speedup)]


def written() -> str:
    """The whole summary."""
    found, place = [*measured()], ("processor", "arrays")
    return "\n".join([
        PREFACE,
        *table((*place, "measured", "commit", "model", "instruction set", "caches", "cores", "other processes"),
               machines(found), 9),
        "## Median speed-up over the fastest peer\n",
        *table((*place, "channels", "threads", *DTYPES), speedups(found), 3),
        "## Median speed-up over each peer, float32, one thread\n",
        "Each median is over the layers that the peer takes. *Of copy* is the time of a copy of the bytes that a call",
        f"reads and writes, divided by {OURS}'s.\n",
        *table((*place, "channels", *PEERS, "of copy"), peers(found), 3),
        "## Rows that are slower than a peer\n",
        "Of all workloads, also those outside the zoo.\n",
        *table((*place, "threads", "rows raced", f"below {EVEN}", f"below {HOLE}"), slower(found), 2),
        f"## The {WORST} slowest rows of the zoo on each\n",
        *table((*place, "workload", "dtype", "channels", "threads", "peer", "speed-up"), worst(found), 7),
    ]).rstrip() + "\n"


def main() -> int:
    """Write the summary, or check that it is that of the committed pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the summary is stale")
    if parser.parse_args().check:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == written():
            return 0
        print(f"{PAGE.relative_to(ROOT)} is stale: run python tools/{Path(__file__).name}", file=sys.stderr)
        return 1
    PAGE.write_text(written(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
