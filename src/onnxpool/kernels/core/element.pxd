"""The element of a unit (element.h), and blocks: the one, two or four registers that a loop processes at a time. `Ends`
are two registers that may overlap, so that a short row needs no tail."""
from libc.stdint cimport uint8_t

from .job cimport Rule, Tile

cdef extern from "element.h" nogil:
    ctypedef float elem_t  # element.h defines the actual type for each unit
    ctypedef struct acc_t:
        pass
    ctypedef struct vec_t:
        pass
    ctypedef struct seen_t:
        pass
    enum:
        LANES
        DIVIDES
        EXACT
        DIVISION
        PRODUCT
        QUOTIENT
        IDEMPOTENT
        ORDERED
        FREQUENT
        KEEPS
        AS_STORED
    vec_t vec_load(const elem_t* x, const Rule* rule) noexcept
    vec_t vec_load_briefly(const elem_t* x, const Rule* rule) noexcept
    vec_t vec_load_few(const elem_t* x, Py_ssize_t n, const Rule* rule) noexcept
    vec_t vec_load_part(const elem_t* x, Py_ssize_t n, const Rule* rule) noexcept
    vec_t vec_ones(Py_ssize_t begin, Py_ssize_t end) noexcept
    void vec_phases(vec_t* ones, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t phases) noexcept
    vec_t vec_keep(vec_t v, vec_t ones) noexcept
    void copy_within(elem_t* y, Py_ssize_t n, Py_ssize_t low, const elem_t* x, Py_ssize_t count) noexcept
    vec_t vec_read(const acc_t* x) noexcept
    void vec_write(acc_t* y, vec_t v) noexcept
    vec_t vec_merge(vec_t earlier, vec_t later) noexcept
    vec_t vec_without(vec_t sum, vec_t part) noexcept
    vec_t vec_none() noexcept
    vec_t vec_fill(double value) noexcept
    acc_t acc_of(double value) noexcept
    acc_t acc_inverse(double count, const Rule* rule) noexcept
    vec_t vec_repeat(acc_t value) noexcept
    void vec_split(vec_t* first, vec_t* second) noexcept
    vec_t vec_totals(vec_t* v) noexcept
    acc_t acc_decided(acc_t largest, const acc_t* x, Py_ssize_t n) noexcept
    void vec_split_three(vec_t* first, vec_t* second, vec_t* third) noexcept
    void vec_split_two(vec_t* first, vec_t* second) noexcept
    void vec_finish(elem_t* y, vec_t total, vec_t count, vec_t inverse, const Rule* rule) noexcept
    void vec_finish_by(elem_t* y, vec_t total, vec_t count, vec_t inverse, const Rule* rule, int finish) noexcept
    void vec_finish_few(elem_t* y, Py_ssize_t n, vec_t total, vec_t count, vec_t inverse, const Rule* rule) noexcept
    void vec_finish_part(elem_t* y, Py_ssize_t n, vec_t total, vec_t count, vec_t inverse, const Rule* rule) noexcept
    vec_t vec_load_neighbours(const elem_t* x, const Rule* rule) noexcept
    void vec_load_two(vec_t* first, vec_t* second, const elem_t* x, const Rule* rule) noexcept
    void vec_finish_two(elem_t* y, vec_t first, vec_t second, vec_t count, vec_t inverse, const Rule* rule) noexcept
    void vec_divide(elem_t* y, vec_t total, vec_t count, const Rule* rule) noexcept
    void vec_divide_part(elem_t* y, Py_ssize_t n, vec_t total, vec_t count, const Rule* rule) noexcept
    seen_t seen_nothing() noexcept
    void see(seen_t* seen, vec_t v) noexcept
    void seen_join(seen_t* seen, seen_t later) noexcept

cdef struct Block:
    vec_t a, b, c, d

cdef struct Pair:
    vec_t a, b

cdef struct Woven4:
    vec_t a, b, c, d  # their lanes have an order that only `load` and `finish` know

cdef struct Woven:
    vec_t a, b

