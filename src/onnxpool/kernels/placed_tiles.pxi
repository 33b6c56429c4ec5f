"""Tiles of maxima with places: loaded, reduced and stored as in tiles.pxi and boxes.pxi."""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from .elements cimport copy_vector, transpose
from .geometry cimport Axis, Span, first_tap, is_interior, taps_inside
from .job cimport PLAIN, Call, Job, Order, Row, Tile, parts, stopped


cdef inline placed_t onto(placed_t best, const Rows* x, Py_ssize_t first, Py_ssize_t hop, int taps, Count count,
                          const placed_t* kind) noexcept nogil:
    """The best of earlier rows and of up to 3 taps from `first` on, in the order of places."""
    best = first_greatest(best, counted(x, first, count.start, kind))
    if taps > 1:
        best = first_greatest(best, counted(x, first + hop, count.start + count.hop, kind))
    if taps > 2:
        best = first_greatest(best, counted(x, first + 2 * hop, count.start + 2 * count.hop, kind))
    return best


cdef inline placed_t counted(const Rows* x, Py_ssize_t j, int64_t place, const placed_t* kind) noexcept nogil:
    cdef placed_t result = at(x, j, kind)
    result.place = place
    return result


cdef inline void place_boxes(Rows x, Rows y, Py_ssize_t windows, Py_ssize_t inner, Py_ssize_t step, Py_ssize_t pitch,
                             Py_ssize_t hop, int rows, int taps, Count count, int64_t line,
                             const placed_t* kind) noexcept nogil:
    """As `boxes`; `line` places from row to row of a box."""
    cdef char[VECTOR] values
    cdef char[VECTOR * 8] places
    cdef Rows lanes
    cdef Py_ssize_t window, done, j, width = VECTOR // value_size(kind)
    cdef placed_t best
    lanes.values, lanes.places = <char*> values, <char*> places
    for window in range(windows):
        done = 0
        while done < inner:
            done = min(done, inner - width)  # the last vector overlaps the one before
            for j in range(width):
                best = counted(&x, done + j, count.start, kind)
                if taps > 1:
                    best = onto(best, &x, done + j + hop, hop, taps - 1, Count(count.start + count.hop, 0, count.hop),
                                kind)
                if rows > 1:
                    best = onto(best, &x, done + j + pitch, hop, taps, Count(count.start + line, 0, count.hop), kind)
                if rows > 2:
                    best = onto(best, &x, done + j + 2 * pitch, hop, taps, Count(count.start + 2 * line, 0, count.hop),
                                kind)
                put(&lanes, j, best)
            copy_vector(y.values + done * value_size(kind), values)
            memcpy(y.places + done * place_size(kind), places, width * place_size(kind))
            done += width
        x, y = moved(x, step, kind), moved(y, inner, kind)
        count.start += count.step


cdef void place_some_boxes(Rows x, Rows y, Py_ssize_t windows, Py_ssize_t inner, Py_ssize_t step, Py_ssize_t pitch,
                           Py_ssize_t hop, Py_ssize_t rows, Py_ssize_t taps, Count count, int64_t line,
                           const placed_t* kind) noexcept nogil:
    if rows == 0 or taps == 0:
        leave_empty(y, windows * inner, 1, kind)
    elif rows == 1 and taps == 1:
        place_boxes(x, y, windows, inner, step, pitch, hop, 1, 1, count, line, kind)
    elif rows == 1 and taps == 2:
        place_boxes(x, y, windows, inner, step, pitch, hop, 1, 2, count, line, kind)
    elif rows == 1:
        place_boxes(x, y, windows, inner, step, pitch, hop, 1, 3, count, line, kind)
    elif rows == 2 and taps == 1:
        place_boxes(x, y, windows, inner, step, pitch, hop, 2, 1, count, line, kind)
    elif rows == 2 and taps == 2:
        place_boxes(x, y, windows, inner, step, pitch, hop, 2, 2, count, line, kind)
    elif rows == 2:
        place_boxes(x, y, windows, inner, step, pitch, hop, 2, 3, count, line, kind)
    elif taps == 1:
        place_boxes(x, y, windows, inner, step, pitch, hop, 3, 1, count, line, kind)
    elif taps == 2:
        place_boxes(x, y, windows, inner, step, pitch, hop, 3, 2, count, line, kind)
    else:
        place_boxes(x, y, windows, inner, step, pitch, hop, 3, 3, count, line, kind)


