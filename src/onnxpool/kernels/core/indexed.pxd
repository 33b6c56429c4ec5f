"""Maxima with places; see indexed.h."""
from libc.stdint cimport int64_t

from .lines cimport LANES, acc_t, elem_t, seen_t, vec_read, vec_t, vec_write

cdef extern from "lines.h" nogil:
    ctypedef int64_t place_t  # 32 or 64 bits
    ctypedef struct places_t:
        pass
    ctypedef struct Best:
        vec_t value
        places_t place
    enum:
        DIRECT
        HAS_NANS
    bint seen_nan(const seen_t* seen) noexcept
    void vec_finish(elem_t* y, vec_t v) noexcept
    places_t places_fill(place_t place) noexcept
    places_t places_add(places_t a, places_t b) noexcept
    places_t places_read(const place_t* places) noexcept
    void places_write(place_t* places, places_t v) noexcept
    void indices_write(int64_t* indices, places_t places, const int64_t* shift, int64_t base) noexcept
    void keep_greater(Best* best, vec_t value, places_t place) noexcept
    void keep_first(Best* best, vec_t value, places_t place) noexcept

cdef struct Block:
    # The registers that a loop works on at once.
    Best a, b, c, d

cdef struct Any:
    # What may be a NaN.
    Best a

ctypedef fused block_t:
    Block
    Best
    Any


cdef inline Py_ssize_t width(const block_t* best) noexcept nogil:
    if block_t is Block:
        return 4 * LANES
    else:
        return LANES


cdef inline void start(block_t* best, const acc_t* x, places_t place) noexcept nogil:
    if block_t is Block:
        best.a, best.b = Best(vec_read(x), place), Best(vec_read(x + LANES), place)
        best.c, best.d = Best(vec_read(x + 2 * LANES), place), Best(vec_read(x + 3 * LANES), place)
    elif block_t is Any:
        best.a = Best(vec_read(x), place)
    else:
        best[0] = Best(vec_read(x), place)


cdef inline void fold(block_t* best, const acc_t* x, places_t place) noexcept nogil:
    """A later tap of one place."""
    if block_t is Block:
        keep_greater(&best.a, vec_read(x), place)
        keep_greater(&best.b, vec_read(x + LANES), place)
        keep_greater(&best.c, vec_read(x + 2 * LANES), place)
        keep_greater(&best.d, vec_read(x + 3 * LANES), place)
    elif block_t is Any:
        keep_first(&best.a, vec_read(x), place)
    else:
        keep_greater(best, vec_read(x), place)


cdef inline void start_each(block_t* best, const acc_t* x, const place_t* p) noexcept nogil:
    if block_t is Block:
        best.a, best.b = Best(vec_read(x), places_read(p)), Best(vec_read(x + LANES), places_read(p + LANES))
        best.c = Best(vec_read(x + 2 * LANES), places_read(p + 2 * LANES))
        best.d = Best(vec_read(x + 3 * LANES), places_read(p + 3 * LANES))
    elif block_t is Any:
        best.a = Best(vec_read(x), places_read(p))
    else:
        best[0] = Best(vec_read(x), places_read(p))


cdef inline void fold_each(block_t* best, const acc_t* x, const place_t* p) noexcept nogil:
    """Later maxima, each of them with its place."""
    if block_t is Block:
        keep_greater(&best.a, vec_read(x), places_read(p))
        keep_greater(&best.b, vec_read(x + LANES), places_read(p + LANES))
        keep_greater(&best.c, vec_read(x + 2 * LANES), places_read(p + 2 * LANES))
        keep_greater(&best.d, vec_read(x + 3 * LANES), places_read(p + 3 * LANES))
    elif block_t is Any:
        keep_first(&best.a, vec_read(x), places_read(p))
    else:
        keep_greater(best, vec_read(x), places_read(p))


cdef inline void write(const block_t* best, acc_t* y, place_t* p) noexcept nogil:
    if block_t is Block:
        vec_write(y, best.a.value)
        vec_write(y + LANES, best.b.value)
        vec_write(y + 2 * LANES, best.c.value)
        vec_write(y + 3 * LANES, best.d.value)
        places_write(p, best.a.place)
        places_write(p + LANES, best.b.place)
        places_write(p + 2 * LANES, best.c.place)
        places_write(p + 3 * LANES, best.d.place)
    elif block_t is Any:
        vec_write(y, best.a.value)
        places_write(p, best.a.place)
    else:
        vec_write(y, best.value)
        places_write(p, best.place)
