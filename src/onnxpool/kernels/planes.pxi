"""Planes: where one window is a whole channel whose elements lie side by side, they fill vectors.

The vectors of a channel, in row-major order, are combined in the order T; elements that do not fill one come last; then
the lanes, as neighbours. This is the order of global pools channels-first, however the rows lie in memory.
"""
from libc.stdint cimport int32_t, uint8_t

from .elements cimport join_vectors, sum_bytes
from .job cimport (
    BFLOAT16,
    BFLOAT16_KEYS,
    BFLOAT16_SQUARES,
    BYTES,
    FARTHEST,
    FLOAT16,
    FLOAT16_KEYS,
    FLOAT16_SQUARES,
    FLOAT32_SQUARES,
    FLOAT64_SQUARES,
    NEAR,
    PLAIN,
    SIGNED_BYTES,
    Call,
    Distance,
    Format,
    Job,
    Stage,
    Tile,
    parts,
    stopped,
)
from .reductions cimport MaxF32, MaxF64, MaxI16, SumF32, SumF64, SumI32, SumI64, SumWide, neutral, running_t


cdef enum:
    FLOCK = 64  # planes whose lanes are folded together
    DOUBLES = 8  # that take the room of a vector


cdef void fold_lanes(const running_t* x, running_t* y, Py_ssize_t rows, running_t* scratch) noexcept nogil:
    """y[rows] from x[rows, lanes]; scratch is as large as x."""
    cdef Py_ssize_t n = rows * (VECTOR // <Py_ssize_t> sizeof(running_t))
    while n > 2 * rows:
        n //= 2
        sweep(x, scratch, n, 2, 1, 2)
        x = scratch
        scratch += n
    sweep(x, y, rows, 2, 1, 2)


cdef inline void read_vector(const char* x, running_t* lanes, Format format) noexcept nogil:
    if format == PLAIN:
        memcpy(lanes, x, VECTOR)
    else:
        widen(x, lanes, format)


cdef inline void read_rest(const char* x, Py_ssize_t n, bint more, running_t* lanes, Format format) noexcept nogil:
    """n elements, fewer than a vector, and what changes nothing; `more` if a vector can be read."""
    cdef running_t[VECTOR] space, nothings
    cdef running_t* others = space
    cdef char[VECTOR] copy
    cdef Py_ssize_t j
    for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
        nothings[j] = neutral(lanes[0])
    if not more:
        memset(copy, 0, VECTOR)
        memcpy(copy, x, n * (<Py_ssize_t> sizeof(running_t) if format == PLAIN else itemsize_of(format)))
        x = copy
    read_vector(x, others, format)
    join_vectors(others, n * <Py_ssize_t> sizeof(running_t), nothings, lanes)


cdef inline void fold_out(Fold* fold, const char* x, Py_ssize_t n, bint more, running_t* y, running_t* held,
                          Format format) noexcept nogil:
    """The last n elements, fewer than a group, and all before them; `more` if a vector can be read behind them."""
    cdef running_t[VECTOR] space, rest_space
    cdef running_t* lanes = space
    cdef running_t* others = rest_space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), vectors = n // width, rest = n - vectors * width
    cdef Py_ssize_t unit = VECTOR if format == PLAIN else width * itemsize_of(format)
    cdef bint any_before = vectors > 0 or fold.depth > 0
    fold_rest(fold, x, unit, vectors, held, 1, format)
    if any_before:
        memcpy(lanes, held, VECTOR)
    if rest:
        read_rest(x + vectors * unit, rest, more, others, format)
        if any_before:
            merge(lanes, others, width)
        else:
            memcpy(lanes, others, VECTOR)
    memcpy(y, lanes, VECTOR)


cdef inline void short_planes(const char* x, running_t* y, Py_ssize_t planes, Py_ssize_t n, Py_ssize_t behind,
                              running_t* unused, Distance far, int vectors, Format format) noexcept nogil:
    """y[planes, lanes] of planes of so many whole vectors; `behind` elements can be read behind the last one."""
    cdef running_t[VECTOR] space, rest_space
    cdef running_t* lanes = space
    cdef running_t* others = rest_space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), plane, rest = n - vectors * width
    cdef Py_ssize_t size = <Py_ssize_t> sizeof(running_t) if format == PLAIN else itemsize_of(format)
    cdef Py_ssize_t readable = planes if behind >= width else max(0, planes - parts(width - behind, n))
    for plane in range(planes):
        if far:
            fetch_lines(x + AHEAD, parts((vectors + 1) * width * size, 64))
        read_rest(x + vectors * width * size, rest, plane < readable, others, format)
        if vectors:
            reduce_taps(x, lanes, width * size, vectors, format)
            merge(lanes, others, width)
            memcpy(y, lanes, VECTOR)
        else:
            memcpy(y, others, VECTOR)
        x += n * size
        y += width


