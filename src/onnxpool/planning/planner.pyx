# cython: auto_pickle=False
"""The compiled planner: from a request and the strides of its arrays to loops and tiles, on C structs.

The stages are the normal forms that a problem can have (`form.pxi`), the solvers that fit and their work (`work.pxi`),
the choice of the cheapest solver (`choice.pxi`), and its tiles (`tiles.pxi`). Python's tables say which solvers and
reductions are compiled and what they cost. Amounts that can exceed 64 bits are doubles. Up to 2^53, doubles are exact;
beyond, no choice needs the lost digits.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport HUGE_VAL, ceil, fabs, floor, fma, fmod, log2, pow, rint
from libc.stdint cimport int64_t
from libc.stdlib cimport llabs
from libc.string cimport memset

from ..kernels.core.job cimport (
    CACHE_LINE,
    FEW,
    LEAST_SLIDING,
    MOST_AXES,
    MOST_RUNS,
    Axis,
    Scratch,
    Tile,
    Window,
    bits_of,
    ceil_div,
    padded,
    touch,
    window_at,
)
from ..kernels.core.units cimport Unit
from ..kernels.core.axes cimport set_axis

from ..dtypes import DTYPES

cdef extern from "shared_constants.h" nogil:  # the build writes it from constants.py
    enum:
        MOST_BORDER "ONNXPOOL_MOST_BORDER"
        MOST_PLACES "ONNXPOOL_MOST_PLACES"

cdef enum:
    VECTOR = 64  # bytes of the widest register
    SOLVERS = 9

cdef enum:
    MOST_RESULTS = 1 << 26    # maximum bytes of results; Python allocates larger ones, and reports errors
    MOST_CORRECTED = 1 << 16  # maximum divisor for which multiplying by the inverse needs only one correction

# The solvers, in the order of their table.
cdef enum: WHOLE, ORDERED, SLIDE, DIRECT, STACK, SHORT, DISJOINT, FOLDED_ROWS, PASSES


cdef Kind[MOST_KINDS] kinds
cdef Solver[SOLVERS] table
cdef int register_bytes = 0       # bytes of the processor's registers
cdef int[2] register_of_costs     # bytes of the registers whose costs decide about windows, and about whole channels
cdef double[2] moving_cost        # nanoseconds for making a register adjacent, for windows and for whole channels
cdef int most_picks = 0           # maximum lanes that may be picked from two registers for one
cdef int double_mean = 0, wide = 0
cdef (const Unit*)[SOLVERS][MOST_KINDS][MOST_DTYPES] units

include "windows.pxi"
include "work.pxi"
include "form.pxi"
include "choice.pxi"
include "tiles.pxi"


cdef tuple SOLVER_NAMES = (), KIND_NAMES = (), DTYPE_NAMES = tuple(DTYPES)


cdef use(capsule):
    """Make the units of a module available to plans."""
    cdef const Unit* unit = <const Unit*> PyCapsule_GetPointer(capsule, "onnxpool.kernels.units")
    while unit.name != NULL:
        solver, *kind, dtype = unit.name.decode().split("_")
        if solver in SOLVER_NAMES:
            units[<int> SOLVER_NAMES.index(solver)][<int> KIND_NAMES.index("_".join(kind))][
                <int> DTYPE_NAMES.index(dtype)] = unit
        unit += 1


def prepare(capsules, int register, int picks, int costs_of):
    """
    Read the tables of units, solvers, reductions and costs.

    Parameters
    ----------
    capsules : sequence
        The tables of units.
    register, picks : int
        The bytes of a register, and the most lanes that may be picked from two registers for one.
    costs_of : int
        The bytes of the register whose costs decide.
    """
    from . import costs, solvers
    from .reductions import KINDS

    global register_bytes, most_picks, double_mean, wide, SOLVER_NAMES, KIND_NAMES
    cdef Solver* solver
    cdef Kind* kind
    SOLVER_NAMES, KIND_NAMES = tuple([record.name for record in solvers.SOLVERS]), tuple(KINDS)
    own = [costs.prices(costs_of, whole) for whole in (False, True)]
    if (len(SOLVER_NAMES) != SOLVERS or len(KIND_NAMES) > MOST_KINDS or len(DTYPE_NAMES) > MOST_DTYPES
            or max([len(amounts) for each in own for amounts in each.values()]) > MOST_AMOUNTS):
        raise ValueError("onnxpool: the tables of planning are larger than the arrays of the compiled planner")
    for capsule in capsules:
        use(capsule)
    register_bytes, most_picks = register, picks
    register_of_costs[0], register_of_costs[1] = costs_of, costs.SHARED
    moving_cost[0], moving_cost[1] = own[0][costs.MOVED][""], own[1][costs.MOVED][""]
    for i, record in enumerate(KINDS.values()):
        kind = &kinds[<int> i]
        kind.acc_bytes, kind.factor = record.acc_bytes, record.factor
        kind.is_max, kind.is_extremum = record.name == "max", record.name == "extremum"
        kind.is_mean, kind.is_norm = record.name == "mean", record.name == "norm"
        kind.is_quantised, kind.is_wide = "quantised" in record.name, record.name == "wide"
        kind.is_ordered = record.name not in ("max", "extremum", "integer_mean")  # whether the order of taps matters
    double_mean, wide = KIND_NAMES.index("double_mean"), KIND_NAMES.index("wide")
    for i, record in enumerate(solvers.SOLVERS):
        solver = &table[<int> i]
        solver.room, solver.least_lanes, solver.whole = record.room, record.least_lanes or 0, record.whole
        solver.in_place, solver.gathers, solver.shares = record.in_place, record.gathers, record.shares
        solver.copies_in_room, solver.rereads = record.copies_in_room, record.rereads
        solver.divides, solver.by_axis = record.divides, record.by_axis
        solver.family = SOLVER_NAMES.index(record.family)
        solver.retry = -1 if record.retry is None else SOLVER_NAMES.index(record.retry)
        prices = own[record.whole].get(record.file, {})
        solver.costed, solver.amounts = bool(prices), len(prices)
        for k, cost in enumerate(prices.values()):
            solver.cost[<int> k] = cost
    table[WHOLE].work, table[ORDERED].work, table[DIRECT].work = whole_work, ordered_work, direct_work
    table[SLIDE].fits, table[SLIDE].work = fits_slide, slide_work
    table[SHORT].fits, table[SHORT].work = fits_short, short_work
    table[DISJOINT].fits, table[DISJOINT].work = fits_disjoint, disjoint_work
    table[FOLDED_ROWS].fits, table[FOLDED_ROWS].work, table[FOLDED_ROWS].singly = fits_folded, folded_work, folded
    table[STACK].fits, table[STACK].work, table[STACK].singly = fits_stack, stack_work, stacked
    table[PASSES].fits, table[PASSES].work = has_near_windows, passes_work


def force(solver, lanes):
    """Force a solver wherever it fits, and rows or lanes. None stands for the usual choice."""
    global forced_solver, forced_lanes
    forced_solver = ANY if solver is None else SOLVER_NAMES.index(solver)
    forced_lanes = ANY if lanes is None else lanes


cdef const Kind* kind_at(int kind) noexcept nogil:
    return &kinds[kind]


cdef class Reducer:
    """
    How units reduce windows of a dtype: everything that does not depend on a shape.

    Parameters
    ----------
    name, dtype : str
        The reduction and the dtype for which units are compiled.
    retried : str, optional
        The dtype of the units that compute suspect results again.
    itemsize, digits : int
        Bytes of an element, and digits of a float's significand.
    whole, indexed, reports, divides, is_other : bool
        Whether windows are whole channels; whether there are indices; whether callers recompute means whose sums
        overflowed; whether totals are divided; whether the unit of int16 takes uint16, or the unit of float16 takes
        bfloat16.
    top, few : float
        The largest number that the accumulators of means hold; the largest divisor for which means of integers are
        rounded in fewer steps.
    p : float
        The order of a norm, or its negative if NaNs are skipped.
    safe : (float, float)
        The safe range of totals.
    order : Order
        The order by which extrema compare elements.
    valid : Valid
        How NaNs are skipped.
    """

    def __cinit__(self, str name, str dtype, retried, int itemsize, int digits, *, bint whole, bint indexed,
                  bint reports, bint divides, bint is_other, double top, double few, double p, safe, order, valid):
        cdef Recipe* r = &self.recipe
        r.kind, r.dtype = KIND_NAMES.index(name), DTYPE_NAMES.index(dtype)
        r.retried = -1 if retried is None else DTYPE_NAMES.index(retried)
        r.itemsize, r.digits, r.whole, r.indexed, r.reports = itemsize, digits, whole, indexed, reports
        r.top, r.few = top, few
        r.rule.p, r.rule.divides, r.rule.is_other = p, divides, is_other
        r.rule.low, r.rule.high = safe
        (r.rule.order.mask, r.rule.order.flip, r.rule.order.shift, r.rule.order.truth, r.rule.order.infinity) = order
        r.rule.counted, r.rule.left_out, r.rule.most = valid


cdef int read_request(Request* r, request, x, results, bint contiguous) except -1:
    """Read a request for arrays of these strides. The caller sets its recipe."""
    cdef int i, a
    r.ndim, r.y_ndim, r.results = len(request.shape), len(results[0]), len(results)
    r.keepdims, r.contiguous = request.keepdims, contiguous
    for a, (size, place, stride) in enumerate(zip(request.shape, request.places, x)):
        r.shape[a], r.place[a], r.x[a], r.along[a] = size, place, stride, -1
    for i, strides in enumerate(results):
        for a, stride in enumerate(strides):
            r.y[i][a] = stride
    for i, (axis, windows) in enumerate(request.windows):
        r.along[<int> axis] = i
        set_axis(&r.windows[i], windows)
    return 0


cdef void set_problem(const Request* r, const Form* form, Problem* p) noexcept nogil:
    """The problem for which a solver is chosen."""
    cdef const Kind* kind = &kinds[r.recipe.kind]
    p.axes, p.rank, p.kind, p.dtype = form.axes, form.rank, r.recipe.kind, r.recipe.dtype
    p.itemsize, p.whole = r.recipe.itemsize, r.recipe.whole
    p.acc_bytes, p.register_bytes = max(p.itemsize * kind.factor, kind.acc_bytes), register_of_costs[p.whole]
    p.items, p.lanes, p.planar = form.item.size, form.lane.size, form.apart
    p.joined = joined_of(r, form) if p.whole else 1


cdef int problems_of(const Request* r, Form* forms, Problem* problems) noexcept nogil:
    """Find the forms of a request, and the problem of each. Return their number."""
    cdef int count = forms_of(r, forms), i
    for i in range(count):
        set_problem(r, &forms[i], &problems[i])
    return count


cdef bint set_up(const Request* r, int solver, int form, double share, Setup* setup) noexcept nogil:
    """Fill in the setup for a solver and a form; costs choose them if they are ANY. Return whether such loops are
    compiled."""
    cdef const Recipe* recipe = r.recipe
    cdef const Problem* p = &setup.problem
    cdef Form[2] forms
    cdef Problem[2] problems
    cdef Choice choice
    cdef double groups = 1, taps = 1, divisor = 1
    cdef int i, count = problems_of(r, forms, problems)
    if solver == ANY:
        choice = usual_of(problems, count)
        solver, form = choice.solver, choice.form
    setup.form = forms[form]
    set_problem(r, &setup.form, &setup.problem)
    if solver == ANY or units[solver][p.kind][recipe.dtype] == NULL:
        return False
    for i in range(p.rank):
        setup.form.axes[i].singly = table[solver].singly != NULL and table[solver].singly(p, i)
    for i in range(setup.form.outer):
        groups *= setup.form.groups[i].size
    setup.stages = set_stages(p, solver, groups, recipe.retried, r.contiguous, share, setup.stage)
    for i in range(p.rank):
        taps *= p.axes[i].most
        divisor *= p.axes[i].kernel if p.axes[i].counts_pads else p.axes[i].most
    setup.rule = recipe.rule
    setup.rule.careful, setup.rule.few = table[solver].divides or divisor > MOST_CORRECTED, divisor <= recipe.few
    setup.least, setup.largest = 0, HUGE_VAL
    if kinds[p.kind].is_norm and recipe.retried >= 0:
        setup.least = 1.001 * pow(setup.rule.low, 1 / fabs(setup.rule.p))
        setup.largest = 0.999 * pow(setup.rule.high / (2 * max(1.0, taps)), 1 / fabs(setup.rule.p))
    elif recipe.retried >= 0 or recipe.reports:
        setup.largest = recipe.top / (2 * max(1.0, taps))
    return True


def window_of(axis, Py_ssize_t index):
    """The window with this index along an axis, as loops compute it: its first element, if it has any, its number of
    elements, and the divisor of its mean."""
    cdef Axis own
    set_axis(&own, axis)
    cdef Window window = window_at(&own, index)
    return window.first, window.taps, window.divisor


cdef object axis_in(const Axis* axis):
    from .setup import Axis as PythonAxis

    return PythonAxis(axis.size, axis.out, axis.kernel, axis.stride, axis.dilation, (axis.pad, axis.pad_end),
                      bool(axis.counts_pads))


cdef object dim_in(const Dim* dim, windows=None):
    from .setup import Dim as PythonDim

    return PythonDim(dim.size, dim.x, dim.y, dim.place, windows)


cdef object form_in(const Form* form):
    from .setup import Form as PythonForm

    cdef int i
    groups = tuple([dim_in(&form.groups[i]) for i in range(form.outer)])
    axes = tuple([dim_in(&form.dims[i], axis_in(&form.axes[i])) for i in range(form.rank)])
    return PythonForm(groups, dim_in(&form.item), axes, dim_in(&form.lane), bool(form.apart))


cdef object extents_in(const Extents* tile, int rank):
    from .setup import Extents as PythonExtents

    cdef int a
    return PythonExtents(tile.items, tuple([tile.windows[a] for a in range(rank)]), tile.lanes)


cdef object stage_in(const Stage* stage, int rank):
    from .setup import Stage as PythonStage

    tile, divided = extents_in(&stage.tile, rank), extents_in(&stage.divided, rank)
    return PythonStage(stage.unit.name.decode(), bool(stage.by_axis), bool(stage.gathers), bool(stage.shares),
                       bool(table[stage.solver].divides), tile, divided)


cdef object setup_in(const Setup* setup):
    """What a pool does, for Python."""
    from .setup import Setup as PythonSetup

    cdef int i
    return PythonSetup(
        form_in(&setup.form), tuple([axis_in(&setup.form.axes[i]) for i in range(setup.form.rank)]),
        setup.problem.joined, setup.problem.acc_bytes, SOLVER_NAMES[setup.stage[0].solver],
        tuple([stage_in(&setup.stage[i], setup.form.rank) for i in range(setup.stages)]), bool(setup.rule.careful),
        bool(setup.rule.few), setup.rule.low, setup.rule.high)


cdef class Planner:
    """
    The forms of a request for arrays of these strides, and what planning decides for them. After the request's
    `Reducer`, parameters are as in `layout.pool_of`.
    """
    cdef Reducer reducer
    cdef Request request
    cdef Form[2] form
    cdef Problem[2] problem
    cdef int count

    def __cinit__(self, Reducer reducer not None, request, x, results, bint contiguous):
        self.reducer, self.request.recipe = reducer, &reducer.recipe
        read_request(&self.request, request, x, results, contiguous)
        self.count = problems_of(&self.request, self.form, self.problem)

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
        """What costs choose: the name of the solver, the place of the form, and the cost."""
        cdef Choice choice = usual_of(self.problem, self.count)
        return SOLVER_NAMES[choice.solver], choice.form, choice.cost

    def is_apart(self, int form):
        """Whether lanes of a form are first copied to be adjacent."""
        return bool(self.form[form].apart)

    def place_of(self, bint apart):
        """The place of the form whose lanes are first copied to be adjacent, or of the other form."""
        return self.count - 1 if apart == self.form[self.count - 1].apart else 0

    @property
    def fitting(self):
        """The names of the solvers that fit each form, in the order of their table."""
        return [[SOLVER_NAMES[s] for s in range(SOLVERS) if fits(s, &self.problem[i])] for i in range(self.count)]

    def amounts(self, int form, str solver):
        """A solver's amounts of work for each register full of results."""
        cdef double[MOST_AMOUNTS] amounts
        cdef int s = SOLVER_NAMES.index(solver), i
        from . import costs, solvers

        memset(amounts, 0, sizeof(amounts))
        table[s].work(&self.problem[form], amounts)
        prices = costs.prices(register_of_costs[0], table[s].whole)
        return {name: amounts[i] for i, name in enumerate(prices[solvers.SOLVERS[s].file])}

    def cost(self, int form, str solver):
        """The nanoseconds that a solver takes for each register full of results."""
        return cost_of(<int> SOLVER_NAMES.index(solver), &self.problem[form])

    def moved(self, int form):
        """How many registers are moved per register of results to make lanes adjacent, and how often tiles read a
        place."""
        return moved(&self.problem[form]), halo(&self.problem[form])

    def stages(self, str solver, int form, double share):
        """The stages of a pool with this solver and form. `share` scales the usual room of a tile."""
        cdef Setup setup
        set_up(&self.request, <int> SOLVER_NAMES.index(solver), form, share, &setup)
        return tuple([stage_in(&setup.stage[i], setup.form.rank) for i in range(setup.stages)])
