"""Kernels of one instruction set: a `Pool` is a job made ready, `run` reduces one array into another."""
import math

import numpy as np

cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_New
from cython.parallel cimport parallel, prange, threadid
from libc.math cimport INFINITY, pow
from libc.stdint cimport INT32_MAX, int8_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from .elements cimport enter_default_floats, float_state, gains_by_fetching, leave_default_floats
from .job cimport (
    BFLOAT16,
    BFLOAT16_KEYS,
    BFLOAT16_PAIRS,
    BFLOAT16_SQUARES,
    BYTES,
    FLOAT16,
    FLOAT16_KEYS,
    FLOAT16_SQUARES,
    FLOAT32_SQUARES,
    FLOAT64_SQUARES,
    MAX_AXES,
    MAX_F32,
    MAX_F64,
    MAX_I8,
    MAX_I16,
    MAX_U8,
    NEAR,
    PLACED_ANY,
    PLACED_F32,
    PLACED_F64,
    PLACED_I8,
    PLACED_U8,
    PLAIN,
    SIGNED_BYTES,
    SUM_F32,
    SUM_F64,
    SUM_I32,
    SUM_I64,
    SUM_WIDE,
    Array,
    Call,
    Format,
    Interrupts,
    Job,
    Rule,
    Stage,
    Tile,
    count_tiles,
    interrupted,
    locate,
    parts,
    raised_by_handler,
    stopped,
)
from .geometry cimport Axis
from .operands cimport Operand, Operands
from .reductions cimport (
    MaxF32,
    MaxF64,
    MaxI8,
    MaxI16,
    MaxU8,
    SumF32,
    SumF64,
    SumI32,
    SumI64,
    SumWide,
)

include "passes.pxi"
include "folds.pxi"
include "tables.pxi"
include "rows.pxi"
include "walks.pxi"
include "squares.pxi"
include "courses.pxi"
include "boxes.pxi"
include "boxed_tiles.pxi"
include "finished_tiles.pxi"
include "strips.pxi"
include "strip_tiles.pxi"
include "registers.pxi"
include "rings.pxi"
include "quads.pxi"
include "slides.pxi"
include "channels_last.pxi"
include "bands.pxi"
include "planes.pxi"
include "plane_tiles.pxi"
include "ring_tiles.pxi"
include "flat_tiles.pxi"
include "tiles.pxi"
include "places.pxi"
include "placed_tiles.pxi"
include "in_order.pxi"
include "unpool.pxi"
include "regions.pxi"
include "stages.pxi"

cdef extern from "team.h":
    void watch_forks()
    int enter_team(int threads) nogil
    void leave_team(int threads) nogil

cdef enum:
    MOST_JOBS = 3  # one that finishes, one that only reduces, one with wider running values

cnp.import_array()
watch_forks()

cdef bint FETCHES = gains_by_fetching()

FORMATS = {"float16": FLOAT16, "bfloat16": BFLOAT16}
KEYS = {"float16": FLOAT16_KEYS, "bfloat16": BFLOAT16_KEYS}  # of their maxima
SQUARES = {"float16": FLOAT16_SQUARES, "bfloat16": BFLOAT16_SQUARES, "float32": FLOAT32_SQUARES,
           "float64": FLOAT64_SQUARES}
VALUESIZES = {"int8": 1, "uint8": 1, "float16": 4, "bfloat16": 4, "float32": 4, "float64": 8}  # of their values

# More taps of a byte than this could overflow a sum in 32 bits.
MOST_TAPS_I32 = 2**31 // 256
REGION_ROW = 1 << 14  # values of a row of a region that are taken together