cdef inline bint some_planes(const char* x, running_t* y, Py_ssize_t planes, Py_ssize_t n, Py_ssize_t behind,
                             running_t* like, Distance far, Format format) noexcept nogil:
    """As `short_planes`, False if they are not short."""
    cdef Py_ssize_t vectors = n // (VECTOR // <Py_ssize_t> sizeof(running_t))
    if running_t is SumI32 or running_t is SumI64 or running_t is SumWide:  # which seldom come here
        return False
    # Constants let the compiler unroll a plane.
    elif vectors == 0:
        short_planes(x, y, planes, n, behind, like, far, 0, format)
    elif vectors == 1:
        short_planes(x, y, planes, n, behind, like, far, 1, format)
    elif vectors == 2:
        short_planes(x, y, planes, n, behind, like, far, 2, format)
    elif vectors == 3:
        short_planes(x, y, planes, n, behind, like, far, 3, format)
    elif vectors == 4:
        short_planes(x, y, planes, n, behind, like, far, 4, format)
    elif vectors == 5:
        short_planes(x, y, planes, n, behind, like, far, 5, format)
    elif vectors == 6:
        short_planes(x, y, planes, n, behind, like, far, 6, format)
    elif vectors == 7:
        short_planes(x, y, planes, n, behind, like, far, 7, format)
    elif vectors == FEW:
        short_planes(x, y, planes, n, behind, like, far, FEW, format)
    return vectors <= FEW


