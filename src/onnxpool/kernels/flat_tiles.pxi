"""Flat tiles: planes of short rows as one long row, with as much between rows and planes as padding may ask for.

Every place of it is then a window that has all its taps, and every axis is reduced by one loop over all of them; what
starts where no window does is left out at last. What is between rows must change nothing wherever a window begins:
so it is for maxima, and for sums of up to SIDE taps.
"""
from .elements cimport copy_rows, copy_vector, fetch
from .job cimport Call, Job, Tile, parts, stopped
from .reductions cimport combine, few, neutral, running_t


cdef inline Py_ssize_t reach_of(const Job* job, int a) noexcept nogil:
    """From the first to the last tap of a window along an axis."""
    return (job.axis[a].taps - 1) * job.axis[a].hop * job.pitch[a + 1]


cdef inline void spread_rows(const Job* job, const Tile* tile, char* flat, char* rows, Py_ssize_t first, Py_ssize_t n,
                             bint windows, Py_ssize_t size) noexcept nogil:
    """Rows that lie together, of elements to their places or, of `windows`, from there; those from `first` on."""
    cdef int last = job.axes - 1, a
    cdef Py_ssize_t length = extent(tile.span[last], windows) * size, place, offset, part, i, count
    while n > 0:
        place, offset, part = first, 0, n
        for a in range(last - 1, -1, -1):
            count = extent(tile.span[a], windows)
            i = place % count
            place //= count
            offset += i * job.pitch[a + 1]
            part = min(part, count - i) if a == last - 1 else part
        offset = (offset + place * job.pitch[0]) * size
        if windows:
            copy_rows(flat + offset, job.pitch[last] * size, rows, length, part, length)
        else:
            copy_rows(rows, length, flat + offset, job.pitch[last] * size, part, length)
        rows += part * length
        first += part
        n -= part


cdef inline void few_places(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t hop, int taps,
                            Py_ssize_t tail, const char* next) noexcept nogil:
    cdef running_t[VECTOR] space
    cdef running_t* lanes = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), vector, j
    for vector in range(parts(n, width)):
        fetch(next + vector * VECTOR)
        for j in range(width):
            lanes[j] = combine(few(x + j, hop, taps), x[j + tail])
        copy_vector(y, lanes)
        x += width
        y += width


cdef void sweep_places(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t hop, Py_ssize_t taps,
                       Py_ssize_t tail, const char* next) noexcept nogil:
    """y[n] of so many taps and one more, `tail` places from the first; asks for lines that come next."""
    # Constants let the compiler unroll them.
    if taps == 1:
        few_places(x, y, n, hop, 1, tail, next)
    elif taps == 2:
        few_places(x, y, n, hop, 2, tail, next)
    elif taps == 3:
        few_places(x, y, n, hop, 3, tail, next)
    elif taps == 4:
        few_places(x, y, n, hop, 4, tail, next)
    elif taps == 5:
        few_places(x, y, n, hop, 5, tail, next)
    elif taps == 6:
        few_places(x, y, n, hop, 6, tail, next)
    elif taps == 7:
        few_places(x, y, n, hop, 7, tail, next)
    else:
        few_places(x, y, n, hop, 8, tail, next)


