# cython: auto_pickle=False
"""`Pool`: a reduction that is ready to run on arrays. This module is compiled once, for all instruction sets."""
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cython.parallel cimport parallel, prange, threadid
from libc.math cimport fabs
from libc.stdint cimport INT64_MAX, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from .core.axes cimport set_axis
from .core.boxes cimport CopyLoops
from .core.extremes cimport extremes_of
from .core.floats cimport (
    INVALID,
    OVERFLOWED,
    UNDERFLOWED,
    count_again,
    enter_default_floats,
    float_state,
    leave_default_floats,
)
from .core.interrupts cimport Interrupts, raised_by_handler, run_together
from .core.job cimport (
    CACHE_LINE,
    MOST_AXES,
    TOO_LARGE,
    Array,
    Axis,
    Loops,
    Rule,
    Scales,
    Tile,
    Window,
    part_bytes_of,
    round_up,
    window_at,
)
from .core.tasks cimport (
    FRONT,
    Call,
    Job,
    Ranges,
    Sharing,
    copies_x,
    copies_y,
    count_tiles,
    room_of,
    run_task,
    stopped,
    whole_of,
)
from .core.team cimport Team, begin_task, end_task, enter_team, leave_team
from .core.units cimport Unit
from .operands cimport Operand, Operands
from ..planning.planner cimport (
    ANY,
    Attributes,
    Dim,
    Extents,
    Form,
    Problem,
    Recipe,
    Reducer,
    Request,
    Setup,
    Stage,
    form_in,
    kind_at,
    problems_of,
    read_request,
    resolve_all,
    set_up,
    setup_in,
)

cdef enum:
    CACHED = 1 << 20  # bytes of elements that a core's caches hold
    RETRY = 1         # places in a pool's list of jobs, after the first one
    DIVIDED = 2

cnp.import_array()

cdef extern from *:
    """
    /* Intel's processors follow many streams by themselves, and software prefetches slow them down. */
    static int onnxpool_fetches(void) {
    #if defined(__x86_64__) && defined(__GNUC__)
        __builtin_cpu_init();
        return !__builtin_cpu_is("intel");
    #else
        return 1;
    #endif
    }
    """
    bint fetches "onnxpool_fetches"() nogil

cdef extern from *:
    """
    /* Counters and settings of tests, which any thread may use at any time. */
    #define onnxpool_read(place) __atomic_load_n(place, __ATOMIC_RELAXED)
    #define onnxpool_swap(place, value) __atomic_exchange_n(place, value, __ATOMIC_RELAXED)
    """
    Py_ssize_t onnxpool_read(Py_ssize_t* place) noexcept nogil
    Py_ssize_t onnxpool_swap(Py_ssize_t* place, Py_ssize_t value) noexcept nogil

cdef dict units = {}  # addresses of all units, by name
cdef CopyLoops copy_loops = NULL  # copies a box of elements


def use(capsule):
    """Add the units of a module, before the first pool is made."""
    global copy_loops
    cdef const Unit* unit = <const Unit*> PyCapsule_GetPointer(capsule, "onnxpool.kernels.units")
    while unit.name != NULL:
        units[unit.name.decode()] = <size_t> unit
        if unit.name.startswith(b"copy_"):
            copy_loops = <CopyLoops> unit.run
        unit += 1


cdef const Unit* unit_of(str name) except NULL:
    return <const Unit*> <size_t> units[name]


def unit_names():
    """The names of all units that are built."""
    return list(units)


def windows_of(source, Py_ssize_t begin, Py_ssize_t end):
    """The windows [begin, end) along an axis, as loops compute them. Each is given by its first element, if it has any,
    its number of elements, and the divisor of its mean."""
    cdef Axis axis
    cdef Window window
    cdef Py_ssize_t i, n = max(0, end - begin)
    cdef cnp.npy_intp[2] shape = [3, n]
    cdef cnp.ndarray rows = cnp.PyArray_EMPTY(2, shape, cnp.NPY_INT64, 0)
    cdef int64_t* row = <int64_t*> cnp.PyArray_DATA(rows)
    set_axis(&axis, source)
    with nogil:
        for i in range(n):
            window = window_at(&axis, begin + i)
            row[i], row[n + i], row[2 * n + i] = window.first, window.taps, window.divisor
    return rows


