"""Parts: which input a part of a result needs, and how to cut a result into parts of bounded size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from .arrays import Array
from .attributes import integer, shown
from .errors import Place, PoolError, PoolTypeError
from .frozen import Frozen
from .places import renumber

Range = tuple[int, int]  # the first position, and the one after the last


class Part(Frozen):
    """
    Part of a result, with the slices of the input that it needs.

    Create parts with the methods `tile` and `tiles` of a plan, not with this class. Parts are picklable, and any thread
    may call them.

    Parameters
    ----------
    whole : Plan
        Plan of the whole result.
    plan : Plan
        Plan that computes the part.
    inputs, outputs : tuple of slice
        Slices of X that the part reads, and slices of the result that it computes.
    renumbering : tuple, optional
        Arguments of `renumber` that turn indices within the part into indices within X.

    Attributes
    ----------
    inputs : tuple of slice
        Slices of X that the part reads, one per axis.
    outputs : tuple of slice
        Slices of the result that the part computes, one per axis.
    shape : tuple of int
        Shape of ``x[part.inputs]``.
    output_shape : tuple of int
        Shape of ``result[part.outputs]``.
    dtype : numpy.dtype
        Dtype of X.

    See Also
    --------
    Plan.tile : Makes one part.
    Plan.tiles : Makes all parts of a result.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> plan = onnxpool.AveragePool(kernel_shape=3, axes=0, pads=1).plan((6,), np.float32)
    >>> part = plan.tile(slice(3, 5))
    >>> part.inputs
    (slice(2, 6, None),)
    >>> x = np.arange(6, dtype=np.float32)
    >>> part(x[part.inputs]).tolist(), plan(x).tolist()
    ([3.0, 4.0], [0.5, 1.0, 2.0, 3.0, 4.0, 4.5])
    """

    __slots__ = ("_plan", "_renumbering", "_whole", "dtype", "inputs", "output_shape", "outputs", "shape")

    inputs: tuple[slice, ...]
    outputs: tuple[slice, ...]
    shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    _whole: Any
    _plan: Any
    _renumbering: Any

    def __init__(self, whole: Any, plan: Any, inputs: tuple[slice, ...], outputs: tuple[slice, ...],
                 renumbering: Any = None) -> None:
        self._freeze(_whole=whole, _plan=plan, inputs=inputs, outputs=outputs, shape=plan.shape,
                     output_shape=plan.output_shape, dtype=whole.dtype, _renumbering=renumbering)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._whole, "tile", tuple((cut.start, cut.stop) for cut in self.outputs))

    def __repr__(self) -> str:
        return f"<part of {self._whole!r}: {written(self.outputs)} from {written(self.inputs)}>"

    def __call__(self, x: Any, *inputs: Any, out: Any = None, num_threads: int | None = None) -> Any:
        """
        Compute the part.

        Parameters
        ----------
        x : array_like
            ``X[part.inputs]``.
        *inputs : array_like
            Further inputs of the operator, in ONNX order.
        out : ndarray, optional
            Array that receives the result and is returned. A tuple of two for MaxPool with Indices.
        num_threads : int, optional
            Upper limit on the threads of this call. Default is `get_num_threads()`. Calls on less than 512 KiB use
            one thread.

        Returns
        -------
        ndarray, or tuple of two for MaxPool with Indices
            Part of the result, with the same bits as in the whole result. Indices refer to all of X.
        """
        result = self._plan(x, *inputs, out=out, num_threads=num_threads)
        if self._renumbering is not None:
            renumber(result[1], *self._renumbering)
        return result


class Partial(NamedTuple):
    """
    Partial result of a share of the input. `Plan.combine` merges the partial results of all shares.

    Parameters
    ----------
    value : ndarray
        Maximum, minimum, mean or norm of the share, with the shape of the result. For means with `skipna`, a structured
        array of the fields "mean" and "count", the number of elements that are not NaN.
    taps : int
        Number of elements that contribute to each value.

    See Also
    --------
    Plan.combine : Merges partial results.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> plan = onnxpool.GlobalAveragePool(axes=0, keepdims=False).plan((3,), np.float32)
    >>> x = np.array([1, 2, 6], np.float32)
    >>> [(float(value), taps) for value, taps in (share(x[share.inputs]) for share in plan.partials(n=2))]
    [(1.5, 2), (6.0, 1)]
    """

    value: Array
    taps: int


class Share(Part):
    """
    Share of the input of a global operator, which computes a partial result.

    Create shares with the method `partials` of a plan, not with this class.

    Parameters
    ----------
    whole : Plan
        Plan of the whole result.
    plan : Plan
        Plan that reduces the share.
    inputs, outputs : tuple of slice
        Slices of X that the share reads, and slices of the whole result.
    renumbering : tuple, optional
        None, as global operators have no indices.

    See Also
    --------
    Plan.partials : Makes all shares of an input.
    Plan.combine : Merges partial results.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> plan = onnxpool.GlobalMaxPool(axes=0, keepdims=False).plan((6,), np.float32)
    >>> x = np.array([3, 1, 4, 1, 5, 9], np.float32)
    >>> float(plan.combine(share(x[share.inputs]) for share in plan.partials(n=2)))
    9.0
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._whole, "share", tuple((cut.start, cut.stop) for cut in self.inputs))

    def __call__(self, x: Any, *inputs: Any, out: Any = None, num_threads: int | None = None) -> Partial:
        """
        Reduce the share.

        Parameters
        ----------
        x : array_like
            ``X[share.inputs]``.
        *inputs : array_like
            Must be empty: global operators have no further inputs.
        out : ndarray, optional
            Array that receives the values.
        num_threads : int, optional
            Upper limit on the threads of this call. Default is `get_num_threads()`. Calls on less than 512 KiB use
            one thread.

        Returns
        -------
        Partial
            Partial result of the share, for `Plan.combine`.
        """
        import numpy as np

        with np.errstate(all="ignore"):  # elements may be signalling NaNs
            x = self._whole._checked(x, self.shape).astype(self._plan.dtype, copy=False)
        taps = math.prod(axis.size for axis in self._plan.axes)
        y = self._plan(x, *inputs, out=out, num_threads=num_threads)
        return Partial(self._whole._partial(x, y), taps)


