"""Dask graphs: the task that computes each chunk of a result, and the pieces of input chunks that it reads."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise, product
from operator import itemgetter
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from ..arrays import Array, as_array, native
from ..base import Operator
from ..errors import PoolError, PoolTypeError
from ..parts import Partial, Range
from ..planning.plan import ReducingPlan
from ..windows import Axis, ceil_div

Shape = tuple[int, ...]
MOST_MERGED = 16  # partial results per merging task
INDEX = np.dtype(np.int64)


class Cut(NamedTuple):
    """The part of a chunk that a task reads, along one axis."""

    size: int  # size of the whole chunk
    begin: int
    end: int


class Piece(NamedTuple):
    """A part of a chunk, along one axis."""

    chunk: int  # number of the chunk
    cut: Cut


def pooled(x: Any, op: Operator, chunks: Any = None, num_threads: int | None = 1) -> Any:
    """The result of an operator on a dask array, as a dask array, or as two with Indices."""
    plan = plan_of(x, op)
    if op.windowed or is_uncut(plan, x.chunks):
        return tiled(x, plan, result_chunks(plan, x.chunks, chunks), num_threads)
    return shared(x, plan, num_threads)


def plan_of(x: Any, op: Operator) -> ReducingPlan:
    """The plan for a dask array. Other objects and arrays of unknown shape are refused."""
    if not isinstance(x, da.Array):
        raise PoolTypeError(f"{op.label}: X is of type {type(x).__module__}.{type(x).__qualname__}, not a dask array; "
                            f"pass dask.array.from_array(x), or pool labelled arrays with onnxpool.xarray",
                            op.label, "X", value=type(x).__name__)
    check_known(op.label, x)
    plan: ReducingPlan = op.plan(x.shape, x.dtype)  # type: ignore[assignment]
    return plan


def check_known(label: str, x: Any) -> None:
    """Refuse dask arrays of unknown shape, and unsupported types of chunks, such as masked arrays."""
    for axis, size in enumerate(x.shape):
        if math.isnan(size):
            raise PoolError(f"{label}: chunk sizes along axis {axis} are unknown; call x.compute_chunk_sizes() first",
                            label, "X", axis=axis, value=size)
    as_array(label, x._meta)


def is_uncut(plan: ReducingPlan, chunks: Sequence[Shape]) -> bool:
    """Whether a single chunk holds everything that decides the bits of each result of a global operator."""
    for line, sizes in zip(plan.lines, map(filled, chunks), strict=True):
        if len(sizes) > 1 and min(sizes) < (line.size if line.windows else line.least):
            return False
    return True


def filled(sizes: Iterable[int]) -> Shape:
    """Chunk sizes without zeros, or (0,) if all sizes are zero."""
    return tuple(size for size in sizes if size) or (0,)


def result_chunks(plan: ReducingPlan, chunks: Sequence[Shape], given: Any) -> tuple[Shape, ...]:
    """
    The chunk sizes of a result.

    By default, chunks of the result follow the chunks of the input: window i belongs to the chunk of element i *
    stride. Windows after the last element belong to the last chunk.
    """
    if given is not None:
        try:
            wanted = normalize_chunks(given, plan.output_shape, dtype=plan.result_dtype)  # type: ignore[no-untyped-call]
            if any(size < 0 for sizes in wanted for size in sizes):
                raise ValueError("a chunk has a negative size")
            return tuple(filled(map(int, sizes)) for sizes in wanted)
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise PoolError(f"{plan.label}: chunks={given!r} do not fit a result of shape {plan.output_shape}: "
                            f"{error}", plan.label, "chunks", value=given) from None
    return tuple(derived(sizes, line.windows) if line.windows else filled(sizes)
                 for line, sizes in zip(plan.lines, chunks, strict=True) if line.kept)


def kept_axes(plan: ReducingPlan) -> list[int]:
    """The axes of the input that the result keeps."""
    return [axis for axis, line in enumerate(plan.lines) if line.kept]


def derived(sizes: Shape, windows: Axis) -> Shape:
    """The chunk sizes of a result along a pooled axis."""
    ends = {min(windows.out, ceil_div(end, windows.stride)) for end in list(accumulate(sizes))[:-1]}
    return tuple(end - begin for begin, end in pairwise(sorted({0, *ends, windows.out})))


def bounds(sizes: Iterable[int]) -> list[int]:
    """The beginnings of chunks, and the end of the last chunk."""
    return [0, *accumulate(sizes)]


def pieces(begins: Sequence[int], begin: int, end: int) -> list[Piece]:
    """The pieces of chunks that make up positions [begin, end)."""
    taken = []
    for chunk in range(max(0, bisect_right(begins, begin) - 1), len(begins) - 1):
        low, high = begins[chunk:chunk + 2]
        if low >= end:
            break
        if max(low, begin) < min(high, end):
            taken.append(Piece(chunk, Cut(high - low, max(low, begin) - low, min(high, end) - low)))
    return taken


class Reads(NamedTuple):
    """The pieces that one chunk of a result reads along an axis of the input."""

    place: int  # number of the chunk
    result: Range  # its position in the result, or an earlier chunk's with the same windows
    pieces: list[Piece]
    sizes: Shape  # sizes of the pieces


def reads(plan: ReducingPlan, chunks: Sequence[Shape], results: Sequence[Shape]) -> Iterator[list[Reads]]:
    """
    For each axis of the input, the reads of all chunks of the result.

    Chunks of the result with the same windows share one range, the first chunk's, unless they have indices.
    """
    wanted = iter(results)
    for line, sizes in zip(plan.lines, chunks, strict=True):
        begins, found = bounds(sizes), []
        first: dict[str, Range] = {}  # the first range of each geometry
        for place, (begin, end) in enumerate(pairwise(bounds(next(wanted) if line.kept else (1,)))):
            low, high, windows = line.part(begin, end)
            own = pieces(begins, low, high)
            geometry = str(begin if plan.reduction.indexed else (high - low, end - begin, windows or begin - low))
            found.append(Reads(place, first.setdefault(geometry, (begin, end)), own,
                               tuple(piece.cut.end - piece.cut.begin for piece in own)))
        yield found


def tiled(x: Any, plan: ReducingPlan, results: tuple[Shape, ...], num_threads: int | None) -> Any:
    """The result in chunks, each of which is a part with the same bits as the whole result."""
    token = tokenize(x.name, repr(plan), results, num_threads)
    name, cuts = f"onnxpool-{type(plan.operator).__name__}-{token}", f"onnxpool-cut-{token}"
    kept = kept_axes(plan)
    graph: dict[Any, Any] = {}
    # The functions that cut pieces, None for whole chunks, and the functions that pool them. Tasks share both.
    crops: dict[Any, Any] = {}
    calls: dict[Any, Any] = {}
    for taken in product(*reads(plan, x.chunks, results)):
        place = tuple([taken[axis].place for axis in kept])
        blocks: list[Any] = []
        for each in product(*[axis.pieces for axis in taken]):
            key = (x.name, *[piece.chunk for piece in each])
            cut = tuple([piece.cut for piece in each])
            if cut not in crops:
                whole = all(begin == 0 and end == size for size, begin, end in cut)
                crops[cut] = None if whole else partial(crop, plan.label, plan.dtype, cut)
            if (cropped := crops[cut]) is not None:
                graph[cuts, *place, len(blocks)] = cropped, key
                key = (cuts, *place, len(blocks))
            blocks.append(key)
        ranges = tuple([taken[axis].result for axis in kept])
        sizes = tuple([axis.sizes for axis in taken])
        if (ranges, sizes) not in calls:
            calls[ranges, sizes] = partial(pool, plan, ranges, sizes, num_threads)
        graph[name, *place] = calls[ranges, sizes], blocks
    y = array_of(name, graph, x, results, plan.result_dtype)
    if not plan.reduction.indexed:
        return y
    both = [(f"onnxpool-{what}-{token}", i) for i, what in enumerate(("values", "indices"))]
    places = list(product(*(range(len(sizes)) for sizes in results)))
    return tuple(array_of(own, {(own, *place): (itemgetter(i), (name, *place)) for place in places}, y, results, dtype)
                 for (own, i), dtype in zip(both, (plan.dtype, INDEX), strict=True))


def array_of(name: str, graph: dict[Any, Any], source: Any, chunks: tuple[Shape, ...], dtype: np.dtype[Any]) -> Any:
    """The dask array made of a graph's tasks of this name."""
    layers = HighLevelGraph.from_collections(name, graph, dependencies=[source])
    return da.Array(layers, name, chunks, meta=np.empty((0,) * len(chunks), dtype))  # type: ignore[no-untyped-call]