cdef bint run_stage(const Job* job, const Call* call, const Tile* tile, char* memory, Scratch* scratch) noexcept nogil:
    if job.stage.running == MAX_I8:
        return pool_tile(<MaxI8*> memory, job, call, tile, scratch)
    if job.stage.running == MAX_U8:
        return pool_tile(<MaxU8*> memory, job, call, tile, scratch)
    if job.stage.running == MAX_I16:
        return pool_tile(<MaxI16*> memory, job, call, tile, scratch)
    if job.stage.running == MAX_F32:
        return pool_tile(<MaxF32*> memory, job, call, tile, scratch)
    if job.stage.running == MAX_F64:
        return pool_tile(<MaxF64*> memory, job, call, tile, scratch)
    if job.stage.running == SUM_I32:
        return pool_tile(<SumI32*> memory, job, call, tile, scratch)
    if job.stage.running == SUM_I64:
        return pool_tile(<SumI64*> memory, job, call, tile, scratch)
    if job.stage.running == SUM_F32:
        return pool_tile(<SumF32*> memory, job, call, tile, scratch)
    if job.stage.running == SUM_F64:
        return pool_tile(<SumF64*> memory, job, call, tile, scratch)
    if job.stage.running == PLACED_I8:
        return place_tile(<const PlacedI8*> NULL, memory, job, call, tile, scratch)
    if job.stage.running == PLACED_U8:
        return place_tile(<const PlacedU8*> NULL, memory, job, call, tile, scratch)
    if job.stage.running == PLACED_F32:
        return place_tile(<const PlacedF32*> NULL, memory, job, call, tile, scratch)
    if job.stage.running == PLACED_F64:
        return place_tile(<const PlacedF64*> NULL, memory, job, call, tile, scratch)
    if job.stage.running == PLACED_ANY:
        return place_tile(<const PlacedAny*> NULL, memory, job, call, tile, scratch)
    return pool_tile(<SumWide*> memory, job, call, tile, scratch)


cdef char* lay_scratch(const Job* job, char* memory, Scratch* scratch) noexcept nogil:
    """The part for running values: divisors come last, so that few pages are touched if there are none."""
    scratch.values = memory
    scratch.elements = scratch.values + job.row * 8
    scratch.indices = scratch.elements + job.row * 8
    scratch.marks = scratch.indices + job.row * 8
    scratch.divisors = memory + job.scratch - job.divisors
    scratch.factors = scratch.divisors + job.divisors // 2
    return scratch.marks + job.marks


cdef void run_tile(const Job* job, const Call* call, const Tile* tile, char* memory) noexcept nogil:
    """A tile, and again what of it may be wrong, in as many tiles as the next job asks for."""
    cdef Scratch scratch
    cdef char* values = lay_scratch(job, memory, &scratch)
    cdef bint wrong = run_stage(job, call, tile, values, &scratch) and job.mend != NULL
    if wrong and (not job.looks or any_odd(job, call, tile, &scratch)):
        mend(job.mend, call, tile, memory)


cdef void mend(const Job* job, const Call* call, const Tile* whole, char* memory) noexcept nogil:
    cdef Call again = call[0]
    cdef Tile tile
    cdef Py_ssize_t task
    again.x.format, again.y.format = job.x_format, job.y_format
    for task in range(count_tiles(job, whole)):
        if not stopped(call):
            locate(job, whole, task, &tile)
            run_tile(job, &again, &tile, memory)


cdef void run_task(const Job* job, const Call* call, Py_ssize_t task, Py_ssize_t segment, char* segments,
                   char* memory) noexcept nogil:
    """A tile, or one segment of it; `segments` of all tiles or NULL."""
    cdef Tile tile
    locate(job, &job.all, task, &tile)
    if segments != NULL:
        tile.segment, tile.segments = segment, segments + task * job.segments * job.held
    run_tile(job, call, &tile, memory)


cdef void run_tasks(const Job* job, const Call* call, int threads, char* segments, char* memory) noexcept nogil:
    """All tiles, by so many threads. Their float state is set once: to ask for it waits for all that was begun."""
    cdef Py_ssize_t task
    cdef float_state saved
    if threads == 1:
        saved = enter_default_floats()
        for task in range(job.tasks):
            if stopped(call):
                break
            run_task(job, call, task, -1, NULL, memory)
        leave_default_floats(saved)
        return
    with parallel(num_threads=threads):
        saved = enter_default_floats()
        if segments != NULL:
            for task in prange(job.tasks * job.segments, schedule="static"):
                if not stopped(call):
                    run_task(job, call, task // job.segments, task % job.segments, segments,
                             memory + threadid() * job.scratch)
        for task in prange(job.tasks, schedule="static"):
            if not stopped(call):
                run_task(job, call, task, -1, segments, memory + threadid() * job.scratch)
        leave_default_floats(saved)


