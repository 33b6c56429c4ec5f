"""Tiles of planes: one window is a whole channel, whose rows are reduced as they come or, better, as they lie."""
from libc.string cimport memcpy

from .elements cimport MOST_DIVISOR, REGISTERS, fetch_lines
from .job cimport BFLOAT16, BFLOAT16_PAIRS, FARTHEST, NEAR, PLAIN, Array, Call, Job, Tile, parts, stopped
from .reductions cimport MaxF32, MaxF64, running_t


cdef inline void feed(Chain* chain, const char* x, const Band* band, Py_ssize_t n, running_t* pending,
                      Py_ssize_t* waiting, running_t* held) noexcept nogil:
    """n more running values of a plane; those that cannot be taken yet wait for others."""
    cdef Py_ssize_t taken = 0, wholes
    if waiting[0]:
        taken = min(n, band.whole - waiting[0])
        memcpy(pending + waiting[0], x, taken * sizeof(running_t))
        waiting[0] += taken
        if waiting[0] < band.whole:
            return
        add_wholes(chain, <const char*> pending, band, 1, held, PLAIN)
    x += taken * sizeof(running_t)
    wholes = (n - taken) // band.whole
    add_wholes(chain, x, band, wholes, held, PLAIN)
    waiting[0] = (n - taken) % band.whole
    memcpy(pending, x + wholes * band.whole * sizeof(running_t), waiting[0] * sizeof(running_t))