def checked(label: str, dtype: np.dtype[Any], shape: Shape, block: Any) -> Array:
    """A chunk as an array, which must have the shape and dtype that dask assumes."""
    array = as_array(label, block)
    if array.shape != shape:
        raise PoolError(f"{label}: a chunk has shape {array.shape}, but the dask array says {shape}; declare the true "
                        f"shape where the array is created", label, "X", value=array.shape)
    if native(array.dtype) != dtype:
        raise PoolTypeError(f"{label}: a chunk has dtype {array.dtype}, but the dask array says {dtype}; declare the "
                            f"true dtype where the array is created", label, "X", value=array.dtype.name)
    return array


def crop(label: str, dtype: np.dtype[Any], cuts: Sequence[Cut], block: Any) -> Array:
    """A piece of a chunk. It is a copy, because a view would keep the whole chunk in memory."""
    array = checked(label, dtype, tuple(cut.size for cut in cuts), block)
    return array[tuple(slice(cut.begin, cut.end) for cut in cuts)].copy()


def pool(plan: ReducingPlan, ranges: Sequence[Range], sizes: Sequence[Shape], num_threads: int | None,
         blocks: Sequence[Any]) -> Any:
    """Compute a chunk of the result from pieces in row-major order, which have these sizes along each axis."""
    part = plan.tile(tuple(slice(*one) for one in ranges))
    x = joined(plan, part.shape, sizes, blocks)
    return part(x, num_threads=num_threads)


