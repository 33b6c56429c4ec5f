"""Compare the library with the oracle on many random calls: python tests/oracle/campaign.py --calls 20000 --seed 1

Every call has a seed of its own, which a mismatch prints: --only SEED repeats that call. With --guarded, inputs are
write-protected, and they and results lie next to inaccessible pages, so that a wrong access kills the process. Plans
take a random route among those that fit. The seed is printed before each call.
"""

import argparse
import faulthandler
import math
import secrets
import sys
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "conformance" / "src"))

import numpy as np
from calls import FUNCTIONS, JUNK, SeededChoices, make_out
from calls_axes import EVERY, FUNCTIONS_ALONG_AXES, draw_any
from guarded import Slot, moved
from onnxpool_conformance.oracle import GeometryError, KindError, native
from tolerance import judge
from truths import truths

import onnxpool
from onnxpool import base
from onnxpool.planning.solvers import SOLVERS
from onnxpool.planning.ways import Forced

PROGRESS_SECONDS = 10
GUARDED_PAGES = 1 << 14  # pages for each array; gaps in arrays with many axes need most
MOST_REPORTS = 20


class Outcome(NamedTuple):
    """The outcome of one call: the worst error in units of the bound, whether it had to be refused, what is wrong."""

    worst: float = 0.0
    refused: bool = False
    problem: str | None = None


def check(call, make_out=make_out):
    """Make one call and compare everything about it with the truth."""
    before = contents(call)
    try:
        expected = truths(call)
    except GeometryError as reason:
        return check_refusal(call, reason, before)
    outs, memories = zip(*(make_out(call.out, truth.shape, truth.dtype) for truth in expected), strict=True)
    try:
        given = outs if len(outs) > 1 and outs[0] is not None else outs[0]
        result = call.run(onnxpool, given)
    except Exception as error:  # any failure of a legal call is a finding
        return Outcome(math.inf, problem=f"raised {type(error).__name__}: {error}")
    results = result if len(outs) > 1 else (result,)
    if not isinstance(results, tuple) or len(results) != len(outs):
        return Outcome(math.inf, problem=f"returned {type(result).__name__}, not {len(outs)} arrays")
    if contents(call) != before:
        return Outcome(math.inf, problem="wrote to its input")
    outcomes = [check_result(*row) for row in zip(expected, results, outs, memories, strict=True)]
    return max(outcomes, key=lambda outcome: (outcome.problem is not None, outcome.worst))


@contextmanager
def any_route(choices):
    """Makes plans in the block take a random route, if that route fits."""
    base._plan.cache_clear()
    Forced.solver = choices.pick((None, *(solver.name for solver in SOLVERS)))
    Forced.lanes = choices.pick((None, False, True))
    try:
        yield
    finally:
        Forced.solver = Forced.lanes = None
        base._plan.cache_clear()


class Guards:
    """Slots for the arrays of a call, which begin or end next to an inaccessible page."""

    def __init__(self):
        self.slots = [Slot(GUARDED_PAGES) for _ in range(9)]
        self.outs = [Slot(GUARDED_PAGES) for _ in range(2)]

    def check(self, seed, call):
        """Make a call as `check` does, with ends of arrays and a route that the seed determines."""
        choices = SeededChoices([seed, 1])
        outs = iter(self.outs)

        def make_guarded(kind, shape, dtype):
            slot = next(outs)
            ways = (make_out(way, shape, dtype)[0] for way in (kind, "contiguous"))
            out = slot.copy(next(filter(slot.fits, ways)), choices.chance(60))
            slot.around[...] = JUNK
            return out, slot.around

        inputs, used = moved(call.inputs, self.slots, lambda: choices.chance(60))
        arrays = sum(isinstance(value, np.ndarray) for value in inputs)
        assert len(used) == arrays, "an array has no room between the pages"
        out = choices.pick(("contiguous", "strided")) if call.out == "absent" else call.out
        for slot in used:
            slot.freeze()
        try:
            with any_route(choices):
                return check(replace(call, x=inputs[0], further=tuple(inputs[1:]), out=out), make_guarded)
        finally:
            for slot in used:
                slot.thaw()


def contents(call):
    """The bytes of all arrays among the inputs."""
    return [value.tobytes() for value in call.inputs if isinstance(value, np.ndarray)]


def check_result(truth, y, out, memory):
    """Compare one result with the truth, and check the memory around it."""
    if out is not None and y is not out:
        return Outcome(math.inf, problem="did not return out itself")
    if not isinstance(y, np.ndarray):
        return Outcome(math.inf, problem=f"returned {type(y).__name__}, not an array")
    worst, problem = judge(truth, y if out is None else y.astype(native(y.dtype), copy=False))
    if problem is None and memory is not None and memory is not out and out.size:
        out.view(f"u{out.dtype.itemsize}")[...] = int.from_bytes(bytes([JUNK]) * out.dtype.itemsize)
        if memory.tobytes() != bytes([JUNK]) * memory.nbytes:
            return Outcome(math.inf, problem="wrote between the elements of out")
    return Outcome(worst, problem=problem)


def check_refusal(call, reason, before):
    """Make a call that does not fit its input. The library must refuse it."""
    wanted = onnxpool.PoolTypeError if isinstance(reason, KindError) else onnxpool.PoolError
    try:
        y = call.run(onnxpool)
    except wanted:
        return Outcome(refused=True, problem=None if contents(call) == before else "wrote to its input")
    except Exception as error:  # any other kind of failure is a finding
        return Outcome(math.inf, True, f"a refusal expected ({reason}), raised {type(error).__name__}: {error}")
    shape = y[0].shape if isinstance(y, tuple) else y.shape
    return Outcome(math.inf, True, f"a refusal expected ({reason}), got a result of shape {shape}")


class Report:
    """Counts of calls, and of the errors of their results."""

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
        self.counts[call.operator][dtype] += 1
        self.counts[call.operator][call.layout] += 1
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
    """Run a campaign. The exit status is 1 if any call disagrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, help="of the campaign (default: random)")
    names = (*FUNCTIONS, *FUNCTIONS_ALONG_AXES)
    known = f"of {', '.join(names)} (default: all); repeat them together with --only"
    parser.add_argument("--operators", nargs="+", choices=names, default=EVERY, metavar="OPERATOR", help=known)
    parser.add_argument("--only", type=int, metavar="SEED", help="make the one call of this seed")
    parser.add_argument("--guarded", action="store_true", help="put arrays next to inaccessible pages")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    seeds = [options.only] if options.only is not None else range(seed * 10**7, seed * 10**7 + options.calls)
    if options.only is None:
        print(f"seed {seed}", flush=True)
    report = Report()
    guards = Guards() if options.guarded else None
    faulthandler.enable()
    told = time.monotonic()
    for one in seeds:
        call = draw_any(SeededChoices(one), options.operators)
        if guards is None:
            outcome = check(call)
        else:
            print(one, flush=True)
            outcome = guards.check(one, call)
        report.add(one, call, outcome)
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"... {report.calls} calls, {len(report.mismatches)} mismatches", flush=True)
    if options.only is not None:
        print(f"{call.describe()}\n{call.x!r}")
    report.show()
    return bool(report.mismatches)


if __name__ == "__main__":
    sys.exit(main())