cdef struct Ends:
    vec_t a, b
    Py_ssize_t apart  # values from the first register's start to the second one's, at most LANES

ctypedef fused block_t:
    Block
    Pair
    Ends
    Woven4
    Woven
    vec_t

cdef struct Divisor:
    # The divisor of totals and its inverse, in every lane.
    vec_t count, inverse


cdef inline Divisor divisor_of(double count, const Rule* rule) noexcept nogil:
    return Divisor(vec_fill(count), vec_repeat(acc_inverse(count, rule)))


cdef inline Py_ssize_t width(const block_t* v) noexcept nogil:
    if block_t is Block or block_t is Woven4:
        return 4 * LANES
    elif block_t is Pair or block_t is Ends or block_t is Woven:
        return 2 * LANES
    else:
        return LANES


cdef inline Py_ssize_t second(const block_t* v) noexcept nogil:
    """The offset of the second register of a block."""
    if block_t is Ends:
        return v.apart
    else:
        return LANES


cdef inline void set_row(block_t* v, Py_ssize_t n) noexcept nogil:
    """Fit a block to rows of n values."""
    if block_t is Ends:
        v.apart = min(<Py_ssize_t> LANES, n - LANES)


cdef inline bint ends_suit(Py_ssize_t n) noexcept nogil:
    """Whether a row of n values takes fewer registers in `Ends` than in blocks of four, or is shorter than a block."""
    return n < 4 * LANES or n < 16 * LANES and not (n - 1) // LANES & 2


cdef inline void load(block_t* v, const elem_t* x, Py_ssize_t n, const Rule* rule) noexcept nogil:
    """Load elements. A block of one vector may be partial."""
    if block_t is Block:
        v.a, v.b = vec_load(x, rule), vec_load(x + LANES, rule)
        v.c, v.d = vec_load(x + 2 * LANES, rule), vec_load(x + 3 * LANES, rule)
    elif block_t is Pair or block_t is Ends:
        v.a, v.b = vec_load(x, rule), vec_load(x + second(v), rule)
    elif block_t is Woven4:
        vec_load_two(&v.a, &v.b, x, rule)
        vec_load_two(&v.c, &v.d, x + 2 * LANES, rule)
    elif block_t is Woven:
        vec_load_two(&v.a, &v.b, x, rule)
    else:
        v[0] = vec_load(x, rule) if n >= LANES else vec_load_part(x, n, rule)


cdef inline void join(block_t* earlier, const block_t* later) noexcept nogil:
    if block_t is Block or block_t is Woven4:
        earlier.a, earlier.b = vec_merge(earlier.a, later.a), vec_merge(earlier.b, later.b)
        earlier.c, earlier.d = vec_merge(earlier.c, later.c), vec_merge(earlier.d, later.d)
    elif block_t is Pair or block_t is Ends or block_t is Woven:
        earlier.a, earlier.b = vec_merge(earlier.a, later.a), vec_merge(earlier.b, later.b)
    else:
        earlier[0] = vec_merge(earlier[0], later[0])


cdef inline void fold(block_t* earlier, const elem_t* x, Py_ssize_t n, const Rule* rule) noexcept nogil:
    cdef block_t later
    load(&later, x, n, rule)
    join(earlier, &later)


cdef inline void read(block_t* v, const acc_t* x) noexcept nogil:
    if block_t is Block or block_t is Woven4:
        v.a, v.b, v.c, v.d = vec_read(x), vec_read(x + LANES), vec_read(x + 2 * LANES), vec_read(x + 3 * LANES)
    elif block_t is Pair or block_t is Ends or block_t is Woven:
        v.a, v.b = vec_read(x), vec_read(x + second(v))
    else:
        v[0] = vec_read(x)


cdef inline void write(acc_t* y, const block_t* v) noexcept nogil:
    if block_t is Block or block_t is Woven4:
        vec_write(y, v.a)
        vec_write(y + LANES, v.b)
        vec_write(y + 2 * LANES, v.c)
        vec_write(y + 3 * LANES, v.d)
    elif block_t is Pair or block_t is Ends or block_t is Woven:
        vec_write(y, v.a)
        vec_write(y + second(v), v.b)
    else:
        vec_write(y, v[0])


