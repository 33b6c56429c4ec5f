"""Ring tiles: long windows over channels side by side, along the last axis from elements, along the one that is reduced
after all others to elements."""
from .elements cimport MOST_DIVISOR
from .geometry cimport Axis, divisor_of
from .job cimport MAX_AXES, Call, Job, Tile, stopped
from .reductions cimport MaxI16, SumF32, SumF64, SumI32, SumI64, SumWide, running_t


cdef void load_back(const Job* job, const Call* call, const Tile* tile, running_t* block, running_t* work,
                    Scratch* scratch) noexcept nogil:
    """The last axis: block[outer, elements of the other axes, windows, inner], as `load_rows`."""
    cdef int last = job.axes - 1
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, pixel = inner * <Py_ssize_t> sizeof(running_t)
    cdef Py_ssize_t width = extent(tile.span[last], True), rows = extent(tile.span[last - 1], False) if last else 1
    cdef Py_ssize_t row = 0
    cdef Slab slab = Slab(&job.axis[last], tile.span[last], call.x.axis[last], pixel, 1, inner,
                          call.x.axis[last - 1] if last else 0, width * pixel, call.x.format, False, NULL, 0, 1)
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef const char* source
    walk.together = 1
    source = next_rows(job, &call.x, tile, &walk)
    while source != NULL and not stopped(call):
        if last:  # as many rows as are wanted, or not, like the first one
            row = walk.place[last - 1] - tile.span[last - 1].low
        while row + walk.n < rows and walk.marks[last - 1][row + walk.n] == walk.marks[last - 1][row]:
            walk.n += 1
        slab.rows = walk.n
        if walk.wanted:
            look_back_slab(source, <char*> block, &slab, work, False)
        block += walk.n * width * inner
        source = next_rows(job, &call.x, tile, &walk)


cdef inline int final_axis(const Job* job) noexcept nogil:
    """The one that is reduced after all others."""
    cdef int a = 0
    while a < job.axes - 1 and passes_through(&job.axis[a]):
        a += 1
    return a


cdef inline bint may_finish_back(const Job* job, const Call* call, const Tile* tile,
                                 const running_t* block, running_t* work) noexcept nogil:
    """Whether `finish_back` may reduce the final axis: of a block, or of elements if no other is reduced."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin
    cdef int final = final_axis(job), a
    cdef bint from_elements = lies_in_lines(job, call, tile, work)
    if running_t is SumI32 or running_t is SumI64 or running_t is SumWide:
        return False
    if (job.whole or job.in_order or job.indexed or not job.finishes
            or job.divisor > MOST_DIVISOR or inner * <Py_ssize_t> sizeof(running_t) < VECTOR
            or not lies_inner(&call.y, inner) or not looks_up(job, tile, final) or not have_taps(job, tile)):
        return False
    for a in range(final + 1, job.axes):
        from_elements &= passes_through(&job.axis[a])
    return from_elements if block == NULL else final < job.axes - 1 and not from_elements


cdef bint finish_back(const Job* job, const Call* call, const Tile* tile, const running_t* block,
                      running_t* work) noexcept nogil:
    """The final axis of block[outer, elements of the axes up to it, windows of the others, inner] or, if that is NULL,
    of elements; True if a result is odd."""
    cdef int final = final_axis(job), last = job.axes - 1, across = last if final < last else last - 1, a
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, planes = 1, item, plane, place, window
    cdef Py_ssize_t[MAX_AXES] pace
    cdef const char* source
    cdef const char* first = <const char*> block
    cdef char* target
    cdef char* start
    cdef bint odd = False
    cdef Slab slab = Slab(&job.axis[final], tile.span[final], 0, call.y.axis[final], 1, inner, 0, 0,
                          call.x.format, block != NULL, NULL, 0, 1)
    pace[last] = inner * <Py_ssize_t> sizeof(running_t)
    for a in range(last - 1, -1, -1):
        pace[a] = pace[a + 1] * extent(tile.span[a + 1], a + 1 != final)
    for a in range(job.axes):
        planes *= 1 if a == final or a == across else extent(tile.span[a], True)
    if across >= 0:
        slab.rows, slab.y_row = extent(tile.span[across], True), call.y.axis[across]
        slab.across, slab.window = <const Axis*> &job.axis[across], tile.span[across].begin
    for item in range(tile.outer_begin, tile.outer_end):
        start = outer_item(job, &call.y, item, tile.inner_begin)
        if block == NULL:
            first = outer_item(job, &call.x, item, tile.inner_begin)
        for a in range(job.axes):
            start += tile.span[a].begin * call.y.axis[a]
            if block == NULL:
                pace[a] = call.x.axis[a]
                first += tile.span[a].low * pace[a]
        slab.x, slab.x_row = pace[final], pace[max(across, 0)]
        for plane in range(planes):
            source, target, place, slab.divisor = first, start, plane, 1
            for a in range(last, -1, -1):
                if a != final and a != across:
                    window = place % extent(tile.span[a], True)
                    place //= extent(tile.span[a], True)
                    source += window * pace[a]
                    target += window * call.y.axis[a]
                    slab.divisor *= divisor_of(&job.axis[a], tile.span[a].begin + window)
            if running_t is MaxI16 or running_t is SumF32 or running_t is SumF64:
                odd |= look_back_slab(source, target, &slab, work, True)
            else:  # running values are elements
                look_back_slab(source, target, &slab, work, False)
            if stopped(call):
                return True
        if block != NULL:
            first += pace[0] * extent(tile.span[0], final != 0)
    return odd