cdef inline running_t* reduce_places(const Job* job, Py_ssize_t whole, running_t* flat, running_t* first,
                                     running_t* second, const char* next, const char* target) noexcept nogil:
    """All axes of so many places, in the order of boxes: what begins at each. Parts of long windows overlap, as those
    of maxima may."""
    cdef running_t* result = flat
    cdef Py_ssize_t count = whole, hop, taps, part
    cdef int last = job.axes - 1, a, i
    for a in range(job.axes):
        count += reach_of(job, a)
    for i in range(last, -1, -1):
        a = 2 * last - 1 - i if columns_first(flat) and last > 0 and i >= last - 1 else i
        if job.axis[a].taps == 1:  # whichever of its places are windows
            continue
        count -= reach_of(job, a)
        hop, taps, part = job.axis[a].hop * job.pitch[a + 1], job.axis[a].taps, 1
        if taps > FEW:
            part = 4 if taps <= 16 else 8
            sweep_places(result, first, count + (taps - part) * hop, hop, part - 1, (part - 1) * hop, next)
            result, first, second = first, second, first
        sweep_places(result, first, count, part * hop, (taps - 1) // part, (taps - part) * hop, next)
        result, first, second = first, second, first
        next = target
    return result


cdef const char* load_flat(const Job* job, const Call* call, const Tile* tile, running_t* start, Walk* walk,
                           Py_ssize_t planes, const char* source, running_t* values, Scratch* scratch) noexcept nogil:
    """The elements of so many planes to their places; where the next ones are."""
    cdef Py_ssize_t length = extent(tile.span[job.axes - 1], False), done = walk.done
    cdef Py_ssize_t rows = walk.rows // (tile.outer_end - tile.outer_begin)
    cdef const char* line
    while source != NULL and walk.done < done + planes * rows:
        if walk.wanted:
            line = read_rows(job, &call.x, call.x.format, source, walk, length, 1, scratch)
            if job.stage.load:
                job.stage.load(line, values, walk.n * length, &call.rule)
                line = <const char*> values
            spread_rows(job, tile, <char*> start, <char*> line, walk.done - done, walk.n, False, sizeof(running_t))
        source = next_rows(job, &call.x, tile, walk)
    return source


cdef bint finish_flat(const Job* job, const Call* call, const Tile* tile, running_t* values, running_t* flat,
                      Scratch* scratch) noexcept nogil:
    """All axes, from elements to elements; True as from `store_block`."""
    cdef Py_ssize_t planes = tile.outer_end - tile.outer_begin, width = extent(tile.span[job.axes - 1], True)
    cdef Py_ssize_t places = job.flat * job.pitch[0], lines, done = 0, some, row, j
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef const char* divisors
    cdef Walk results = walk_results(job, call, tile, &divisors, scratch)
    cdef char* direct = where_stored(job, call, tile)
    cdef const char* source
    cdef char* target
    cdef running_t* start = flat
    cdef running_t* first
    cdef running_t* second
    cdef running_t* reduced
    cdef bint unsafe = False
    cdef int a
    for a in range(job.axes):
        places += reach_of(job, a)
        start += (job.axis[a].begin - job.axis[a].start + tile.span[a].low) * job.pitch[a + 1]
    for j in range(places):
        flat[j] = neutral(flat[j])
    first = flat + parts(places, VECTOR) * VECTOR
    second = first + parts(places, VECTOR) * VECTOR
    bring_together(job, &call.x, tile, &walk)
    lines = results.rows // planes
    walk.most, results.most = walk.rows // planes * job.flat, lines * job.flat
    source, target = next_rows(job, &call.x, tile, &walk), next_rows(job, &call.y, tile, &results)
    while done < planes and not stopped(call):
        some = min(job.flat, planes - done)
        source = load_flat(job, call, tile, start, &walk, some, source, values, scratch)
        reduced = reduce_places(job, some * job.pitch[0], flat, first, second, source if source != NULL else target,
                                target)
        done += some
        if direct != NULL:
            spread_rows(job, tile, <char*> reduced, direct, 0, some * lines, True, sizeof(running_t))
            direct += some * lines * width * <Py_ssize_t> sizeof(running_t)
            target = direct
            continue
        first, second = second if reduced == first else first, reduced
        spread_rows(job, tile, <char*> reduced, <char*> first, 0, some * lines, True, sizeof(running_t))
        row = results.done
        while target != NULL and results.done < done * lines:
            unsafe |= store_rows(job, call, tile, &results, first + (results.done - row) * width, target, divisors,
                                 scratch)
            target = next_rows(job, &call.y, tile, &results)
    return unsafe
