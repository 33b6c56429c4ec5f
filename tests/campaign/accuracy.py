"""The worst errors of means, norms and interpolated values, beside onnxruntime's and torch's on the same data."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .figures import Figure

QUICK, FULL = 400, 20_000  # calls
SHARE = 50  # calls per task
OURS, ORT, TORCH = "onnxpool", "onnxruntime", "torch"
OPERATORS = ("AveragePool", "GlobalAveragePool", "LpPool", "GlobalLpPool", "RoiAlign")
NEWEST_OPSET = 22  # the newest opset that both the library and onnxruntime compute
LARGE, PLAIN = 5, 50  # percent of the calls: windows of many elements, and windows that every peer has
MOST_P = 7.0
COUNTED_SINCE = 7  # the opset of count_include_pad
LARGE_SIDES, LARGE_KERNELS = (56, 112, 224), (7, 15, 31, 63)
DATA: dict[str, Callable[[Any, Any], Any]] = {
    "positive": lambda rng, shape: rng.random(shape),
    "signed": lambda rng, shape: rng.standard_normal(shape),
}


class Key(NamedTuple):
    """What a worst error describes."""

    operator: str
    dtype: str
    data: str
    who: str


class Worst(NamedTuple):
    """Worst errors: in units of the bound, in u * mean|x|, in ulps of the result; and the number of results."""

    bound: float = 0.0
    relative: float = 0.0
    ulps: float = 0.0
    results: int = 0

    def joined(self, other: Worst) -> Worst:
        """The worse of both, for each error."""
        return Worst(*map(max, self[:3], other[:3]), self.results + other.results)


def drawn(seed: int, operator: str, data: str) -> Any:
    """A valid call with plain data, channels first, in contiguous memory; a few have windows of many elements."""
    from calls import SeededChoices
    from calls_family import draw_call
    from onnxpool_conformance.oracle import native

    choices = SeededChoices(seed)
    call = draw_call(choices, (operator,))
    opset = min(call.opset or NEWEST_OPSET, NEWEST_OPSET)
    shape, attributes = call.x.shape, dict(call.attributes)
    if call.channels_last:
        shape = (shape[0], shape[-1], *shape[1:-1])
    if attributes.get("p", 1) > MOST_P:
        attributes["p"] = type(attributes["p"])(MOST_P)
    windowed = "Roi" not in operator and not operator.startswith("Global")
    if "Roi" not in operator and choices.chance(LARGE):
        side = choices.pick(LARGE_SIDES)
        shape = (1, 2, side, side)
        attributes = {"p": attributes["p"]} if attributes.get("p") in (1, 2) else {}
        if windowed:
            kernel = choices.pick([size for size in LARGE_KERNELS if size <= side])
            attributes |= {"kernel_shape": (kernel, kernel), "strides": (side // 2, side // 2)}
    elif windowed and choices.chance(PLAIN):
        rank = len(shape) - 2
        kernel = tuple(choices.integer(1, min(size, 7)) for size in shape[2:])
        attributes = {name: value for name, value in attributes.items() if name == "p"}
        attributes |= {"kernel_shape": kernel, "strides": tuple(choices.integer(1, 3) for _ in range(rank))}
        if operator == "AveragePool":
            attributes["pads"] = tuple(choices.integer(0, size // 2) for size in kernel) * 2
            if opset >= COUNTED_SINCE:
                attributes["count_include_pad"] = choices.integer(0, 1)
    x = DATA[data](np.random.default_rng(seed), shape).astype(native(call.x.dtype))
    further = tuple(np.array(part, native(part.dtype)) for part in call.further)
    return replace(call, x=x, attributes=attributes, opset=opset, further=further, channels_last=False, memory="C",
                   out="absent", style="object", values=data)


def example_of(call: Any) -> Any:
    """The call as a node."""
    from peers import Example

    rank = call.x.ndim - 2
    attributes = {name: np.broadcast_to(value, rank).tolist() if name == "kernel_shape" else
                  list(value) if isinstance(value, tuple) else value for name, value in call.attributes.items()}
    return Example(call.operator, call.opset, list(call.inputs), attributes)


def results(call: Any) -> Iterator[tuple[str, Any]]:
    """The results of every library that computes the same as onnxpool."""
    from peers import PEERS, installed

    import onnxpool
    from onnxpool.onnx.disagreements import disagreements

    yield OURS, call.run(onnxpool)
    example = example_of(call)
    others = {row.who for row in disagreements(example.case)}  # peers that differ, except for extreme values
    for who in (ORT, TORCH):
        if who not in installed() or not others.isdisjoint((None, who)):
            continue
        if who == TORCH and "Lp" in call.operator and call.values == "signed":
            continue  # torch keeps the signs of odd powers
        with contextlib.suppress(Exception):  # no kernel for the dtype, or another refusal
            answer = PEERS[who](example)(example.inputs)
            if answer is not None:
                yield who, answer[0]


def error_of(value: float, cell: Any, truth: Any) -> tuple[float, float]:
    """The error of a finite value in u * mean|x| (for a norm: of itself; for a sample: of the largest |x|) and in ulps,
    where u is half of the distance from 1 to the next number of the dtype."""
    from onnxpool_conformance.oracle import FORMATS, Mean, Norm

    form = FORMATS[truth.dtype.name]
    u = 2.0**-form.precision
    if isinstance(cell, Mean):
        error = abs(form.units(value) * cell.divisor - cell.total)
        ulp = 1 << max(0, (abs(cell.total) // cell.divisor).bit_length() - form.precision)
        return error / cell.magnitude / u if cell.magnitude else 0.0, error / (cell.divisor * ulp)
    if isinstance(cell, Norm):
        exact = int(cell.value)
        error = abs(form.units(value) - exact)
        return error / exact / u if exact else 0.0, error / (1 << max(0, exact.bit_length() - form.precision))
    error = abs(value - cell.value)
    return error / cell.magnitude / u if cell.magnitude else 0.0, 0.0


def measure(call: Any) -> Iterator[tuple[Key, Worst]]:
    """The worst errors of all libraries' results of a call."""
    from onnxpool_conformance.oracle import GeometryError
    from tolerance import cell_error
    from truths import truths

    try:
        truth, = truths(call)
    except GeometryError:
        return
    for who, y in results(call):
        if y.shape != truth.shape or y.dtype != truth.dtype:
            continue
        numbers = truth.cells_of(np.ascontiguousarray(y)).astype(np.float64).tolist()
        worst = Worst()
        for value, cell in zip(numbers, truth.cells, strict=True):
            if isinstance(cell, float):  # NaN of an empty window
                continue
            finite = math.isfinite(value)
            bound = cell_error(value, cell, truth.dtype.name, truth.p) if who == OURS or not finite else 0.0
            if finite:
                relative, ulps = error_of(value, cell, truth)
            else:  # correct where the true result rounds to infinity
                relative = ulps = 0.0 if bound <= 1 else math.inf
            bound = bound if who == OURS else 0.0
            worst = worst.joined(Worst(bound, relative, ulps, 1))
        yield Key(call.operator, call.x.dtype.name, call.values, who), worst


