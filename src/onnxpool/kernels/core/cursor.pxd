"""Iteration over the places of several axes, and over the rows of windows of an item."""
from .job cimport MOST_AXES, Tile, Window, window_at

cdef struct Row:
    # A row of windows along the last axis: one window of each other axis.
    Window[MOST_AXES] window
    Py_ssize_t x, y    # offsets of place 0 and window 0 of the last axis within the item
    double count       # the product of the divisors of other axes
    bint empty         # whether one of its windows has no tap inside


cdef inline void find_row(const Tile* tile, const Py_ssize_t* at, Row* row) noexcept nogil:
    """Find the row of these windows of the other axes."""
    cdef int a
    row.x, row.y, row.count, row.empty = 0, 0, 1, False
    for a in range(tile.rank - 1):
        row.window[a] = window_at(&tile.axis[a], at[a])
        row.x += row.window[a].first * tile.x_stride[a]
        row.y += at[a] * tile.y_stride[a]
        row.count *= row.window[a].divisor
        row.empty |= row.window[a].taps == 0


cdef inline int advance(Py_ssize_t* at, const Py_ssize_t* begin, const Py_ssize_t* end, int axes) noexcept nogil:
    """Go to the next place; the last axis is the fastest. Return the axis that advanced, or -1 after the last place."""
    cdef int a = axes - 1
    while a >= 0:
        at[a] += 1
        if at[a] < end[a]:
            return a
        at[a] = begin[a]
        a -= 1
    return -1
