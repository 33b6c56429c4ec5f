"""Finished tiles: where the last pass gives elements, and puts them where they belong."""
from libc.string cimport memmove

from .elements cimport MOST_DIVISOR
from .geometry cimport Axis, Span, divisor_of, first_tap, is_interior
from .job cimport MAX_AXES, MAX_I16, NEAR, PLAIN, Call, Format, Job, Tile, stopped
from .reductions cimport MaxI16, SumI32, SumI64, SumWide, running_t

cdef enum:
    PIECE = 1 << 12  # bytes of windows that are finished together from results of steps


cdef inline bint have_taps(const Job* job, const Tile* tile) noexcept nogil:
    """Whether all windows of a tile do."""
    cdef Side side
    cdef int a
    if job.full:  # a look at each window would cost more than a small tile
        return True
    for a in range(job.axes):
        side = side_of(job, tile, a, 0, 0)
        if not all_have_taps(&side):
            return False
    return True


cdef inline bint may_finish(const Job* job, const Call* call, const Tile* tile) noexcept nogil:
    """Whether results may become elements where they are reduced."""
    return (job.finishes and job.divisor <= MOST_DIVISOR and lies_inner(&call.y, tile.inner_end - tile.inner_begin)
            and have_taps(job, tile))


cdef inline bint may_finish_boxes(const Job* job, const Call* call, const Tile* tile, bint boxed,
                                  running_t* like) noexcept nogil:
    """Whether `finish_boxes` may reduce all axes: boxes, the windows of lines, or those that read all of their taps."""
    cdef int left = job.axes - (2 if boxed else 1)
    return (may_finish(job, call, tile) and lies_inner(&call.x, tile.inner_end - tile.inner_begin)
            and (left == 0 or (left == 1 and job.axis[0].most == 1)
                 or (job.at_once and lies_in_lines(job, call, tile, like))))


cdef bint finish_boxes(const Job* job, const Call* call, const Tile* tile, running_t* work) noexcept nogil:
    """From elements to elements; True if a result is odd."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, item
    cdef int last = job.axes - 1, above = last - 1, top = last - 2, a
    cdef Side deep = side_of(job, tile, top, call.x.axis[max(top, 0)], call.y.axis[max(top, 0)])
    cdef Side down = side_of(job, tile, above, call.x.axis[max(above, 0)], call.y.axis[max(above, 0)])
    cdef Side across = side_of(job, tile, last, call.x.axis[last], call.y.axis[last])
    cdef const char* source
    cdef char* target
    cdef bint odd = False
    for item in range(tile.outer_begin, tile.outer_end):
        source = outer_item(job, &call.x, item, tile.inner_begin)
        target = outer_item(job, &call.y, item, tile.inner_begin)
        for a in range(job.axes):
            source += tile.span[a].low * call.x.axis[a]
            target += tile.span[a].begin * call.y.axis[a]
        odd |= reduce_boxes(source, target, work, &deep, &down, &across, inner, call.x.format, True, call.far,
                            call.asks)
        if odd and job.stage.running != MAX_I16:  # keys go on: if all zeros are alike, they are the results
            return True
    return odd


cdef inline bint may_finish_steps(const Job* job, const Call* call, const Tile* tile, running_t* work) noexcept nogil:
    """Whether `finish_steps` may reduce the only axis."""
    cdef const Axis* axis = &job.axis[0]
    return (job.divides and job.axes == 1 and in_steps(axis) and axis.step <= FEW and axis.taps // axis.step <= FEW
            and axis.begin <= tile.span[0].begin and tile.span[0].end <= axis.end
            and lies_in_lines(job, call, tile, work) and may_finish_boxes(job, call, tile, False, work))


cdef bint finish_steps(const Job* job, const Call* call, const Tile* tile, running_t* work,
                       Scratch* scratch) noexcept nogil:
    """As `finish_boxes`, for means along one axis of windows that are whole steps: a piece of these is held."""
    cdef const Axis* axis = &job.axis[0]
    cdef Span span = tile.span[0]
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, pixel = inner * <Py_ssize_t> sizeof(running_t)
    cdef Py_ssize_t steps = axis.taps // axis.step, most = max(steps, PIECE // pixel), item, window, n, held
    cdef bint direct = call.y.format == PLAIN, odd = False
    cdef const char* source
    cdef char* target
    cdef char* means
    cdef Side unit = side_of(job, tile, -1, 0, 0), each, all_of_them
    for item in range(tile.outer_begin, tile.outer_end):
        source = outer_item(job, &call.x, item, tile.inner_begin) + first_tap(axis, span.begin) * call.x.axis[0]
        target = outer_item(job, &call.y, item, tile.inner_begin) + span.begin * call.y.axis[0]
        window, held = span.begin, 0
        while window < span.end:
            n = min(most, span.end - window)
            each = even_side(n + steps - 1 - held, axis.step, axis.step, call.x.axis[0], pixel, 1)
            reduce_boxes(source, <char*> (work + held * inner), work, &unit, &unit, &each, inner, call.x.format, False,
                         call.far, call.asks)
            means = target if direct else <char*> (work + (n + steps - 1) * inner)
            all_of_them = even_side(n, 1, steps, pixel, call.y.axis[0] if direct else pixel,
                                    divisor_of(axis, span.begin))
            odd |= reduce_boxes(<const char*> work, means, work, &unit, &unit, &all_of_them, inner, PLAIN, True, NEAR,
                                NEAR)
            if not direct:
                write_row(&call.y, means, target, call.y.axis[0], n, inner, scratch)
            source += each.span.end * axis.step * call.x.axis[0]
            target += n * call.y.axis[0]
            held = steps - 1
            memmove(work, work + n * inner, held * pixel)
            window += n
    return odd


cdef inline bint may_finish_down(const Job* job, const Call* call, const Tile* tile,
                                 const running_t* block) noexcept nogil:
    """Whether `finish_down` may reduce the first axis: of a block, or of elements if the others are not reduced."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin
    cdef int a
    if running_t is SumI32 or running_t is SumI64 or running_t is SumWide:
        return False
    if (job.axes == 1 or job.whole or job.in_order or job.indexed or job.axis[0].most > FEW
            or inner * <Py_ssize_t> sizeof(running_t) < VECTOR or not may_finish(job, call, tile)):
        return False
    if block != NULL:
        return call.y.format == PLAIN and running_t is not MaxI16
    for a in range(1, job.axes):
        if not passes_through(&job.axis[a]):
            return False
    return not job.stage.load and not is_square(call.x.format) and lies_inner(&call.x, inner)


