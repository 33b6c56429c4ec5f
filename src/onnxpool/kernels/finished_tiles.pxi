"""Finished tiles: where the last pass gives elements, and puts them where they belong."""
from libc.string cimport memmove, memset

from .elements cimport MOST_DIVISOR
from .geometry cimport Axis, Span, divisor_of, first_tap, is_interior, taps_inside
from .job cimport MAX_AXES, MAX_I16, NEAR, PLAIN, Call, Format, Job, Tile, stopped
from .reductions cimport MaxI16, SumI32, SumI64, SumWide, running_t

cdef enum:
    PIECE = 1 << 10  # bytes of windows that are finished together from results of steps


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


cdef inline bint may_finish_boxes(const Job* job, const Call* call, const Tile* tile, bint boxed) noexcept nogil:
    """Whether `finish_boxes` may reduce all axes: up to two, or three if windows share no tap along the first, or if
    that is not reduced."""
    cdef const Axis* first = &job.axis[0]
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin
    cdef int left = job.axes - (2 if boxed else 1)
    return (job.finishes and job.divisor <= MOST_DIVISOR
            and lies_inner(&call.x, inner) and lies_inner(&call.y, inner)
            and (left == 0 or (left == 1 and (first.most == 1 or (
                boxed and first.most <= SIDE and first.hop == 1 and (first.step >= first.taps or first.out == 1)))))
            and have_taps(job, tile))


cdef bint finish_boxes(const Job* job, const Call* call, const Tile* tile, bint boxed,
                       running_t* work) noexcept nogil:
    """From elements to elements; True if a result is odd."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, item
    cdef int last = job.axes - 1, above = last - 1 if boxed or last == 1 else -1, top = 0 if last == 2 else -1, a
    cdef Side deep = side_of(job, tile, top, call.x.axis[0], call.y.axis[0])
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
            and lies_in_lines(job, call, tile, work) and may_finish_boxes(job, call, tile, False))


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
    cdef Boxes these, those
    memset(&these, 0, sizeof(Boxes))
    these.inner, these.planes, these.rows, these.divisor = inner, 1, 1, divisor_of(axis, span.begin)
    these.far, these.asks = call.far, call.asks
    these.pace = pixel
    those = these
    these.taps, these.step, these.hop = axis.step, axis.step * call.x.axis[0], call.x.axis[0]
    those.taps, those.step, those.hop, those.far = steps, pixel, pixel, NEAR
    those.pace = call.y.axis[0] if direct else pixel
    for item in range(tile.outer_begin, tile.outer_end):
        source = outer_item(job, &call.x, item, tile.inner_begin) + first_tap(axis, span.begin) * call.x.axis[0]
        target = outer_item(job, &call.y, item, tile.inner_begin) + span.begin * call.y.axis[0]
        window, held = span.begin, 0
        while window < span.end:
            n = min(most, span.end - window)
            these.windows, those.windows = n + steps - 1 - held, n
            these.left = (span.end - window + steps) * these.step
            boxes_of(source, <char*> (work + held * inner), &these, work, call.x.format, False)
            means = target if direct else <char*> (work + (n + steps - 1) * inner)
            odd |= boxes_of(<const char*> work, means, &those, work, PLAIN, True)
            if not direct:
                write_row(&call.y, means, target, call.y.axis[0], n, inner, scratch)
            source += these.windows * these.step
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
    if (job.axes == 1 or job.whole or job.in_order or job.indexed or not job.finishes
            or job.divisor > MOST_DIVISOR or job.axis[0].most > FEW
            or inner * <Py_ssize_t> sizeof(running_t) < VECTOR or not lies_inner(&call.y, inner)):
        return False
    if block != NULL:
        return call.y.format == PLAIN and running_t is not MaxI16 and have_taps(job, tile)
    for a in range(1, job.axes):
        if not passes_through(&job.axis[a]):
            return False
    return (not job.stage.load and not is_square(call.x.format) and lies_inner(&call.x, inner) and have_taps(job, tile))


cdef bint finish_down(const Job* job, const Call* call, const Tile* tile, const running_t* block,
                      running_t* work) noexcept nogil:
    """The first axis of block[outer, elements of it, windows of the others, inner] or, if that is NULL, of elements;
    True if a result is odd."""
    cdef int last = job.axes - 1, a
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, item, window, n
    cdef Py_ssize_t[MAX_AXES] pace
    cdef Format format = PLAIN if block != NULL else call.x.format
    cdef bint odd = False
    cdef Py_ssize_t size = sizeof(running_t) if format == PLAIN else call.x.itemsize
    cdef const char* source
    cdef Boxes these
    cdef Walk walk = walk_rows(job, &call.y, tile, True, NULL)
    cdef char* target
    walk.together = 1
    pace[last] = inner * size
    for a in range(last - 1, -1, -1):
        pace[a] = pace[a + 1] * extent(tile.span[a + 1], True)
    item = pace[0] * extent(tile.span[0], False)
    if block == NULL:
        for a in range(job.axes):
            pace[a] = call.x.axis[a]
    memset(&these, 0, sizeof(Boxes))
    these.planes, these.rows, these.left = 1, 1, AHEAD + 1
    these.hop, these.step = job.axis[0].hop * pace[0], pace[last]
    these.pace = call.y.axis[last]
    target = next_rows(job, &call.y, tile, &walk)
    while target != NULL and not stopped(call):
        if block != NULL:
            source = <const char*> block + (walk.item - tile.outer_begin) * item
        else:
            source = outer_item(job, &call.x, walk.item, tile.inner_begin) + tile.span[0].low * pace[0]
            for a in range(1, job.axes):
                source += tile.span[a].begin * pace[a]
        source += (first_tap(&job.axis[0], walk.place[0]) - tile.span[0].low) * pace[0]
        for a in range(1, last):
            source += (walk.place[a] - tile.span[a].begin) * pace[a]
        these.taps, these.divisor = taps_inside(&job.axis[0], walk.place[0]), 1
        window = tile.span[last].begin
        while window < tile.span[last].end:
            n = tile.span[last].end - window
            if job.divides:
                these.divisor = divisor_of(&job.axis[last], window)
                for a in range(last):
                    these.divisor *= divisor_of(&job.axis[a], walk.place[a])
                if not job.uniform:
                    n = min(n, job.axis[last].end - window) if is_interior(&job.axis[last], window) else 1
            these.windows, these.inner = n, inner
            if these.step == inner * size and these.pace == inner * call.y.itemsize:
                these.windows, these.inner = 1, n * inner  # as if of one window
            odd |= boxes_of(source + (window - tile.span[last].begin) * these.step,
                            target + (window - tile.span[last].begin) * these.pace, &these, work, format,
                            job.divides or running_t is MaxI16)
            window += n
        target = next_rows(job, &call.y, tile, &walk)
    return odd