cdef void place_plane(Rows x, Rows y, const Axis* rows, Span down, const Axis* taps, Span across, Py_ssize_t pitch,
                      Py_ssize_t inner, int64_t place, int64_t line, const placed_t* kind) noexcept nogil:
    """As `reduce_boxes`; rows of elements are `line` places apart."""
    cdef Py_ssize_t row, window, n, top, left
    for row in range(down.begin, down.end):
        top = first_tap(rows, row) - down.low if taps_inside(rows, row) else 0
        window = across.begin
        while window < across.end:
            n = min(across.end, taps.end) - window if is_interior(taps, window) else 1
            left = first_tap(taps, window) - across.low if taps_inside(taps, window) else 0
            place_some_boxes(moved(x, top * pitch + left * inner, kind), y, n, inner, taps.step * inner,
                             rows.hop * pitch, taps.hop * inner, taps_inside(rows, row), taps_inside(taps, window),
                             Count(place + top * line + left, taps.step, taps.hop), rows.hop * line, kind)
            y = moved(y, n * inner, kind)
            window += n


cdef inline int64_t column_major(int64_t place, const Order* order) noexcept nogil:
    """The place as it is counted with the first axis fastest: Horner's rule, from the last axis on."""
    cdef int64_t result = 0
    cdef int a
    for a in range(order.axes - 1, -1, -1):
        result = result * order.size[a] + place % order.size[a]
        place //= order.size[a]
    return result


