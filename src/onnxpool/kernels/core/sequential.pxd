"""Quantised means whose sums are taken in order; see sequential.h."""
from .job cimport Rule
from .lines cimport LANES, acc_t, elem_t, vec_read, vec_t

cdef extern from "lines.h" nogil:
    vec_t vec_sum(vec_t earlier, vec_t later) noexcept
    void vec_finish(elem_t* y, vec_t total, vec_t count, const Rule* rule) noexcept

cdef struct Block:
    # The registers that a loop works on at once.
    vec_t a, b, c, d

ctypedef fused block_t:
    Block
    vec_t


cdef inline Py_ssize_t width(const block_t* v) noexcept nogil:
    if block_t is Block:
        return 4 * LANES
    else:
        return LANES


cdef inline void read(block_t* v, const acc_t* x) noexcept nogil:
    if block_t is Block:
        v.a, v.b, v.c, v.d = vec_read(x), vec_read(x + LANES), vec_read(x + 2 * LANES), vec_read(x + 3 * LANES)
    else:
        v[0] = vec_read(x)


cdef inline void add(block_t* v, const acc_t* x) noexcept nogil:
    if block_t is Block:
        v.a, v.b = vec_sum(v.a, vec_read(x)), vec_sum(v.b, vec_read(x + LANES))
        v.c, v.d = vec_sum(v.c, vec_read(x + 2 * LANES)), vec_sum(v.d, vec_read(x + 3 * LANES))
    else:
        v[0] = vec_sum(v[0], vec_read(x))


cdef inline void finish(elem_t* y, const block_t* v, const acc_t* counts, const Rule* rule) noexcept nogil:
    if block_t is Block:
        vec_finish(y, v.a, vec_read(counts), rule)
        vec_finish(y + LANES, v.b, vec_read(counts + LANES), rule)
        vec_finish(y + 2 * LANES, v.c, vec_read(counts + 2 * LANES), rule)
        vec_finish(y + 3 * LANES, v.d, vec_read(counts + 3 * LANES), rule)
    else:
        vec_finish(y, v[0], vec_read(counts), rule)
