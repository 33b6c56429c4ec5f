"""Kernels of one instruction set: a `Pool` is a job made ready, `run` reduces one array into another."""
import numpy as np

cimport numpy as cnp
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from .elements cimport enter_default_floats, float_state, leave_default_floats
from .job cimport (
    BFLOAT16,
    FLOAT16,
    MAX_F32,
    MAX_F64,
    MAX_I8,
    MAX_U8,
    PLAIN,
    SUM_F32,
    SUM_F64,
    SUM_I32,
    SUM_I64,
    SUM_WIDE,
    Array,
    Call,
    Job,
    Load,
    Rule,
    Stage,
    Store,
    Tile,
    locate,
    parts,
)
from .geometry cimport Axis
from .reductions cimport (
    MaxF32,
    MaxF64,
    MaxI8,
    MaxU8,
    SumF32,
    SumF64,
    SumI32,
    SumI64,
    SumWide,
)

include "passes.pxi"
include "rows.pxi"
include "tiles.pxi"

cnp.import_array()

FORMATS = {"float16": FLOAT16, "bfloat16": BFLOAT16}
ITEMSIZES = {"int8": 1, "uint8": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
# More taps of a byte than this could overflow a sum in 32 bits.
MOST_TAPS_I32 = 2**31 // 256


cdef Stage max_stage(str dtype):
    if dtype == "int8":
        return Stage(MAX_I8, NULL, NULL)
    if dtype == "uint8":
        return Stage(MAX_U8, NULL, NULL)
    if dtype == "float64":
        return Stage(MAX_F64, NULL, NULL)
    return Stage(MAX_F32, NULL, NULL)


cdef Stage magnitude_stage(str dtype):
    if dtype == "float64":
        return Stage(MAX_F64, <Load> load_magnitudes[double], <Store> store_magnitudes[double])
    return Stage(MAX_F32, <Load> load_magnitudes[float], <Store> store_magnitudes[float])


cdef Stage mean_stage(str dtype):
    if dtype == "float64":
        return Stage(SUM_F64, NULL, <Store> store_means_f64)
    return Stage(SUM_F32, NULL, <Store> store_means_f32)


cdef Stage norm_stage(str dtype):
    if dtype == "float64":
        return Stage(SUM_F64, <Load> load_powers[double], <Store> store_norms[double])
    return Stage(SUM_F64, <Load> load_powers[float], <Store> store_norms[float])


cdef Stage mend_stage(str dtype):
    if dtype == "float64":
        return Stage(SUM_WIDE, <Load> load_wide[double], <Store> mend_floats[double])
    return Stage(SUM_WIDE, <Load> load_wide[float], <Store> mend_floats[float])


cdef Stage quantised_stage(str dtype, bint long_sums):
    if dtype == "int8" and long_sums:
        return Stage(SUM_I64, <Load> load_integers[int8_t, SumI64], <Store> store_quantised[SumI64, int8_t])
    if dtype == "int8":
        return Stage(SUM_I32, <Load> load_integers[int8_t, SumI32], <Store> store_quantised[SumI32, int8_t])
    if long_sums:
        return Stage(SUM_I64, <Load> load_integers[uint8_t, SumI64], <Store> store_quantised[SumI64, uint8_t])
    return Stage(SUM_I32, <Load> load_integers[uint8_t, SumI32], <Store> store_quantised[SumI32, uint8_t])


cdef bint run_stage(const Job* job, const Call* call, const Stage* stage, const Tile* tile, bint mending,
                    char* memory, Scratch* scratch) noexcept nogil:
    if stage.running == MAX_I8:
        return pool_tile(<MaxI8*> memory, job, call, stage, tile, mending, scratch)
    if stage.running == MAX_U8:
        return pool_tile(<MaxU8*> memory, job, call, stage, tile, mending, scratch)
    if stage.running == MAX_F32:
        return pool_tile(<MaxF32*> memory, job, call, stage, tile, mending, scratch)
    if stage.running == MAX_F64:
        return pool_tile(<MaxF64*> memory, job, call, stage, tile, mending, scratch)
    if stage.running == SUM_I32:
        return pool_tile(<SumI32*> memory, job, call, stage, tile, mending, scratch)
    if stage.running == SUM_I64:
        return pool_tile(<SumI64*> memory, job, call, stage, tile, mending, scratch)
    if stage.running == SUM_F32:
        return pool_tile(<SumF32*> memory, job, call, stage, tile, mending, scratch)
    if stage.running == SUM_F64:
        return pool_tile(<SumF64*> memory, job, call, stage, tile, mending, scratch)
    return pool_tile(<SumWide*> memory, job, call, stage, tile, mending, scratch)


cdef void run_task(const Job* job, const Call* call, Py_ssize_t task, char* memory) noexcept nogil:
    cdef float_state saved = enter_default_floats()
    cdef Tile tile
    cdef Scratch scratch
    scratch.values = memory
    scratch.elements = scratch.values + job.row * 8
    scratch.marks = scratch.elements + job.row * 8
    memory = scratch.marks + parts(job.marks, 64) * 64
    locate(job, task, &tile)
    if run_stage(job, call, &job.fast, &tile, False, memory, &scratch) and job.mends:
        run_stage(job, call, &job.mend, &tile, True, memory, &scratch)
    leave_default_floats(saved)


cdef void describe(Array* array, cnp.ndarray source, const Job* job, int channel, bint interleaved, int first):
    """The strides of an array by the names they have in a job; `first` is its first spatial axis."""
    cdef int a
    array.data = <char*> cnp.PyArray_DATA(source)
    array.swapped = not cnp.PyArray_ISNOTSWAPPED(source)
    array.aligned = cnp.PyArray_ISALIGNED(source)
    array.image = source.strides[0]
    array.channel = 0 if interleaved else source.strides[channel]
    array.inner = source.strides[channel] if interleaved else 0
    for a in range(job.axes):
        array.axis[a] = source.strides[first + a] if source.ndim > 2 else 0


cdef class Pool:
    """One job: a reduction over windows, for one shape and dtype.

    Parameters
    ----------
    reduction : {"max", "mean", "norm", "quantised_mean"}
    dtype : str
    p : float
        Of the norm; infinity is the largest magnitude.
    safe : (float, float)
        Sums of powers in this range neither overflowed nor lost digits to an underflow.
    images, channels : int
    axes : sequence of onnxpool.windows.Axis
    tiling : onnxpool.tiling.Tiling
    channels_last, interleaved : bool
        Where the arrays have their channels, and whether channels are the innermost loop.
    """
    cdef Job job
    cdef double p, low, high
    cdef object kept
    cdef int channel, first
    cdef bint interleaved

    def __cinit__(self, str reduction, str dtype, double p, safe, images, channels, axes, tiling,
                  bint channels_last, bint interleaved):
        memset(&self.job, 0, sizeof(Job))
        self.p, self.low, self.high = p, safe[0], safe[1]
        self.channel = len(axes) + 1 if channels_last and axes else 1
        self.first = 1 if channels_last else 2
        self.interleaved = interleaved
        self.job.itemsize = ITEMSIZES[dtype]
        self.job.format = FORMATS.get(dtype, PLAIN)
        self.job.valuesize = 4 if self.job.format != PLAIN else self.job.itemsize
        self.job.channels = 1 if interleaved else channels
        self.job.outer = images * self.job.channels
        self.job.inner = channels if interleaved else 1
        self._set_axes(axes)
        self._set_tiles(tiling)
        self._set_stages(reduction, dtype)
        self._set_scratch(tiling)

    cdef _set_axes(self, axes):
        cdef Axis* axis
        cdef cnp.ndarray array
        self.kept = []
        self.job.axes = len(axes)
        for i, source in enumerate(axes):
            axis = &self.job.axis[i]
            axis.size, axis.out, axis.begin, axis.end = source.size, source.out, source.begin, source.end
            axis.start, axis.step, axis.hop = source.start, source.step, source.hop
            axis.taps, axis.most, axis.divisor = source.taps, source.most, source.divisor
            for name, dtype in (("first", np.int64), ("inside", np.int64), ("divisors", np.float64)):
                array = np.ascontiguousarray(getattr(source, name), dtype)
                self.kept.append(array)
                if name == "first":
                    axis.first = <const int64_t*> cnp.PyArray_DATA(array)
                elif name == "inside":
                    axis.inside = <const int64_t*> cnp.PyArray_DATA(array)
                else:
                    axis.divisors = <const double*> cnp.PyArray_DATA(array)

    cdef _set_tiles(self, tiling):
        cdef int a
        self.job.tile_outer, self.job.tile_inner = tiling.outer, tiling.inner
        self.job.tasks = parts(self.job.outer, tiling.outer) * parts(self.job.inner, tiling.inner)
        for a in range(self.job.axes):
            self.job.tile[a] = tiling.windows[a]
            self.job.tasks *= parts(self.job.axis[a].out, tiling.windows[a])

    cdef _set_stages(self, str reduction, str dtype):
        cdef int a
        taps = 1
        for a in range(self.job.axes):
            taps *= self.job.axis[a].most
        if reduction == "max":
            self.job.fast = max_stage(dtype)
        elif reduction == "norm" and self.p == INFINITY:
            self.job.fast = magnitude_stage(dtype)
        elif reduction == "mean":
            self.job.fast = mean_stage(dtype)
        elif reduction == "norm":
            self.job.fast = norm_stage(dtype)
        else:
            self.job.fast = quantised_stage(dtype, taps > MOST_TAPS_I32)
        self.job.mend = mend_stage(dtype)
        self.job.mends = reduction in ("mean", "norm") and self.p != INFINITY
        self.job.divides = reduction == "mean"

    cdef _set_scratch(self, tiling):
        cdef Py_ssize_t width = sizeof(SumWide) if self.job.mends else 8
        self.job.block, self.job.row = tiling.block, tiling.row
        self.job.work = max(LEVELS * CHUNK + BLOCK, tiling.work)
        self.job.marks = tiling.marks
        self.job.scratch = parts(2 * 8 * self.job.row + parts(self.job.marks, 64) * 64
                                 + (2 * self.job.block + self.job.row + self.job.work) * width, 64) * 64 + 64

    @property
    def tasks(self):
        return self.job.tasks

    def run(self, cnp.ndarray x, cnp.ndarray y, int threads, quantisation=None):
        """Reduces x into y; both have the shape and dtype of the job, and y does not overlap x."""
        cdef Call call
        cdef char* memory
        cdef Py_ssize_t task
        cdef const Job* job = &self.job
        cdef const Call* arrays = &call
        if cnp.PyArray_SIZE(y) == 0:
            return
        describe(&call.x, x, job, self.channel, self.interleaved, self.first)
        describe(&call.y, y, job, self.channel, self.interleaved, self.first)
        memset(&call.rule, 0, sizeof(Rule))
        call.rule.p, call.rule.low, call.rule.high = self.p, self.low, self.high
        call.rule.to_odd = job.format != PLAIN
        if quantisation is not None:
            (call.rule.bias, call.rule.scale, call.rule.lowest, call.rule.highest, call.rule.zero) = quantisation
        threads = min(threads, job.tasks)
        memory = <char*> malloc(threads * job.scratch)
        if memory == NULL:
            raise MemoryError(f"onnxpool: no {threads * job.scratch} bytes of scratch memory")
        with nogil:
            if threads == 1:
                for task in range(job.tasks):
                    run_task(job, arrays, task, memory)
            else:
                for task in prange(job.tasks, num_threads=threads, schedule="static"):
                    run_task(job, arrays, task, memory + threadid() * job.scratch)
        free(memory)