cdef void load_coming_rows(const Job* job, const Call* call, const Tile* tile, running_t* y,
                           running_t* values, running_t* work, Scratch* scratch) noexcept nogil:
    """y[outer] of planes of one channel, or y[inner] of one plane of several, from rows as they come."""
    cdef double[FLOCK * DOUBLES] space  # BAND bytes
    cdef running_t* pending = <running_t*> space
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin
    cdef Py_ssize_t length = extent(tile.span[job.axes - 1], False), lines = job.plane // length
    cdef Py_ssize_t most = max(1, job.row // inner), waiting = 0, places, done, n
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef bint dense = is_dense(&call.x, call.x.axis[job.axes - 1], length, inner)
    cdef Chain chain = Chain(0, 0)
    cdef Band band = band_of(job.inner, inner, y)
    cdef const char* source
    cdef const char* line
    band.hop, band.ahead = band.places * inner * <Py_ssize_t> sizeof(running_t), AHEAD
    bring_together(job, &call.x, tile, &walk)
    if call.far and dense:
        walk.most = min(walk.most, max(lines, AHEAD // (length * inner * call.x.itemsize)))
    source = next_rows(job, &call.x, tile, &walk)
    while source != NULL and not stopped(call):
        if walk.n > lines - walk.done % lines:
            # Whole planes, or else to the end of one.
            walk.n = walk.n // lines * lines if walk.done % lines == 0 else lines - walk.done % lines
        places, done = walk.n * length, 0
        while done < places:
            n = places if walk.apart else min(places - done, most)
            if call.far and dense:
                fetch_lines(source + AHEAD, parts(n * inner * call.x.itemsize, 64))
            if walk.apart:
                line = read_rows(job, &call.x, call.x.format, source, &walk, length, inner, scratch)
            else:
                line = read_row(&call.x, source, walk.stride, n, inner, scratch)
            if job.stage.load:
                job.stage.load(line, values, n * inner, &call.rule)
                line = <const char*> values
            if n % job.plane == 0:
                planes_of(line, y, n // job.plane, job.plane * inner, &band, work, NEAR, call, PLAIN)
                y += n // job.plane
            else:
                feed(&chain, line, &band, n * inner, pending, &waiting, work)
            source += n * walk.stride
            done += n
        if chain.done + waiting and (walk.done + walk.n) % lines == 0:
            if chain.done:
                finish_plane(&chain, <const char*> pending, &band, waiting, True, y, work, PLAIN)
            else:
                planes_of(<const char*> pending, y, 1, waiting, &band, work, NEAR, call, PLAIN)
            y += 1
            chain.done = chain.depth = waiting = 0
        source = next_rows(job, &call.x, tile, &walk)


cdef inline bint lie_evenly(const Job* job, const Array* array) noexcept nogil:
    """Whether the places of a plane are equally far from each other."""
    cdef int last = job.axes - 1, a
    for a in range(last):
        if job.axis[a].size > 1 and array.axis[a] != job.pace[a] * array.axis[last]:
            return False
    return True


cdef inline Band direct_band(const Job* job, const Call* call, const Tile* tile, running_t* like) noexcept nogil:
    """The band of elements as they lie."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin
    cdef Band band = band_of(job.inner, inner, like)
    band.hop = band.places * call.x.axis[job.axes - 1]
    # Processors that gain by fetching follow one stream by themselves.
    band.ahead = 0 if FETCHES else FARTHEST_AHEAD if call.far == FARTHEST else AHEAD
    # What would be read in several pieces has to stay near and be worth it.
    band.columns = band.places == 1 and (
        band.units <= QUAD or band.units == REGISTERS
        or (band.units >= QUAD * QUAD and job.plane * inner * call.x.itemsize <= NEAR_PLANE))
    if band.hop > band.places * inner * call.x.itemsize or (band.columns and band.units > REGISTERS):
        band.ahead = QUAD * band.hop  # what is read of bands does not follow each other
    if job.outer * job.plane * job.inner * call.x.itemsize <= OWN_BYTES:
        band.ahead = 0
    band.segment, band.segments = tile.segment, tile.segments
    if tile.segments != NULL:
        band.length = band.chain
        while band.length * job.segments * band.whole < job.plane * inner:
            band.length *= 2
    return band


cdef inline bint lie_in_bands(const Job* job, const Call* call, const Tile* tile, running_t* like) noexcept nogil:
    """Whether elements can be taken as they lie."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin
    if job.stage.load or not lies_inner(&call.x, inner) or not lie_evenly(job, &call.x):
        return False
    if running_t is MaxF32:
        if call.x.format != PLAIN:  # 16 bits are seldom taken again
            return False
    return (band_of(job.inner, inner, like).places == 1 or job.plane == 1
            or call.x.axis[job.axes - 1] == inner * call.x.itemsize)


cdef void load_parts(const Job* job, const Call* call, const Tile* tile, bint direct, running_t* y,
                     running_t* values, running_t* work, Scratch* scratch) noexcept nogil:
    """y[inner] of one plane, no more channels at a time than results can be held of."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), begin = tile.inner_begin, most
    cdef Tile part = tile[0]
    cdef Band band = direct_band(job, call, tile, y)
    most = BAND // <Py_ssize_t> sizeof(running_t)
    if band.places > 1 or (direct and band.columns):
        most = tile.inner_end - begin
    while begin < tile.inner_end and not stopped(call):
        part.inner_begin = max(tile.inner_begin, min(begin, tile.inner_end - width))  # overlaps the one before
        part.inner_end = min(begin + most, tile.inner_end)
        if direct:
            band = direct_band(job, call, &part, y)
            planes_of(outer_item(job, &call.x, tile.outer_begin, part.inner_begin),
                      y + part.inner_begin - tile.inner_begin, 1,
                      job.plane * (part.inner_end - part.inner_begin), &band, work, call.far, call, call.x.format)
        else:
            load_coming_rows(job, call, &part, y + part.inner_begin - tile.inner_begin, values, work, scratch)
        begin = part.inner_end


cdef void load_planes(const Job* job, const Call* call, const Tile* tile, running_t* y,
                      running_t* values, running_t* work, Scratch* scratch) noexcept nogil:
    """y[outer, inner]."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, planes = tile.outer_end - tile.outer_begin
    cdef Py_ssize_t n = 1, item
    cdef bint direct = lie_in_bands(job, call, tile, y)
    cdef Tile part = tile[0]
    cdef Band band
    if not direct and tile.segment >= 0:
        return  # what is not taken in segments is taken at last
    elif direct and job.inner == 1:
        band = direct_band(job, call, tile, y)
        if rows_together(job, &call.x, tile, False) == planes * (job.plane // job.axis[job.axes - 1].size):
            n = planes
        for item in range(planes // n):
            planes_of(outer_item(job, &call.x, tile.outer_begin + item * n, 0), y + item * n, n, job.plane, &band, work,
                      call.far, call, call.x.format)
    elif job.inner == 1:
        load_coming_rows(job, call, tile, y, values, work, scratch)
    else:
        for item in range(planes):
            part.outer_begin = tile.outer_begin + item
            part.outer_end = part.outer_begin + 1
            load_parts(job, call, &part, direct, y + item * inner, values, work, scratch)


cdef inline bint may_finish_planes(const Job* job, const Call* call, const Tile* tile, running_t* work) noexcept nogil:
    """Whether `finish_planes` may reduce planes of channels that fill vectors."""
    return (job.whole and job.inner > 1 and job.finishes and job.divisor <= MOST_DIVISOR and tile.segments == NULL
            and lies_inner(&call.y, tile.inner_end - tile.inner_begin) and lie_in_bands(job, call, tile, work)
            and direct_band(job, call, tile, work).columns)


cdef bint finish_planes(const Job* job, const Call* call, const Tile* tile, running_t* work) noexcept nogil:
    """From elements to elements; True if a result is odd."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, item
    cdef Format format = call.x.format
    cdef Finish finish
    cdef Band band = direct_band(job, call, tile, work)
    finish.divisor, finish.factor, finish.seen = job.divisor, 1 / job.divisor, no_extremes()
    band.finish = &finish
    for item in range(tile.outer_begin, tile.outer_end):
        if stopped(call):
            return False
        planes_of(outer_item(job, &call.x, item, tile.inner_begin),
                  <running_t*> outer_item(job, &call.y, item, tile.inner_begin), 1, job.plane * inner, &band, work,
                  call.far, call, format)
    return are_odd(&finish.seen, work, BFLOAT16_PAIRS if format == BFLOAT16 else format)


cdef Py_ssize_t first_zero(const Job* job, const Call* call, const char* source, Py_ssize_t stride, Py_ssize_t places,
                           running_t* zero, Scratch* scratch) noexcept nogil:
    """Whether a row of one channel holds a zero, and the first of them."""
    cdef Py_ssize_t done = 0, n, j
    cdef const running_t* values
    if running_t is MaxF32 or running_t is MaxF64:
        while done < places:
            n = min(places - done, job.row)
            values = <const running_t*> read_row(&call.x, source + done * stride, stride, n, 1, scratch)
            for j in range(n):
                if values[j].value == 0:
                    zero[0] = values[j]
                    return True
            done += n
    return False


cdef void settle_zeros(const Job* job, const Call* call, const Tile* tile, running_t* results,
                       Scratch* scratch) noexcept nogil:
    """Lanes do not keep the order of equals: a maximum of zero becomes the first zero of its channel."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, length = extent(tile.span[job.axes - 1], False), item
    cdef Py_ssize_t zeros = 0
    cdef Tile one = tile[0]
    cdef Walk walk
    cdef const char* source
    if running_t is MaxF32 or running_t is MaxF64:
        if band_of(job.inner, inner, results).places == 1:
            return
        for item in range((tile.outer_end - tile.outer_begin) * inner):
            zeros += results[item].value == 0
        if zeros == 0:
            return
        for item in range((tile.outer_end - tile.outer_begin) * inner):
            if results[item].value != 0:
                continue
            one.outer_begin = tile.outer_begin + item // inner
            one.outer_end = one.outer_begin + 1
            one.inner_begin = tile.inner_begin + item % inner
            one.inner_end = one.inner_begin + 1
            walk = walk_rows(job, &call.x, &one, False, scratch.marks)
            source = next_rows(job, &call.x, &one, &walk)
            while source != NULL and not first_zero(job, call, source, walk.stride, walk.n * length, results + item,
                                                    scratch):
                source = next_rows(job, &call.x, &one, &walk)
