"""The problems with which oneDNN, PyTorch and onnxruntime test their own pools, replayed in every dtype and layout."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .figures import Figure, none

BENCHDNN = Path(__file__).parents[1] / "helpers" / "data" / "benchdnn_pools.txt"
MOST_ELEMENTS = 2**31  # of a problem that is replayed
LEFT_OUT = 5  # problems with more elements
QUICK_TAPS = 10**6  # of a problem of benchdnn in a quick run
QUICK, FULL = 600, 13_000  # problems of MLAS
MLAS_PROBLEMS = 658_349
BYTES, FLOATS = ("int8", "uint8"), ("float32", "float64", "float16", "bfloat16")
SHOWN = 20  # wrong results


class Axis(NamedTuple):
    """A window along an axis. The pad at the end may be negative, which leaves elements out."""

    size: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int

    @property
    def outputs(self) -> int:
        """The number of windows."""
        return (self.size + self.begin + self.end - (self.kernel - 1) * self.dilation - 1) // self.stride + 1


class Problem(NamedTuple):
    """The shape of an input, and its windows."""

    batch: int
    channels: int
    axes: tuple[Axis, ...]

    @property
    def elements(self) -> int:
        """The size of the input."""
        return self.batch * self.channels * math.prod(axis.size for axis in self.axes)

    @property
    def taps(self) -> int:
        """The number of elements in all windows of an image."""
        return self.channels * math.prod(axis.kernel * axis.outputs for axis in self.axes)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of ONNX."""
        return {"kernel_shape": [axis.kernel for axis in self.axes], "strides": [axis.stride for axis in self.axes],
                "dilations": [axis.dilation for axis in self.axes],
                "pads": [axis.begin for axis in self.axes] + [axis.end for axis in self.axes]}


class Expected(NamedTuple):
    """What windows of integers contain, channels first. Windows in the padding have no elements and the place -1."""

    largest: Any
    places: Any
    total: Any
    counts: Any  # of the taps inside the input, for one channel


def without_negative_pads(axis: Axis) -> Axis:
    """The same windows on as much of the input as they need, if the pad at the end is negative."""
    outputs = axis.outputs
    plain = axis._replace(end=max(axis.end, 0))
    return plain if plain.outputs == outputs else plain._replace(size=axis.size + axis.end)


def expected(x: Any, problem: Problem) -> Expected:
    """The maxima, their first places and the sums of all windows, tap by tap."""
    from support import taps

    given = problem.attributes
    window = given["kernel_shape"], given["strides"], given["dilations"], given["pads"]
    low = np.iinfo(x.dtype).min
    places = np.arange(x.size).reshape(x.shape)
    parts = zip(taps(x, *window, value=low), taps(places, *window, value=-1), strict=True)
    largest, best = (part.copy() for part in next(parts))
    for part, place in parts:
        higher = part > largest
        largest[higher], best[higher] = part[higher], place[higher]
    total = sum(part.astype(np.int32) for part in taps(x, *window))
    counts = sum(part.astype(np.int32) for part in taps(np.ones((1, 1, *x.shape[2:]), np.int8), *window))
    return Expected(largest, best, total, np.broadcast_to(counts, largest.shape))


def means(wanted: Expected, taps: int | None) -> Any:
    """The mean of each window, of all its taps or of those inside the input."""
    with np.errstate(invalid="ignore"):
        return wanted.total / (wanted.counts if taps is None else taps)


def wrong_results(problem: Problem, rng: Any, dtypes: tuple[str, ...], threads: int | None) -> Iterator[str]:
    """Compute maxima and means in both layouts. Yield an empty text for a right result, and what is wrong otherwise."""
    from onnxpool_conformance.oracle import DTYPES, covers_all
    from support import to_first, to_last

    import onnxpool

    shape = (problem.batch, problem.channels, *(axis.size for axis in problem.axes))
    whole = rng.integers(-8, 9, shape).astype(np.int16)
    wanted = expected(whole, problem)
    given, every = problem.attributes, math.prod(axis.kernel for axis in problem.axes)
    empty = wanted.counts == 0
    quantised = {key: value for key, value in given.items() if key != "dilations"}
    if covers_all(given, shape[2:]) or any(axis.dilation > 1 for axis in problem.axes):
        quantised = {}  # windows of another formula, and those that QLinearAveragePool lacks
    one, options = np.float32(1), {"num_threads": threads}

    def same(y: Any, values: Any, where: str) -> str:
        y = to_first(y, last)
        equal = y.shape == values.shape and bool(np.all((y == values) | ((y != y) & (values != values))))
        return "" if equal else f"{where} of {name} {'NHWC' if last else 'NCHW'}: {problem}"

    for name, last in itertools.product(dtypes, (False, True)):
        zero = 8 if name == "uint8" else 0
        x = to_last((whole + zero).astype(DTYPES[name]), last)
        nothing = -math.inf if name in FLOATS else np.iinfo(name).min
        largest = np.where(empty, nothing, wanted.largest.astype(np.float64) + zero)
        alone = onnxpool.MaxPool(**given, channels_last=last)
        yield same(alone(x, **options), largest, "maximum")
        y, places = onnxpool.MaxPool(**given, channels_last=last, return_indices=True)(x, **options)
        yield same(y, largest, "maximum with Indices")
        yield same(places, wanted.places, "Indices")
        for taps in (None, every):
            included = int(taps is not None)
            values = means(wanted, taps)
            if name in FLOATS:
                pool = onnxpool.AveragePool(**given, channels_last=last, count_include_pad=included)
                rounded = values.astype(np.float32).astype(DTYPES[name]) if name != "float64" else values
                yield same(pool(x, **options), rounded, f"mean with count_include_pad={included}")
            elif quantised:
                point = DTYPES[name].type(zero)
                pool = onnxpool.QLinearAveragePool(**quantised, channels_last=int(last), count_include_pad=included)
                rounded = np.rint(np.nan_to_num(values).astype(np.float32)) + zero
                yield same(pool(x, one, point, one, point, **options), rounded, f"quantised mean, {included}")


