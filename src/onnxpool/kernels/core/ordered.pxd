"""Totals whose taps are taken in row-major order; see ordered.h. A loop processes a block at a time."""
from libc.stdint cimport int64_t

from .element cimport LANES, acc_t, seen_t, vec_read, vec_t, vec_write

cdef extern from "element.h" nogil:
    ctypedef struct place_t:
        pass
    ctypedef struct places_t:
        pass
    ctypedef struct Total:
        vec_t value
        places_t place
    enum:
        DIRECT
        FLAT
        HAS_NANS
        PLACES  # whether totals have places
    bint seen_nan(const seen_t* seen) noexcept
    places_t places_fill(int64_t place) noexcept
    places_t places_add(places_t a, places_t b) noexcept
    places_t places_read(const place_t* places) noexcept
    void places_write(place_t* places, places_t v) noexcept
    void indices_write(int64_t* indices, places_t places, const int64_t* shift, int64_t base) noexcept
    void total_add(Total* total, vec_t value, places_t place, bint nans) noexcept

cdef struct Totals:
    Total a, b, c, d

ctypedef fused totals_t:
    Totals
    Total


cdef inline Py_ssize_t width(const totals_t* v) noexcept nogil:
    return 4 * LANES if totals_t is Totals else LANES


cdef inline places_t places_of(places_t same, const place_t* each, Py_ssize_t i) noexcept nogil:
    """The places of a register: one for each lane from memory, or the same in all lanes if there is no such memory."""
    return same if each == NULL else places_read(each + i)


cdef inline void start(totals_t* v, const acc_t* x, places_t same, const place_t* each) noexcept nogil:
    """Start totals with the first values and their places."""
    if totals_t is Totals:
        v.a.value, v.a.place = vec_read(x), places_of(same, each, 0)
        v.b.value, v.b.place = vec_read(x + LANES), places_of(same, each, LANES)
        v.c.value, v.c.place = vec_read(x + 2 * LANES), places_of(same, each, 2 * LANES)
        v.d.value, v.d.place = vec_read(x + 3 * LANES), places_of(same, each, 3 * LANES)
    else:
        v.value, v.place = vec_read(x), places_of(same, each, 0)


cdef inline void fold(totals_t* v, const acc_t* x, places_t same, const place_t* each, bint nans) noexcept nogil:
    """Fold later values into totals."""
    if totals_t is Totals:
        total_add(&v.a, vec_read(x), places_of(same, each, 0), nans)
        total_add(&v.b, vec_read(x + LANES), places_of(same, each, LANES), nans)
        total_add(&v.c, vec_read(x + 2 * LANES), places_of(same, each, 2 * LANES), nans)
        total_add(&v.d, vec_read(x + 3 * LANES), places_of(same, each, 3 * LANES), nans)
    else:
        total_add(v, vec_read(x), places_of(same, each, 0), nans)


cdef inline void write_one(acc_t* y, place_t* p, const Total* v) noexcept nogil:
    vec_write(y, v.value)
    places_write(p, v.place)


cdef inline void write(acc_t* y, place_t* p, const totals_t* v) noexcept nogil:
    if totals_t is Totals:
        write_one(y, p, &v.a)
        write_one(y + LANES, p + LANES, &v.b)
        write_one(y + 2 * LANES, p + 2 * LANES, &v.c)
        write_one(y + 3 * LANES, p + 3 * LANES, &v.d)
    else:
        write_one(y, p, v)
