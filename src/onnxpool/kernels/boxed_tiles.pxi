"""Boxed tiles: where the last axes of a tile are reduced at once, by boxes.pxi."""
from libc.string cimport memcpy, memset

from .geometry cimport Axis, Span, first_tap, is_interior, taps_inside
from .job cimport NEAR, PLAIN, Array, Call, Format, Job, Tile, stopped
from .reductions cimport running_t


cdef struct Side:
    Axis axis
    Span span
    Py_ssize_t x, y  # bytes from element to element, and from window to window


cdef Side even_side(Py_ssize_t windows, Py_ssize_t step, Py_ssize_t taps, Py_ssize_t x, Py_ssize_t y,
                    double divisor) noexcept nogil:
    """An axis of its own, of neighbouring windows in the interior."""
    cdef Side side
    memset(&side, 0, sizeof(Side))
    side.axis.size, side.axis.out, side.axis.end = (windows - 1) * step + taps, windows, windows
    side.axis.step, side.axis.hop, side.axis.taps, side.axis.most = step, 1, taps, taps
    side.axis.divisor = divisor
    side.span.end, side.span.high, side.x, side.y = windows, side.axis.size, x, y
    return side


cdef Side side_of(const Job* job, const Tile* tile, int a, Py_ssize_t x, Py_ssize_t y) noexcept nogil:
    """An axis of a tile; a negative one is of one element, which is a window."""
    cdef Side side
    if a < 0:
        return even_side(1, 1, 1, x, y, 1)
    side.axis, side.span, side.x, side.y = job.axis[a], tile.span[a], x, y
    return side


cdef inline const char* first_of(const char* x, const Side* side, Py_ssize_t window) noexcept nogil:
    """Where the taps of a window begin, if it has any."""
    return x + (first_tap(&side.axis, window) - side.span.low) * side.x if taps_inside(&side.axis, window) else x


cdef inline bint all_have_taps(const Side* side) noexcept nogil:
    cdef Py_ssize_t window
    for window in range(side.span.begin, side.span.end):
        if not taps_inside(&side.axis, window):
            return False
    return True


cdef inline bint lies_inner(const Array* array, Py_ssize_t inner) noexcept nogil:
    """Whether the channels of a place lie side by side."""
    return array.aligned and not array.swapped and (inner == 1 or array.inner == array.itemsize)


cdef inline bint fits_boxes(const Job* job, const Tile* tile, Py_ssize_t itemsize) noexcept nogil:
    """Not where no window of the tile has a row, nor where a part of the channels is too narrow."""
    return (job.boxes and (tile.inner_end - tile.inner_begin) * itemsize >= VECTOR
            and tile.span[job.axes - 2].high > tile.span[job.axes - 2].low)


