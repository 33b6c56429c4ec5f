"""Filters: the pools that compute a filter for arrays of one shape and dtype."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import budget
from ..arrays import dtype_name, machine_memory
from ..dtypes import FLOATS
from ..errors import PoolError
from ..kernels.other.extend import Extender, as_doubles, as_integers
from ..keys import made
from ..operators import AveragePool, MaxPool, MinPool
from ..operators.behaviour import results_of
from .borders import Elements, Line, Range, Strip, clamped, constants, elements, frame

if TYPE_CHECKING:
    from ..arrays import Array
    from ..base import Operator

SMALL = 1 << 21  # maximum bytes of arrays that are extended as a whole
STRIP, STRIPS = 1 << 17, 4  # bytes that are copied while a strip is pooled, and for each of its bytes
BLOCK = 1 << 19  # bytes of elements that are copied at a time, unless a window needs more
INDEXING = 4  # temporary numbers for each element beyond an end, each as large as a float64
FEW_BLOCKS, LARGEST_BLOCK = 256, 1 << 24  # blocks of a large array, and maximum elements of each
# Halving an axis of at least LONG windows costs little. Without such an axis, blocks may have LARGE_BLOCK elements.
LONG, LARGE_BLOCK = 16, 1 << 21
MANY = 1 << 8  # taps beyond which integers are converted at once, instead of part by part while they are pooled
MOST_TRUNCATED = 1 << 25  # windows whose means can be truncated have fewer taps
POOLS: dict[str, type[Operator]] = {"maximum": MaxPool, "minimum": MinPool, "uniform": AveragePool}
CLAMPS = {("maximum", False): np.maximum, ("maximum", True): np.fmax,
          ("minimum", False): np.minimum, ("minimum", True): np.fmin}
FLOAT32, FLOAT64, UINT8 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.uint8)

Take = Callable[[Any], Any]  # reads elements of an array
Stores = tuple[tuple[tuple[slice, ...], tuple[slice, ...]], ...]  # parts of a result, and of a pool's result
Run = Callable[["Operator", Any], Any]
Finish = Callable[[Any, Any, Run], Any]  # turns means of elements into results


class FilterError(PoolError, RuntimeError):
    """Error for a value of an argument. SciPy raises a RuntimeError or a ValueError; this error is both."""


class FilterAxisError(FilterError, IndexError):
    """Error for an axis that an array does not have. It is also an IndexError, like NumPy's and SciPy's errors."""


class Step(NamedTuple):
    """A part of a result, computed by pools of a part of the input. None means everything, or nothing to do."""

    places: tuple[Elements, ...]  # the elements of the input, along each axis
    take: Take | None  # reads these elements
    fills: tuple[tuple[slice, ...], ...]  # where these elements are constants
    pools: tuple[Operator, ...]  # called one after the other
    stores: Stores
    finish: Finish | None
    source: np.dtype[Any] | None  # dtype to which elements are converted first
    exact: Step | None  # replaces this step, which takes doubles, if an element's magnitude exceeds `limit`
    limit: float


class Task(NamedTuple):
    """How elements of a dtype become results."""

    source: np.dtype[Any] | None  # dtype to which elements are converted first
    passes: tuple[tuple[Line, ...], ...]  # the windows of each pool, between which results are converted
    means: np.dtype[Any] | None = None
    finish: Finish | None = None
    exact: Task | None = None  # replaces this task if an element's magnitude exceeds `limit`
    limit: float = 0.0


def call(op: Operator, x: Array, num_threads: int | None) -> Any:
    """The result of an operator."""
    return op(x, num_threads=num_threads)


def integers(y: Any, x: Any, run: Run, rounded: Callable[..., Any], dtype: np.dtype[Any] | None) -> Any:
    """Means as whole numbers, of the given dtype unless it is None."""
    y = rounded(y, out=y) if type(y) is np.ndarray and y is not x else rounded(y)
    return y if dtype is None else y.astype(dtype)


def words(y: Any, x: Any, run: Run, dtype: Any = None, truncated: bool = False) -> Any:
    """Means as whole numbers of 64 bits, in place."""
    return as_integers(y, dtype, truncated)


def corrected(y: Any, x: Any, run: Run, op: Any = None, taps: int = 1) -> Any:
    """
    Means of integers, rounded towards zero. `y` has the means rounded to the nearest integers.

    A sum differs from `taps` times the integer nearest to its mean by at most half of `taps`. The exact sums of the
    elements' low bits determine the difference. `op` averages the low bits.
    """
    mask = (1 << taps.bit_length() + 1) - 1
    low = x if mask > np.iinfo(x.dtype).max else x & x.dtype.type(mask)
    rest = (np.rint(run(op, low) * taps).astype(np.int64) - y.astype(np.int64) * taps) & mask
    rest = np.where(rest > mask >> 1, rest - (mask + 1), rest)
    return y - ((rest < 0) & (y > 0)) + ((rest > 0) & (y < 0))


def keeps_order(dtype: np.dtype[Any], output: np.dtype[Any]) -> bool:
    """Whether converting elements of a dtype preserves their order."""
    return np.can_cast(dtype, output, "safe") or dtype_name(output) in FLOATS


def is_element(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether an integer dtype can represent a number."""
    limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return bool(limits[0] <= value <= limits[1]) and value == int(value)


