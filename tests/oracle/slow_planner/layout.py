"""What a pool should be made from: the tests' planner in plain Python, which the compiled planner must equal."""

import math
from collections.abc import Sequence
from typing import Any

from onnxpool.constants import CACHE_LINE, FEW
from onnxpool.kernels import pool as pools
from onnxpool.planning import orders, ranges
from onnxpool.planning.costs import SHARED
from onnxpool.planning.layout import REGISTER, compiled_for
from onnxpool.planning.reductions import KINDS
from onnxpool.planning.request import Request
from onnxpool.planning.setup import Extents, Form, Stage
from onnxpool.planning.solvers import unit_of as unit_name
from onnxpool.windows import Axis

from . import choice, solvers, tiles
from .form import forms_of, joined
from .solvers import Problem, Solver

VECTOR = 64  # bytes of the widest register
PLANAR_ROOM, LINE_ROOM, LONG_ROOM, LONG_LANES = 1 << 17, 1 << 16, 900_000, 1 << 13


def normal(axis: Axis) -> Axis:
    """An axis as loops see it: with one window, the stride is 1; with one tap, the dilation is 1."""
    return Axis(axis.size, axis.out, axis.kernel, axis.stride if axis.out > 1 else 1,
                axis.dilation if axis.kernel > 1 else 1, axis.pads, axis.counts_pads)


def problem_of(request: Request, form: Form, name: str, dtype: str) -> Problem:
    """The problem for which a solver of this reduction is chosen."""
    itemsize = request.dtype.itemsize
    axes = tuple([normal(dim.windows) for dim in form.axes if dim.windows is not None])
    whole = request.reduction.whole
    return Problem(reduction=name, dtype=dtype, axes=axes, items=form.item.size, lanes=form.lane.size,
                   planar=form.apart, itemsize=itemsize,
                   acc_bytes=max(itemsize * KINDS[name].factor, KINDS[name].acc_bytes),
                   register=SHARED if whole else REGISTER,
                   whole=whole, joined=joined(form, dict(request.windows)) if whole else 1)


def problems_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]],
                contiguous: bool) -> tuple[list[Form], list[Problem]]:
    """The forms of a request for these strides, and the problem of each."""
    forms = forms_of(request, x, results, contiguous, VECTOR // request.dtype.itemsize)
    return forms, [problem_of(request, form, *unit_of(request)[:2]) for form in forms]


def usual_of(problems: Sequence[Problem]) -> choice.Choice:
    """The solver and form that costs choose."""
    return choice.choose(problems[0]) if len(problems) == 1 else choice.choose_between(*problems)


def stages_of(problem: Problem, solver: Solver, groups: int, retried: str | None, contiguous: bool,
              share: float) -> tuple[Stage, ...]:
    """The chosen solver with its tiles, and if results may have to be recomputed, a second one for elements of the
    dtype `retried`."""
    axes, lanes, planar, itemsize = problem.axes, problem.lanes, problem.planar, problem.itemsize
    most = solvers.lanes_of(problem) if planar else lanes
    room = PLANAR_ROOM if planar else solver.room
    singly = solver.singly(problem)
    least = solver.least_lanes or 0
    if planar and not solver.whole:  # transposed lanes are adjacent in any tile
        least = CACHE_LINE
    if not solver.whole and max([axis.most for axis in axes]) > FEW:
        room, least = LONG_ROOM if len(axes) > 1 else LINE_ROOM, CACHE_LINE
        if 0 in singly and not planar and solvers.share_little(problem, axes[0], lanes):
            least = LONG_LANES
    room = int(share * room) if share * room < tiles.MOST else tiles.MOST
    # Strided elements and results are copied. Contiguous ones stay in place, where some are soon read again.
    stays = not planar and solver.in_place and (solver.gathers or contiguous)
    # A thread may take MOST bytes: the part that is not scratch memory is available for copied elements.
    free = 0 if planar or (solver.copies_in_room and not stays) else tiles.MOST - room
    work, again = (tiles.Work(axes, stays and solver.by_axis, planar, all_lanes)
                   for all_lanes in (solver.least_lanes is None, False))

    extents = groups, problem.items, lanes
    least, grain = lanes if solver.least_lanes is None else least // itemsize, VECTOR // itemsize

    def stage(solver: Solver, reduction: str, dtype: str, room: int, work: tiles.Work, alone: int = 1,
              together: int = 1, **limits: Any) -> Stage:
        unit = unit_name(solver.name, reduction, dtype)

        def volume(tile: Extents) -> int:
            scratch: int = pools.scratch_of(unit, axes, tile.windows, tile.lanes, lanes, problem.joined, singly)
            held = tiles.results(tile) if stays else tiles.elements(axes, tile)
            near = tiles.reused(axes, tile) if stays and solver.rereads else 0
            return scratch + max(near * itemsize, held * itemsize - free)

        tile = divided = tiles.cut(axes, extents, volume, room, work, **limits)
        if alone > 1:
            tile = divided = tiles.divide(axes, extents, tile, alone, work, least, grain)
        if together > alone:
            divided = tiles.divide(axes, extents, tile, together, work, least, grain)
        return Stage(unit, solver.by_axis, solver.gathers and not planar, solver.shares and not planar, solver.divides,
                     tile, divided)

    first = stage(solver, problem.reduction, problem.dtype, room, work, *tiles.tasks_of(axes, extents),
                  lane_values=(least, most), grain=grain)
    if retried is None:
        return (first,)
    other, reduction = solvers.retry_of(solver, problem, retried)
    return first, stage(other, reduction, retried, max(room, LONG_ROOM), again, within=first.tile)


def seen(form: Form) -> Form:
    """A form with its windows as loops see them."""
    axes = tuple([dim._replace(windows=dim.windows and normal(dim.windows)) for dim in form.axes])
    return form._replace(axes=axes)


def unit_of(request: Request) -> tuple[str, str, orders.Order]:
    """The reduction and dtype of a request's units, and the order by which the units compare elements."""
    taps = math.prod([axis.most for axis in request.axes])
    is_long = request.reduction.name == "quantised_mean" and taps > 2**31 >> 8 * request.dtype.itemsize
    return compiled_for(request.reduction, request.dtype, is_long)


def retried_of(request: Request) -> str | None:
    """The dtype of the units that compute suspect results again, if any are needed."""
    name, dtype, _ = unit_of(request)
    own = "bfloat16" if dtype == "float16" and request.dtype.kind != "f" else dtype
    return own if name == request.reduction.name and ranges.retries(request.reduction, own) else None


def stages_for(request: Request, problem: Problem, solver: Solver, form: Form, contiguous: bool,
               share: float) -> tuple[Stage, ...]:
    """The stages of a problem's solver."""
    groups = math.prod([dim.size for dim in form.groups])
    return stages_of(problem, solver, groups, retried_of(request), contiguous, share)
