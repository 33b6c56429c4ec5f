"""Random calls on any fitting route have the same bits as on the general route, and together they run every loop."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from .figures import Figure, none

QUICK, FULL = 3000, 60_000
QUICKLY = 0.85  # minimum share of all loops that a quick run meets
SHARE = 250  # calls per task
GENERAL = "direct"  # the route that takes windows of any kind
THREADS = (1, 2, 3)
FORMS = ("rows", "lanes", "rows made lanes")
ONLY = {"slide": FORMS[1:], "short": FORMS[:1], "disjoint": FORMS[:2], "folded": FORMS[:1]}  # forms that a solver fits

Results = tuple[Any, ...]
Drawn = tuple[Any, tuple[Any, ...]]  # an operator and its inputs


class Always(dict[str, Any]):
    """Replaces `ways.learned`, which plans ask, as if measurements had shown the same way for every problem."""

    def __init__(self, way: Any) -> None:
        super().__init__()
        self.way = way

    def __bool__(self) -> bool:
        return True

    def get(self, key: str, default: Any = None) -> Any:
        """The same way for each problem."""
        return self.way


@contextmanager
def on(way: Any, loops: Counter[str]) -> Iterator[None]:
    """Take this way wherever it fits, in plans of the block, and count the loops that run."""
    from onnxpool import clear_caches
    from onnxpool.planning import layout

    pool_of = layout.pool_of

    def watched(*given: Any) -> Any:
        pool = pool_of(*given)
        form, (first, *again) = pool.setup.form, [stage.unit for stage in pool.setup.stages]
        loops.update([f"{first}, {FORMS[2 if form.apart else form.lane.size > 1]}",
                      *(f"{unit}, again" for unit in again)])
        return pool

    clear_caches()
    learned, layout.learned, layout.pool_of = layout.learned, Always(way), watched
    try:
        yield
    finally:
        layout.learned, layout.pool_of = learned, pool_of
        clear_caches()


def draw_windows(rng: Any) -> Drawn:
    """Random windows that reach all kinds of loops, in both layouts of ONNX or along named axes."""
    import ml_dtypes
    import numpy as np
    from cases_axes import INTEGERS, elements
    from problems import (
        adjacent_problem,
        disjoint_problem,
        far_problem,
        random_problem,
        short_problem,
        sliding_problem,
        stacked_problem,
        values,
    )

    import onnxpool
    from onnxpool.planning.layout import REGISTER

    floats = [np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
    name, named = str(rng.choice(["MaxPool", "MinPool", "AveragePool", "LpPool"])), bool(rng.integers(2))
    name = name if named else name.replace("Min", "Max")
    integers = {"LpPool": (), "AveragePool": INTEGERS[:9] * named}.get(name, INTEGERS if named else INTEGERS[:2])
    dtypes = [*floats, *integers]
    dtype = dtypes[rng.integers(len(dtypes))]
    held = dtype.itemsize if "M" in name else max(4, dtype.itemsize)
    drawers = (random_problem, random_problem, sliding_problem, far_problem, disjoint_problem, stacked_problem,
               lambda rng: short_problem(rng, dtype),
               lambda rng: adjacent_problem(rng, REGISTER // held, "max" if "M" in name else "mean"))
    shape, given = drawers[rng.integers(len(drawers))](rng)
    known = dtype in floats or (dtype.kind in "iu" and dtype.itemsize == 1)
    x = values(rng, shape, dtype, odd=bool(rng.integers(2))) if known else elements(rng, shape, dtype)
    if dtype in floats and rng.random() < 0.3:  # then identities and padding may exceed all elements
        x = -np.abs(x)
    if name == "AveragePool" and dtype in floats and rng.random() < 0.3:  # sums leave the range of most dtypes
        with np.errstate(over="ignore"):
            x = x * dtype.type(2.0 ** {"float16": 8, "float64": 1000}.get(dtype.name, 120))
    last = bool(rng.integers(2))
    x = np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x
    first = 1 if last else 2
    given |= {"axes": tuple(range(first, first + x.ndim - 2))} if named else {"channels_last": last}
    if name == "LpPool":
        given |= {"p": int(rng.integers(1, 5)) if rng.random() < 0.7 else 1000}
    if name == "AveragePool":
        given |= {"count_include_pad": int(rng.integers(2))}
    if named and name == "AveragePool" and dtype.kind in "iu" and rng.random() < 0.8:
        given |= {"dtype": dtype.name}
    elif named and rng.random() < 0.4:
        given |= {"skipna": True}
    if name in ("MaxPool", "MinPool") and rng.random() < 0.3:
        given |= {"return_indices": True}
    return getattr(onnxpool, name)(**given), (x,)


def draw_planes(rng: Any) -> Drawn:
    """Random whole planes: many small ones or, seldom, one plane of so many bytes that their sum needs 64 bits."""
    import ml_dtypes
    import numpy as np
    from cases_axes import INTEGERS, elements

    import onnxpool

    floats = [np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
    name = str(rng.choice(["GlobalMaxPool", "GlobalMinPool", "GlobalAveragePool", "GlobalLpPool",
                           "QLinearGlobalAveragePool", "QLinearAveragePool"]))
    shape = (int(rng.integers(1, 4)), int(rng.integers(1, 600)), *rng.integers(1, 9, 2).tolist())
    quantised = name.startswith("Q")
    if quantised and rng.random() < 0.05:
        shape = (1, int(rng.integers(1, 4)), 2**12, 2**11 + int(rng.integers(1, 5)))
    dtypes = INTEGERS[:2] if quantised else [*floats, *INTEGERS * ("M" in name)]
    dtype = dtypes[rng.integers(len(dtypes))]
    x = elements(rng, shape, dtype)
    last = bool(rng.integers(2))
    x = np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x
    if quantised:
        windows = {"kernel_shape": [int(rng.integers(1, min(n, 8) + 1)) for n in shape[2:]]} if "Gl" not in name else {}
        scales = (np.float32(0.05), dtype.type(rng.integers(90)), np.float32(0.04), dtype.type(rng.integers(90)))
        return getattr(onnxpool, name)(channels_last=int(last), **windows), (x, *scales)
    more: dict[str, Any] = {"skipna": True} if rng.random() < 0.4 else {}
    if name == "GlobalLpPool":
        more |= {"p": int(rng.choice([1, 2, 3, 1000]))}
    return getattr(onnxpool, name)(axes=(1, 2) if last else (2, 3), **more), (x,)


def draw(seed: int) -> tuple[str, Callable[[int], Results]]:
    """A random call: a description, and a function that makes the call on a number of threads."""
    import numpy as np
    from calls import INDICES, QLINEAR_AVERAGE, SLIDING, SeededChoices
    from calls_family import draw_call
    from cases_axes import varied_case

    import onnxpool

    def outputs(result: Any) -> Results:
        return result if isinstance(result, tuple) else (result,)

    rng = np.random.default_rng(seed)
    kind = rng.integers(10)
    if kind == 0:
        planes = ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "QLinearGlobalAveragePool")
        call = draw_call(SeededChoices(seed), (*SLIDING, *planes, INDICES, QLINEAR_AVERAGE))
        return call.describe(), lambda threads: outputs(replace(call, num_threads=threads).run(onnxpool))
    if kind == 1:
        case = varied_case(seed)
        op, inputs = case.make(), (case.x,)
    else:
        op, inputs = draw_planes(rng) if kind < 4 else draw_windows(rng)
    if rng.random() < 0.2:  # a solver may need rows without gaps, where another one does not
        inputs = (np.repeat(inputs[0], 2, axis=-1)[..., ::2], *inputs[1:])
    shown = f"{op} of {inputs[0].dtype}{list(inputs[0].shape)} with strides {inputs[0].strides}"
    return shown, lambda threads: outputs(op(*inputs, num_threads=threads))


def compare(first: int) -> tuple[int, Counter[str], list[str]]:
    """How many calls are valid, the loops that they met, and what is wrong."""
    import numpy as np
    from support import same_bits

    from onnxpool import PoolError, threads
    from onnxpool.planning import solvers, ways

    threads.SERIAL_BYTES = 0  # small calls have teams too
    legal, loops, problems = 0, Counter[str](), []
    for seed in range(first, first + SHARE):
        rng = np.random.default_rng((seed, 1))
        solver = solvers.SOLVERS[rng.integers(len(solvers.SOLVERS))].name
        way = ways.Way(solver, bool(rng.integers(2)), float(rng.choice(ways.ROOMS)))
        what, run = draw(seed)
        try:
            with on(ways.Way(GENERAL, False), Counter()):
                expected = run(1)
        except PoolError:
            continue
        legal, met = legal + 1, Counter[str]()
        with on(way, met):
            found = run(THREADS[rng.integers(len(THREADS))])
        loops += met
        if not all(map(same_bits, found, expected)):
            problems.append(f"seed {seed}, {what} by {'; '.join(met)}, room {way.room}")
    return legal, loops, problems


def known() -> list[str]:
    """All loops, for each unit and form, including loops that recompute results."""
    from onnxpool import kernels
    from onnxpool.planning.solvers import COPY, units

    found = []
    for unit in units():
        solver = unit.name.partition("_")[0]
        if unit.name not in kernels.pools.unit_names() or solver == COPY[0]:
            continue
        if unit.reduction in ("double_mean", "wide"):
            found.append(f"{unit.name}, again")
        else:
            # Planes of bytes whose sums need 64 bits are too large to be moved.
            most = FORMS[:2] if unit.reduction == "long_quantised_mean" else FORMS
            found += [f"{unit.name}, {form}" for form in ONLY.get(solver, most)]
    return found


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Compare calls on all processors."""
    calls = QUICK if quick else FULL
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        shares = list(pool.map(compare, range(seed * 10**7, seed * 10**7 + calls, SHARE)))
    problems = [problem for share in shares for problem in share[2]]
    for problem in problems[:20]:
        print(f"  {problem}")
    yield none("results that differ from the general route", len(problems), sum(share[0] for share in shares), "calls")
    loops = sum((share[1] for share in shares), Counter[str]())
    listed = known()
    unmet = [name for name in listed if not loops[name]]
    if unmet and not quick:
        print(f"  never met: {'; '.join(unmet)}")
    least = min((loops[name], name) for name in listed)
    yield Figure("loops met", len(listed) - len(unmet), len(listed), "loops",
                 least=len(listed) * (QUICKLY if quick else 1), note=f"the least often, {least[0]} times: {least[1]}")
