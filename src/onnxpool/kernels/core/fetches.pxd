"""Prefetches a later window's elements in memory order: tap by tap, a block of lanes at a time."""
from .element cimport elem_t
from .job cimport fetch

cdef enum:
    AHEAD = 512  # minimum prefetch distance in bytes
    # Minimum bytes of elements for which loops prefetch. Where the L3 cache holds the elements, prefetches of adjacent
    # lanes take 1.1 to 1.7 times as long (Zen 3).
    DISTANT = 8 << 20
    BEYOND = 15 << 20

cdef struct Fetches:
    const Py_ssize_t* offset       # offsets of the taps that are prefetched
    Py_ssize_t n                   # number of these taps
    Py_ssize_t lanes, ahead        # lanes of a tap, and the distance of prefetches
    Py_ssize_t tap, lane           # position of the next prefetch


cdef inline Py_ssize_t distance_ahead(Py_ssize_t step) noexcept nogil:
    """The prefetch distance in elements, for windows that are `step` elements apart."""
    return step * max(1, AHEAD // max(1, step * <Py_ssize_t> sizeof(elem_t)))


cdef inline void start_fetches(Fetches* f) noexcept nogil:
    f.tap = f.lane = 0


cdef inline void fetch_part(Fetches* f, const elem_t* x, Py_ssize_t block) noexcept nogil:
    """Prefetch the elements of a later window for a block of this width."""
    cdef Py_ssize_t _
    for _ in range(f.n):
        fetch(x + f.offset[f.tap] + f.lane + f.ahead, block * sizeof(elem_t))
        f.lane += block
        if f.lane >= f.lanes:
            f.lane = 0
            f.tap = f.tap + 1 if f.tap + 1 < f.n else 0
