"""A search for the slowest call: attributes and data that take longer per element than plain ones of the same shape.

Time may grow with the logarithm of the window size, so it is counted for each level of the tree of a window. Two kinds
of call take longer by nature, and have figures of their own. MaxPool with Indices compares all elements of its windows,
so its time is counted for each comparison. Norms with a large `p` call a function for each element, and sums of powers
that leave the range of a double are computed again with separate exponents, so their figure is a time.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .figures import Figure

BYTES = (4096, 1 << 20)
MOST_NANOSECONDS = 1000  # for each element of a norm, and each level
MOST_GROWTH = 4  # results of a call for each element
MOST_SECONDS = 2.0  # of a call that is repeated
QUICK, FULL = (400, 60), (6000, 1500)  # calls for each size
MUTATIONS = 0.6  # share of the calls that change the slowest one so far


class Family(NamedTuple):
    """Calls that share a figure, its unit and its target."""

    name: str
    unit: str
    most: float


INDICES = Family("MaxPool with Indices", "times the time of a plain one, per comparison", 50)
POWERS = Family("norm of doubles, or with p above 3", "ns per element and level", MOST_NANOSECONDS)
OTHERS = Family("any other call", "times the time of a plain one, per element and level", 50)


class Attempt(NamedTuple):
    """A call of a pool on an array of one size."""

    operator: str
    dtype: str
    shape: tuple[int, ...]
    attributes: dict[str, Any]
    data: str

    @property
    def family(self) -> Family:
        """The figure that the call counts for."""
        if "Indices" in self.operator:
            return INDICES
        powers = self.operator in NORMS and (self.dtype == "float64" or self.attributes.get("p", 2) > 3)
        return POWERS if powers else OTHERS

    @property
    def taps(self) -> int:
        """The most elements of a window."""
        kernel, dilations = (self.attributes.get(name, [1] * len(self.shape)) for name in ("kernel_shape", "dilations"))
        return math.prod(min(size, -(-side // dilation))
                         for size, dilation, side in zip(kernel, dilations, self.shape[2:], strict=False))


DATA: dict[str, Callable[[Any, Any], Any]] = {
    "plain": lambda rng, n: rng.standard_normal(n),
    "NaN in a block": lambda rng, n: np.where(np.arange(n) < n // 4, math.nan, rng.standard_normal(n)),
    "scattered NaN": lambda rng, n: np.where(rng.random(n) < 0.3, math.nan, rng.standard_normal(n)),
    "infinities": lambda rng, n: np.where(rng.random(n) < 0.3, rng.choice([math.inf, -math.inf], n), 1.0),
    "largest": lambda rng, n: np.full(n, 1e300) * rng.choice([1, -1], n),
    "subnormal": lambda rng, n: rng.standard_normal(n) * 1e-310,
    "all magnitudes": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(-300, 300, n),
    "zeros": lambda rng, n: np.zeros(n),
}
PLAIN_TAPS = 4  # of a plain window of two axes
NORMS = ("LpPool", "GlobalLpPool")
OPERATORS = {
    "AveragePool": ("float16", "bfloat16", "float32", "float64"),
    "MaxPool": ("float16", "bfloat16", "float32", "float64", "int8", "uint8"),
    "MaxPool with Indices": ("float16", "bfloat16", "float32", "float64", "int8", "uint8"),
    "LpPool": ("float16", "bfloat16", "float32", "float64"),
    "GlobalAveragePool": ("float16", "bfloat16", "float32", "float64"),
    "GlobalLpPool": ("float16", "bfloat16", "float32", "float64"),
}


def shapes(draw: random.Random, elements: int) -> tuple[int, ...]:
    """A shape of about so many elements: images, signals, volumes, many or few channels."""
    rank = draw.choice([1, 2, 2, 2, 3])
    channels = draw.choice([1, 1, 3, 16, 64, 256])
    side = max(1, round((elements / channels) ** (1 / rank)))
    sides = [side] * rank
    if rank == 2 and draw.random() < 0.3:
        sides = [max(1, side // 16), side * 16]
    return (1, channels, *sides)


def attributes(draw: random.Random, operator: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """Attributes of which the results are not many more than the elements."""
    found: dict[str, Any] = {"channels_last": draw.random() < 0.4}
    if "Lp" in operator:
        found["p"] = draw.choice([1, 2, 3, 7, 1000])
    if operator.startswith("Global"):
        return found
    sides = shape[2:]
    dilations = [draw.choice([1, 1, 1, 2, 3, 1 << draw.randrange(20)]) for _ in sides]
    kernel = [max(1, min(draw.choice([1, 2, 3, side, draw.randint(1, side)]), -(-side // dilation)))
              for side, dilation in zip(sides, dilations, strict=True)]
    pads = [draw.choice([0, 0, 1, (size - 1) * dilation // 2, (size - 1) * dilation, 10 * side])
            for size, dilation, side in zip(kernel, dilations, sides, strict=True)]
    found |= {"kernel_shape": kernel, "dilations": dilations, "pads": [*pads, *pads],
              "strides": [draw.choice([1, 1, 1, 2, size]) for size in kernel], "ceil_mode": draw.randint(0, 1)}
    if operator == "AveragePool":
        found["count_include_pad"] = draw.randint(0, 1)
    return found


def made(attempt: Attempt) -> Any:
    """The operator of an attempt."""
    import onnxpool

    kind = getattr(onnxpool, attempt.operator.split()[0])
    return kind(**attempt.attributes, **({"return_indices": True} if "Indices" in attempt.operator else {}))


def array_of(attempt: Attempt, data: str) -> Any:
    """The array of an attempt, in its memory order."""
    from oracle import DTYPES

    with np.errstate(all="ignore"):
        values = DATA[data](np.random.default_rng(0), math.prod(attempt.shape))
        if attempt.dtype in ("int8", "uint8"):
            values = np.clip(np.nan_to_num(values) * 40, 0, 100)
        x = values.astype(DTYPES[attempt.dtype]).reshape(attempt.shape)
    return np.ascontiguousarray(np.moveaxis(x, 1, -1)) if attempt.attributes["channels_last"] else x


def seconds(operator: Any, x: Any) -> float:
    """The least processor time of a few calls."""
    best = math.inf
    for _ in range(4):
        start = time.thread_time()
        operator(x, num_threads=1)
        best = min(best, time.thread_time() - start)
        if best > MOST_SECONDS:
            break
    return best


class Search:
    """The slowest calls so far, relative to plain ones of the same operator, dtype, shape and layout."""

    def __init__(self, draw: random.Random, size: int) -> None:
        self.draw, self.size = draw, size
        self.plain: dict[tuple[Any, ...], float] = {}
        self.worst: dict[tuple[Family, str, str], tuple[float, Attempt]] = {}
        self.calls = dict.fromkeys((OTHERS, INDICES, POWERS), 0)

    def drawn(self) -> Attempt:
        """A new attempt, or one that differs from a slow one in its attributes or data."""
        from oracle import DTYPES

        draw = self.draw
        if self.worst and draw.random() < MUTATIONS:
            _, old = self.worst[draw.choice([*self.worst])]
            if draw.random() < 0.4:
                return old._replace(data=draw.choice([*DATA]))
            other = attributes(draw, old.operator, old.shape) | {"channels_last": old.attributes["channels_last"]}
            return old._replace(attributes=old.attributes | {name: other[name] for name in draw.sample([*other], 1)})
        operator = draw.choice([*OPERATORS])
        dtype = draw.choice(OPERATORS[operator])
        shape = shapes(draw, self.size // DTYPES[dtype].itemsize)
        return Attempt(operator, dtype, shape, attributes(draw, operator, shape), draw.choice([*DATA]))

    def baseline(self, attempt: Attempt) -> float:
        """The time of plain attributes and data."""
        last = attempt.attributes["channels_last"]
        key = (attempt.operator, attempt.dtype, attempt.shape, last)
        if key not in self.plain:
            plain: dict[str, Any] = {"channels_last": last}
            if not attempt.operator.startswith("Global"):
                plain["kernel_shape"] = [min(2, side) for side in attempt.shape[2:]]
            other = attempt._replace(attributes=plain)
            self.plain[key] = seconds(made(other), array_of(other, "plain"))
        return self.plain[key]

    def attempt(self) -> None:
        """Time a call, unless it is refused, or has many more results than elements."""
        import onnxpool

        attempt = self.drawn()
        try:
            operator = made(attempt)
            x = array_of(attempt, attempt.data)
            results = math.prod(operator.output_shape(x.shape))
            if results > MOST_GROWTH * x.size:
                return
            found = self.measured(attempt, seconds(operator, x), max(results, x.size), x.size)
        except onnxpool.PoolError:
            return
        self.calls[attempt.family] += 1
        key = attempt.family, attempt.operator, attempt.dtype
        if found > self.worst.get(key, (0.0,))[0]:
            self.worst[key] = found, attempt

    def measured(self, attempt: Attempt, took: float, results: int, elements: int) -> float:
        """A time in the unit of its family."""
        levels = max(1.0, math.log(attempt.taps, PLAIN_TAPS))
        if attempt.family is POWERS:
            return took / results / levels * 1e9
        ratio = took / self.baseline(attempt) / (results / elements)
        return ratio / max(1.0, attempt.taps / PLAIN_TAPS) if attempt.family is INDICES else ratio / levels


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Search among small and among large inputs."""
    for size, count in zip(BYTES, QUICK if quick else FULL, strict=True):
        search = Search(random.Random(seed), size)
        while sum(search.calls.values()) < count:
            search.attempt()
        for family, calls in search.calls.items():
            times = [worst for (of, *_), worst in search.worst.items() if of is family]
            value, slowest = max(times, key=lambda found: found[0], default=(0.0, None))
            yield Figure(f"slowest {family.name} on {size >> 10} KiB", value, calls, "calls", family.unit,
                         most=family.most, note=f"{slowest}")