def _again(whole: Any, method: str, ranges: tuple[Range, ...]) -> Any:
    slices = tuple(slice(begin, end) for begin, end in ranges)
    return getattr(whole, method)(slices)


def written(slices: Sequence[slice]) -> str:
    """Slices in the notation of subscripts."""
    return f"[{', '.join(f'{cut.start}:{cut.stop}' for cut in slices)}]"


def ranges_of(label: str, slices: Any, shape: tuple[int, ...]) -> list[Range]:
    """Slices of a result of this shape as ranges. Axes without a slice are taken whole."""
    given = slices if isinstance(slices, (tuple, list)) else (slices,)
    if len(given) > len(shape):
        raise PoolError(f"{label}: {len(given)} slices of a result with {len(shape)} axes, shape {shape}; pass one "
                        f"per axis", label, "slices", value=len(given))
    ranges = []
    for axis, cut in enumerate(given):
        try:
            begin, end, step = cut.indices(shape[axis])
        except (AttributeError, TypeError):
            raise PoolTypeError(f"{label}: slices[{axis}] must be a slice of integers, got {shown(cut)}; pass a slice "
                                f"such as slice(0, 4)", label, "slices", axis=axis, value=cut) from None
        if step != 1:
            raise PoolError(f"{label}: slices[{axis}]={cut} has the step {step}; pass a slice with step "
                            f"1", label, "slices", axis=axis, value=step)
        ranges.append((begin, max(begin, end)))
    return [*ranges, *((0, size) for size in shape[len(given):])]


class Limit(NamedTuple):
    """The limit on parts: a minimum number of parts, or their maximum size in bytes."""

    n: int | None
    max_bytes: int | None
    strict: bool = True  # whether to refuse a limit that even the smallest part exceeds

    @classmethod
    def of(cls, label: str, n: Any, max_bytes: Any) -> Limit:
        """Check a limit, which must be exactly one of `n` and `max_bytes`."""
        if (n is None) == (max_bytes is None):
            raise PoolError(f"{label}: {'neither' if n is None else 'both'} of n and max_bytes given; pass one of them",
                            label, "n", value=n)
        if n is not None:
            return cls(integer(Place(label, "n"), n, 1), None)
        return cls(None, integer(Place(label, "max_bytes"), max_bytes, 1))

    def blocks(self, label: str, sizes: Sequence[int], reads: Callable[[int, int], int],
               held: Callable[[list[int]], int]) -> list[int]:
        """
        The size of a block along each axis.

        Parameters
        ----------
        label : str
            Name of the operator in messages.
        sizes : sequence of int
            The size of the result along each axis.
        reads : callable
            Function of an axis and a number of positions: the number of input elements that the positions read.
        held : callable
            Function of a block's size along each axis: the size of the block in bytes.
        """
        blocks = [max(1, size) for size in sizes]

        def growth(axis: int) -> float:
            """The factor by which reads grow if blocks become smaller along an axis, rounded to tenths."""
            size, block = sizes[axis], smaller(blocks[axis])
            return round(reads(axis, block) / block / (reads(axis, size) / size), 1)

        while not self.holds(sizes, blocks, held):
            axis = min((axis for axis, block in enumerate(blocks) if block > 1), default=None, key=growth)
            if axis is None:
                if self.max_bytes is None or not self.strict:
                    break
                raise PoolError(f"{label}: max_bytes={self.max_bytes}, but the smallest part has {held(blocks)} bytes; "
                                f"pass at least that many", label, "max_bytes", value=self.max_bytes)
            blocks[axis] = smaller(blocks[axis])
        return [-(-size // max(1, -(-size // block))) for size, block in zip(sizes, blocks, strict=True)]

    def holds(self, sizes: Sequence[int], blocks: list[int], held: Callable[[list[int]], int]) -> bool:
        """Whether blocks of this size satisfy the limit."""
        if self.max_bytes is not None:
            return held(blocks) <= self.max_bytes
        count = 1
        for size, block in zip(sizes, blocks, strict=True):
            count *= -(-size // block)
        return count >= (self.n or 1)


def smaller(block: int) -> int:
    """The size of a block, reduced by an eighth."""
    return block - max(1, block // 8)


def grid(sizes: Sequence[int], blocks: Sequence[int]) -> Iterator[list[Range]]:
    """The ranges of all blocks, in row-major order."""
    if 0 in sizes:  # other axes may be of any size
        return iter(())
    rows = ([(begin, min(size, begin + block)) for begin in range(0, size, max(1, block))]
            for size, block in zip(sizes, blocks, strict=True))
    return map(list, product(*rows))
