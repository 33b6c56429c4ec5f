"""The compiled planner: from a request and the strides of its arrays to loops and tiles, on C structs.

The stages are the normal forms that a problem can have (`form.pxi`), the work of each step that fits (`work.pxi`), the
choice of the cheapest one (`routes.pxi`), and its tiles (`tiles.pxi`). Python's tables say which steps and reductions
are compiled and what they cost. Amounts that can exceed 64 bits are doubles: up to 2^53 these are exact, and beyond it
no choice needs the lost digits.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport HUGE_VAL, ceil, floor, fma, fmod, log2, pow, rint
from libc.stdlib cimport llabs
from libc.string cimport memset

from ..kernels.core.job cimport CACHE_LINE, FEW, LEAST_SLIDING, MOST_AXES, Axis, Scratch, bits_of, ceil_div, padded
from ..kernels.core.job cimport Tile as LoopTile
from ..kernels.core.units cimport Unit
from ..kernels.axes cimport set_axis

from ..dtypes import DTYPES
from ..windows import Axis as PythonAxis
from . import costs, steps
from .reductions import KINDS
from .setup import Dim as PythonDim
from .setup import Form as PythonForm
from .setup import Stage as PythonStage
from .setup import Tile as PythonTile
from .ways import Forced

cdef enum:
    VECTOR = 64  # bytes of the widest register
    MOST_KINDS = 16
    MOST_DTYPES = 16
    MOST_AMOUNTS = 20
    STEPS = 4

cdef enum: WHOLE, ORDERED, DIRECT, PASSES  # the steps, in the order of their table


cdef struct Kind:
    # A reduction, as loops are compiled for it.
    int acc_bytes, factor
    bint is_max, is_extremum, is_mean, is_norm, is_quantised, rare
    bint frequent, disjoint          # whether there are loops that are only faster, and those of disjoint windows


cdef struct Problem:
    # The problem for which a step is chosen: x[item, axes, lane].
    const Axis* axes
    int rank, kind
    int itemsize, acc_bytes          # bytes of an element, and of an accumulator
    int register_bytes               # those of a register, for which there are costs
    int joined                       # trailing axes that count as one in the order of sums
    Py_ssize_t items, lanes
    bint planar                      # whether lanes are strided channels
    bint whole                       # whether the operator has one window, which covers a whole channel


ctypedef bint (*Fits)(const Problem* p) noexcept nogil
ctypedef void (*Work)(const Problem* p, double* amounts) noexcept nogil


cdef struct Step:
    # A record of Python's table of steps, with its functions.
    Fits fits                        # NULL if all problems of its reductions fit
    Work work
    int amounts                      # units of work
    double[MOST_AMOUNTS] cost        # of each
    bint costed
    bint[MOST_KINDS] takes           # reductions for which it is compiled
    Py_ssize_t room, least_lanes
    int retry                        # place of another step, or -1
    bint whole, in_place, gathers, shares, copies_in_room, rereads, divides, by_axis


cdef Kind[MOST_KINDS] kinds
cdef Step[STEPS] table
cdef double moving_cost = 0
cdef int register_of_costs = 0
cdef int double_mean = 0, wide = 0
cdef (const Unit*)[STEPS][MOST_KINDS][MOST_DTYPES] units

include "work.pxi"
include "form.pxi"
include "routes.pxi"
include "tiles.pxi"


def use(capsule):
    """Add the units of a module to those that plans can have."""
    cdef const Unit* unit = <const Unit*> PyCapsule_GetPointer(capsule, "onnxpool.kernels.units")
    while unit.name != NULL:
        step, *kind, dtype = unit.name.decode().split("_")
        if step in STEP_NAMES:
            units[<int> STEP_NAMES.index(step)][<int> KIND_NAMES.index("_".join(kind))][
                <int> DTYPE_NAMES.index(dtype)] = unit
        unit += 1


def prepare(int register_bytes):
    """Read the tables of steps, reductions and costs, for registers of so many bytes."""
    global moving_cost, register_of_costs, double_mean, wide
    cdef Step* step
    cdef Kind* kind
    register_of_costs = register_bytes
    own = costs.COSTS[register_bytes]
    moving_cost = own[costs.MOVED][""]
    for i, record in enumerate(KINDS.values()):
        kind = &kinds[<int> i]
        kind.acc_bytes, kind.factor, kind.rare = record.acc_bytes, record.factor, record.rare
        kind.is_max, kind.is_extremum = record.name == "max", record.name == "extremum"
        kind.is_mean, kind.is_norm = record.name == "mean", record.name == "norm"
        kind.is_quantised = "quantised" in record.name
        kind.frequent, kind.disjoint = record.name in steps.FREQUENT, record.name in steps.DISJOINT
    double_mean, wide = KIND_NAMES.index("double_mean"), KIND_NAMES.index("wide")
    for i, record in enumerate(steps.STEPS):
        step = &table[<int> i]
        step.room, step.least_lanes, step.whole = record.room, record.least_lanes, record.whole
        step.in_place, step.gathers, step.shares = record.in_place, record.gathers, record.shares
        step.copies_in_room, step.rereads = record.copies_in_room, record.rereads
        step.divides, step.by_axis = record.divides, record.by_axis
        step.retry = -1 if record.retry is None else STEP_NAMES.index(record.retry)
        step.costed, step.amounts = record.name in own, len(own.get(record.name, ()))
        for k, name in enumerate(KIND_NAMES):
            step.takes[<int> k] = name in record.reductions
        for k, cost in enumerate(own.get(record.name, {}).values()):
            step.cost[<int> k] = cost
    table[WHOLE].work, table[ORDERED].work, table[DIRECT].work = whole_work, ordered_work, direct_work
    table[PASSES].work, table[PASSES].fits = passes_work, has_near_windows


STEP_NAMES = tuple([record.name for record in steps.STEPS])
KIND_NAMES, DTYPE_NAMES = tuple(KINDS), tuple(DTYPES)


cdef object axis_in(const Axis* axis):
    return PythonAxis(axis.size, axis.out, axis.kernel, axis.stride, axis.dilation, (axis.pad, axis.pad_end),
                      bool(axis.counts_pads))


cdef object dim_in(const Dim* dim, windows=None):
    return PythonDim(dim.size, dim.x, dim.y, dim.place, windows)


cdef object form_in(const Form* form):
    cdef int i
    groups = tuple([dim_in(&form.groups[i]) for i in range(form.outer)])
    axes = tuple([dim_in(&form.dims[i], axis_in(&form.axes[i])) for i in range(form.rank)])
    return PythonForm(groups, dim_in(&form.item), axes, dim_in(&form.lane), bool(form.apart))


cdef object tile_in(const Tile* tile, int rank):
    cdef int a
    return PythonTile(tile.items, tuple([tile.windows[a] for a in range(rank)]), tile.lanes)


cdef object stage_in(const Stage* stage, const Problem* p):
    cdef const Step* step = &table[stage.step]
    return PythonStage("_".join((STEP_NAMES[stage.step], KIND_NAMES[stage.kind], DTYPE_NAMES[stage.dtype])),
                       bool(step.by_axis), bool(step.gathers and not p.planar), bool(step.shares and not p.planar),
                       bool(step.divides), tile_in(&stage.tile, p.rank), tile_in(&stage.divided, p.rank))


cdef class Planner:
    """
    The forms of a request for arrays of these strides, between which costs decide.

    Parameters
    ----------
    request : Request
    x : sequence of int
        The strides of X, in bytes.
    results : sequence of sequence of int
        The strides of the result, and of its indices if there are any.
    contiguous : bool
        Whether X is in row-major order, without gaps, and in the byte order of the machine.
    name : str
        The reduction of the units.
    """
    cdef Request request
    cdef Form[2] form
    cdef Problem[2] problem
    cdef int count

    def __cinit__(self, request, x, results, bint contiguous, str name):
        cdef Request* r = &self.request
        cdef Problem* p
        cdef int i, a
        r.ndim, r.y_ndim, r.results = len(request.shape), len(results[0]), len(results)
        r.kind, r.itemsize, r.whole = KIND_NAMES.index(name), request.dtype.itemsize, request.reduction.whole
        r.keepdims, r.contiguous = request.keepdims, contiguous
        for a, (size, place, stride) in enumerate(zip(request.shape, request.places, x)):
            r.shape[a], r.place[a], r.x[a], r.along[a] = size, place, stride, -1
        for i, strides in enumerate(results):
            for a, stride in enumerate(strides):
                r.y[i][a] = stride
        for i, (axis, windows) in enumerate(request.windows):
            r.along[<int> axis] = i
            set_axis(&r.windows[i], windows)
        self.count = forms_of(r, self.form)
        for i in range(self.count):
            p = &self.problem[i]
            p.axes, p.rank, p.kind, p.itemsize = self.form[i].axes, self.form[i].rank, r.kind, r.itemsize
            p.acc_bytes = max(r.itemsize * kinds[r.kind].factor, kinds[r.kind].acc_bytes)
            p.register_bytes, p.joined = register_of_costs, joined_of(r, &self.form[i]) if r.whole else 1
            p.items, p.lanes = self.form[i].item.size, self.form[i].lane.size
            p.planar, p.whole = self.form[i].apart, r.whole

    @property
    def acc_bytes(self):
        """The bytes of an accumulator."""
        return self.problem[0].acc_bytes

    @property
    def forms(self):
        """The forms."""
        return [form_in(&self.form[i]) for i in range(self.count)]

    @property
    def usual(self):
        """The name of the step, and the place of the form, that costs choose, and the cost."""
        global forced_step, forced_lanes
        forced_step = ANY if Forced.step is None else STEP_NAMES.index(Forced.step)
        forced_lanes = ANY if Forced.lanes is None else Forced.lanes
        cdef Choice choice = usual_of(self.problem, self.count)
        return STEP_NAMES[choice.step], choice.form, choice.cost

    def is_apart(self, int form):
        """Whether lanes of a form are first copied to be adjacent."""
        return bool(self.form[form].apart)

    def place_of(self, bint apart):
        """The place of the form whose lanes are, or are not, first copied to be adjacent."""
        return self.count - 1 if apart == self.form[self.count - 1].apart else 0

    @property
    def fitting(self):
        """The names of the steps that fit each form, in the order of their table."""
        return [[STEP_NAMES[s] for s in range(STEPS) if fits(&table[s], &self.problem[i])] for i in range(self.count)]

    def amounts(self, int form, str step):
        """The amounts of work of a step for each register full of results."""
        cdef double[MOST_AMOUNTS] amounts
        cdef int s = STEP_NAMES.index(step), i
        memset(amounts, 0, sizeof(amounts))
        table[s].work(&self.problem[form], amounts)
        return {name: amounts[i] for i, name in enumerate(costs.COSTS[register_of_costs][step])}

    def cost(self, int form, str step):
        """Nanoseconds of a step for each register full of results."""
        return cost_of(&table[<int> STEP_NAMES.index(step)], &self.problem[form])

    def moved(self, int form):
        """The registers that are moved to make lanes adjacent, and how often tiles read a place, for each register."""
        return moved(&self.problem[form]), halo(&self.problem[form])

    def solve(self, str step, int form, str dtype, retried, double share):
        """What a pool does: form, axes, trailing axes that count as one, bytes of an accumulator, and stages."""
        cdef Stage[2] stages
        cdef const Problem* p = &self.problem[form]
        cdef int chosen = STEP_NAMES.index(step), own = DTYPE_NAMES.index(dtype), i, count
        cdef int again = -1 if retried is None else DTYPE_NAMES.index(retried)
        cdef double groups = 1
        for i in range(self.form[form].outer):
            groups *= self.form[form].groups[i].size
        if units[chosen][p.kind][own] == NULL:
            raise ValueError(f"onnxpool: no loops {step} of {KIND_NAMES[p.kind]} for {dtype} are compiled")
        with nogil:
            count = set_stages(p, chosen, groups, own, again, self.request.contiguous, share, stages)
        return (form_in(&self.form[form]), tuple([axis_in(&p.axes[i]) for i in range(p.rank)]), p.joined, p.acc_bytes,
                tuple([stage_in(&stages[i], p) for i in range(count)]))
