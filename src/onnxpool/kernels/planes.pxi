"""Planes: where one window is a whole channel whose elements lie side by side, they fill vectors.

The vectors of a channel, in row-major order, are combined in the order T; elements that do not fill one come last; then
the lanes, as neighbours. This is the order of global pools channels-first, however the rows lie in memory.
"""
from libc.stdint cimport int32_t, uint8_t

from .elements cimport join_vectors, sum_bytes
from .job cimport BYTES, PLAIN, SIGNED_BYTES, Call, Job, Stage, Tile, stopped
from .reductions cimport MaxF32, MaxF64, SumI32, neutral, running_t


cdef inline void fold_out(Fold* fold, const running_t* x, Py_ssize_t n, bint more, const running_t* nothings,
                          running_t* y, running_t* held) noexcept nogil:
    """The last n elements, fewer than a group, and all before them; `more` if a vector can be read behind them."""
    cdef running_t[VECTOR] space, rest_space
    cdef running_t* lanes = space
    cdef running_t* others = rest_space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), vectors = n // width, rest = n - vectors * width
    cdef bint any_before = vectors > 0 or fold.depth > 0
    if vectors:
        reduce_rest(<const char*> x, lanes, VECTOR, vectors, 1, PLAIN)
    if any_before:
        fold_up(fold, lanes, vectors > 0, held, 1)
    if rest:
        if more:
            join_vectors(x + vectors * width, rest * <Py_ssize_t> sizeof(running_t), nothings, others)
        else:
            memcpy(others, nothings, VECTOR)
            memcpy(others, x + vectors * width, rest * sizeof(running_t))
        if any_before:
            merge(lanes, others, width)
        else:
            memcpy(lanes, others, VECTOR)
    memcpy(y, lanes, VECTOR)