cdef bint finish_down(const Job* job, const Call* call, const Tile* tile, const running_t* block,
                      running_t* work) noexcept nogil:
    """The first axis of block[outer, elements of it, windows of the others, inner] or, if that is NULL, of elements;
    True if a result is odd."""
    cdef int last = job.axes - 1, a
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, places = 1, item, place, rest, window, n
    cdef Py_ssize_t[MAX_AXES] pace
    cdef Format format = PLAIN if block != NULL else call.x.format
    cdef Py_ssize_t size = sizeof(running_t) if format == PLAIN else call.x.itemsize
    cdef Side unit = side_of(job, tile, -1, 0, 0), down, across
    cdef const char* source
    cdef const char* first
    cdef char* target
    cdef double divisor
    cdef bint odd = False
    pace[last] = inner * size
    for a in range(last - 1, -1, -1):
        pace[a] = pace[a + 1] * extent(tile.span[a + 1], True)
    for a in range(1, last):
        places *= extent(tile.span[a], True)
    if block == NULL:
        for a in range(job.axes):
            pace[a] = call.x.axis[a]
    down = side_of(job, tile, 0, pace[0], call.y.axis[0])
    for item in range(tile.outer_begin, tile.outer_end):
        if block != NULL:
            first = <const char*> block + (item - tile.outer_begin) * pace[0] * extent(tile.span[0], False)
        else:
            first = outer_item(job, &call.x, item, tile.inner_begin) + tile.span[0].low * pace[0]
            for a in range(1, job.axes):
                first += tile.span[a].begin * pace[a]
        for place in range(places):
            source, target = first, outer_item(job, &call.y, item, tile.inner_begin)
            rest, divisor = place, 1
            for a in range(last - 1, 0, -1):
                n = rest % extent(tile.span[a], True)
                rest //= extent(tile.span[a], True)
                source += n * pace[a]
                target += n * call.y.axis[a]
                divisor *= divisor_of(&job.axis[a], tile.span[a].begin + n)
            for a in range(job.axes):
                target += tile.span[a].begin * call.y.axis[a]
            window = tile.span[last].begin
            while window < tile.span[last].end and not stopped(call):
                n = tile.span[last].end - window
                if job.divides and not job.uniform:
                    n = min(n, job.axis[last].end - window) if is_interior(&job.axis[last], window) else 1
                across = even_side(n, 1, 1, pace[last], call.y.axis[last],
                                   divisor * divisor_of(&job.axis[last], window))
                if pace[last] == inner * size and call.y.axis[last] == inner * call.y.itemsize:
                    across.span.end = across.axis.end = 1  # as if of one window
                odd |= reduce_boxes(source + (window - tile.span[last].begin) * pace[last],
                                    target + (window - tile.span[last].begin) * call.y.axis[last], work, &unit, &down,
                                    &across, inner if across.span.end == n else n * inner, format,
                                    job.divides or running_t is MaxI16, NEAR, NEAR)
                window += n
    return odd
