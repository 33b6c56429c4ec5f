"""Time the routes of pools against each other, print the regrets of the choices, and fit the costs.

    python tools/measure_routes.py [--quick] [--cases N] [--minutes M] [--seed S] [--fit]
                                   [--save FILE | --load FILE ...]

The pools are the workloads of `benchmarks/workloads.py` and random pools, in all dtypes, both layouts, and batches of 1
and 8. The script forces and times every route that applies, with one thread. The regret of a choice is its time divided
by the fastest route's. The script prints the geometric mean and the worst regrets. T marks routes that first transpose
channels to make them adjacent. With --fit, the output ends with the costs for `planning/costs.py`, for the register
width of the instruction set in use, and with the regrets of these costs. --save stores the times, so that --load can
try other formulas on them.
"""

import argparse
import itertools
import math
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import onnxpool
from onnxpool import kernels
from onnxpool.constants import FEW
from onnxpool.planning import layout, planner, solvers, ways
from onnxpool.planning.costs import COSTS, MOVED, SHARED, prices

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import zoo
from benchmarks.race import chance
from benchmarks.workloads import BYTES, FLOATS, LAYOUTS, WORKLOADS, Workload, array, further, lay

REDUCING = ("MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool",
            "QLinearAveragePool", "QLinearGlobalAveragePool")
BATCHES = (1, 8)
MOST = 1 << 25  # bytes of an input
CHUNK = 3e-4  # seconds for which a route runs before the next route does
ROUNDS, LEAST_ROUNDS, MOST_SECONDS = 15, 7, 0.1  # runs of a route; fewer if all runs of a case take this long
STOLEN = 3e-2  # seconds that other processes may take from a run
HOPELESS = 4.0  # a route that takes this many times as long as another, beyond stolen time, does not run again
UNLIKELY = 30  # a route that costs this many times as much as another is not tried
DOUBTFUL, CONFIRMED = 1.1, 4  # larger regrets may be noise, so they are measured up to this many times
QUICK, SMALL = 12, 1 << 20  # number of pools in a quick run, and maximum taps of each
FILES = {solver.name: solver.file for solver in solvers.SOLVERS
         if solver.file in prices(layout.REGISTER, solver.whole)}
# Parameters of a fit: the number of steps, and their rate; the weight of errors; as logarithms, the error above which
# errors count less, the greatest regret that counts, and the difference of costs below which a choice is uncertain; and
# the pull towards old costs.
TURNS, RATE, ERRORS, MOST_ERROR, MOST_LOST, UNCERTAIN, KEPT = 1500, 0.01, 0.3, 0.3, 1.5, 0.07, 1e-5
COUNTED = (1.03, 1.1, 1.3)  # regrets above these are counted