cdef void load_plane(const Job* job, const Call* call, const Tile* tile, const char* source,
                     Py_ssize_t together, running_t* y, Scratch* scratch) noexcept nogil:
    """y[elements of the last two axes, inner] from rows of which so many lie together."""
    cdef int last = job.axes - 1
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, stride = call.x.axis[last], row = 0, n
    cdef Py_ssize_t length = extent(tile.span[last], False), height = extent(tile.span[last - 1], False)
    cdef const char* line
    together = min(together, max(1, job.row // max(1, length * inner)))
    if together > 1 and not is_planar(&call.x, stride, inner):
        stride = inner * call.x.itemsize  # as one long row
    while row < height:
        n = min(height - row, together) * length
        line = read_row(&call.x, source + row * call.x.axis[last - 1], stride, n, inner, scratch)
        if job.stage.load:
            job.stage.load(line, y + row * length * inner, n * inner, &call.rule)
        else:
            memcpy(y + row * length * inner, line, n * inner * sizeof(running_t))
        row += together


cdef void load_boxes(const Job* job, const Call* call, const Tile* tile, bint boxed,
                     running_t* block, running_t* values, running_t* work, Scratch* scratch) noexcept nogil:
    """The last two axes: block[outer, elements of the other axes, windows of both, inner], by boxes or by strips."""
    cdef int last = job.axes - 1
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, pixel = inner * <Py_ssize_t> sizeof(running_t)
    cdef Py_ssize_t length = extent(tile.span[last], False), width = extent(tile.span[last], True), together
    cdef bint direct = (not job.stage.load and not is_square(call.x.format) and lies_inner(&call.x, inner) if boxed else
                        strips_lie(job, call, tile, work))
    cdef Side deep = side_of(job, tile, -1, 0, 0)
    cdef Side down = side_of(job, tile, last - 1, call.x.axis[last - 1], width * pixel)
    cdef Side across = side_of(job, tile, last, call.x.axis[last], pixel)
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef Format format = call.x.format
    cdef const char* source
    cdef bint by_rows = not boxed and row_by_row(job, call, tile, block)
    cdef Strip strip
    if by_rows:
        strip = strip_at(job, call, tile, block)
    if not direct:
        down.x, across.x, format = length * pixel, pixel, PLAIN
    together, walk.together = walk.together, 1
    source = next_rows(job, &call.x, tile, &walk)
    while source != NULL and not stopped(call):
        if walk.wanted and not direct:
            load_plane(job, call, tile, source, together, work, scratch)
            source = <const char*> work
        if walk.wanted and boxed:
            reduce_boxes(source, <char*> block, work, &deep, &down, &across, inner, format, False,
                         call.far if direct else NEAR, call.asks if direct else NEAR)
        elif walk.wanted and by_rows:
            reduce_row_by_row(source, <char*> block, job, tile, &down, &strip, values, format, False)
        elif walk.wanted:
            reduce_strips(source, block, job, tile, &down, values, format)
        block += extent(tile.span[last - 1], True) * width * inner
        walk.n = extent(tile.span[last - 1], False)
        source = next_rows(job, &call.x, tile, &walk)


cdef bint lies_in_lines(const Job* job, const Call* call, const Tile* tile, running_t* like) noexcept nogil:
    """Whether the rows of the last axis lie such that vectors of elements can be reduced."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin
    return (not job.whole and not job.in_order and not job.indexed and not job.stage.load
            and not is_square(call.x.format)
            and extent(tile.span[job.axes - 1], False) > 0 and inner * <Py_ssize_t> sizeof(running_t) >= VECTOR
            and lies_inner(&call.x, inner))


cdef inline bint looks_up(const Job* job, const Tile* tile, int a) noexcept nogil:
    """Whether windows along an axis share so many taps that they are best looked up."""
    return (not in_steps(&job.axis[a])
            and share_taps(&job.axis[a], extent(tile.span[a], True), extent(tile.span[a], False)))


cdef bint fits_lines(const Job* job, const Call* call, const Tile* tile, running_t* like) noexcept nogil:
    """Whether the last axis is best reduced from elements to vectors; not where windows share many taps."""
    return (lies_in_lines(job, call, tile, like) and not in_steps(&job.axis[job.axes - 1])
            and not looks_up(job, tile, job.axes - 1))


cdef void load_lines(const Job* job, const Call* call, const Tile* tile, running_t* block, running_t* work,
                     Scratch* scratch) noexcept nogil:
    """The last axis: block[outer, elements of the other axes, windows, inner], as `load_rows`."""
    cdef Side unit = side_of(job, tile, -1, 0, 0)
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin
    cdef Side across = side_of(job, tile, job.axes - 1, 0, inner * <Py_ssize_t> sizeof(running_t))
    cdef Py_ssize_t begin = across.span.begin, width = extent(across.span, True)
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef const char* source
    if width == 1 and is_interior(&across.axis, begin):
        # The windows of neighbouring rows follow each other as if they were of one row.
        across.axis.start, across.axis.begin = first_tap(&across.axis, begin), begin
        across.axis.step, across.axis.end = extent(across.span, False), begin + walk.rows
    else:
        walk.together = 1
    source = next_rows(job, &call.x, tile, &walk)
    while source != NULL and not stopped(call):
        if walk.wanted:
            across.x, across.span.end = walk.stride, begin + walk.n * width
            reduce_boxes(source, <char*> block, work, &unit, &unit, &across, inner, call.x.format, False, call.far,
                         call.asks)
        block += walk.n * width * inner
        source = next_rows(job, &call.x, tile, &walk)
