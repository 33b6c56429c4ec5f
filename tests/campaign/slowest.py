"""A search for the slowest call: attributes and data that take longer per element than plain calls of the same shape.

Time may grow with the logarithm of the window size, so it is counted for each level of the tree of a window. Two kinds
of call take longer by nature, and have figures of their own. Calls with Indices, quantised means, and windows that are
much longer than the array visit all elements of windows, so their time is counted for each of these. Norms with a
large `p` call a function for each element, and sums of powers that leave the range of a double are computed again with
separate exponents, so their figure is a time.
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
MOST_GROWTH = 4  # maximum results of a call for each element
MOST_VISITED = 1 << 28  # maximum elements of all windows, for calls that visit each element
MOST_SECONDS = 2.0  # maximum time of a call that is repeated
QUICK, FULL = (400, 60), (6000, 1500)  # calls for each size
MUTATIONS = 0.6  # share of the calls that change the slowest one so far


class Family(NamedTuple):
    """Calls that share a figure, its unit and its target."""

    name: str
    unit: str
    most: float


INDICES = Family("Indices, quantised means, long windows", "times the time of a plain one, per element of a window", 50)
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
        if "Indices" in self.operator or self.operator == "QLinearAveragePool" or self.sparse:
            return INDICES
        powers = self.operator in NORMS and (self.dtype == "float64" or self.attributes.get("p", 2) > 3)
        return POWERS if powers else OTHERS

    @property
    def sparse(self) -> bool:
        """Whether windows are so much longer than the array that their elements are visited one by one."""
        rows = zip(self.attributes.get("kernel_shape", ()), self.attributes.get("dilations", [1] * 3), self.shape[2:],
                   strict=False)
        return any((kernel - 1) * dilation + 1 > 64 + 8 * side for kernel, dilation, side in rows)

    @property
    def taps(self) -> int:
        """The maximum number of elements of a window."""
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
PLAIN_TAPS = 4  # taps of a plain window of two axes
NORMS = ("LpPool", "GlobalLpPool")
FLOATS, BYTES_ONLY = ("float16", "bfloat16", "float32", "float64"), ("int8", "uint8")
WIDER = ("bool", "int16", "uint16", "int32", "uint32", "int64", "uint64")  # along named axes only
TIMES = ("datetime64[s]", "timedelta64[ns]")  # along named axes and for extrema only
OPERATORS = {  # dtypes
    "AveragePool": (*FLOATS, *BYTES_ONLY, *WIDER),
    "MaxPool": (*FLOATS, *BYTES_ONLY, *WIDER, *TIMES),
    "MinPool": (*FLOATS, *BYTES_ONLY, *WIDER, *TIMES),
    "MaxPool with Indices": (*FLOATS, *BYTES_ONLY, *WIDER, *TIMES),
    "MinPool with Indices": (*FLOATS, *BYTES_ONLY, *WIDER, *TIMES),
    "LpPool": FLOATS,
    "GlobalAveragePool": (*FLOATS, *BYTES_ONLY, *WIDER),
    "GlobalMaxPool": (*FLOATS, *BYTES_ONLY, *WIDER, *TIMES),
    "GlobalMinPool": (*FLOATS, *BYTES_ONLY, *WIDER, *TIMES),
    "GlobalLpPool": FLOATS,
    "NhwcMaxPool": BYTES_ONLY,
    "QLinearAveragePool": BYTES_ONLY,
    "QLinearGlobalAveragePool": BYTES_ONLY,
}
OF_ONNX = ("NhwcMaxPool", "QLinearAveragePool", "QLinearGlobalAveragePool")  # without `axes`
KEPT = ("channels_last", "axes", "dtype", "keepdims")  # arguments that the plain call has as well
PADDING = (1 << 16, 1 << 21, 1 << 31)  # paddings for windows that are longer than any array


def shapes(draw: random.Random, elements: int) -> tuple[int, ...]:
    """A shape with about this many elements: images, signals, volumes, many or few channels."""
    rank = draw.choice([1, 2, 2, 2, 3])
    channels = draw.choice([1, 1, 3, 16, 64, 256])
    side = max(1, round((elements / channels) ** (1 / rank)))
    sides = [side] * rank
    if rank == 2 and draw.random() < 0.3:
        sides = [max(1, side // 16), side * 16]
    return (1, channels, *sides)


def along_axes(draw: random.Random, operator: str, dtype: str, rank: int, last: bool) -> dict[str, Any]:
    """Random named axes, and the arguments that only calls with named axes have."""
    axes = [*range(1, 1 + rank)] if last else [*range(2, 2 + rank)]
    found: dict[str, Any] = {"axes": axes if draw.random() < 0.8 else axes[::-1], "skipna": draw.random() < 0.5}
    if operator.startswith("Global"):
        found["keepdims"] = draw.random() < 0.5
    if "Average" in operator and draw.random() < 0.7:
        own = [] if dtype == "bool" else [dtype]
        found["dtype"] = array_dtype(draw.choice([*own, *own, "float64", *["float32"] * (dtype != "float64")]))
    return found


def attributes(draw: random.Random, operator: str, dtype: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """Random arguments for which there are not many more results than elements."""
    found: dict[str, Any] = {"channels_last": operator == "NhwcMaxPool" or draw.random() < 0.4}
    own = operator.startswith(("Min", "GlobalMin"))
    if operator not in OF_ONNX and (dtype in (*WIDER, *TIMES) or own or draw.random() < 0.5 or (
            dtype in BYTES_ONLY and not operator.startswith("MaxPool"))):
        found |= along_axes(draw, operator, dtype, len(shape) - 2, found["channels_last"])
    if not own and draw.random() < 0.3:
        found["opset"] = 1 if operator in OF_ONNX else draw.choice([22, 28])
    if "Lp" in operator:
        found["p"] = draw.choice([1, 2, 3, 7, 1000])
    if "Indices" in operator:
        found |= {"return_indices": True, "storage_order": draw.randint(0, 1)}
    if "Global" in operator:
        return found
    sides = shape[2:]
    dilations = [draw.choice([1, 1, 1, 2, 3, 1 << draw.randrange(20)]) for _ in sides]
    kernel = [max(1, min(draw.choice([1, 2, 3, side, draw.randint(1, side)]), -(-side // dilation)))
              for side, dilation in zip(sides, dilations, strict=True)]
    pads = [draw.choice([0, 0, 1, (size - 1) * dilation // 2, (size - 1) * dilation, 10 * side])
            for size, dilation, side in zip(kernel, dilations, sides, strict=True)]
    strides = [draw.choice([1, 1, 1, 2, size]) for size in kernel]
    if draw.random() < 0.1:
        axis, padding = draw.randrange(len(sides)), draw.choice(PADDING)
        kernel[axis], dilations[axis], pads[axis], strides[axis] = 2 * padding + 1, 1, padding, 1
    found |= {"kernel_shape": kernel, "strides": strides, "ceil_mode": draw.randint(0, 1)}
    found |= {"pads": [*pads, *pads]} if draw.random() < 0.8 else {
        "auto_pad": draw.choice(["NOTSET", "", "SAME_UPPER", "SAME_LOWER", "VALID"])}
    if operator != "QLinearAveragePool":
        found["dilations"] = dilations
    if "Average" in operator:
        found["count_include_pad"] = draw.randint(0, 1)
    return found


def made(attempt: Attempt) -> Any:
    """The operator of an attempt."""
    import onnxpool

    kind = getattr(onnxpool, attempt.operator.split()[0])
    unused = "channels_last" if "axes" in attempt.attributes else None
    return kind(**{name: value for name, value in attempt.attributes.items() if name != unused})


def array_dtype(name: str) -> np.dtype[Any]:
    """The dtype with this name."""
    from oracle_axes import ALL

    found: np.dtype[Any] = ALL[name]
    return found


def array_of(attempt: Attempt, data: str) -> Any:
    """The array of an attempt, in its memory order."""
    dtype = array_dtype(attempt.dtype)
    with np.errstate(all="ignore"):
        values = DATA[data](np.random.default_rng(0), math.prod(attempt.shape))
        if dtype.kind == "b":
            x = values > 0
        elif dtype.kind in "iumM":
            held = np.dtype(np.int64) if dtype.kind in "mM" else dtype
            share = np.clip(np.nan_to_num(values) / 4, 0 if held.kind == "u" else -1, 1)
            x = (share * (np.iinfo(held).max // 2 + 1 - (held.itemsize < 8))).astype(held).view(dtype)
        else:
            x = values.astype(dtype)
        x = x.reshape(attempt.shape)
    return np.ascontiguousarray(np.moveaxis(x, 1, -1)) if attempt.attributes["channels_last"] else x


def further_of(operator: Any, x: Any) -> tuple[Any, ...]:
    """The inputs after x: scales and zero points."""
    scale = np.float32(0.5)
    return (scale, x.dtype.type(1), scale, x.dtype.type(1)) if operator.quantised else ()


def seconds(operator: Any, x: Any) -> float:
    """The minimum processor time of a few calls."""
    best, further = math.inf, further_of(operator, x)
    for _ in range(4):
        start = time.thread_time()
        operator(x, *further, num_threads=1)
        best = min(best, time.thread_time() - start)
        if best > MOST_SECONDS:
            break
    return best


class Search:
    """The slowest calls so far, relative to plain calls of the same operator, dtype, shape and layout."""

    def __init__(self, draw: random.Random, size: int) -> None:
        self.draw, self.size = draw, size
        self.plain: dict[tuple[Any, ...], float] = {}
        self.worst: dict[tuple[Family, str, str], tuple[float, Attempt]] = {}
        self.calls = dict.fromkeys((OTHERS, INDICES, POWERS), 0)

    def drawn(self) -> Attempt:
        """A new attempt, or an attempt that differs from a slow attempt in its attributes or data."""
        draw = self.draw
        if self.worst and draw.random() < MUTATIONS:
            _, old = self.worst[draw.choice([*self.worst])]
            if draw.random() < 0.4:
                return old._replace(data=draw.choice([*DATA]))
            other = attributes(draw, old.operator, old.dtype, old.shape)
            other = {name: value for name, value in other.items() if name in old.attributes and name not in KEPT}
            if not other:
                return old._replace(data=draw.choice([*DATA]))
            return old._replace(attributes=old.attributes | {name: other[name] for name in draw.sample([*other], 1)})
        operator = draw.choice([*OPERATORS])
        dtype = draw.choice(OPERATORS[operator])
        shape = shapes(draw, self.size // array_dtype(dtype).itemsize)
        return Attempt(operator, dtype, shape, attributes(draw, operator, dtype, shape), draw.choice([*DATA]))

    def baseline(self, attempt: Attempt) -> float:
        """The time of a call with plain attributes and data."""
        plain = {name: value for name, value in attempt.attributes.items() if name in (*KEPT, "return_indices")}
        key = (attempt.operator, attempt.dtype, attempt.shape, repr(plain))
        if key not in self.plain:
            if "Global" not in attempt.operator:
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
            if results > MOST_GROWTH * x.size or (attempt.family is INDICES and results * attempt.taps > MOST_VISITED):
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
