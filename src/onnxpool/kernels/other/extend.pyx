"""Extended arrays: copies whose elements along each axis are any elements of an array, such as those beyond its ends.

Elements are moved as bits. They are listed as runs, and all of them are checked, before arrays are read. Constants
replace some of them. Copies of 64-bit integers become doubles in place, and their means integers.
"""
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport llabs
from libc.string cimport memcpy

import numpy as np

cimport numpy as cnp

from ..core.job cimport MOST_AXES

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    cnp.ndarray PyArray_Empty(int ndim, const cnp.npy_intp* shape, cnp.dtype dtype, bint fortran)
    bint PyDataType_REFCHK(cnp.dtype dtype)

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <string.h>
    /* Two moves that overlap copy any number of bytes from `size` to twice as many. */
    #define ENDS(size)                                                                    \
        for (ptrdiff_t i = 0; i < rows; i++, from += from_stride, to += to_stride) {      \
            char first[size], last[size];                                                 \
            memcpy(first, from, size);                                                    \
            memcpy(last, from + bytes - size, size);                                      \
            memcpy(to, first, size);                                                      \
            memcpy(to + bytes - size, last, size);                                        \
        }
    static __attribute__((noinline)) void copy_rows(const char *from, ptrdiff_t from_stride, char *to,
                                                    ptrdiff_t to_stride, ptrdiff_t rows, ptrdiff_t bytes) {
        if (bytes == 1)
            for (ptrdiff_t i = 0; i < rows; i++, from += from_stride, to += to_stride)
                *to = *from;
        else if (bytes <= 4)
            ENDS(2)
        else if (bytes <= 8)
            ENDS(4)
        else if (bytes <= 16)
            ENDS(8)
        else if (bytes <= 32)
            ENDS(16)
        else if (bytes <= 64)
            ENDS(32)
        else
            for (ptrdiff_t i = 0; i < rows; i++, from += from_stride, to += to_stride)
                memcpy(to, from, bytes);
    }
    #undef ENDS
    #define REPEAT(type)                                                                  \
        for (ptrdiff_t i = 0; i < rows; i++, to += stride)                                \
            for (ptrdiff_t k = 0; k < bytes; k += sizeof(type))                           \
                memcpy(to + k, item, sizeof(type));
    /* Fill rows of bytes with an item. */
    static __attribute__((noinline)) void fill_rows(char *to, ptrdiff_t stride, ptrdiff_t rows, ptrdiff_t bytes,
                                                    const char *item, ptrdiff_t size) {
        if (size == 1)
            REPEAT(char)
        else if (size == 2)
            REPEAT(uint16_t)
        else if (size == 4)
            REPEAT(uint32_t)
        else if (size == 8)
            REPEAT(uint64_t)
        else
            for (ptrdiff_t i = 0; i < rows; i++, to += stride)
                for (ptrdiff_t k = 0; k < bytes; k += size)
                    memcpy(to + k, item, size);
    }
    #undef REPEAT
    /* Replace integers from `least` to `most`, of magnitudes up to 2^51, by doubles, and return whether all are. Adding
     * such an integer to the bits of 3 * 2^51 adds it to the number. Signs of differences tell which are beyond. */
    static int make_doubles(double *x, ptrdiff_t n, uint64_t least, uint64_t most) {
        const double bias = 0x3p51;
        uint64_t outside = 0, bits, element;
        memcpy(&bits, &bias, sizeof bits);
        for (ptrdiff_t i = 0; i < n; i++) {
            double sum;
            memcpy(&element, x + i, sizeof element);
            outside |= (element - least) | (most - element);
            element += bits;
            memcpy(&sum, &element, sizeof sum);
            x[i] = sum - bias;
        }
        return !(outside >> 63);
    }
    /* Replace doubles by integers, which are the nearest ones, or truncated. */
    static void make_integers(double *x, ptrdiff_t n, int truncated) {
        for (ptrdiff_t i = 0; i < n; i++) {
            int64_t element = truncated ? (int64_t)x[i] : llrint(x[i]);
            memcpy(x + i, &element, sizeof element);
        }
    }
    """
    const Py_ssize_t PTRDIFF_MAX
    void copy_rows(const char* source, Py_ssize_t source_stride, char* target, Py_ssize_t target_stride,
                   Py_ssize_t rows, Py_ssize_t size) noexcept nogil
    void fill_rows(char* target, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t bytes, const char* item,
                   Py_ssize_t size) noexcept nogil
    bint make_doubles(double* x, Py_ssize_t n, uint64_t least, uint64_t most) noexcept nogil
    void make_integers(double* x, Py_ssize_t n, bint truncated) noexcept nogil

cdef enum:
    SOME = 4  # rows that are copied one by one if they are longer
    ROWS = 64  # that are copied together, so that they stay in the L1 cache between two runs
    LONG = 1 << 16  # bytes from which on other threads may run during a copy


cdef struct Run:
    # The places begin, begin + step, ... of an axis. Steps are -1, 0 or 1.
    Py_ssize_t begin, count, step


cdef struct Axis:
    Py_ssize_t size, extended  # elements along the axis of the array, and of the result
    Py_ssize_t runs
    Run* run


cdef struct Side:
    # An axis during a call: its runs, and the bytes between its elements in the array and in the result.
    const Axis* axis
    Py_ssize_t stride, pace


cdef int list_runs(Axis* axis, places) except -1:
    """Turn the places of an axis into runs, for which there is memory."""
    cdef Py_ssize_t i, at, last = 0
    cdef const Py_ssize_t* each
    cdef Run* run = axis.run - 1
    for part in places:
        if isinstance(part, slice):
            at, last = part.start, part.stop
            if not 0 <= at <= last <= axis.size:
                raise IndexError(f"places {at} to {last} of an axis of {axis.size} elements")
            if at < last:
                run += 1
                run[0] = Run(at, last - at, 1)
            continue
        each = <const Py_ssize_t*> cnp.PyArray_DATA(part)
        for i in range(cnp.PyArray_SIZE(part)):
            at = each[i]
            if not 0 <= at < axis.size:
                raise IndexError(f"place {at} of an axis of {axis.size} elements")
            if i and run.count == 1 and -1 <= at - last <= 0:
                run.step = at - last
            if i and at - last == run.step:
                run.count += 1
            else:
                run += 1
                run[0] = Run(at, 1, 1)
            last = at
    axis.runs = run + 1 - axis.run
    for i in range(axis.runs):
        if axis.run[i].count > PTRDIFF_MAX - axis.extended:
            raise MemoryError
        axis.extended += axis.run[i].count
    return 0


cdef void copy_run(const Run* run, const Side* side, const char* source, Py_ssize_t source_stride, char* target,
                   Py_ssize_t target_stride, Py_ssize_t rows) noexcept nogil:
    """Copy the elements of a run, in each of some rows."""
    cdef Py_ssize_t i, stride = run.step * side.stride
    source += run.begin * side.stride
    if stride == side.pace:
        copy_rows(source, source_stride, target, target_stride, rows, run.count * side.pace)
        return
    if run.count > rows and (rows < SOME or llabs(stride) <= llabs(source_stride)):
        for i in range(rows):
            copy_rows(source + i * source_stride, stride, target + i * target_stride, side.pace, run.count, side.pace)
        return
    for i in range(run.count):
        copy_rows(source + i * stride, source_stride, target + i * side.pace, target_stride, rows, side.pace)


cdef void copy_places(const Side* side, int outer, const char* source, char* target) noexcept nogil:
    """Copy the elements along the axes of sides from `outer` to 0, the innermost one."""
    cdef const Axis* inner = side.axis
    cdef const Run* run
    cdef Py_ssize_t i, k, rows, left, stride
    cdef const char* row
    cdef char* place
    if outer == 0:
        for i in range(inner.runs):
            copy_run(inner.run + i, side, source, 0, target, 0, 1)
            target += inner.run[i].count * side.pace
        return
    for i in range(side[outer].axis.runs):
        run = side[outer].axis.run + i
        row = source + run.begin * side[outer].stride
        stride = run.step * side[outer].stride
        if outer > 1:
            for _ in range(run.count):
                copy_places(side, outer - 1, row, target)
                row += stride
                target += side[outer].pace
            continue
        left = run.count
        while left:
            rows = min(ROWS, left)
            place = target
            for k in range(inner.runs):
                copy_run(inner.run + k, side, row, stride, place, side[1].pace, rows)
                place += inner.run[k].count * side.pace
            row += rows * stride
            target += rows * side[1].pace
            left -= rows


cdef struct Fill:
    # A range of an axis of results, and the values before and after it along the other axes.
    Py_ssize_t begin, count, outer, inner, extended


cdef class Extender:
    """Copies arrays of one shape. Along each axis, results have the elements at given places: slices without steps, and
    arrays of numbers, one after the other. Then parts of results are filled with a constant. Each is a tuple of slices,
    of which only the last one leaves elements out."""
    cdef int ndim
    cdef Axis* axes
    cdef int count
    cdef Fill* fills
    cdef cnp.ndarray constant

    def __cinit__(self, tuple shape not None, places, fills=(), constant=None):
        cdef Py_ssize_t most, begin, end
        cdef Run* fewer
        cdef int a
        if len(shape) > MOST_AXES or len(places) != len(shape):
            raise ValueError(f"shape has {len(shape)} axes, but places has {len(places)}")
        self.axes = <Axis*> PyMem_Calloc(max(1, len(shape)), sizeof(Axis))
        if not self.axes:
            raise MemoryError
        self.ndim = len(shape)
        for a in range(self.ndim):
            self.axes[a].size = shape[a]
            parts = [part if isinstance(part, slice) else cnp.PyArray_ContiguousFromAny(part, cnp.NPY_INTP, 1, 1)
                     for part in places[a]]
            most = 1
            for part in parts:
                most += 1 if isinstance(part, slice) else cnp.PyArray_SIZE(part)
            self.axes[a].run = <Run*> PyMem_Calloc(most, sizeof(Run))
            if not self.axes[a].run:
                raise MemoryError
            list_runs(self.axes + a, parts)
            fewer = <Run*> PyMem_Realloc(self.axes[a].run, max(1, self.axes[a].runs) * sizeof(Run))
            if fewer:
                self.axes[a].run = fewer
        self.fills = <Fill*> PyMem_Calloc(max(1, len(fills)), sizeof(Fill))
        if not self.fills:
            raise MemoryError
        self.constant = np.asarray(constant) if fills else None
        for place in fills:
            begin, end = place[len(place) - 1].start, place[len(place) - 1].stop
            if len(place) > self.ndim or not 0 <= begin <= end <= self.axes[len(place) - 1].extended:
                raise IndexError(f"places {begin} to {end} of axis {len(place) - 1}")
            self.fills[self.count] = Fill(begin, end - begin, 1, 1, self.axes[len(place) - 1].extended)
            for a in range(self.ndim):
                if a < len(place) - 1:
                    self.fills[self.count].outer *= self.axes[a].extended
                elif a > len(place) - 1:
                    self.fills[self.count].inner *= self.axes[a].extended
            self.count += 1

    def __dealloc__(self):
        cdef int a
        for a in range(self.ndim):
            PyMem_Free(self.axes[a].run)
        PyMem_Free(self.axes)
        PyMem_Free(self.fills)

    def extend(self, cnp.ndarray x not None):
        """The extended array, which is C-contiguous."""
        cdef cnp.npy_intp[MOST_AXES] extended
        cdef Side[MOST_AXES] side
        cdef const Axis* axis
        cdef cnp.ndarray y
        cdef const char* source = <const char*> cnp.PyArray_DATA(x)
        cdef char* target
        cdef const char* item = NULL
        cdef Py_ssize_t itemsize = cnp.PyArray_ITEMSIZE(x), pace = itemsize
        cdef int a, count = 0
        cdef cnp.ndarray constant
        cdef cnp.dtype dtype = x.dtype
        if x.ndim != self.ndim or PyDataType_REFCHK(dtype):
            raise ValueError(f"an array of {x.ndim} axes and of {dtype}, instead of numbers along {self.ndim} axes")
        for a in range(self.ndim):
            if x.shape[a] != self.axes[a].size:
                raise ValueError(f"{x.shape[a]} elements along axis {a}, instead of {self.axes[a].size}")
            extended[a] = self.axes[a].extended
        Py_INCREF(dtype)  # the array takes it over
        y = PyArray_Empty(self.ndim, extended, dtype, False)
        target = <char*> cnp.PyArray_DATA(y)
        for a in range(self.ndim - 1, -1, -1):
            axis = self.axes + a
            if axis.runs == 0:  # and no elements
                return y
            if not count and axis.runs == 1 and (axis.extended == 1 or axis.run.step * x.strides[a] == pace):
                # adjacent elements, which the next axis moves as one
                source += axis.run.begin * x.strides[a]
            else:
                side[count] = Side(axis, x.strides[a], pace)
                count += 1
            pace *= axis.extended
        if self.count:
            constant = self.constant if self.constant.dtype == dtype else self.constant.astype(dtype)
            item = <const char*> cnp.PyArray_DATA(constant)
        if pace < LONG:
            self.copy(side, count, source, target, pace, item, itemsize)
        else:
            with nogil:
                self.copy(side, count, source, target, pace, item, itemsize)
        return y

    cdef void copy(self, const Side* side, int count, const char* source, char* target, Py_ssize_t size,
                   const char* item, Py_ssize_t itemsize) noexcept nogil:
        cdef Py_ssize_t row
        cdef int i
        if count:
            copy_places(side, count - 1, source, target)
        else:
            memcpy(target, source, size)
        for i in range(self.count):
            row = self.fills[i].inner * itemsize
            fill_rows(target + self.fills[i].begin * row, self.fills[i].extended * row, self.fills[i].outer,
                      self.fills[i].count * row, item, itemsize)


cdef int check_words(cnp.ndarray x, bint integers) except -1:
    """Refuse arrays whose elements cannot be replaced by others of 8 bytes."""
    if not ((cnp.PyArray_ISINTEGER(x) if integers else cnp.PyArray_TYPE(x) == cnp.NPY_FLOAT64)
            and cnp.PyArray_ITEMSIZE(x) == 8 and cnp.PyArray_ISWRITEABLE(x) and cnp.PyArray_ISALIGNED(x)
            and cnp.PyArray_IS_C_CONTIGUOUS(x)):
        raise ValueError(f"elements of {x.dtype} cannot be replaced")
    if cnp.PyArray_ISBYTESWAPPED(x):
        cnp.PyArray_Byteswap(x, True)
    return 0


def as_doubles(cnp.ndarray x not None, double limit):
    """An array of 64-bit integers, whose memory then has doubles, or None if a magnitude exceeds the limit or 2^51."""
    cdef double* data = <double*> cnp.PyArray_DATA(x)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(x)
    cdef int64_t most = <int64_t> min(limit, <double> (1 << 51))
    cdef int64_t least = -most if cnp.PyArray_ISSIGNED(x) else 0
    cdef bint fits
    check_words(x, True)
    with nogil:
        fits = make_doubles(data, n, least, most)
    return x.view("f8") if fits else None


def as_integers(cnp.ndarray x not None, cnp.dtype dtype not None, bint truncated):
    """An array of doubles, whose memory then has integers of 64 bits."""
    cdef double* data = <double*> cnp.PyArray_DATA(x)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(x)
    check_words(x, False)
    with nogil:
        make_integers(data, n, truncated)
    return x.view(dtype)
