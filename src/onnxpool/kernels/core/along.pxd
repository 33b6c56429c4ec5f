"""The last axis of a block: reduces windows along rows, and divides means by their numbers of taps."""
from .element cimport (
    DIVIDES,
    KEEPS,
    LANES,
    Block,
    Ends,
    acc_inverse,
    acc_of,
    acc_t,
    block_t,
    divide,
    elem_t,
    ends_suit,
    finish_each,
    join,
    read,
    set_row,
    vec_read,
    vec_t,
    width,
)
from .empty cimport finish_without_taps
from .job cimport FEW, Axis, Rule, Run, Tile, run_at
from .rows cimport SLACK, SLOTS, Layout, is_tree

cdef struct Segment:
    # Windows of the last axis with the same divisor.
    Py_ssize_t begin, n
    double count

cdef struct Along:
    # The last axis of a tile.
    const Axis* axis
    Py_ssize_t first                 # index of its first window along the axis
    Py_ssize_t windows
    bint gaps                        # whether some windows have no taps
    Py_ssize_t taps                  # taps not yet reduced, and their distances from a window in a row
    Py_ssize_t[FEW] tap
    Py_ssize_t pitch, step           # from row to row, and from window to window in a row
    Py_ssize_t y_row, y_step         # the same for results
    Py_ssize_t lanes
    elem_t* limit                    # results before it are written again later, and may be overwritten; or NULL
    const Rule* rule
    Segment* segments
    Py_ssize_t n_segments
    bint each                        # whether each value has a divisor: lanes are few, and windows divide differently
    acc_t* divisors
    double[SLOTS] count              # factors from other axes for which `divisors` holds counts and inverses
    Py_ssize_t values                # from slot to slot
    int slot

cdef struct Batch:
    # Neighbouring rows, or neighbouring windows of a row, that are finished together.
    Py_ssize_t rows, x_row, y_row, n
    const acc_t* counts              # divisors of values, and their inverses
    const acc_t* inverses


cdef inline void prepare_segments(const Tile* tile, Along* along) noexcept nogil:
    """Divide the windows into segments by their divisors."""
    cdef Py_ssize_t w = 0
    cdef Run run
    cdef Segment* segment = along.segments
    along.gaps = False
    while w < along.windows:
        run = run_at(along.axis, along.first + w, along.first + along.windows)
        along.gaps |= run.window.taps == 0
        if not w:
            segment[0] = Segment(0, 0, run.window.divisor)
        elif DIVIDES and run.window.divisor != segment.count:
            segment += 1
            segment[0] = Segment(w, 0, run.window.divisor)
        segment.n += run.n
        w += run.n
    along.n_segments = segment - along.segments + 1
    along.each = along.n_segments > 1 and tile.lanes < LANES and along.step == tile.lanes == along.y_step
    if along.each:
        along.segments[0], along.n_segments = Segment(0, along.windows, 0), 1