class Case(NamedTuple):
    """A pool of an array."""

    name: str
    work: Workload
    dtype: str
    layout: str

    def __str__(self) -> str:
        given = " ".join(f"{name}={value}" for name, value in self.work.attributes.items())
        return f"{self.name} {self.work.operator} {self.dtype} {self.layout} {self.work.shape} {given}"

    @property
    def bytes(self) -> int:
        """The size of the input."""
        return math.prod(self.work.shape) * array((), self.dtype).itemsize

    def of_batch(self, size: int) -> "Case":
        """The pool with this many images, or fewer if they are too large."""
        images = max(1, min(size, MOST * self.work.shape[0] // self.bytes))
        return self._replace(work=self.work._replace(shape=(images, *self.work.shape[1:])))


class Run(NamedTuple):
    """A forced route, and its time per call in seconds."""

    planar: bool  # whether strided channels are made adjacent
    solver: str
    seconds: float


class Timed(NamedTuple):
    """A case with all of its routes."""

    case: Case
    register: int  # bytes
    request: Any
    memory: Any
    runs: list[Run]

    @property
    def planner(self) -> planner.Planner:
        """The planner, which has the forms to choose from."""
        return layout.planner_of(self.request, *self.memory)

    @property
    def chosen(self) -> tuple[bool, str]:
        """The choice with the lowest costs: whether channels are made adjacent, and the solver."""
        found = self.planner
        solver, place, _ = found.usual
        return found.is_apart(place), solver

    @property
    def regret(self) -> float:
        """The chosen route's time divided by the fastest route's; `UNLIKELY` if the chosen one was not timed."""
        taken = {(run.planar, run.solver): run.seconds for run in self.runs}
        best = min(taken.values())
        return taken.get(self.chosen, UNLIKELY * best) / best


def mixed(rng: np.random.Generator, dtype: str) -> Workload | None:
    """A pool with one workload's shape and another's windows, both slightly changed. None if they do not fit."""
    def one(values: Iterable[Any]) -> Any:
        found = list(values)
        return found[rng.integers(len(found))]

    windowed = [work for work in WORKLOADS.values() if "kernel_shape" in work.attributes and work.operator in REDUCING]
    like = one(windowed)
    rank = len(like.attributes["kernel_shape"])
    shape = one(work.shape for work in WORKLOADS.values() if len(work.shape) == rank + 2)
    sizes = [max(1, round(size * one((0.5, 0.9, 1, 1, 1.1, 1.5)))) for size in shape[2:]]
    channels = max(1, round(shape[1] * one((0.25, 0.5, 0.9, 1, 1.3))))
    attributes = {"dilations": [one((1, 1, 1, 1, 2, 3))] * rank, "ceil_mode": one((0, 0, 1)), **like.attributes}
    kernel = attributes["kernel_shape"]
    if rng.random() < 0.2:
        attributes["strides"] = [one((1, 2, 3, k)) for k in kernel]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, attributes["dilations"], strict=True)]
    if rng.random() < 0.2:
        attributes["pads"] = [one((0, k // 2)) for _ in "be" for k in kernel]
    room = np.add(sizes, np.reshape(attributes.get("pads", [0] * 2 * rank), (2, rank)).sum(0))
    operator = one(("MaxPool", "AveragePool", "LpPool")) if rng.random() < 0.3 else like.operator
    elements = channels * math.prod(sizes)
    if (room < spans).any() or elements > zoo.MOST:
        return None
    known = {"kernel_shape", "strides", "pads", "ceil_mode", *(() if operator.startswith("QLinear") else ["dilations"])}
    given = {name: value for name, value in attributes.items() if name in known}
    if operator == "MaxPool" and rng.random() < 0.1:
        given["return_indices"] = True
    return Workload(operator, (1, channels, *sizes), given)


def tall(rng: np.random.Generator, dtype: str) -> Workload | None:
    """A pool with many taps along at least one axis."""
    rank = int(rng.integers(1, 4))
    taps = [int(2 ** rng.uniform(0, 7)) for _ in range(rank)]
    if max(taps) <= FEW:
        return None
    strides = [max(1, round(k * rng.choice((1, 1, 0.5, 0.2, 0)))) for k in taps]
    sizes = [k + s * int(2 ** rng.uniform(0, 8) - 1) for k, s in zip(taps, strides, strict=True)]
    channels = int(2 ** rng.uniform(0, 11.5))
    if not 1 << 12 < channels * math.prod(sizes) <= zoo.MOST:
        return None
    given = {"kernel_shape": taps, "strides": strides}
    if rng.random() < 0.3:
        given["pads"] = [k // 2 for k in taps] * 2
    return Workload(str(rng.choice(("MaxPool", "AveragePool", "LpPool"))), (1, channels, *sizes), given)


def is_small(case: Case) -> bool:
    """Whether every route takes little time."""
    taps = math.prod(case.work.attributes.get("kernel_shape", ()))
    return math.prod(case.work.shape) * taps < SMALL


def random_case(rng: np.random.Generator, name: str) -> Case:
    """A random pool: like a layer of the zoo, a mixture of two workloads, or one with many taps."""
    work, draw = None, (chance.pool, mixed, tall)[rng.choice(3, p=(0.4, 0.4, 0.2))]
    while work is None:
        work = draw(rng, str(rng.choice(FLOATS + BYTES)))
    return Case(name, work, str(rng.choice(work.dtypes)), str(rng.choice(LAYOUTS))).of_batch(int(rng.choice(BATCHES)))


def listed() -> list[Case]:
    """The workloads."""
    return [Case(name, work, dtype, axes).of_batch(batch) for name, work in WORKLOADS.items()
            if work.operator in REDUCING and not work.memory
            for dtype, axes, batch in itertools.product(work.dtypes, LAYOUTS, BATCHES)]


def cases(seed: int) -> Iterator[Case]:
    """Workloads, each with a random pool after it. Different seeds share no random pool."""
    rng, known = np.random.default_rng(seed), listed()
    for number, index in enumerate(rng.permutation(len(known))):
        yield known[index]
        yield random_case(rng, f"{seed}:{number}")


def fastest(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The minimum time of each call. Calls alternate in short rounds, so that a busy moment affects all of them."""
    best, counts = [math.inf] * len(calls), [1] * len(calls)
    until = time.perf_counter() + MOST_SECONDS
    for turn in range(rounds + 1):
        if turn > LEAST_ROUNDS and time.perf_counter() > until:
            break
        for i, call in enumerate(calls):
            if turn and best[i] > HOPELESS * min(best) + STOLEN:
                continue
            start = time.perf_counter()
            for _ in range(counts[i]):
                call()
            each = (time.perf_counter() - start) / counts[i]
            counts[i] = max(1, round(CHUNK / each))
            best[i] = min(best[i], each)
    return best


def measured(case: Case, rounds: int) -> Timed | None:
    """Time every route of a case. None if there is no choice."""
    work, last = case.work, case.layout == "last"
    shape = (work.shape[0], *work.shape[2:], work.shape[1]) if last else work.shape
    some = array((1 << 16,), case.dtype)
    x = lay(np.resize(some, work.shape), case.layout, "")
    inputs = further(work.operator, some, work.shape, case.layout)
    operator = getattr(onnxpool, work.operator)(**work.attributes, channels_last=last)
    plans: dict[tuple[bool, str], Any] = {}
    for ways.Forced.lanes, ways.Forced.solver in itertools.product((True, False), FILES):
        plan = operator._make_plan(shape, x.dtype)  # not a cached one
        if plan._form() is None:
            break
        setup = plan._row_major_pool().setup
        plans.setdefault((setup.form.apart, setup.solver), plan)
    ways.Forced.lanes = ways.Forced.solver = None
    if len(plans) < 2:
        return None
    request, memory = plan.request, plan._row_major()
    forms = layout.planner_of(request, *memory)
    cost = {(planar, solver): forms.cost(forms.place_of(planar), solver) for planar, solver in plans}
    most = UNLIKELY * min(cost.values())
    plans = {route: plan for route, plan in plans.items() if cost[route] <= most}
    if len(plans) < 2:
        return None
    y = plan(x, *inputs, num_threads=1)
    calls = [lambda plan=plan: plan(x, *inputs, out=y, num_threads=1) for plan in plans.values()]
    seconds = [math.inf] * len(calls)
    for _ in range(CONFIRMED if rounds > LEAST_ROUNDS else 1):
        seconds = [*map(min, seconds, fastest(calls, rounds))]
        runs = [Run(planar, solver, taken) for (planar, solver), taken in zip(plans, seconds, strict=True)]
        timed = Timed(case, layout.REGISTER, request, memory, runs)
        if timed.regret < DOUBTFUL:
            break
    return timed


def work_of(timed: Timed, run: Run) -> tuple[dict[tuple[str, str], float], float]:
    """The amounts of work in a run, and its nanoseconds, both per register of results."""
    forms = timed.planner
    place = forms.place_of(run.planar)
    channels = math.prod(timed.case.work.shape[:2])
    for dim in forms.forms[place].axes:
        channels *= dim.windows.out
    registers = channels * forms.acc_bytes / (SHARED if timed.request.reduction.whole else timed.register)
    moved, halo = forms.moved(place)
    times = halo if run.planar else 1.0
    work = {(FILES[run.solver], unit): amount * times for unit, amount in forms.amounts(place, run.solver).items()}
    work[MOVED, ""] = moved * times if run.planar else 0.0
    return work, run.seconds * 1e9 / registers


def fit(field: Sequence[Timed]) -> dict[str, dict[str, float]]:
    """
    Costs that minimise regrets, and errors in the relative times of routes.

    Times are compared only within a case, because the machine may be slower during another case. Choices between nearly
    equal costs count as uncertain, so that there is a gradient. Costs without an effect stay as they are.
    """
    known = COSTS[register_of(field)]
    field = [timed for timed in field if all(FILES[run.solver] in known for run in timed.runs)]
    rows = [(case, run, *work_of(timed, run)) for case, timed in enumerate(field) for run in timed.runs]
    units = [(name, unit) for name, costs in known.items() for unit in costs]
    table = np.array([[work.get(unit, 0.0) for unit in units] for _, _, work, _ in rows])
    case, taken = np.array([row[0] for row in rows]), np.log([row[3] for row in rows])
    runs = np.bincount(case)

    def each(values: Any) -> Any:  # for each run, the sum over all runs of its case
        return np.bincount(case, values)[case]

    best = np.full(len(field), np.inf)
    np.minimum.at(best, case, taken)
    lost = np.minimum(taken - best[case], MOST_LOST)
    begin = np.log([known[name][unit] for name, unit in units])
    logs, mean, square = begin.copy(), np.zeros(len(units)), np.zeros(len(units))
    for turn in range(1, TURNS + 1):  # Adam
        parts = table * np.exp(logs)
        costs = parts.sum(1)
        least = np.full(len(field), np.inf)
        np.minimum.at(least, case, costs)
        chance = (costs / least[case]) ** (-1 / UNCERTAIN)
        chance /= each(chance)
        error = np.log(costs) - taken
        error -= each(error) / runs[case]
        slope = error / np.sqrt(1 + (error / MOST_ERROR) ** 2)
        slope = ERRORS * (slope - each(slope) / runs[case]) - chance * (lost - each(chance * lost)) / UNCERTAIN
        gradient = (slope / costs) @ parts / len(field) + KEPT * (logs - begin)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        logs -= RATE * mean / (1 - 0.9**turn) / (np.sqrt(square / (1 - 0.99**turn)) + 1e-8)
    logs += np.median(taken - np.log((table * np.exp(logs)).sum(1)))  # nanoseconds
    found: dict[str, dict[str, float]] = {}
    for (name, unit), value in zip(units, np.exp(logs), strict=True):
        found.setdefault(name, {})[unit] = float(f"{value:.3g}")
    return found


def register_of(field: Sequence[Timed]) -> int:
    """The register width, in bytes, for which these timings were taken."""
    registers = {timed.register for timed in field}
    if len(registers) != 1:
        raise SystemExit(f"The times are for registers of {sorted(registers)} bytes; each width has its own costs")
    return registers.pop()


def name_of(planar: bool, solver: str) -> str:
    """The name of a route, with a T if channels are first transposed to be adjacent."""
    return f"T{solver}" if planar else solver


def summary(field: Sequence[Timed], worst: int) -> None:
    """Print the worst regrets, and the regrets of each kind of case."""
    kinds: dict[str, list[float]] = {}
    lines = []
    for timed in field:
        case, lost, chosen = timed.case, timed.regret, name_of(*timed.chosen)
        times = "  ".join(f"{name_of(run.planar, run.solver)} {run.seconds * 1e6:.1f}" for run in timed.runs)
        lines.append((lost, f"{lost:5.2f}  {times}  chosen {chosen}  {case}"))
        for kind in ("all", "listed" if case.name in WORKLOADS else "random", f"{case.dtype}, channels {case.layout}",
                     chosen):
            kinds.setdefault(kind, []).append(lost)
    print(*(text for _, text in sorted(lines, reverse=True)[:worst]), sep="\n")
    for kind, regrets in kinds.items():
        counts = "  ".join(f"{sum(lost > most for lost in regrets)} above {most}" for most in COUNTED)
        print(f"{kind:24} {math.exp(np.mean(np.log(regrets))):.4f}  worst {max(regrets):.2f}  {len(regrets)} cases  "
              f"{counts}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000, help="number of pools, half of them random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="few rounds of few pools, to test this tool")
    parser.add_argument("--worst", type=int, default=30, help="pools to show")
    parser.add_argument("--fit", action="store_true", help="print the costs of loops, and of making channels adjacent")
    parser.add_argument("--save", type=Path, help="file for the times")
    parser.add_argument("--load", type=Path, nargs="+", help="files with times, instead of measurements")
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no further pool after this time")
    options = parser.parse_args(arguments)
    if options.load:
        field = [timed for file in options.load for timed in pickle.loads(file.read_bytes())]
    else:
        number, rounds = (QUICK, LEAST_ROUNDS) if options.quick else (options.cases, ROUNDS)
        drawn = filter(is_small, cases(options.seed)) if options.quick else cases(options.seed)
        end = time.monotonic() + 60 * options.minutes
        soon = itertools.takewhile(lambda case: time.monotonic() < end, itertools.islice(drawn, number))
        found = (measured(case, rounds) for case in soon)
        field = [timed for timed in found if timed is not None]
    if options.save:
        options.save.write_bytes(pickle.dumps(field))
    summary(field, options.worst)
    if options.fit:
        costs = COSTS[register_of(field)] = fit(field)
        planner.prepare(kernels.units, kernels.REGISTER, kernels.PICKS, register_of(field))
        for name, constants in costs.items():
            print(f'        "{name}": {constants},')
        print("With these costs:")
        summary(field, options.worst)


if __name__ == "__main__":
    main()