cdef Operand operand_of(cnp.ndarray array):
    return Operand(<char*> cnp.PyArray_DATA(array), <const Py_ssize_t*> cnp.PyArray_STRIDES(array), array.ndim,
                   cnp.PyArray_ITEMSIZE(array), not cnp.PyArray_ISNOTSWAPPED(array), cnp.PyArray_ISALIGNED(array))


cdef lay_strides(Py_ssize_t* strides, shape, Py_ssize_t itemsize):
    """Those of an array in row-major order."""
    for a in range(len(shape) - 1, -1, -1):
        strides[a] = itemsize
        itemsize *= shape[a]


cdef void describe(Array* array, const Operand* source, Format format, const Job* job, int channel, bint interleaved,
                   int first) noexcept nogil:
    """The strides of an array by the names they have in a job; `first` is its first spatial axis."""
    cdef int a
    array.format = format
    array.itemsize = source.itemsize
    array.data = source.data
    array.swapped = source.swapped
    array.aligned = source.aligned
    array.image = source.strides[0]
    array.channel = 0 if interleaved else source.strides[channel]
    array.inner = source.strides[channel] if interleaved else 0
    for a in range(job.axes):
        array.axis[a] = source.strides[first + a] if source.ndim > 2 else 0


cdef set_tiles(Job* job, tiling):
    """The tiles of a job whose stage is known, and the scratch memory that these need."""
    cdef int a
    cdef bint has_places = PLACED_I8 <= job.stage.running <= PLACED_ANY, cascades = False
    cdef Py_ssize_t width = sizeof(SumWide) if has_places or job.stage.running == SUM_WIDE else 8
    cdef Py_ssize_t tables = 2 if has_places else 1
    job.tile_outer, job.tile_inner = tiling.outer, tiling.inner
    job.segments, job.held = tiling.segments, (BAND if job.inner > 1 else VECTOR) + VECTOR
    job.boxes, job.at_once, job.whole, job.flat = tiling.boxes, tiling.at_once, tiling.whole, tiling.flat
    job.finishes = tiling.finishes
    for a, pitch in enumerate(tiling.pitches):
        job.pitch[a] = pitch
    for a in range(job.axes):
        job.tile[a] = tiling.windows[a]
        cascades |= job.axis[a].most > FEW and not job.whole
    job.tasks = count_tiles(job, &job.all)
    # All parts of the scratch memory begin where a line of the cache does.
    job.block, job.row = parts(tiling.block, LINE) * LINE, parts(tiling.row, LINE) * LINE
    job.work = parts(tiling.work + VECTOR + (LEVELS * CHUNK + BLOCK if cascades else 0), LINE) * LINE
    job.marks = parts(tiling.marks, LINE) * LINE
    # Two rows at least, and a vector behind each.
    job.divisors = 2 * (job.block * job.valuesize + 4 * VECTOR) if job.stage.divide else 0
    job.scratch = (3 * 8 * job.row + job.marks + job.divisors
                   + (2 * job.block + job.row + VECTOR + tables * job.work) * width)


cdef set_formats(Job* job, str reduction, str dtype, double p):
    """What a job whose stage and tiles are known reads and writes."""
    job.x_format = job.y_format = FORMATS.get(dtype, PLAIN)
    if job.stage.running == MAX_I16:
        job.x_format, job.y_format = KEYS[dtype], PLAIN
    elif job.stage.running == SUM_I32:
        job.x_format = SIGNED_BYTES if dtype == "int8" else BYTES
    elif reduction == "norm" and p == 2 and job.stage.running == SUM_F64:
        job.x_format = SQUARES[dtype]
    elif (reduction == "mean" and dtype == "bfloat16" and job.stage.running == SUM_F32 and not job.whole
          and job.inner % 32 == job.tile_inner % 32 == 0):
        job.x_format = job.y_format = BFLOAT16_PAIRS