def scratch_of(str unit, axes, windows, Py_ssize_t lanes, Py_ssize_t all_lanes, int joined, singly=()):
    """The bytes of scratch memory that a unit needs for a tile with these windows and `lanes` of `all_lanes` lanes.
    Windows along the axes in `singly` are reduced one by one."""
    cdef Axis[MOST_AXES] all_axes
    cdef Py_ssize_t[MOST_AXES] zero, end
    cdef Tile tile
    cdef int a
    memset(&tile, 0, sizeof(Tile))
    for a, source in enumerate(axes):
        set_axis(&all_axes[a], source)
        all_axes[a].singly = a in singly
        zero[a], end[a] = 0, windows[a]
    tile.axis, tile.rank, tile.items, tile.lanes, tile.begin, tile.end = all_axes, len(axes), 1, lanes, zero, end
    tile.joined, tile.all_lanes, tile.most_lanes = joined, max(1, all_lanes), lanes
    return unit_of(unit).scratch(&tile)


cdef Py_ssize_t fence = 0            # bytes after the scratch memory of each thread that tests watch
cdef Py_ssize_t breaches = 0         # bytes of fences that were overwritten
cdef enum:
    FENCE = 0x7f  # sums of floats whose bytes all have this value overflow


def watch_scratch(Py_ssize_t n):
    """For tests: watch n bytes after the memory of each thread, and return how many have been overwritten so far."""
    onnxpool_swap(&fence, n)
    return onnxpool_swap(&breaches, 0)


cdef Py_ssize_t again = 0             # tiles that were computed again


def tiles_computed_again():
    """For tests: how many tiles were computed again so far, because of floating-point exceptions."""
    return onnxpool_read(&again)


cdef void close_fences(char* memory, int threads, Py_ssize_t room, Py_ssize_t watched) noexcept nogil:
    """Count the bytes that were overwritten after the memory of threads."""
    cdef Py_ssize_t i
    cdef int thread
    for thread in range(threads):
        for i in range((thread + 1) * room - watched, (thread + 1) * room):
            if <unsigned char> memory[i] != FENCE:
                count_again(&breaches)


cdef enum:
    TOTALS = 1 << 16  # maximum bytes of all parts' totals
    MOST_PARTS = 16   # maximum number of parts per thread
    FEWEST_PARTS = 3  # minimum number of parts per thread


