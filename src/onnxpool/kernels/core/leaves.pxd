"""Rows of a tree that stay in registers while they become one: leaves (leaves.h), and parts of many of them."""
from .element cimport LANES, Pair, acc_t, elem_t, join, load, vec_t
from .job cimport Rule

cdef extern from "leaves.h" nogil:
    ctypedef struct leaf_t:
        pass
    leaf_t leaf_load(const elem_t* x, const Rule* rule) noexcept
    leaf_t leaf_merge(leaf_t earlier, leaf_t later) noexcept
    void leaf_widen(vec_t* first, vec_t* second, leaf_t leaf) noexcept
    enum:
        ROW      # bytes of accumulators,
        FULL     # and how many these are
        PACKED   # whether one register holds a leaf_t

ctypedef fused rows_t:
    leaf_t
    vec_t

ctypedef fused part_t:
    Pair
    vec_t

cdef enum:
    LEVELS = 64           # of a tree, more than it can have


cdef inline void load_row(rows_t* v, const elem_t* x, Py_ssize_t n, const Rule* rule) noexcept nogil:
    if rows_t is leaf_t:
        v[0] = leaf_load(x, rule)
    else:
        load(v, x, n, rule)


cdef inline void merge(rows_t* earlier, const rows_t* later) noexcept nogil:
    if rows_t is leaf_t:
        earlier[0] = leaf_merge(earlier[0], later[0])
    else:
        join(earlier, later)


cdef inline void load_two(rows_t* v, const elem_t* x, Py_ssize_t stride, Py_ssize_t n,
                          const Rule* rule) noexcept nogil:
    cdef rows_t later
    load_row(v, x, n, rule)
    load_row(&later, x + stride, n, rule)
    merge(v, &later)


cdef inline void load_four(rows_t* v, const elem_t* x, Py_ssize_t stride, Py_ssize_t n,
                           const Rule* rule) noexcept nogil:
    cdef rows_t later
    load_two(v, x, stride, n, rule)
    load_two(&later, x + 2 * stride, stride, n, rule)
    merge(v, &later)


cdef inline void load_eight(rows_t* v, const elem_t* x, Py_ssize_t stride, Py_ssize_t n,
                            const Rule* rule) noexcept nogil:
    cdef rows_t later
    load_four(v, x, stride, n, rule)
    load_four(&later, x + 4 * stride, stride, n, rule)
    merge(v, &later)


cdef inline void load_rows(rows_t* v, int level, const elem_t* x, Py_ssize_t stride, Py_ssize_t n,
                           const Rule* rule) noexcept nogil:
    """2 ** level rows, as a tree: at most 16."""
    cdef rows_t later
    if level == 0:
        load_row(v, x, n, rule)
    elif level == 1:
        load_two(v, x, stride, n, rule)
    elif level == 2:
        load_four(v, x, stride, n, rule)
    else:
        load_eight(v, x, stride, n, rule)
    if level == 4:
        load_eight(&later, x + 8 * stride, stride, n, rule)
        merge(v, &later)


cdef inline void load_part(part_t* v, int level, const elem_t* x, Py_ssize_t stride, const Rule* rule) noexcept nogil:
    """2 ** level rows, as `load_rows`."""
    cdef leaf_t leaf
    if part_t is Pair:
        load_rows(&leaf, level, x, stride, 2 * LANES, rule)
        leaf_widen(&v.a, &v.b, leaf)
    else:
        load_rows(v, level, x, stride, LANES, rule)


cdef inline void reduce_part(part_t* v, int level, const elem_t* x, Py_ssize_t stride, const Rule* rule) noexcept nogil:
    """2 ** level rows, as a tree."""
    cdef part_t[LEVELS] stack
    cdef int base = min(level, 4 if PACKED else 3), k
    cdef Py_ssize_t i
    for i in range(1 << (level - base)):
        if base == 0:
            load_part(v, 0, x, stride, rule)
        elif base == 1:
            load_part(v, 1, x, stride, rule)
        elif base == 2:
            load_part(v, 2, x, stride, rule)
        elif base == 3:
            load_part(v, 3, x, stride, rule)
        else:
            load_part(v, 4, x, stride, rule)
        x += stride << base
        k = 0
        while i >> k & 1:
            join(&stack[k], v)
            v[0] = stack[k]
            k += 1
        stack[k] = v[0]


cdef inline void reduce_rows(part_t* v, bint begun, const elem_t* x, Py_ssize_t rows, Py_ssize_t stride,
                             const Rule* rule) noexcept nogil:
    """So many rows, and one more behind them that v holds if `begun`: parts of the tree, the last one first."""
    cdef int level = 0
    cdef part_t part
    x += rows * stride
    while rows >> level:
        if rows >> level & 1:
            x -= stride << level
            reduce_part(&part, level, x, stride, rule)
            if begun:
                join(&part, v)
            v[0], begun = part, True
        level += 1