cdef void fold_planes(const running_t* x, running_t* y, Py_ssize_t planes, Py_ssize_t n,
                      running_t* held, bint far) noexcept nogil:
    """y[planes, lanes] from x[planes, n], elements where they are if `far`."""
    cdef running_t[VECTOR] nothings
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), whole, done, part, plane, j
    cdef Fold fold
    whole = n - n % (GROUP * width)
    for j in range(width):
        nothings[j] = neutral(x[0])
    for plane in range(planes):
        fold.groups = fold.depth = done = 0
        while done < whole:
            part = min(whole - done, GROUP * width)
            if far:
                fetch_ahead(<const char*> (x + done), part * sizeof(running_t))
            fold_in(&fold, <const char*> (x + done), VECTOR, part // (GROUP * width), held, 1, PLAIN)
            done += part
        if far and n - done > 4 * width:  # fewer lines are sooner read than counted
            fetch_ahead(<const char*> (x + done), (n - done) * sizeof(running_t))
        fold_out(&fold, x + done, n - done, (planes - plane - 1) * n >= width, nothings, y + plane * width, held)
        x += n


cdef inline void sum_planes(const uint8_t* x, running_t* y, Py_ssize_t planes, Py_ssize_t n,
                            bint is_signed) noexcept nogil:
    """y[planes, lanes] from bytes x[planes, n], in the first lane: integers have no order."""
    cdef Py_ssize_t plane
    if running_t is SumI32:
        for plane in range(planes):
            memset(y, 0, VECTOR)
            y.value = <int32_t> sum_bytes(x, n, is_signed)
            x += n
            y += VECTOR // <Py_ssize_t> sizeof(running_t)


cdef inline void feed(Fold* fold, const running_t* x, Py_ssize_t n, running_t* pending, Py_ssize_t* waiting,
                      running_t* held) noexcept nogil:
    """n more elements of a plane; those that do not fill a group wait for others."""
    cdef Py_ssize_t group = GROUP * (VECTOR // <Py_ssize_t> sizeof(running_t)), taken
    if waiting[0]:
        taken = min(n, group - waiting[0])
        memcpy(pending + waiting[0], x, taken * sizeof(running_t))
        waiting[0] += taken
        x += taken
        n -= taken
        if waiting[0] < group:
            return
        fold_in(fold, <const char*> pending, VECTOR, 1, held, 1, PLAIN)
    fold_in(fold, <const char*> x, VECTOR, n // group, held, 1, PLAIN)
    waiting[0] = n % group
    memcpy(pending, x + n - waiting[0], waiting[0] * sizeof(running_t))


cdef void load_planes(const Job* job, const Call* call, const Stage* stage, const Tile* tile, running_t* block,
                      running_t* values, running_t* work, Scratch* scratch) noexcept nogil:
    """block[outer, lanes]; work holds LEVELS + GROUP vectors."""
    cdef running_t[GROUP * VECTOR] space, nothings
    cdef running_t* pending = space
    cdef Py_ssize_t length = extent(tile.span[job.axes - 1], False), lines = job.plane // length, waiting = 0, n, j
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef bint bytes = call.x.format == BYTES or call.x.format == SIGNED_BYTES
    cdef bint direct = (not stage.load and (call.x.format == PLAIN or bytes) and walk.together % lines == 0
                        and is_dense(&call.x, call.x.axis[job.axes - 1], length, 1))
    cdef bint fetches = call.far and not direct and is_dense(&call.x, call.x.axis[job.axes - 1], length, 1)
    cdef const char* source
    cdef Fold fold
    if fetches:
        walk.most = min(walk.most, max(lines, AHEAD // (length * call.x.itemsize)))
    source = next_rows(job, &call.x, tile, &walk)
    fold.groups = fold.depth = 0
    for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
        nothings[j] = neutral(block[0])
    while source != NULL and not stopped(call):
        if direct:
            walk.n = walk.together - walk.done % walk.together
        elif walk.n > lines - walk.done % lines:
            # Whole planes, or else to the end of one.
            walk.n = walk.n // lines * lines if walk.done % lines == 0 else lines - walk.done % lines
        n = walk.n * length
        if fetches:
            fetch_ahead(source, n * call.x.itemsize)
        if not direct:
            source = read_row(&call.x, source, walk.stride, n, 1, scratch)
        if stage.load:
            stage.load(source, values, n, &call.rule)
            source = <const char*> values
        if direct and bytes:
            sum_planes(<const uint8_t*> source, block, walk.n // lines, job.plane, call.x.format == SIGNED_BYTES)
            block += walk.n // lines * (VECTOR // <Py_ssize_t> sizeof(running_t))
        elif walk.n >= lines:
            fold_planes(<const running_t*> source, block, walk.n // lines, job.plane, work, call.far and direct)
            block += walk.n // lines * (VECTOR // <Py_ssize_t> sizeof(running_t))
        else:
            feed(&fold, <const running_t*> source, n, pending, &waiting, work)
            if (walk.done + walk.n) % lines == 0:
                fold_out(&fold, pending, waiting, True, nothings, block, work)
                block += VECTOR // <Py_ssize_t> sizeof(running_t)
                fold.groups = fold.depth = waiting = 0
        source = next_rows(job, &call.x, tile, &walk)


cdef void fold_lanes(const running_t* x, running_t* y, Py_ssize_t rows, running_t* scratch) noexcept nogil:
    """y[rows] from x[rows, lanes]; scratch is as large as x."""
    cdef Py_ssize_t n = rows * (VECTOR // <Py_ssize_t> sizeof(running_t))
    while n > 2 * rows:
        n //= 2
        sweep(x, scratch, n, 2, 1, 2)
        x = scratch
        scratch += n
    sweep(x, y, rows, 2, 1, 2)


cdef void settle_zeros(const Job* job, const Call* call, const Tile* tile, running_t* results,
                       Scratch* scratch) noexcept nogil:
    """Lanes do not keep the order of equals: a maximum of zero becomes the first zero of its channel."""
    cdef Py_ssize_t item, j, n
    cdef bint found
    cdef Tile one = tile[0]
    cdef Walk walk
    cdef const char* source
    cdef const running_t* values
    if running_t is MaxF32 or running_t is MaxF64:
        for item in range(tile.outer_end - tile.outer_begin):
            if results[item].value != 0:
                continue
            found = False
            one.outer_begin = tile.outer_begin + item
            one.outer_end = one.outer_begin + 1
            walk = walk_rows(job, &call.x, &one, False, scratch.marks)
            source = next_rows(job, &call.x, &one, &walk)
            while source != NULL and not found:
                n = walk.n * extent(tile.span[job.axes - 1], False)
                values = <const running_t*> read_row(&call.x, source, walk.stride, n, 1, scratch)
                j = 0
                while j < n and values[j].value != 0:
                    j += 1
                found = j < n
                if found:
                    results[item] = values[j]
                source = next_rows(job, &call.x, &one, &walk)
