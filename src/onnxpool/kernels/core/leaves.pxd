"""Rows of a tree that are reduced to one in registers: leaves (leaves.h), and parts of many leaves."""
from .element cimport LANES, Pair, acc_t, elem_t, join, load, vec_t
from .job cimport Rule
from .parts cimport part_t

cdef extern from "leaves.h" nogil:
    ctypedef struct leaf_t:
        pass
    leaf_t leaf_load(const elem_t* x, const Rule* rule) noexcept
    leaf_t leaf_merge(leaf_t earlier, leaf_t later) noexcept
    void leaf_widen(vec_t* first, vec_t* second, leaf_t leaf) noexcept
    enum:
        ROW      # length of a row of few lanes, in bytes of accumulators
        FULL     # the same length, as a number of accumulators
        PART     # accumulators that are reduced together: two registers, or one that holds all of them
        WORDS       # whether a leaf is a register of 16-bit sums, whose order does not matter
        MOST_WORDS  # maximum number of rows of such a leaf
        FOLDS       # whether `fold_lanes` can join the values of rows
    void fold_lanes(vec_t* v) noexcept
    acc_t sum_line(const elem_t* x, Py_ssize_t n) noexcept

ctypedef fused rows_t:
    leaf_t
    vec_t

cdef enum:
    LEVELS = 64           # more levels than a tree can have
    MOST_LEVEL = 3        # a leaf has at most 2 ** MOST_LEVEL rows


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
    """Load 2 ** level rows, at most 8, and reduce them as a tree."""
    if level == 0:
        load_row(v, x, n, rule)
    elif level == 1:
        load_two(v, x, stride, n, rule)
    elif level == 2:
        load_four(v, x, stride, n, rule)
    else:
        load_eight(v, x, stride, n, rule)


cdef inline void load_part(part_t* v, int level, const elem_t* x, Py_ssize_t stride, const Rule* rule) noexcept nogil:
    """Load 2 ** level rows, and reduce them to a part."""
    cdef leaf_t leaf
    if part_t is Pair:
        load_rows(&leaf, level, x, stride, 2 * LANES, rule)
        leaf_widen(&v.a, &v.b, leaf)
    else:
        load_rows(v, level, x, stride, LANES, rule)


cdef inline void reduce_part(part_t* v, int level, const elem_t* x, Py_ssize_t stride, const Rule* rule) noexcept nogil:
    """Reduce 2 ** level rows as a tree, whose leaves have 2 ** MOST_LEVEL rows."""
    cdef part_t[LEVELS] stack
    cdef part_t part  # in registers
    cdef Py_ssize_t i
    cdef int k
    for i in range(1 << (level - MOST_LEVEL)):
        load_part(&part, MOST_LEVEL, x, stride, rule)
        x += stride * (1 << MOST_LEVEL)
        k = 0
        while i >> k & 1:
            join(&stack[k], &part)
            part = stack[k]
            k += 1
        stack[k] = part
    v[0] = part


cdef inline void put_before(part_t* v, bint* begun, const part_t* part) noexcept nogil:
    """Set v to `part`, or join it with `part` as the earlier operand if `begun`."""
    cdef part_t later = v[0]
    v[0] = part[0]
    if begun[0]:
        join(v, &later)
    begun[0] = True


cdef inline bint reduce_few(part_t* v, bint begun, const elem_t* x, Py_ssize_t rows, Py_ssize_t stride,
                            const Rule* rule) noexcept nogil:
    """Reduce the last rows % 8 of some rows like `reduce_rows`. Return whether v then holds a value."""
    cdef part_t four, two, one
    if rows & 4:
        load_part(&four, 2, x, stride, rule)
        x += stride * 4
    if rows & 2:
        load_part(&two, 1, x, stride, rule)
        x += stride * 2
    if rows & 1:
        load_part(&one, 0, x, stride, rule)
        put_before(v, &begun, &one)
    if rows & 2:
        put_before(v, &begun, &two)
    if rows & 4:
        put_before(v, &begun, &four)
    return begun


cdef inline void reduce_rows(part_t* v, bint begun, const elem_t* x, Py_ssize_t rows, Py_ssize_t stride,
                             const Rule* rule) noexcept nogil:
    """Reduce rows. If `begun`, v already holds the value that follows them. The parts of the tree are loaded in memory
    order, and joined from the last one backwards."""
    cdef part_t[LEVELS] large
    cdef int level, top = MOST_LEVEL
    while rows >> (top + 1):
        top += 1
    for level in range(top, MOST_LEVEL - 1, -1):
        if rows >> level & 1:
            reduce_part(&large[level], level, x, stride, rule)
            x += stride * (<Py_ssize_t> 1 << level)
    begun = reduce_few(v, begun, x, rows, stride, rule)
    for level in range(MOST_LEVEL, top + 1):
        if rows >> level & 1:
            put_before(v, &begun, &large[level])
