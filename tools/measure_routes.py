"""Time the routes of windowed operators against each other, print where they cross, and fit the constants of costs.

    python tools/measure_routes.py [--quick] [--fit]

For each case, a line shows the time of each route (T: channels are first transposed to be adjacent) and the one that
is chosen. The end of the output shows how much time the choices lose, and with --fit the costs for
`planning/steps.py` and, for channels that are transposed, `planning/routes.py`.
"""

import argparse
import itertools
import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import onnxpool
from onnxpool.planning import routes, steps

WINDOWS = [  # kernel, stride; the rank is that of the kernel
    ((2, 2), 2), ((3, 3), 1), ((3, 3), 2), ((3, 3), 3), ((5, 5), 1), ((5, 5), 3), ((7, 7), 4), ((13, 13), 1),
    ((31, 31), 1), ((1, 7), 1), ((5, 1), 1), ((3, 3, 3), 1), ((2, 2, 2), 2), ((3, 3, 3), 3), ((2, 2, 2, 2), 2),
    ((3, 3, 3, 3), 1), ((4,), 4), ((25,), 5), ((2,), 2), ((3,), 1),
]
SIZES = {1: [300, 16000], 2: [7, 14, 28, 31, 56, 112], 3: [8, 16, 23], 4: [6, 10]}
CHANNELS = [3, 20, 64, 200]
COSTED = [step for step in steps.STEPS if step.costs]
KINDS = [("MaxPool", "float32"), ("AveragePool", "float32"), ("MaxPool", "uint8"), ("MaxPool", "bfloat16"),
         ("AveragePool", "bfloat16"), ("AveragePool", "float64"), ("LpPool", "float32")]


class Case(NamedTuple):
    operator: str
    dtype: str
    shape: tuple[int, ...]
    attributes: dict[str, Any]


class Run(NamedTuple):
    """A forced route, its work, and its time for each register full of results."""

    name: str
    work: steps.Work
    moved: float
    nanoseconds: float


def cases(quick: bool) -> Iterator[Case]:
    """Problems of at most about 4 MB, which fit into the caches."""
    for (operator, dtype), (kernel, stride) in itertools.product(KINDS[:2] if quick else KINDS, WINDOWS):
        rank = len(kernel)
        for size, channels, last in itertools.product(SIZES[rank], CHANNELS, (False, True)):
            extents = (size,) * rank
            if not 4096 <= channels * size**rank <= 1 << 20:
                continue
            shape = (1, *extents, channels) if last else (1, channels, *extents)
            pads = [(k - 1) // 2 if stride == 1 else 0 for k in kernel]
            yield Case(operator, dtype, shape, {"kernel_shape": kernel, "strides": stride, "pads": (*pads, *pads),
                                                "channels_last": last})


def best(call: Any) -> float:
    call()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def timed(case: Case, x: Any, name: str | None, lanes: bool | None) -> tuple[float, list[steps.Problem]]:
    """The time of a call on a forced route, and the problems for which a route was chosen."""
    routes.Forced.step, routes.Forced.lanes = name, lanes
    chosen, seen = routes.choose, []

    def watched(problem: steps.Problem) -> routes.Choice:
        seen.append(problem)
        return chosen(problem)

    routes.choose = watched
    try:
        plan = getattr(onnxpool, case.operator)(**case.attributes)._make_plan(x.shape, x.dtype)  # not a cached one
        y = plan(x, num_threads=1)
        return best(lambda: plan(x, out=y, num_threads=1)), seen
    finally:
        routes.choose, routes.Forced.step, routes.Forced.lanes = chosen, None, None


def runs_of(case: Case) -> tuple[list[Run], float]:
    """Every route that applies, and the time of the chosen one."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(case.shape) * 30 + 100).astype(getattr(ml_dtypes, case.dtype, case.dtype))
    runs = []
    for lanes, step in itertools.product((None,) if case.attributes["channels_last"] else (False, True), COSTED):
        if lanes is False and not step.by_axis:
            continue  # it handles one element at a time, and is never chosen
        taken, seen = timed(case, x, step.name, lanes)
        problem = seen[-1]
        if not step.fits(problem):
            continue
        results = math.prod(axis.out for axis in problem.axes) * problem.items * problem.lanes
        if not problem.lanes > 1:
            results = math.prod(axis.out for axis in problem.axes) * case.shape[1]
        registers = results * problem.acc_bytes / steps.REGISTER
        moved = routes.moved(problem) if problem.planar else 0.0
        runs.append(Run(step.name, step.work(problem), moved, taken * 1e9 / registers))
    chosen, _ = timed(case, x, None, None)
    return runs, chosen * 1e9 / registers


def fit(runs: list[Run]) -> dict[str, dict[str, float]]:
    """The constants with the smallest relative errors in the times of these runs."""
    units = [*((step.name, unit) for step in COSTED for unit in step.costs), ("moved", "elements")]
    rows = [[{**{(run.name, u): v for u, v in run.work.items()}, ("moved", "elements"): run.moved}
             .get(unit, 0.0) / run.nanoseconds for unit in units] for run in runs]
    kept = list(range(len(units)))
    values = np.zeros(len(units))
    while True:  # least squares; negative costs become 0
        solution = np.linalg.lstsq(np.array(rows)[:, kept], np.ones(len(rows)), rcond=None)[0]
        if min(solution) >= 0:
            break
        del kept[int(np.argmin(solution))]
    values[kept] = solution
    costs: dict[str, dict[str, float]] = {name: {} for name, _ in units}
    for (name, unit), value in zip(units, values, strict=True):
        costs[name][unit] = round(float(value), 2)
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="float32 only")
    parser.add_argument("--fit", action="store_true", help="print the costs of steps, and of making channels adjacent")
    options = parser.parse_args()
    everything, lost = [], []
    for case in cases(options.quick):
        runs, chosen = runs_of(case)
        everything += runs
        fastest = min(run.nanoseconds for run in runs)
        lost.append(math.log(chosen / fastest))
        shown = "  ".join(f"{'T' if run.moved else ''}{run.name} {run.nanoseconds:.1f}" for run in runs)
        kernel, stride = case.attributes["kernel_shape"], case.attributes["strides"]
        print(f"{case.operator} {case.dtype} {case.shape} k={kernel} s={stride}: {shown}  chosen {chosen:.1f}"
              f"{'  <-' if chosen > 1.15 * fastest else ''}", flush=True)
    print(f"The choices take {math.exp(np.mean(lost)):.3f} times as long as the fastest routes (geometric mean).")
    if options.fit:
        for name, costs in fit(everything).items():
            print(f'    "{name}": {costs},')


if __name__ == "__main__":
    main()