def joined(plan: ReducingPlan, shape: Shape, sizes: Sequence[Shape], blocks: Sequence[Any]) -> Array:
    """Pieces joined to one array. It is row-major if the order of sums depends on the memory layout."""
    if len(blocks) == 1:
        x = checked(plan.label, plan.dtype, shape, blocks[0])
        return x if plan.operator.windowed else np.ascontiguousarray(x)
    x = np.empty(shape, plan.dtype)
    places = product(*(list(pairwise(bounds(own))) for own in sizes))
    for place, block in zip(places, blocks, strict=True):
        target = x[tuple(slice(*one) for one in place)]
        target[...] = checked(plan.label, plan.dtype, target.shape, block)
    return x


def shared(x: Any, plan: ReducingPlan, num_threads: int | None) -> Any:
    """The result in chunks, each of which combines partial results of chunks of the input."""
    token = tokenize(x.name, repr(plan), num_threads)
    name, partials = f"onnxpool-{type(plan.operator).__name__}-{token}", f"onnxpool-partial-{token}"
    places, kept = {axis for axis, line in enumerate(plan.lines) if line.windows}, kept_axes(plan)
    numbered = [[Piece(chunk, Cut(size, 0, size)) for chunk, size in enumerate(sizes) if size or not any(sizes)]
                for sizes in x.chunks]
    graph: dict[Any, Any] = {}
    calls: dict[Any, Any] = {}  # the functions that reduce chunks; chunks of equal sizes share one
    for batch in product(*([None] if axis in places else list(enumerate(own)) for axis, own in enumerate(numbered))):
        along = [own if one is None else [one[1]] for one, own in zip(batch, numbered, strict=True)]
        own_plan = plan.operator.plan(tuple(sum(piece.cut.size for piece in own) for own in along), plan.dtype)
        place = tuple(0 if (one := batch[axis]) is None else one[0] for axis in kept)
        keys: list[Any] = []
        for each in product(*along):
            key = (partials, *place, 0, len(keys))
            sizes = tuple(piece.cut.size for piece in each)
            if (own_plan, sizes) not in calls:
                calls[own_plan, sizes] = partial(reduce, own_plan, sizes, num_threads)
            graph[key] = calls[own_plan, sizes], (x.name, *(piece.chunk for piece in each))
            keys.append(key)
        level = 0
        while len(keys) > MOST_MERGED:
            level += 1
            groups = [keys[i:i + MOST_MERGED] for i in range(0, len(keys), MOST_MERGED)]
            keys = [(partials, *place, level, i) for i in range(len(groups))]
            graph.update((key, (partial(merge, own_plan), group)) for key, group in zip(keys, groups, strict=True))
        graph[name, *place] = own_plan.combine, keys
    chunks = tuple((1,) if axis in places else filled(x.chunks[axis]) for axis in kept)
    return array_of(name, graph, x, chunks, plan.result_dtype)


def reduce(plan: ReducingPlan, sizes: Shape, num_threads: int | None, block: Any) -> Partial:
    """Compute the partial result of a chunk of the input, which depends on its sizes and not on its place."""
    share = plan.share([slice(0, size) for size in sizes])
    x = checked(plan.label, plan.dtype, share.shape, block)
    return share(np.ascontiguousarray(x), num_threads=num_threads)


def merge(plan: ReducingPlan, partials: Sequence[Partial]) -> Partial:
    """Merge partial results into one. Sums stay in float64."""
    taps = sum(one.taps for one in partials)
    total = plan.total_of(taps)
    for one in partials:
        total.add(*one)
    value = total.result()
    assert value is not None
    return Partial(value, taps)