cdef inline void prepare_along(const Tile* tile, const Layout* layout, Along* along) noexcept nogil:
    cdef int last = tile.rank - 1, slot
    cdef const Axis* axis = &tile.axis[last]
    cdef acc_t* scratch = <acc_t*> tile.scratch
    cdef Py_ssize_t t
    along.axis, along.first, along.windows = axis, tile.begin[last], tile.end[last] - tile.begin[last]
    along.lanes, along.rule = tile.lanes, tile.rule
    along.pitch, along.y_step = layout.pitch, tile.y_stride[last]
    along.y_row = tile.y_stride[last - 1] if last else tile.y_item
    along.step = tile.lanes if layout.split or layout.picked or layout.alone else axis.stride * tile.lanes
    along.taps = 1 if layout.picked or layout.joined or is_tree(axis) else axis.kernel
    for t in range(along.taps):
        along.tap[t] = t * axis.dilation * tile.lanes
        if layout.split:
            along.tap[t] = (t * axis.dilation % axis.stride * (layout.pitch // axis.stride)
                            + t * axis.dilation // axis.stride)
    along.divisors, along.values = scratch + 2 * layout.block, layout.divisors
    along.segments = <Segment*> (scratch + layout.segments)
    for slot in range(SLOTS):
        along.count[slot] = -1
    along.slot = 0
    prepare_segments(tile, along)


cdef inline elem_t* limit_of(const Tile* tile, const Along* along) noexcept nogil:
    """The end of the results if they are written in memory order; else NULL."""
    cdef Py_ssize_t stride = tile.lanes
    cdef int a
    if along.n_segments > 1 or KEEPS:
        return NULL
    for a in range(tile.rank - 1, -1, -1):
        if tile.y_stride[a] != stride or (a and tile.end[a] - tile.begin[a] != tile.axis[a].out):
            return NULL
        stride *= tile.axis[a].out
    if tile.items > 1 and (tile.y_item != stride or tile.end[0] - tile.begin[0] != tile.axis[0].out):
        return NULL
    return <elem_t*> tile.y + (tile.items - 1) * stride + tile.end[0] * tile.y_stride[0]


cdef inline void set_divisors(acc_t* counts, acc_t* inverses, Py_ssize_t n, double count,
                              const Rule* rule) noexcept nogil:
    cdef Py_ssize_t i
    cdef acc_t value = acc_of(count), inverse = acc_inverse(count, rule)
    for i in range(n):
        counts[i], inverses[i] = value, inverse


cdef inline int slot_of(Along* along, double count) noexcept nogil:
    """The slot of the divisors for this factor from other axes. Divisors that no slot has are computed."""
    cdef Py_ssize_t w = 0, lanes = along.lanes, n = along.windows * lanes
    cdef acc_t* counts
    cdef Run run
    cdef int slot
    for slot in range(SLOTS):
        if along.count[slot] == count:
            return slot
    along.slot = (along.slot + 1) % SLOTS
    along.count[along.slot] = count
    counts = along.divisors + 2 * along.slot * along.values
    if not along.each:
        set_divisors(counts, counts + along.values, SLACK, count, along.rule)
        return along.slot
    while w < along.windows:
        run = run_at(along.axis, along.first + w, along.first + along.windows)
        set_divisors(counts + w * lanes, counts + along.values + w * lanes, run.n * lanes, run.window.divisor * count,
                     along.rule)
        w += run.n
    set_divisors(counts + n, counts + along.values + n, along.values - n, 1, along.rule)
    return along.slot


cdef inline void finish_batch(block_t* unused, const Along* a, const Batch* batch, const acc_t* x, elem_t* y,
                              bint divides) noexcept nogil:
    """Join the values of x at the distances of all taps, and finish them. If `divides`, this uses divisions, because
    `vec_finish` may not be exact. The last block of a line overlaps the one before it."""
    cdef block_t v, later
    cdef Py_ssize_t _, t, i, block = width(unused), n = batch.n, behind = max(0, n - block)
    cdef Py_ssize_t rows = batch.rows, x_row = batch.x_row, y_row = batch.y_row, taps = a.taps, first = a.tap[0]
    cdef Py_ssize_t each = 1 if a.each else 0, values
    cdef const acc_t* counts = batch.counts
    cdef const acc_t* inverses = batch.inverses
    cdef elem_t* limit = NULL if a.limit == NULL else a.limit - LANES
    cdef Rule rule = a.rule[0]  # a copy, which no store changes
    set_row(&v, n)
    set_row(&later, n)
    for _ in range(rows):
        i = 0
        values = n if y > limit else max(n, LANES)
        while True:
            i = min(i, behind)
            read(&v, x + first + i)
            for t in range(1, taps):
                read(&later, x + a.tap[t] + i)
                join(&v, &later)
            if block_t is vec_t and DIVIDES and divides:
                divide(y + i, values, &v, vec_read(counts + i * each), &rule)
            else:
                finish_each(y + i, values, &v, counts + i * each, inverses + i * each, &rule)
            i += block
            if i >= n:
                break
        x += x_row
        y += y_row


cdef inline void finish_rows(Along* a, const acc_t* x, elem_t* y, Py_ssize_t rows, double outer) noexcept nogil:
    """Finish the windows along rows. Adjacent windows of a segment are finished together."""
    cdef bint together = a.step == a.lanes == a.y_step
    cdef Py_ssize_t s, r
    cdef Segment* segment
    cdef Batch batch
    cdef const acc_t* source
    cdef elem_t* target
    for s in range(a.n_segments):
        segment = a.segments + s
        if DIVIDES:
            batch.counts = a.divisors + 2 * slot_of(a, outer if a.each else outer * segment.count) * a.values
            batch.inverses = batch.counts + a.values
        batch.rows, batch.x_row, batch.y_row, batch.n = rows, a.pitch, a.y_row, segment.n * a.lanes
        if together and not a.each and batch.n == batch.x_row == batch.y_row:
            batch.rows, batch.n = 1, rows * batch.n
        if not together:
            batch.rows, batch.x_row, batch.y_row, batch.n = segment.n, a.step, a.y_step, a.lanes
        for r in range(1 if together else rows):
            source, target = x + r * a.pitch + segment.begin * a.step, y + r * a.y_row + segment.begin * a.y_step
            if batch.n <= LANES or DIVIDES and a.rule.careful:
                finish_batch(<vec_t*> NULL, a, &batch, source, target, a.rule.careful)
            elif ends_suit(batch.n):
                finish_batch(<Ends*> NULL, a, &batch, source, target, False)
            else:
                finish_batch(<Block*> NULL, a, &batch, source, target, False)


cdef inline void finish_empty(const Along* a, bint all_windows, elem_t* y, Py_ssize_t rows,
                              double outer) noexcept nogil:
    """Finish windows of rows that lie wholly in the padding."""
    cdef Py_ssize_t _, w
    cdef Run run
    if not (all_windows or a.gaps):
        return
    for _ in range(rows):
        w = 0
        while w < a.windows:
            run = run_at(a.axis, a.first + w, a.first + a.windows)
            if all_windows or not run.window.taps:
                finish_without_taps(y + w * a.y_step, run.n, a.y_step, a.lanes, run.window.divisor * outer, a.rule)
            w += run.n
        y += a.y_row
