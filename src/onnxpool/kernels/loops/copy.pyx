"""copy: copies a box of elements between any strides: row by row if both sides have rows, and otherwise by
transposing."""
from libc.string cimport memcpy

from ..core.boxes cimport MOST_COPIED, Copy, copy_each
from ..core.cursor cimport advance

cdef extern from "transpose.h" nogil:
    void transpose(const char* source, Py_ssize_t source_stride, char* target, Py_ssize_t target_stride,
                   Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t itemsize) noexcept


cdef void simplify(const Copy* given, Copy* c) noexcept nogil:
    """Describe the same copy with as few axes as possible, sorted by target stride, the smallest last."""
    cdef int a, b
    cdef Py_ssize_t n, source, target
    c.from_, c.to, c.itemsize, c.swapped, c.axes = given.from_, given.to, given.itemsize, given.swapped, 0
    for a in range(given.axes):
        n, source, target = given.n[a], given.from_stride[a], given.to_stride[a]
        if n == 1:
            continue
        b = c.axes
        while b and c.to_stride[b - 1] < target:
            c.n[b], c.from_stride[b], c.to_stride[b] = c.n[b - 1], c.from_stride[b - 1], c.to_stride[b - 1]
            b -= 1
        c.n[b], c.from_stride[b], c.to_stride[b] = n, source, target
        c.axes += 1
    a = c.axes - 1
    while a > 0:  # join two axes if a step along the first continues where the second ends
        if c.from_stride[a - 1] == c.n[a] * c.from_stride[a] and c.to_stride[a - 1] == c.n[a] * c.to_stride[a]:
            c.n[a - 1] *= c.n[a]
            c.from_stride[a - 1], c.to_stride[a - 1] = c.from_stride[a], c.to_stride[a]
            for b in range(a, c.axes - 1):
                c.n[b], c.from_stride[b], c.to_stride[b] = c.n[b + 1], c.from_stride[b + 1], c.to_stride[b + 1]
            c.axes -= 1
        a -= 1


cdef void move_to(Copy* c, int axis, int place) noexcept nogil:
    """Move an axis to a later place."""
    cdef Py_ssize_t n = c.n[axis], source = c.from_stride[axis], target = c.to_stride[axis]
    cdef int a
    for a in range(axis, place):
        c.n[a], c.from_stride[a], c.to_stride[a] = c.n[a + 1], c.from_stride[a + 1], c.to_stride[a + 1]
    c.n[place], c.from_stride[place], c.to_stride[place] = n, source, target


cdef void run_inner(const Copy* c, int outer, const char* source, char* target) noexcept nogil:
    """Copy the axes from `outer` on: a row, or the two axes of a matrix."""
    cdef int a = c.axes - 1
    if outer < a:
        transpose(source, c.from_stride[a], target, c.to_stride[outer], c.n[a], c.n[outer], c.itemsize)
    elif c.from_stride[a] == c.itemsize == c.to_stride[a] and not c.swapped:
        memcpy(target, source, c.n[a] * c.itemsize)
    else:
        copy_each(source, c.from_stride[a], target, c.to_stride[a], c.n[a], c.itemsize, c.swapped)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Copy* given) noexcept nogil:
    return 0


cdef public void run "ENTRY" (const Copy* given) noexcept nogil:
    cdef Copy copy
    cdef Copy* c = &copy
    cdef Py_ssize_t[MOST_COPIED] at, zero
    cdef const char* source = given.from_
    cdef char* target = given.to
    cdef int a, b, outer
    simplify(given, c)
    if c.axes == 0:
        c.axes, c.n[0], c.from_stride[0], c.to_stride[0] = 1, 1, c.itemsize, c.itemsize
    outer = c.axes - 1
    if c.to_stride[outer] == c.itemsize != c.from_stride[outer] and not c.swapped:
        for a in range(outer):
            if c.from_stride[a] == c.itemsize:  # rows of the source are columns of the target
                move_to(c, a, outer - 1)
                outer -= 1
                break
    for a in range(outer):
        at[a] = zero[a] = 0
    while True:
        run_inner(c, outer, source, target)
        a = advance(at, zero, c.n, outer)
        if a < 0:
            return
        source, target = source + c.from_stride[a], target + c.to_stride[a]
        for b in range(a + 1, outer):
            source -= (c.n[b] - 1) * c.from_stride[b]
            target -= (c.n[b] - 1) * c.to_stride[b]
