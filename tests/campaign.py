"""Compare the library with the oracle on many random calls: python tests/campaign.py --calls 20000 --seed 1

Every call follows from a seed of its own, which a mismatch prints: --only SEED makes that call again.
"""

import argparse
import math
import secrets
import sys
import time
from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np
from calls import JUNK, SeededChoices, draw_call, make_out
from oracle import GeometryError, expect
from tolerance import judge

import onnxpool

PROGRESS_SECONDS = 10
MOST_REPORTS = 20


class Outcome(NamedTuple):
    """How one call went: the worst error in units of the bound, whether it had to be refused, what is wrong."""

    worst: float = 0.0
    refused: bool = False
    problem: str | None = None


def check(call):
    """Make one call and compare everything about it with the truth."""
    before = call.x.tobytes()
    try:
        truth = expect(call.operator, call.inputs, call.attributes, channels_last=call.channels_last)
    except GeometryError as reason:
        return check_refusal(call, reason)
    out, memory = make_out(call, truth.shape)
    if out is not None and out.size == 0:
        memory = None
    try:
        y = call.run(onnxpool, out)
    except Exception as error:  # any failure of a legal call is a finding
        return Outcome(math.inf, problem=f"raised {type(error).__name__}: {error}")
    if out is not None and y is not out:
        return Outcome(math.inf, problem="did not return out itself")
    if not isinstance(y, np.ndarray):
        return Outcome(math.inf, problem=f"returned {type(y).__name__}, not an array")
    if call.x.tobytes() != before:
        return Outcome(math.inf, problem="wrote to its input")
    worst, problem = judge(truth, y)
    if problem is None and call.out == "strided" and memory is not None:
        out.view(f"u{out.dtype.itemsize}")[...] = int.from_bytes(bytes([JUNK]) * out.dtype.itemsize)
        if memory.tobytes() != bytes([JUNK]) * memory.nbytes:
            return Outcome(math.inf, problem="wrote between the elements of out")
    return Outcome(worst, problem=problem)


def check_refusal(call, reason):
    """Make a call that does not fit its input; the library must say so."""
    try:
        y = call.run(onnxpool)
    except onnxpool.PoolError:
        return Outcome(refused=True)
    except Exception as error:  # any other kind of failure is a finding
        return Outcome(math.inf, True, f"PoolError expected ({reason}), raised {type(error).__name__}: {error}")
    return Outcome(math.inf, True, f"PoolError expected ({reason}), got a result of shape {y.shape}")


class Report:
    """Counts of what was called and how far results were off."""

    def __init__(self):
        self.calls = 0
        self.refused = 0
        self.mismatches = []
        self.counts = defaultdict(Counter)
        self.worst = defaultdict(float)

    def add(self, seed, call, outcome):
        """Count one call."""
        self.calls += 1
        if outcome.problem is not None:
            self.mismatches.append(seed)
            if len(self.mismatches) <= MOST_REPORTS:
                print(f"MISMATCH --only {seed}\n  {call.describe()}\n  {outcome.problem}", flush=True)
            return
        if outcome.refused:
            self.refused += 1
            return
        dtype = call.x.dtype.name
        layout = "channels last" if call.channels_last else "channels first"
        self.counts[call.operator][dtype] += 1
        self.counts[call.operator][layout] += 1
        self.counts[call.operator][f"rank {call.x.ndim - 2}"] += 1
        for kind in (call.memory, f"out {call.out}", call.style):
            self.counts["any operator"][kind] += 1
        self.worst[call.operator, dtype] = max(self.worst[call.operator, dtype], outcome.worst)

    def show(self):
        """Print all counts and the verdict."""
        for operator, counts in self.counts.items():
            print(operator)
            print("   calls: " + ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())))
            errors = [f"{dtype} {error:.3g}" for (name, dtype), error in sorted(self.worst.items()) if name == operator]
            if errors:
                print("   worst error in units of the bound: " + ", ".join(errors))
        print(f"{self.refused} calls had to be refused and were")
        print(f"{self.calls} calls, {len(self.mismatches)} mismatches")


def main(arguments=None):
    """Run a campaign; the exit status is 1 if any call disagrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, help="of the campaign (default: random)")
    parser.add_argument("--only", type=int, metavar="SEED", help="make the one call of this seed")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    seeds = [options.only] if options.only is not None else range(seed * 10**7, seed * 10**7 + options.calls)
    if options.only is None:
        print(f"seed {seed}", flush=True)
    report = Report()
    told = time.monotonic()
    for one in seeds:
        call = draw_call(SeededChoices(one))
        report.add(one, call, check(call))
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"... {report.calls} calls, {len(report.mismatches)} mismatches", flush=True)
    if options.only is not None:
        print(f"{call.describe()}\n{call.x!r}")
    report.show()
    return bool(report.mismatches)


if __name__ == "__main__":
    sys.exit(main())