cdef class Pool:
    """A reduction over windows, for one shape and dtype.

    Parameters
    ----------
    reduction : {"max", "indexed_max", "mean", "norm", "quantised_mean", "mean_in_order"}
    dtype : str
    p : float
        Of the norm; infinity is the largest magnitude.
    safe : (float, float)
        Sums of powers in this range neither overflowed nor lost digits to an underflow.
    images, channels : int
    axes : sequence of onnxpool.windows.Axis
    tilings : sequence of onnxpool.tiling.Tiling
        Of what finishes, if anything does, of what does not, and of wider running values, if the reduction knows of
        that: each takes tiles of the one before it again whose results may be wrong.
    channels_last, interleaved : bool
        Where the arrays have their channels, and whether channels are the innermost loop.
    column_major : bool
        Whether indices count the first spatial axis fastest.
    """
    cdef Job[MOST_JOBS] jobs
    cdef double p, low, high
    cdef object kept
    cdef int channel, first
    cdef bint interleaved

    def __cinit__(self, str reduction, str dtype, double p, safe, images, channels, axes, tilings,
                  bint channels_last, bint interleaved, bint column_major=False):
        cdef Job* job = self.jobs
        memset(job, 0, MOST_JOBS * sizeof(Job))
        self.p, self.low, self.high = p, safe[0], safe[1]
        self.channel = len(axes) + 1 if channels_last and axes else 1
        self.first = 1 if channels_last else 2
        self.interleaved = interleaved
        job.valuesize = VALUESIZES[dtype]
        job.channels = 1 if interleaved else channels
        job.outer = job.all.outer_end = images * job.channels
        job.inner = job.all.inner_end = channels if interleaved else 1
        job.order.axes = len(axes) if column_major else 0
        self._set_axes(job, axes)
        self._set_reduction(job, reduction, dtype)
        self._set_extremes(job, max(1, math.prod(axis.most for axis in axes)))
        self._set_tiles(job, tilings, reduction, dtype)

    cdef _set_tiles(self, Job* jobs, tilings, str reduction, str dtype):
        cdef int i, last = len(tilings) - 1
        cdef Py_ssize_t scratch = 0
        for i in range(last, -1, -1):
            jobs[i] = jobs[0]
            if 0 < i == last:
                jobs[i].stage = mend_stage(reduction, dtype)
            jobs[i].mend = &jobs[i + 1] if i < last else NULL
            jobs[i].looks = i < last and (jobs[i].stage.running == MAX_I16 or jobs[i + 1].stage.running == SUM_WIDE)
            set_tiles(&jobs[i], tilings[i])
            set_formats(&jobs[i], reduction, dtype, self.p)
            scratch = max(scratch, jobs[i].scratch)
        jobs[0].scratch = scratch

    cdef _set_axes(self, Job* job, axes):
        cdef Axis* axis
        cdef cnp.ndarray array
        self.kept = []
        job.axes, job.full, job.uniform, job.divisor = len(axes), True, True, 1
        for i, source in enumerate(axes):
            axis = &job.axis[i]
            axis.size, axis.out, axis.begin, axis.end = source.size, source.out, source.begin, source.end
            job.all.span[i].end, job.order.size[i] = axis.out, axis.size
            axis.start, axis.step, axis.hop = source.start, source.step, source.hop
            axis.taps, axis.most, axis.divisor = source.taps, source.most, source.divisor
            job.full &= bool(np.all(np.asarray(source.inside) > 0))
            job.uniform &= bool(np.all(source.divisors == source.divisor))
            job.divisor *= axis.divisor
            for name, dtype in (("first", np.int64), ("inside", np.int64), ("divisors", np.float64)):
                array = np.ascontiguousarray(getattr(source, name), dtype)
                self.kept.append(array)
                if name == "first":
                    axis.first = <const int64_t*> cnp.PyArray_DATA(array)
                elif name == "inside":
                    axis.inside = <const int64_t*> cnp.PyArray_DATA(array)
                else:
                    axis.divisors = <const double*> cnp.PyArray_DATA(array)

    cdef _set_reduction(self, Job* job, str reduction, str dtype):
        cdef int a
        taps = 1
        job.plane = 1
        for a in range(job.axes - 1, -1, -1):
            taps *= job.axis[a].most
            job.pace[a] = job.plane
            job.plane *= job.axis[a].size
        if reduction == "max":
            job.stage = max_stage(dtype)
        elif reduction == "norm" and self.p == INFINITY:
            job.stage = magnitude_stage(dtype)
        elif reduction == "mean":
            job.stage = mean_stage(dtype)
        elif reduction == "norm":
            job.stage = norm_stage(dtype, self.p)
        elif reduction == "indexed_max":
            job.stage = any_indexed_stage(dtype) if job.plane > INT32_MAX else indexed_stage(dtype)
        elif reduction == "mean_in_order":
            job.stage = in_order_stage(dtype)
        else:
            job.stage = quantised_stage(dtype, taps > MOST_TAPS_I32)
        job.divides = reduction in ("mean", "mean_in_order")
        job.in_order = reduction == "mean_in_order"
        job.indexed = reduction == "indexed_max"

    cdef _set_extremes(self, Job* job, double taps):
        """Elements whose magnitudes lie between these never take a sum of so many out of its range."""
        if job.stage.running == SUM_F32:
            job.least, job.largest = 0, np.finfo(np.float32).max / (2 * taps)
        elif self.p == 0:
            job.least, job.largest = 0, np.finfo(np.float64).max / (2 * taps)
        else:
            job.least = 1.001 * pow(self.low, 1 / self.p)
            job.largest = 0.999 * pow(self.high / (2 * taps), 1 / self.p)

    @property
    def tasks(self):
        return self.jobs[0].tasks

    def run(self, cnp.ndarray x, cnp.ndarray y, int threads, quantisation=None, cnp.ndarray indices=None):
        """Reduces x into y; all have the shape and dtype of the job, and none overlaps x."""
        cdef Operands operands
        if cnp.PyArray_SIZE(y) == 0:
            return
        memset(&operands, 0, sizeof(Operands))
        operands.x, operands.y = operand_of(x), operand_of(y)
        if indices is not None:
            operands.indices = operand_of(indices)
        self._run(&operands, threads, quantisation)

    cdef _run(self, Operands* operands, int threads, quantisation):
        cdef Interrupts signals
        cdef bint done
        if quantisation is not None:
            (operands.rule.bias, operands.rule.scale, operands.rule.y_scale, operands.rule.lowest,
             operands.rule.highest, operands.rule.zero) = quantisation
        memset(&signals, 0, sizeof(Interrupts))
        with nogil:
            done = self.run_operands(operands, threads, &signals)
        if not done:
            raise MemoryError(f"onnxpool: no {threads * self.jobs[0].scratch} bytes of scratch memory")
        raised_by_handler(&signals)

    cdef bint run_operands(self, const Operands* operands, int threads, Interrupts* signals) noexcept nogil:
        """As `run`, for the holder of no GIL; False if there is no memory. Without `signals` it goes on to the end."""
        cdef Call call
        cdef char* memory
        cdef char* allocated
        cdef char* segments
        cdef Py_ssize_t shared = 0
        cdef const Job* job = self.jobs
        describe(&call.x, &operands.x, job.x_format, job, self.channel, self.interleaved, self.first)
        describe(&call.y, &operands.y, job.y_format, job, self.channel, self.interleaved, self.first)
        if operands.indices.data != NULL:
            describe(&call.indices, &operands.indices, PLAIN, job, self.channel, self.interleaved, self.first)
        call.far = distance_of(job.outer * job.inner * job.plane * call.x.itemsize)
        call.asks = call.far if FETCHES else NEAR
        call.rule, call.signals = operands.rule, signals
        call.rule.p, call.rule.low, call.rule.high = self.p, self.low, self.high
        call.rule.dropped = 0 if job.y_format == PLAIN else 13 if job.y_format == FLOAT16 else 16
        call.rule.nans = nans_of(job.x_format)
        threads = enter_team(threads if job.tasks * job.segments > 1 else 1)
        if threads > 1 and job.segments > 1:
            shared = job.tasks * job.segments * job.held
        allocated = <char*> malloc(threads * job.scratch + shared + LINE)
        if allocated == NULL:
            leave_team(threads)
            return False
        memory = allocated + (LINE - <uintptr_t> allocated % LINE)
        segments = memory + threads * job.scratch if shared else NULL
        run_tasks(job, &call, threads, segments, memory)
        leave_team(threads)
        free(allocated)
        return True


include "plain_calls.pxi"


cdef bint run_pool(void* pool, const Operands* operands, int threads) noexcept nogil:
    return (<Pool> pool).run_operands(operands, threads, NULL)


RUN_POOL = PyCapsule_New(<void*> run_pool, "onnxpool.kernels.operands.RunPool", NULL)
