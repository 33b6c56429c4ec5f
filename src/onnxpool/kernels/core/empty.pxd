"""Windows that lie wholly in the padding."""
from .cursor cimport advance
from .element cimport elem_t
from .job cimport MOST_AXES, Rule, Tile

cdef extern from "element.h" nogil:
    void finish_without_taps(elem_t* y, Py_ssize_t windows, Py_ssize_t step, Py_ssize_t lanes, double count,
                             const Rule* rule) noexcept


cdef inline void finish_outside(const Tile* tile, const Py_ssize_t* low, const Py_ssize_t* high) noexcept nogil:
    """Finish the windows of a tile that lie wholly in the padding: all but [low, high) along every axis."""
    cdef int last = tile.rank - 1, a
    cdef Py_ssize_t[MOST_AXES] at
    cdef Py_ssize_t item, w, end
    cdef bint inside, counts = True, more = True
    cdef elem_t* y
    for a in range(tile.rank):
        at[a] = tile.begin[a]
        if not tile.axis[a].counts_pads and high[a] - low[a] < tile.end[a] - tile.begin[a]:
            counts = False
    while more:
        inside = True
        for a in range(last):
            inside &= low[a] <= at[a] < high[a]
        for item in range(tile.items):
            y = <elem_t*> tile.y + item * tile.y_item
            for a in range(last):
                y += at[a] * tile.y_stride[a]
            w = tile.begin[last]
            while w < tile.end[last]:
                if inside and w == low[last] < high[last]:
                    w = high[last]
                    continue
                end = low[last] if inside and w < low[last] else tile.end[last]
                finish_without_taps(y + w * tile.y_stride[last], end - w, tile.y_stride[last], tile.lanes, counts,
                                    tile.rule)
                w = end
        more = advance(at, tile.begin, tile.end, last) >= 0