cdef inline void fill(block_t* v, vec_t value) noexcept nogil:
    if block_t is Block or block_t is Woven4:
        v.a = v.b = v.c = v.d = value
    elif block_t is Pair or block_t is Ends or block_t is Woven:
        v.a = v.b = value
    else:
        v[0] = value


cdef inline void finish(elem_t* y, Py_ssize_t n, const block_t* v, const Divisor* by, const Rule* rule) noexcept nogil:
    """Turn totals into elements. A block of one vector may be partial."""
    if block_t is Block:
        vec_finish(y, v.a, by.count, by.inverse, rule)
        vec_finish(y + LANES, v.b, by.count, by.inverse, rule)
        vec_finish(y + 2 * LANES, v.c, by.count, by.inverse, rule)
        vec_finish(y + 3 * LANES, v.d, by.count, by.inverse, rule)
    elif block_t is Pair or block_t is Ends:
        vec_finish(y, v.a, by.count, by.inverse, rule)
        vec_finish(y + second(v), v.b, by.count, by.inverse, rule)
    elif block_t is Woven4:
        vec_finish_two(y, v.a, v.b, by.count, by.inverse, rule)
        vec_finish_two(y + 2 * LANES, v.c, v.d, by.count, by.inverse, rule)
    elif block_t is Woven:
        vec_finish_two(y, v.a, v.b, by.count, by.inverse, rule)
    elif n >= LANES:
        vec_finish(y, v[0], by.count, by.inverse, rule)
    else:
        vec_finish_part(y, n, v[0], by.count, by.inverse, rule)


cdef inline void finish_each(elem_t* y, Py_ssize_t n, const block_t* v, const acc_t* counts, const acc_t* inverses,
                             const Rule* rule) noexcept nogil:
    """Finish totals with a divisor for each value, if the reduction divides."""
    cdef Divisor by
    if not DIVIDES:
        finish(y, n, v, &by, rule)
    elif block_t is Block:
        vec_finish(y, v.a, vec_read(counts), vec_read(inverses), rule)
        vec_finish(y + LANES, v.b, vec_read(counts + LANES), vec_read(inverses + LANES), rule)
        vec_finish(y + 2 * LANES, v.c, vec_read(counts + 2 * LANES), vec_read(inverses + 2 * LANES), rule)
        vec_finish(y + 3 * LANES, v.d, vec_read(counts + 3 * LANES), vec_read(inverses + 3 * LANES), rule)
    elif block_t is Pair or block_t is Ends:
        vec_finish(y, v.a, vec_read(counts), vec_read(inverses), rule)
        vec_finish(y + second(v), v.b, vec_read(counts + second(v)), vec_read(inverses + second(v)), rule)
    elif block_t is Woven4 or block_t is Woven:
        pass
    elif n >= LANES:
        vec_finish(y, v[0], vec_read(counts), vec_read(inverses), rule)
    else:
        vec_finish_part(y, n, v[0], vec_read(counts), vec_read(inverses), rule)


cdef inline void divide(elem_t* y, Py_ssize_t n, const vec_t* v, vec_t count, const Rule* rule) noexcept nogil:
    """Finish totals by division."""
    if n >= LANES:
        vec_divide(y, v[0], count, rule)
    else:
        vec_divide_part(y, n, v[0], count, rule)


cdef inline const elem_t* end_of(const Tile* tile) noexcept nogil:
    """The end of a tile's elements, up to which loops may read freely, or NULL if a stride is negative."""
    cdef const elem_t* end = <const elem_t*> tile.x + (tile.items - 1) * tile.x_item + tile.lanes
    cdef bint forwards = tile.x_item >= 0
    cdef int a
    for a in range(tile.rank):
        forwards &= tile.x_stride[a] >= 0
        end += (tile.axis[a].size - 1) * tile.x_stride[a]
    return end if forwards else NULL
