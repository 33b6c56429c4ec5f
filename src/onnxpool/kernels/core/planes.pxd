"""The rows of windows of a tile of at most three axes, for loops that need no scratch memory."""
from .element cimport elem_t
from .job cimport MOST_RUNS, Axis, Run, Tile, Window, run_at, window_at

cdef struct RowRun:
    # Neighbouring rows whose windows read the same taps along the row axis, the one before the last.
    Py_ssize_t n, x, y, taps       # number of rows, position of the first one, taps along the row axis
    double count

cdef struct Planes:
    const Tile* tile
    RowRun[MOST_RUNS] rows
    int runs
    Py_ssize_t x_row, y_row        # from row to row
    Py_ssize_t tap, line           # from tap to tap along the row axis, and along the axis before it
    # The current run.
    int run
    Py_ssize_t item, window        # its item, and its window along the first of three axes
    Py_ssize_t lines, fresh        # number of taps of that window, and how many of its last taps are prefetched
    double count
    const elem_t* x                # place 0 and window 0 of the last axis
    elem_t* y


cdef inline void list_runs(Planes* p, const Axis* axis, Py_ssize_t x_stride) noexcept nogil:
    cdef Py_ssize_t w = p.tile.begin[p.tile.rank - 2]
    cdef Run run
    p.runs = 0
    while w < p.tile.end[p.tile.rank - 2]:
        run = run_at(axis, w, p.tile.end[p.tile.rank - 2])
        p.rows[p.runs] = RowRun(run.n, run.window.first * x_stride, w * p.y_row, run.window.taps, run.window.divisor)
        p.runs += 1
        w += run.n


cdef inline void start_plane(Planes* p) noexcept nogil:
    """Go to the window of the first of three axes, or to the item."""
    cdef const Tile* tile = p.tile
    cdef Window window
    p.x = <const elem_t*> tile.x + p.item * tile.x_item
    p.y = <elem_t*> tile.y + p.item * tile.y_item
    p.lines, p.fresh, p.count = 1, 1 if tile.far else 0, 1
    if tile.rank == 3:
        window = window_at(&tile.axis[0], p.window)
        p.lines, p.count = window.taps, window.divisor
        p.fresh = min(window.taps, tile.axis[0].stride) if tile.far else 0
        p.x += window.first * tile.x_stride[0]
        p.y += p.window * tile.y_stride[0]


cdef inline void start_planes(Planes* p, const Tile* tile) noexcept nogil:
    """Go to the place before the first run. Rows of a single axis belong to one item each."""
    cdef int a = tile.rank - 2
    p.tile, p.run, p.item, p.tap, p.line = tile, -1, 0, 0, 0
    p.window = tile.begin[0] if tile.rank == 3 else 0
    if tile.rank == 3:
        p.line = tile.axis[0].dilation * tile.x_stride[0]
    if a < 0:
        p.runs, p.rows[0] = 1, RowRun(tile.items, 0, 0, 1, 1)
        p.x_row, p.y_row = tile.x_item, tile.y_item
    else:
        p.tap, p.x_row = tile.axis[a].dilation * tile.x_stride[a], tile.axis[a].stride * tile.x_stride[a]
        p.y_row = tile.y_stride[a]
        list_runs(p, &tile.axis[a], tile.x_stride[a])
    start_plane(p)


cdef inline bint next_run(Planes* p) noexcept nogil:
    """Go to the next run. Returns False if there is none."""
    p.run += 1
    if p.run < p.runs:
        return True
    p.run = 0
    p.window += 1
    if p.tile.rank < 3 or p.window == p.tile.end[0]:
        p.window = p.tile.begin[0]
        p.item += 1
        if p.tile.rank == 1 or p.item == p.tile.items:
            return False
    start_plane(p)
    return True
