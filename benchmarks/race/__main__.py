"""The command line: python -m benchmarks.race."""

import argparse
import json
import re
import shlex
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from ..workloads import BYTES, FLOATS, LAYOUTS, STARTS, WORKLOADS, Call
from . import machine
from .peers import PEERS, missing
from .problem import Problem
from .report import Row, line, markdown
from .rounds import COPY, FULL, OURS, QUICK, Pace, Timed, copying, race

ENDLESS = 2.0  # seconds: a peer that takes longer on a workload is not measured on it again


class Races:
    """Races that run one after the other, and remember which peers are too slow for a workload."""

    def __init__(self, peers: list[str], pace: Pace) -> None:
        self.peers, self.pace = peers, pace
        self.too_slow: dict[tuple[str, str], float] = {}

    def enter(self, peer: str, workload: str, problem: Problem) -> tuple[Timed | None, str]:
        """A prepared peer whose answer is right, or the reason why it does not take part."""
        if (peer, workload) in self.too_slow:
            return None, f"took {self.too_slow[peer, workload]:.1f} s"
        try:
            prepared = PEERS[peer](problem)
            if prepared is None:
                return None, "has no such operator"
            start = time.perf_counter()
            answer = prepared.call()
            seconds = time.perf_counter() - start
            right = problem.agrees(prepared.result(answer))
        except Exception as error:  # whatever a library raises excludes it from this race
            return None, f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        if seconds > ENDLESS:
            self.too_slow[peer, workload] = seconds
            return None, f"took {seconds:.1f} s"
        return (Timed.calls(prepared.call), "") if right else (None, "gives another result")

    def run(self, workload: str, dtype: str, layout: str, start: str, threads: int) -> Row:
        """Run one race."""
        call = Call(workload, dtype, layout, str(threads), start)
        problem = Problem.of(workload, call, layout)
        entries, left_out = {OURS: Timed.calls(call), COPY: copying(call.bytes, threads)}, {}
        for peer in self.peers:
            entry, reason = self.enter(peer, workload, problem)
            if entry:
                entries[peer] = entry
            else:
                left_out[peer] = reason
        entries[COPY].burst(1)
        return Row(workload, dtype, layout, start, threads, call.bytes, race(entries, self.pace), left_out)


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.race", description="Race onnxpool against the other libraries that are installed.")
    parser.add_argument("--dtypes", nargs="+", choices=FLOATS + BYTES, default=FLOATS + BYTES)
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=LAYOUTS)
    parser.add_argument("--starts", nargs="+", choices=STARTS, default=STARTS[:1],
                        help="arrays as NumPy allocates them, or aligned to cache lines")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--only", metavar="REGEX", default="", help="only workloads whose names match")
    parser.add_argument("--quick", action="store_true", help="one short round: shows that everything runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the times of every round")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write all tables")
    return parser


def selection(asked: argparse.Namespace) -> str:
    """The options that select rows, except for options with default values."""
    named = {name: getattr(asked, name) for name in ("dtypes", "layouts", "starts", "threads", "only")}
    given = [["--" + name, *map(str, [value] if isinstance(value, str) else value)]
             for name, value in named.items() if value != command_line().get_default(name)]
    return shlex.join(word for words in given for word in words)


def chosen(asked: argparse.Namespace) -> Iterator[tuple[str, str, str, str, int]]:
    """The requested races, grouped by workload."""
    for name, work in WORKLOADS.items():
        if re.search(asked.only, name):
            for dtype in filter(asked.dtypes.__contains__, work.dtypes):
                for layout in filter(asked.layouts.__contains__, work.layouts):
                    for start, threads in product(asked.starts, asked.threads):
                        yield name, dtype, layout, start, threads


def main(arguments: list[str] | None = None) -> list[Row]:
    """Race, print and write."""
    asked = command_line().parse_args(arguments)
    reasons = {peer: missing(peer) for peer in asked.peers}
    for peer, reason in reasons.items():
        if reason:
            print(f"{peer} is left out: {reason}", file=sys.stderr)
    races = Races([peer for peer in asked.peers if not reasons[peer]], QUICK if asked.quick else FULL)
    others, start, rows = machine.Others(), time.perf_counter(), []
    for case in chosen(asked):
        rows.append(races.run(*case))
        print(line(rows[-1]), flush=True)
    facts = machine.describe() | {
        "other processes": f"used {others.share():.2f} cores on average",
        "left out of a workload after a call of": ", ".join(
            f"{seconds:.1f} s: {peer}, {name}" for (peer, name), seconds in races.too_slow.items()) or "-",
        "options": selection(asked) or "-",
        "took": f"{(time.perf_counter() - start) / 60:.0f} minutes, {len(rows)} rows",
    }
    print(*(f"{name}: {fact}" for name, fact in facts.items()), sep="\n")
    if asked.json:
        asked.json.write_text(json.dumps({"facts": facts, "rows": [row._asdict() for row in rows]}, indent=1) + "\n")
    if asked.markdown:
        asked.markdown.write_text(markdown(rows, facts))
    return rows


if __name__ == "__main__":
    main()