cdef void store_places(Rows rows, int64_t* y, Py_ssize_t n, const Row* row, const Order* order,
                       const placed_t* kind) noexcept nogil:
    """Flat indices of places; -1 for that of nothing."""
    cdef Py_ssize_t i, c, inner = row.inner
    cdef int64_t base = row.base, plane = row.plane, place
    if order.axes:
        for i in range(n):
            place = at(&rows, i, kind).place
            y[i] = base + i % inner * plane + column_major(place, order) if place >= 0 else -1
    elif inner == 1:
        for i in range(n):
            place = at(&rows, i, kind).place
            y[i] = base + place if place >= 0 else -1
    else:
        for i in range(n // inner):
            for c in range(inner):
                place = at(&rows, i * inner + c, kind).place
                y[i * inner + c] = base + c * plane + place if place >= 0 else -1


cdef inline bint knows(Rows rows, Py_ssize_t n, const placed_t* kind) noexcept nogil:
    """Whether `kind` can compare all values: only `PlacedAny` knows of a NaN."""
    if placed_t is PlacedF32:
        return not has_nan(<const float*> rows.values, n)
    elif placed_t is PlacedF64:
        return not has_nan(<const double*> rows.values, n)
    else:
        return True


cdef inline bint fits_placed_boxes(const Job* job, const Call* call, const Tile* tile,
                                   const placed_t* kind) noexcept nogil:
    cdef int last = job.axes - 1
    return (fits_boxes(job, tile, value_size(kind)) and not job.stage.load and call.x.format == PLAIN
            and call.x.axis[last - 1] % value_size(kind) == 0
            and is_dense(&call.x, call.x.axis[last], tile.span[last].high - tile.span[last].low,
                         tile.inner_end - tile.inner_begin))


cdef bint load_placed_boxes(const Job* job, const Call* call, const Tile* tile, Rows block, Scratch* scratch,
                            const placed_t* kind) noexcept nogil:
    """The last two axes, as `load_boxes` does; True as from `load_places`."""
    cdef int last = job.axes - 1
    cdef Span down = tile.span[last - 1], across = tile.span[last]
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, pitch = call.x.axis[last - 1] // value_size(kind), row
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef Rows x
    x.places = NULL
    walk.together = 1
    x.values = next_rows(job, &call.x, tile, &walk)
    while x.values != NULL and not stopped(call):
        walk.n = down.high - down.low
        if walk.wanted:
            for row in range(walk.n):
                if not knows(moved(x, row * pitch, kind), (across.high - across.low) * inner, kind):
                    return True
            place_plane(x, block, &job.axis[last - 1], down, &job.axis[last], across, pitch, inner, walk.row.place,
                        job.pace[last - 1], kind)
        block = moved(block, (down.end - down.begin) * (across.end - across.begin) * inner, kind)
        x.values = next_rows(job, &call.x, tile, &walk)
    return False


cdef bint load_places(const Job* job, const Call* call, const Tile* tile, Rows block,
                      char* values, Rows spare, Rows other, Scratch* scratch, const placed_t* kind) noexcept nogil:
    """The last axis, as `load_rows` does; True if there is a NaN that `kind` does not know of."""
    cdef Span span = tile.span[job.axes - 1]
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, length = span.high - span.low
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef const char* source = next_rows(job, &call.x, tile, &walk)
    while source != NULL and not stopped(call):
        if walk.wanted:
            source = read_row(&call.x, source, walk.stride, walk.n * length, inner, scratch)
            if job.stage.load:
                job.stage.load(source, values, walk.n * length * inner, &call.rule)
                source = values
            if not knows(Rows(<char*> source, NULL), walk.n * length * inner, kind):
                return True
            place_axis(Rows(<char*> source, NULL), block, walk.n, &job.axis[job.axes - 1], span, inner, walk.row.place,
                       spare, other, kind)
        block = moved(block, walk.n * (span.end - span.begin) * inner, kind)
        source = next_rows(job, &call.x, tile, &walk)
    return False


cdef void store_placed(const Job* job, const Call* call, const Tile* tile, Rows block,
                       Scratch* scratch, const placed_t* kind) noexcept nogil:
    cdef Span span = tile.span[job.axes - 1]
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, n, c
    cdef Walk walk = walk_rows(job, &call.y, tile, True, NULL), other = walk_rows(job, &call.indices, tile, True, NULL)
    cdef const char* values
    cdef char* target
    cdef char* indices
    cdef Rows places
    cdef Row row
    walk.together = other.together = min(walk.together, other.together)
    target, indices = next_rows(job, &call.y, tile, &walk), next_rows(job, &call.indices, tile, &other)
    while target != NULL:
        n = walk.n * (span.end - span.begin)
        values = block.values
        if job.stage.store:
            job.stage.store(values, scratch.values, n * inner, 1, &call.rule)
            values = scratch.values
        write_row(&call.y, values, target, walk.stride, n, inner, scratch)
        if is_planar(&call.indices, other.stride, inner):
            # Places are narrower than indices, so that they are transposed first.
            places, row = Rows(block.values, scratch.indices), other.row
            transpose(block.places, inner * place_size(kind), places.places, n * place_size(kind), n, inner,
                      place_size(kind))
            row.inner = 1
            for c in range(inner):
                store_places(places, <int64_t*> (indices + c * call.indices.inner), n, &row, &job.order, kind)
                places.places += n * place_size(kind)
                row.base += row.plane
        else:
            values = indices if is_dense(&call.indices, other.stride, n, inner) else scratch.indices
            store_places(block, <int64_t*> values, n * inner, &other.row, &job.order, kind)
            write_row(&call.indices, values, indices, other.stride, n, inner, scratch)
        block = moved(block, n * inner, kind)
        target, indices = next_rows(job, &call.y, tile, &walk), next_rows(job, &call.indices, tile, &other)


cdef bint place_tile(const placed_t* kind, char* memory, const Job* job, const Call* call, const Tile* tile,
                     Scratch* scratch) noexcept nogil:
    """As `pool_tile` does, with places; True if a NaN asks for `PlacedAny`."""
    cdef Py_ssize_t pre, post = tile.inner_end - tile.inner_begin
    cdef Py_ssize_t[4] counts
    cdef Rows[4] rows
    cdef char* target = where_stored(job, call, tile)
    cdef bint boxed = fits_placed_boxes(job, call, tile, kind)
    cdef int left = job.axes - (2 if boxed else 1), a, b
    counts[0] = counts[1] = parts(job.block, 64) * 64
    counts[2] = counts[3] = parts(job.work, 64) * 64
    for a in range(4):
        rows[a].values = memory
        rows[a].places = memory + counts[a] * value_size(kind)
        memory += counts[a] * (value_size(kind) + place_size(kind))
    if left == 0 and target != NULL:
        rows[0].values = target
    if boxed:
        if load_placed_boxes(job, call, tile, rows[0], scratch, kind):
            return True
    elif load_places(job, call, tile, rows[0], memory, rows[2], rows[3], scratch, kind):
        return True
    for a in range(job.axes - 1, -1, -1):
        if a < left and not passes_through(&job.axis[a]) and not stopped(call):
            pre = tile.outer_end - tile.outer_begin
            for b in range(a):
                pre *= tile.span[b].high - tile.span[b].low
            if a == 0 and target != NULL:
                rows[1].values = target
            place_axis(rows[0], rows[1], pre, &job.axis[a], tile.span[a], post, 0, rows[2], rows[3], kind)
            rows[0], rows[1] = rows[1], rows[0]
        post *= tile.span[a].end - tile.span[a].begin
    store_placed(job, call, tile, rows[0], scratch, kind)
    return False