def share(first: int) -> dict[Key, Worst]:
    """The worst errors of some calls."""
    found: dict[Key, Worst] = {}
    for seed in range(first, first + SHARE):
        operator = OPERATORS[seed % len(OPERATORS)]
        data = [*DATA][seed // len(OPERATORS) % len(DATA)]
        for key, worst in measure(drawn(seed, operator, data)):
            found[key] = found.get(key, Worst()).joined(worst)
    return found


def table(found: dict[Key, Worst]) -> Iterator[str]:
    """The worst errors as Markdown. They are in ulps where nothing cancels: norms, and means of positive numbers."""
    everyone = [OURS, *(who for who in (ORT, TORCH) if any(key.who == who for key in found))]
    columns = [f"{who}: {unit}" for unit in ("u mean\\|x\\|", "ulp") for who in everyone]
    yield f"| operator | dtype | {' | '.join(columns)} | results |"
    yield f"|---|---|{'---:|' * (len(columns) + 1)}"
    for operator, dtype in sorted({key[:2] for key in found}, key=lambda pair: (OPERATORS.index(pair[0]), pair[1])):
        worst = {who: Worst() for who in everyone}
        firm = {who: Worst() for who in everyone}
        for key, each in found.items():
            if key[:2] == (operator, dtype):
                worst[key.who] = worst[key.who].joined(each)
                if "Lp" in operator or ("Average" in operator and key.data == "positive"):
                    firm[key.who] = firm[key.who].joined(each)
        shown = [f"{worst[who].relative:.2f}" if worst[who].results else "-" for who in everyone]
        shown += [f"{firm[who].ulps:.2f}" if firm[who].results else "-" for who in everyone]
        yield f"| {operator} | {dtype} | {' | '.join(shown)} | {worst[OURS].results:,} |"


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Measure random calls on all processors."""
    calls = QUICK if quick else FULL
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        shares = list(pool.map(share, range(seed * 10**7, seed * 10**7 + calls, SHARE)))
    found: dict[Key, Worst] = {}
    for part in shares:
        for key, worst in part.items():
            found[key] = found.get(key, Worst()).joined(worst)
    print("\n".join(f"  {line}" for line in table(found)))
    ours = [worst for key, worst in found.items() if key.who == OURS]
    yield Figure("largest error", max(worst.bound for worst in ours), sum(worst.results for worst in ours), "results",
                 "of the bound", most=1, note=f"(2 log2(K) + 4) u mean|x| for a mean of K taps; {calls:,} calls")
    for who in (ORT, TORCH):
        compared = sum(worst.results for key, worst in found.items() if key.who == who)
        yield Figure(f"results of {who} on the same data", compared, sum(worst.results for worst in ours), "results",
                     note="" if compared else "not installed")