cdef inline void long_planes(const char* x, running_t* y, Py_ssize_t planes, Py_ssize_t n, Py_ssize_t behind,
                             running_t* held, Distance far, Format format) noexcept nogil:
    """As `short_planes` for any number of vectors; lines are fetched if `far`."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), plane, groups = n // (GROUP * width)
    cdef Py_ssize_t unit = VECTOR if format == PLAIN else width * itemsize_of(format), rest = n % (GROUP * width)
    cdef Fold fold
    for plane in range(planes):
        fold.groups = fold.depth = 0
        fold_in(&fold, x, unit, groups, held, 1, far == FARTHEST, format)
        x += groups * GROUP * unit
        if far == FARTHEST and rest > 4 * width:  # fewer lines are sooner read than counted
            fetch_lines(x + FARTHEST_AHEAD, parts(rest * unit, 64 * width))
        fold_out(&fold, x, rest, (planes - plane - 1) * n + behind >= width, y, held, format)
        x += rest * (unit // width)
        y += width


cdef inline void fold_planes(const char* x, running_t* y, Py_ssize_t planes, Py_ssize_t n, running_t* held,
                             Distance far, const Call* call, Format format) noexcept nogil:
    """y[planes] from x[planes, n], which is not in scratch memory if `far`."""
    cdef double[FLOCK * DOUBLES] space, more_space
    cdef running_t* lanes = <running_t*> space
    cdef running_t* spare = <running_t*> more_space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), done = 0, part, behind
    cdef Py_ssize_t size = <Py_ssize_t> sizeof(running_t) if format == PLAIN else itemsize_of(format)
    while done < planes and not stopped(call):
        part = min(planes - done, FLOCK)
        behind = (planes - done - part) * n
        if not some_planes(x, lanes, part, n, behind, held, far, format):
            long_planes(x, lanes, part, n, behind, held, far, format)
        fold_lanes(lanes, y + done, part, spare)
        x += part * n * size
        done += part


cdef void planes_of(const char* x, running_t* y, Py_ssize_t planes, Py_ssize_t n, running_t* held, Distance far,
                    const Call* call, Format format) noexcept nogil:
    cdef Py_ssize_t plane
    if running_t is SumI32:
        if format == BYTES or format == SIGNED_BYTES:
            for plane in range(planes):  # integers have no order
                y[plane].value = <int32_t> sum_bytes(<const uint8_t*> x + plane * n, n, format == SIGNED_BYTES)
            return
    elif running_t is MaxI16:
        if format == FLOAT16_KEYS:
            fold_planes(x, y, planes, n, held, far, call, FLOAT16_KEYS)
            return
        elif format == BFLOAT16_KEYS:
            fold_planes(x, y, planes, n, held, far, call, BFLOAT16_KEYS)
            return
    elif running_t is SumF32:
        if format == FLOAT16:
            fold_planes(x, y, planes, n, held, far, call, FLOAT16)
            return
        elif format == BFLOAT16:
            fold_planes(x, y, planes, n, held, far, call, BFLOAT16)
            return
    elif running_t is SumF64:
        if format == FLOAT32_SQUARES:
            fold_planes(x, y, planes, n, held, far, call, FLOAT32_SQUARES)
            return
        elif format == FLOAT64_SQUARES:
            fold_planes(x, y, planes, n, held, far, call, FLOAT64_SQUARES)
            return
        elif format == FLOAT16_SQUARES:
            fold_planes(x, y, planes, n, held, far, call, FLOAT16_SQUARES)
            return
        elif format == BFLOAT16_SQUARES:
            fold_planes(x, y, planes, n, held, far, call, BFLOAT16_SQUARES)
            return
    fold_planes(x, y, planes, n, held, far, call, PLAIN)


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
        fold_in(fold, <const char*> pending, VECTOR, 1, held, 1, False, PLAIN)
    fold_in(fold, <const char*> x, VECTOR, n // group, held, 1, False, PLAIN)
    waiting[0] = n % group
    memcpy(pending, x + n - waiting[0], waiting[0] * sizeof(running_t))


cdef void load_planes(const Job* job, const Call* call, const Stage* stage, const Tile* tile, running_t* y,
                      running_t* values, running_t* work, Scratch* scratch) noexcept nogil:
    """y[outer]; work holds LEVELS + GROUP vectors."""
    cdef double[DOUBLES] lanes, spare
    cdef running_t[GROUP * VECTOR] space
    cdef running_t* pending = space
    cdef Py_ssize_t length = extent(tile.span[job.axes - 1], False), lines = job.plane // length, waiting = 0, n
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef bint dense = is_dense(&call.x, call.x.axis[job.axes - 1], length, 1)
    cdef bint direct = dense and not stage.load and walk.together % lines == 0
    cdef const char* source
    cdef Fold fold
    if running_t is MaxF32:
        direct &= call.x.format == PLAIN  # 16 bits are seldom taken again
    bring_together(job, &call.x, tile, &walk)
    if call.far and dense and not direct:
        walk.most = min(walk.most, max(lines, AHEAD // (length * call.x.itemsize)))
    source = next_rows(job, &call.x, tile, &walk)
    fold.groups = fold.depth = 0
    while source != NULL and not stopped(call):
        if direct:
            walk.n = walk.together - walk.done % walk.together
            planes_of(source, y, walk.n // lines, job.plane, work, call.far, call, call.x.format)
            y += walk.n // lines
            source = next_rows(job, &call.x, tile, &walk)
            continue
        if walk.n > lines - walk.done % lines:
            # Whole planes, or else to the end of one.
            walk.n = walk.n // lines * lines if walk.done % lines == 0 else lines - walk.done % lines
        n = walk.n * length
        if call.far and dense:
            fetch_lines(source + AHEAD, parts(n * call.x.itemsize, 64))
        source = read_rows(job, &call.x, call.x.format, source, &walk, length, 1, scratch)
        if stage.load:
            stage.load(source, values, n, &call.rule)
            source = <const char*> values
        if walk.n >= lines:
            planes_of(source, y, walk.n // lines, job.plane, work, NEAR, call, PLAIN)
            y += walk.n // lines
        else:
            feed(&fold, <const running_t*> source, n, pending, &waiting, work)
            if (walk.done + walk.n) % lines == 0:
                fold_out(&fold, <const char*> pending, waiting, True, <running_t*> lanes, work, PLAIN)
                fold_lanes(<running_t*> lanes, y, 1, <running_t*> spare)
                y += 1
                fold.groups = fold.depth = waiting = 0
        source = next_rows(job, &call.x, tile, &walk)


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