class Filter:
    """
    A filter for arrays of one shape and dtype.

    One pool with padding computes all results whose windows can be clipped. All others, which are at the borders, come
    from pools of strips that are extended according to the mode. Small arrays are extended as a whole.
    """

    def __init__(self, label: str, kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], output: np.dtype[Any],
                 lines: tuple[Line, ...], fill: Any, skipna: bool, truncate: bool) -> None:
        self.label, self.kind, self.shape, self.dtype, self.output = label, kind, shape, dtype, output
        self.lines, self.skipna, self.truncate = lines, skipna, truncate
        self.reach = [1] * len(shape)
        for line in lines:
            self.reach[line.axis] = line.taps
        self.inside = self.border = self._task(dtype)
        if kind == "uniform" and dtype.kind in "biu" and not is_element(fill, dtype):
            self.border = self._task(FLOAT64)._replace(source=FLOAT64)
        with np.errstate(all="ignore"):
            self.fill = np.asarray(fill).astype(dtype if self.border.exact else self.border.source or dtype)
        self.clamps = [place for line in lines for place in clamped(line)]
        self.clamp: Any = CLAMPS.get((kind, skipna))
        one = self.inside
        self.direct = (one.source is None and one.finish is None and one.passes == (lines,) != ((),)
                       and (one.means is None or one.means == output))
        # Conversions to and from floats may warn, and so do comparisons of bfloat16.
        self.warns = ((dtype != output and not {dtype.kind, output.kind} <= set("biu"))
                      or self.border is not self.inside or dtype.isbuiltin != 1)
        taps = math.prod(self.reach)
        if (one.exact or one).finish is corrected and taps >= MOST_TRUNCATED:
            raise FilterError(f"{label}: truncate=True with windows of {taps} elements, but the limit is "
                              f"{MOST_TRUNCATED - 1}; lower size", label, "size", value=taps)
        self.need = budget.Need(math.prod(shape) * output.itemsize, math.prod(shape) * (taps + 1))

    # Planning

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps that compute the result."""
        return tuple(self._steps()) if math.prod(self.shape) else ()

    @cached_property
    def single(self) -> tuple[Take | None, Operator] | None:
        """What reads elements, and the pool of them that is the result, if there is one."""
        step = self.steps[0] if len(self.steps) == 1 and self.direct and not self.warns else None
        return None if step is None or step.source else (step.take, step.pools[0])

    def _task(self, dtype: np.dtype[Any]) -> Task:
        """How elements of a dtype become results."""
        output, lines = self.output, (self.lines,)
        if self.kind != "uniform":
            if keeps_order(dtype, output):
                return Task(None if dtype == output else output, lines)
            return Task(None, (self.lines[:1], self.lines[1:]))  # as in SciPy, which stores the results of each axis
        source = UINT8 if dtype.kind == "b" else None
        elements, of_integers = source or dtype, dtype.kind in "biu"
        finish: Finish | None = None
        if output.kind in "biu":
            finish = partial(integers, rounded=np.trunc if self.truncate else np.rint,
                             dtype=elements if of_integers and elements != output else None)
        if not of_integers:
            means = output if dtype_name(output) in results_of(dtype_name(dtype)) else dtype
            return Task(None, lines, FLOAT64 if finish else means, finish)
        if finish:
            exact = Task(source, lines, elements, corrected if self.truncate and self.lines else None)
        else:
            exact = Task(source, lines, output if dtype_name(output) in results_of(dtype_name(elements)) else FLOAT64)
        if not self.lines or (elements.itemsize <= 2 and exact.finish is None):
            return exact
        # Sums below 2^(digits - 1) are exact. Their quotients are rounded once. A rounded quotient is an integer, or a
        # tie between two integers, only if the exact quotient is.
        bits, taps = 8 * elements.itemsize, math.prod(self.reach)
        if bits == 64:
            return Task(FLOAT64, lines, FLOAT64, finish and partial(words, dtype=elements, truncated=self.truncate),
                        exact, 2.0**52 / taps)
        for floats, digits in ((FLOAT32, 24), (FLOAT64, 53)):
            if taps << bits < 1 << digits - 1:
                return Task(floats if taps > MANY else source, lines, floats, finish)
        return exact

    def _size(self, strip: Strip) -> int:
        """The number of elements that are read for these results."""
        sizes = [end - begin + reach - 1 for (begin, end), reach in zip(strip.ranges, self.reach, strict=True)]
        if strip.gap is not None:
            axis, low, high = strip.gap
            sizes[axis] -= high - low - self.reach[axis] + 1
        return math.prod(sizes)

    def _check_memory(self, size: int) -> None:
        """Refuse to read more elements at once than the machine's memory can hold."""
        if size * FLOAT64.itemsize > machine_memory():
            raise FilterError(f"{self.label}: size of {self.reach} reads {size} elements at once, more than fit "
                              f"into this machine's memory; lower size", self.label, "size", value=tuple(self.reach))

    def _blocks(self, strip: Strip, limit: int) -> Iterator[Strip]:
        """Parts of results that each read at most this many elements, unless windows overlap too much."""
        spans = [end - begin for begin, end in strip.ranges]
        if strip.gap is not None:
            spans[strip.gap.axis] = 0
        long = [axis for axis, (span, reach) in enumerate(zip(spans, self.reach, strict=True)) if span >= LONG * reach]
        axis = long[0] if long else max(range(len(spans)), key=lambda axis: spans[axis] / self.reach[axis], default=0)
        size = self._size(strip)
        if size <= (limit if long else max(limit, LARGE_BLOCK)) or spans[axis] < max(2, self.reach[axis]):
            self._check_memory(size)
            yield strip
            return
        begin, end = strip.ranges[axis]
        for half in ((begin, (begin + end) // 2), ((begin + end) // 2, end)):
            yield from self._blocks(Strip((*strip.ranges[:axis], half, *strip.ranges[axis + 1:]), strip.gap), limit)

    def _steps(self) -> Iterator[Step]:
        inner, strips = frame(self.shape, self.lines)
        everything = self._size(self._everything)
        alike = self.direct and self.border is self.inside
        itemsize = self.dtype.itemsize if alike else FLOAT64.itemsize  # of the widest dtype in use
        limit = max(BLOCK // itemsize, min(everything // FEW_BLOCKS, LARGEST_BLOCK))
        few = sum(STRIP + STRIPS * self._size(strip) * itemsize for strip in strips) if self.direct else BLOCK
        if everything * itemsize <= min(few, SMALL) or (self.direct and not strips):
            yield self.whole()
            return
        if all(begin < end for begin, end in inner):
            if self.direct:  # the results at the borders are replaced
                yield self.step(self._everything, self.inside, clipped=True)
            else:
                yield from (self.step(block, self.inside) for block in self._blocks(Strip(inner), limit))
        for strip in strips:
            yield from (self.step(block, self.border) for block in self._blocks(strip, limit))

    @property
    def _everything(self) -> Strip:
        return Strip(tuple([(0, size) for size in self.shape]))

    def whole(self) -> Step:
        """The step that computes the whole result from the whole array."""
        _, strips = frame(self.shape, self.lines)
        return self.step(self._everything, self.border if strips else self.inside)

    def step(self, strip: Strip, task: Task, *, clipped: bool = False) -> Step:
        """The step that computes these results. With `clipped`, all windows are clipped."""
        places: list[Elements] = [(slice(*one),) for one in strip.ranges]
        fills: list[tuple[slice, ...]] = []
        pads: dict[int, Range] = {}
        for line in self.lines:
            low, high = strip.ranges[line.axis][0] - line.before, strip.ranges[line.axis][1] + line.after
            first, last = (clipped or side for side in line.clipped)
            pads[line.axis] = max(0, -low) if first else 0, max(0, high - line.size) if last else 0
            low, high = max(0, low) if first else low, min(high, line.size) if last else high
            ranges: tuple[Range, ...] = ((low, high),)
            if low < 0 or high > line.size:
                self._check_memory(INDEXING * line.taps)
                if strip.gap is not None and strip.gap.axis == line.axis:
                    ranges = (low, strip.gap.low + line.after), (strip.gap.high - line.before, high)
                fills += constants(line, low, high, sum(end - begin for begin, end in ranges))
            places[line.axis] = elements(line, ranges)
        pools = tuple([self._pool(lines, task.means, pads) for lines in task.passes if lines])
        finish = task.finish
        if finish is corrected:
            finish = partial(corrected, op=self._pool(self.lines, FLOAT64, pads), taps=math.prod(self.reach))
        exact = self.step(strip, task.exact, clipped=clipped) if task.exact else None
        return Step(tuple(places), self._take(places, fills, task), tuple(fills), pools, self._stores(strip), finish,
                    None if exact else task.source, exact, task.limit)

    def _take(self, places: Sequence[Elements], fills: Sequence[tuple[slice, ...]], task: Task) -> Take | None:
        """What reads elements: nothing for all of them, a slice, or a copy, which may be converted in place. It also
        writes constants, unless elements are converted first."""
        crop = tuple([parts[0] for parts in places])
        if task.exact or any(len(parts) > 1 or not isinstance(parts[0], slice) for parts in places):
            converted = task.source is not None and task.exact is None
            return Extender(self.shape, places, () if converted else fills, self.fill).extend
        return None if crop == tuple([slice(0, size) for size in self.shape]) else operator.itemgetter(crop)

    def _stores(self, strip: Strip) -> Stores:
        """Where results are stored, and which results; nothing if all of them are."""
        if strip == self._everything:
            return ()
        place = tuple([slice(*one) for one in strip.ranges])
        if strip.gap is None:
            return (place, ()),
        axis, low, high = strip.gap
        before, size = (slice(None),) * axis, self.shape[axis]
        return tuple([((*place[:axis], slice(begin, end), *place[axis + 1:]), (*before, part)) for begin, end, part in (
            (0, low, slice(0, low)), (high, size, slice(high - size, None)))])

    def _pool(self, lines: Sequence[Line], means: np.dtype[Any] | None, pads: dict[int, Range]) -> Operator:
        """The pool of windows along these lines."""
        given = {} if means is None else {"count_include_pad": 1, "dtype": means}
        sides = [[pads[line.axis][side] for line in lines] for side in (0, 1)]
        return made(POOLS[self.kind], kernel_shape=tuple([line.taps for line in lines]), pads=(*sides[0], *sides[1]),
                    axes=tuple([line.axis for line in lines]), skipna=self.skipna, **given)

    # Running

    def read(self, step: Step, x: Any) -> Any:
        """The elements that a step reads."""
        x = x if step.take is None else step.take(x)
        return x if step.source is None else self.filled(step, x)

    def filled(self, step: Step, x: Any) -> Any:
        """Elements of an array, which may be one of dask, as pools read them."""
        if step.source is not None:
            x = x.astype(step.source)
        for place in step.fills:
            x[place] = self.fill
        return x

    def pooled(self, step: Step, x: Any, run: Run) -> Any:
        """The results of a step, for the elements that it reads."""
        y = x
        for i, op in enumerate(step.pools):
            y = run(op, y.astype(self.output) if i else y)
        return y if step.finish is None else step.finish(y, x, run)

    def clamped(self, y: Any) -> Any:
        """The results, of which results at borders are compared with the constant first."""
        for place in self.clamps:
            compared = y[place]
            if type(y) is np.ndarray:
                self.clamp(compared, self.fill, out=compared)
            else:
                y[place] = self.clamp(compared, self.fill)
        return y

    def __call__(self, x: Array, out: Array | None, num_threads: int | None) -> Array:
        """The result, in an array that may overlap the input, or in a new one."""
        result: Array
        limits = budget.in_force()
        if limits is not budget.NO_LIMITS:
            budget.check(self.label, "input", self.shape, self.need, limits)
        if out is None and self.single is not None:
            take, pool = self.single
            result = pool(x if take is None else take(x), num_threads=num_threads)
            return self.clamped(result) if self.clamps else result
        with np.errstate(all="ignore") if self.warns else nullcontext():
            if out is None and len(self.steps) == 1 and self.steps[0].pools:
                results = self._results(self.steps[0], x, partial(call, num_threads=num_threads))
                result = self.clamped(results.astype(self.output, copy=False))
                return result
            y = np.empty(self.shape, self.output) if out is None or np.may_share_memory(x, out) else out
            self._run(x, y, num_threads)
            if out is not None and y is not out:
                np.copyto(out, y)
        return y if out is None else out

    def _results(self, step: Step, x: Array, run: Run) -> Any:
        """The results of a step, or of the one for elements that it cannot take."""
        part = self.read(step, x)
        if step.exact:
            part = as_doubles(part, step.limit)
            if part is None:
                return self._results(step.exact, x, run)
        return self.pooled(step, part, run)

    def _run(self, x: Array, y: Array, num_threads: int | None) -> None:
        """Store the result in an array that does not overlap the input."""
        run = partial(call, num_threads=num_threads)
        for step in self.steps:
            if not step.stores and self.direct and step.source is None:
                step.pools[0](self.read(step, x), out=y, num_threads=num_threads)
                continue
            results = self._results(step, x, run)
            for place, share in step.stores or ((..., ...),):
                y[place] = results[share]
        self.clamped(y)