cdef inline Py_ssize_t parts_of(const Job* job, const Call* call, int threads) noexcept nogil:
    """The maximum number of parts of an item, if threads can share the tasks of a call. Otherwise 0."""
    cdef Py_ssize_t n
    if not job.shares or job.tasks >= threads or job.rank > 1 or copies_x(job, call) or copies_y(job, call):
        return 0
    n = min(MOST_PARTS * threads, TOTALS // (job.tile_items * part_bytes_of(job.tile_lanes, job.acc_bytes)))
    return n if n >= FEWEST_PARTS * threads else 0


cdef void run_share(const Job* job, const Call* call, Py_ssize_t task, char* memory, const Sharing* sharing,
                    int share) noexcept nogil:
    """Run one thread's share of a task."""
    cdef float_state saved = enter_default_floats()
    cdef Sharing own = sharing[0]
    own.share = share
    run_task(job, call, task, memory, &own)
    leave_default_floats(saved)


cdef void share_task(const Job* job, const Call* call, Team* team, Py_ssize_t task, char* memory,
                     Py_ssize_t room) noexcept nogil:
    """Run a task with all threads. The totals of their shares are stored after the memory of all threads."""
    cdef Py_ssize_t parts = parts_of(job, call, team.threads)
    cdef int raised = 0
    cdef Sharing sharing = Sharing(0, team.threads, parts, memory + team.threads * room, &raised)
    cdef const Sharing* all_shares = &sharing  # through a pointer, OpenMP makes no copy for each thread
    cdef int share
    for share in prange(team.threads, num_threads=team.threads, schedule="static"):
        begin_task(team)
        run_share(job, call, task, memory + threadid() * room, all_shares, share)
        end_task(team)
    sharing.share = sharing.shares
    run_task(job, call, task, memory, &sharing)


cdef void run_tasks(const Job* job, const Call* call, Team* team, char* memory, Py_ssize_t room) noexcept nogil:
    """Run all tasks. Each thread sets its floating-point state only once, because reading it drains the pipeline."""
    cdef Py_ssize_t task
    cdef float_state saved = enter_default_floats(), own = saved
    if team.threads == 1:
        for task in range(job.tasks):
            if stopped(call):
                break
            run_task(job, call, task, memory, NULL)
    elif parts_of(job, call, team.threads):
        for task in range(job.tasks):
            if stopped(call):
                break
            share_task(job, call, team, task, memory, room)
    else:
        with parallel(num_threads=team.threads):
            own = enter_default_floats()
            for task in prange(job.tasks, schedule="static"):
                if not stopped(call):
                    begin_task(team)
                    run_task(job, call, task, memory + threadid() * room, NULL)
                    end_task(team)
            leave_default_floats(own)
    leave_default_floats(saved)


cdef struct Tasks:
    const Job* job
    const Call* call
    Team* team
    char* memory
    Py_ssize_t room


cdef void run_all(void* tasks) noexcept nogil:
    cdef const Tasks* own = <const Tasks*> tasks
    run_tasks(own.job, own.call, own.team, own.memory, own.room)


cdef Operand operand_of(cnp.ndarray array):
    return Operand(<char*> cnp.PyArray_DATA(array), <const Py_ssize_t*> cnp.PyArray_STRIDES(array), array.ndim,
                   cnp.PyArray_ITEMSIZE(array), not cnp.PyArray_ISNOTSWAPPED(array))


cdef void lay_strides(Py_ssize_t* strides, const Py_ssize_t* shape, int ndim, Py_ssize_t itemsize) noexcept:
    """Set the strides of a row-major array."""
    cdef int a
    for a in range(ndim - 1, -1, -1):
        strides[a] = itemsize
        itemsize *= shape[a]


cdef set_scales(Scales* scales, source):
    """Copy an `onnxpool.planning.quantisation.Scales`."""
    scales.bias, scales.scale, scales.y_scale = source.bias, source.scale, source.y_scale
    scales.lowest, scales.highest, scales.zero = source.lowest, source.highest, source.zero


cdef inline Py_ssize_t stride_of(const Operand* array, int axis, Py_ssize_t none) noexcept nogil:
    return none if axis < 0 else array.strides[axis]


cdef class Pool:
    """A reduction of windows, for arrays of one shape, dtype and set of strides. `pool_of_request` makes it."""
    cdef Job[3] jobs                 # the job; one that computes suspect results again; the job of several threads
    cdef (const Unit*)[2] units      # units of the first two jobs
    cdef int[2] solvers
    cdef bint[2] by_axis
    cdef Py_ssize_t* numbers         # memory for the arrays that jobs point to
    cdef Axis* axes
    cdef Rule rule                   # complete but for the quantisation
    cdef int outer, stages           # dimensions of groups; number of jobs of one thread
    cdef int[MOST_AXES + 2] x_axis, y_axis  # the array axis of each dimension, or -1
    cdef bint apart                  # whether lanes are first copied to be adjacent

    def __dealloc__(self):
        free(self.axes)
        free(self.numbers)

    cdef int _set_up(self, const Setup* setup, const Recipe* recipe) except -1:
        cdef const Form* form = &setup.form
        cdef int rank = form.rank, outer = form.outer, a, i
        cdef Job* job
        self.outer, self.stages, self.rule, self.apart = outer, setup.stages, setup.rule, form.apart
        self.axes = <Axis*> calloc(rank, sizeof(Axis))
        self.numbers = <Py_ssize_t*> calloc(2 * outer + 4 * rank, sizeof(Py_ssize_t))
        if self.axes == NULL or self.numbers == NULL:
            raise MemoryError("onnxpool: cannot allocate memory for a pool")
        memcpy(self.axes, form.axes, rank * sizeof(Axis))
        for a in range(outer):
            self._set_dim(a, &form.groups[a])
            self.numbers[a], self.numbers[outer + a] = form.groups[a].size, form.groups[a].place
        self._set_dim(outer, &form.item)
        for a in range(rank):
            self._set_dim(outer + 1 + a, &form.dims[a])
            self.numbers[2 * outer + a] = form.dims[a].place
        self._set_dim(outer + 1 + rank, &form.lane)
        for i in range(3):
            job = &self.jobs[i]
            job.axis, job.rank, job.joined = self.axes, rank, setup.problem.joined
            job.outer, job.outer_size, job.outer_place = outer, self.numbers, self.numbers + outer
            job.place, job.tile = job.outer_place + outer, job.outer_place + outer + (1 + i) * rank
        for i in range(setup.stages):
            self.units[i], self.solvers[i] = setup.stage[i].unit, setup.stage[i].solver
            self.by_axis[i] = setup.stage[i].by_axis
            self._set_job(&self.jobs[i], &setup.stage[i], &setup.stage[i].tile, setup, recipe, i == RETRY)
        self._set_job(&self.jobs[DIVIDED], setup.stage, &setup.stage[0].divided, setup, recipe, False)
        return 0

    cdef void _set_dim(self, int place, const Dim* dim) noexcept:
        self.x_axis[place], self.y_axis[place] = dim.x, dim.y

    cdef void _set_job(self, Job* job, const Stage* stage, const Extents* extents, const Setup* setup,
                       const Recipe* recipe, bint retries) noexcept:
        cdef const Problem* p = &setup.problem
        cdef Tile tile
        cdef Ranges whole
        cdef Py_ssize_t elements, results, a, span
        cdef Py_ssize_t[MOST_AXES] zero
        cdef bint few = p.lanes * p.itemsize < CACHE_LINE  # few lanes are read as rows
        job.loops, job.copy = <Loops> stage.unit.run, copy_loops
        job.itemsize, job.acc_bytes, job.retries = p.itemsize, p.acc_bytes, retries
        if setup.stages > 1 and not retries:
            job.retry = &self.jobs[RETRY]
        if setup.stages > 1 or recipe.reports:
            job.extremes = extremes_of(recipe.digits, setup.least, setup.largest)
        if retries:
            job.exceptions = 0
        elif setup.stages > 1:
            job.exceptions = INVALID | OVERFLOWED | UNDERFLOWED
        elif setup.rule.divides:
            job.exceptions = INVALID  # sums stay in range
        elif recipe.reports:
            job.exceptions = OVERFLOWED
        job.gathers, job.shares = stage.gathers, stage.shares
        job.branches = kind_at(stage.kind).is_wide or kind_at(stage.kind).is_norm and fabs(setup.rule.p) not in (1, 2)
        job.groups, job.items, job.lanes = 1, p.items, p.lanes
        job.x_rows = few and (stage.by_axis or stage.gathers) and job.axis[job.rank - 1].size > 1
        job.y_rows = few and stage.by_axis and job.axis[job.rank - 1].out > 1
        for a in range(self.outer):
            job.groups *= job.outer_size[a]
        job.item_place, job.lane_place = setup.form.item.place, setup.form.lane.place
        job.tile_items, job.tile_lanes = extents.items, extents.lanes
        for a in range(job.rank):
            job.tile[a], zero[a] = extents.windows[a], 0
        whole_of(job, 0, &whole)
        job.tasks = count_tiles(job, &whole) * job.groups
        memset(&tile, 0, sizeof(Tile))
        tile.axis, tile.rank, tile.items, tile.lanes = job.axis, job.rank, job.tile_items, job.tile_lanes
        tile.joined, tile.all_lanes, tile.most_lanes = job.joined, max(1, job.lanes), job.tile_lanes
        tile.begin, tile.end = zero, job.tile
        elements = results = job.tile_items * job.tile_lanes
        for a in range(job.rank):
            span = min(job.axis[a].kernel, job.axis[a].size)
            span = min(job.axis[a].size, (job.tile[a] - 1) * min(job.axis[a].stride, job.axis[a].size)
                       + min(job.axis[a].size, (span - 1) * min(job.axis[a].dilation, job.axis[a].size) + 1))
            elements *= span
            results *= job.tile[a]
        job.x_room = 0 if job.gathers else FRONT + round_up(elements * job.itemsize + CACHE_LINE, CACHE_LINE)
        job.y_room = round_up(results * job.itemsize + CACHE_LINE, CACHE_LINE)
        job.index_room = round_up(results * 8, CACHE_LINE) if recipe.indexed else 0
        job.scratch = round_up(stage.unit.scratch(&tile), CACHE_LINE)

    @property
    def tasks(self):
        return self.jobs[DIVIDED].tasks

    @property
    def setup(self):
        """What planning has decided, for Python."""
        cdef Setup setup
        cdef Form* form = &setup.form
        cdef const Job* job = self.jobs
        cdef int a, i
        form.outer, form.rank, form.apart = self.outer, job.rank, self.apart
        for a in range(self.outer):
            form.groups[a] = Dim(self.numbers[a], job.outer_place[a], self.x_axis[a], self.y_axis[a])
        a = self.outer
        form.item = Dim(job.items, job.item_place, self.x_axis[a], self.y_axis[a])
        for i in range(job.rank):
            a = self.outer + 1 + i
            form.axes[i] = self.axes[i]
            form.dims[i] = Dim(self.axes[i].size, job.place[i], self.x_axis[a], self.y_axis[a])
        a = self.outer + 1 + job.rank
        form.lane = Dim(job.lanes, job.lane_place, self.x_axis[a], self.y_axis[a])
        setup.problem.joined, setup.problem.acc_bytes = job.joined, <int> job.acc_bytes
        setup.stages, setup.rule = self.stages, self.rule
        for i in range(self.stages):
            setup.stage[i].unit, setup.stage[i].solver = self.units[i], self.solvers[i]
            setup.stage[i].by_axis = self.by_axis[i]
            setup.stage[i].gathers, setup.stage[i].shares = self.jobs[i].gathers, self.jobs[i].shares
            extents_of(&self.jobs[i], &setup.stage[i].tile)
            extents_of(&self.jobs[i if i == RETRY else DIVIDED], &setup.stage[i].divided)
        return setup_in(&setup)

    def run(self, cnp.ndarray x, cnp.ndarray y, int threads, rule=None, cnp.ndarray indices=None):
        """Reduce x into y. All arrays have the job's shapes and dtypes, and none overlaps x.

        Return whether a sum that skips NaNs overflowed. Other sums that overflow are recomputed."""
        cdef Operands operands
        if cnp.PyArray_SIZE(y) == 0:
            return False
        memset(&operands, 0, sizeof(Operands))
        operands.x, operands.y = operand_of(x), operand_of(y)
        if indices is not None:
            operands.indices = operand_of(indices)
        if rule is not None:
            set_scales(&operands.scales, rule)
        return self._run(&operands, threads)

    cdef bint _run(self, Operands* operands, int threads) except -1:
        cdef Interrupts signals
        cdef bint done
        cdef int overflowed = 0
        memset(&signals, 0, sizeof(Interrupts))
        with nogil:
            done = self.run_operands(operands, threads, &signals, &overflowed)
        if not done:
            raise MemoryError(f"onnxpool: cannot allocate scratch memory for {threads} threads")
        raised_by_handler(&signals)
        return overflowed

    cdef bint _describe(self, Array* array, const Operand* source, const int* axis) noexcept nogil:
        """Set an array's strides along the job's dimensions, and return whether all loops need a copy of it."""
        cdef const Job* job = self.jobs
        cdef bint apart = source.swapped
        cdef int a
        array.data, array.itemsize, array.swapped = source.data, source.itemsize, source.swapped
        array.item = stride_of(source, axis[self.outer], 0)
        array.lane = source.itemsize if job.lanes == 1 else stride_of(source, axis[self.outer + job.rank + 1], 0)
        if array.lane != source.itemsize or array.item % source.itemsize:
            apart = True
        for a in range(self.outer):
            array.outer[a] = stride_of(source, axis[a], 0)
            if array.outer[a] % source.itemsize:
                apart = True
        for a in range(job.rank):
            array.axis[a] = stride_of(source, axis[self.outer + 1 + a], job.lanes * source.itemsize)
            if array.axis[a] % source.itemsize:
                apart = True
        return apart

    cdef bint run_operands(self, const Operands* operands, int threads, Interrupts* signals,
                           int* overflowed) noexcept nogil:
        """Do the work of `run` without the GIL. Return False if memory runs out. If `signals` is NULL, nothing
        interrupts the call."""
        cdef Call call
        cdef char* memory
        cdef char* allocated
        cdef Py_ssize_t room, shared = 0, watched = onnxpool_read(&fence)
        cdef Team team
        cdef Tasks tasks
        cdef const Job* job = self.jobs
        cdef int a, last = job.rank - 1
        call.x_apart = self._describe(&call.x, &operands.x, self.x_axis)
        call.y_apart = self._describe(&call.y, &operands.y, self.y_axis)
        call.x_gaps = call.x.axis[last] != job.lanes * operands.x.itemsize
        call.y_gaps = call.y.axis[last] != job.lanes * operands.y.itemsize
        call.indices.data, call.indices_apart = NULL, False
        if operands.indices.data != NULL:
            call.indices_apart = self._describe(&call.indices, &operands.indices, self.y_axis)
        call.rule, call.signals, call.again, call.overflowed = self.rule, signals, &again, overflowed
        call.rule.scales = operands.scales
        room = job.groups * job.items * job.lanes * job.itemsize
        for a in range(job.rank):
            room *= job.axis[a].size
        call.far = room if not copies_x(job, &call) and room > CACHED and fetches() else 0
        team = enter_team(threads if self.jobs[DIVIDED].tasks > 1 or parts_of(&self.jobs[DIVIDED], &call, threads)
                          else 1)
        if team.threads > 1:
            job = &self.jobs[DIVIDED]
            shared = (parts_of(job, &call, team.threads) * job.tile_items
                      * part_bytes_of(job.tile_lanes, job.acc_bytes))
        room = round_up(room_of(job, &call), CACHE_LINE) + watched
        if room < 0 or room >= TOO_LARGE:
            leave_team(&team)
            return False
        allocated = <char*> malloc(team.threads * room + shared + CACHE_LINE)
        if allocated == NULL:
            leave_team(&team)
            return False
        memory = allocated + (CACHE_LINE - <uintptr_t> allocated % CACHE_LINE)
        if watched:
            memset(memory, FENCE, team.threads * room)
        elif job.branches:
            memset(memory, 0, team.threads * room)
        if team.threads > 1:
            tasks = Tasks(job, &call, &team, memory, room)
            if not run_together(run_all, &tasks, signals):
                team.threads = 1
                run_tasks(job, &call, &team, memory, room)
        else:
            run_tasks(job, &call, &team, memory, room)
        close_fences(memory, team.threads, room, watched)
        leave_team(&team)
        free(allocated)
        return True


include "plain_calls.pxi"
include "quotients.pxi"


cdef void extents_of(const Job* job, Extents* extents) noexcept:
    extents.items, extents.lanes = job.tile_items, job.tile_lanes
    memcpy(extents.windows, job.tile, job.rank * sizeof(Py_ssize_t))


def pool_of_request(Reducer reducer not None, request, x, results, bint contiguous, int solver=ANY, int form=ANY,
                    double share=1.0):
    """
    The pool for a request and arrays of these strides. Parameters are as in `layout.pool_of` after the request's
    reducer, except for these:

    Parameters
    ----------
    solver, form : int, optional
        The place of a solver in the table, and of a form. By default, costs choose.
    share : float, optional
        The room of a tile, relative to its usual room.
    """
    cdef Request r
    cdef Setup setup
    cdef Pool pool = Pool.__new__(Pool)
    r.recipe = &reducer.recipe
    read_request(&r, request, x, results, contiguous)
    if not set_up(&r, solver, form, share, &setup):
        raise ValueError("onnxpool: no loops are compiled for this reduction and dtype")
    pool._set_up(&setup, &reducer.recipe)
    return pool


cdef bint run_pool(void* pool, const Operands* operands, int threads) noexcept nogil:
    return (<Pool> pool).run_operands(operands, threads, NULL, NULL)


RUN_POOL = PyCapsule_New(<void*> run_pool, "onnxpool.kernels.operands.RunPool", NULL)