def benchdnn_problems() -> Iterator[Problem]:
    """The problems of the data file."""
    for line in BENCHDNN.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            batch, channels, *rows = line.split()
            axes = []
            for size, kernel, stride, dilation, begin, outputs in (map(int, row.split(",")) for row in rows):
                end = (outputs - 1) * stride + (kernel - 1) * dilation + 1 - size - begin
                axes.append(Axis(size, kernel, stride, dilation, begin, end))
            yield Problem(int(batch), int(channels), tuple(axes))


def mlas_problems() -> Iterator[Problem]:
    """The two-dimensional windows of onnxruntime's exhaustive sweep."""

    def problem(batch: int, channels: int, sizes: Any, kernel: Any, strides: Any, pads: Any) -> Problem:
        rows = zip(sizes, kernel, strides, pads[:2], pads[2:], strict=True)
        return Problem(batch, channels, tuple(Axis(size, k, stride, 1, begin, end)
                                              for size, k, stride, begin, end in rows))

    for width in range(1, 2058):
        yield problem(1, 1, (4, width), (2, 4), (1, 1), (0, 2, 0, 1))
    for sizes in itertools.product((53, 17, 11, 5, 4, 3, 2, 1), repeat=2):
        for kernel in (sizes, (sizes[0], 1), (1, sizes[1])):
            yield problem(1, 1, sizes, kernel, (1, 1), (0, 0, 0, 0))
        for kernel in itertools.product(*(range(1, min(5, size) + 1) for size in sizes)):
            for strides in itertools.product((1, 2, 3), repeat=2):
                for pads in itertools.product(*map(range, kernel * 2)):
                    yield problem(5, 3, sizes, kernel, strides, pads)


def counted(name: str, results: Iterator[str], note: str = "") -> Figure:
    """The figure of wrong results, the first of which are printed."""
    endings = Counter(results)
    right = endings.pop("", 0)
    for text in itertools.islice(endings, SHOWN):
        print(f"  {text}")
    return none(name, sum(endings.values()), right + sum(endings.values()), "results", note)


def benchdnn(seed: int, quick: bool) -> Iterator[Figure]:
    """Every problem of a size that fits, in every dtype and layout, with one image as benchdnn's option `mb=1`."""
    problems = list(benchdnn_problems())
    fitting = [problem._replace(batch=1, axes=tuple(map(without_negative_pads, problem.axes)))
               for problem in problems if problem.elements < MOST_ELEMENTS]
    chosen = [problem for problem in fitting if not quick or problem.taps <= QUICK_TAPS]
    rng = np.random.default_rng(seed)
    dtypes = (*FLOATS, *BYTES)
    results = (text for problem in chosen for text in wrong_results(problem, rng, dtypes, None))
    yield counted("wrong results of benchdnn's problems", results, f"{len(chosen)} problems")
    yield Figure("problems of benchdnn left out", len(problems) - len(fitting), len(problems), "problems",
                 most=LEFT_OUT, note="they have more than 2^31 elements, and need 4 to 17 GB for each array")


def mlas(seed: int, quick: bool) -> Iterator[Figure]:
    """Some problems of the sweep: float32 as there, and another dtype, which each problem draws."""
    problems = list(mlas_problems())
    yield Figure("problems of the sweep of MLAS", len(problems), len(problems), "problems", least=MLAS_PROBLEMS,
                 most=MLAS_PROBLEMS)
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    chosen = draw.sample(problems, QUICK if quick else FULL)
    results = (text for problem in chosen for text in wrong_results(
        problem, rng, ("float32", draw.choice((*FLOATS[1:], *BYTES))), draw.choice((1, 2))))
    yield counted("wrong results of the sweep of MLAS", results, f"{len(chosen)} problems")


def opinfo() -> Iterator[Figure]:
    """PyTorch's samples of its pooling functions, in each dtype that both libraries have."""
    import opinfo as samples

    if not samples.installed():
        print("  torch is not installed, so its samples are left out")
        return
    compared, reasons = Counter[str](), Counter[str]()
    for sample in samples.all_samples():
        problem = samples.compare(sample)
        if sample.reason:
            reasons[sample.reason] += 1
        else:
            compared[problem] += 1
    yield counted("wrong results of PyTorch's samples", compared.elements(), "every sample in each dtype of both")
    yield Figure("samples of PyTorch left out", reasons.total(), reasons.total() + compared.total(), "samples",
                 note=", ".join(f"{count:,}: {reason}" for reason, count in reasons.most_common()))


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Replay all three; PyTorch's samples only in a full run, as importing them takes many seconds."""
    yield from benchdnn(seed, quick)
    yield from mlas(seed, quick)
    if not quick:
        yield from opinfo()
