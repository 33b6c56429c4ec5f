"""passes: one axis after the other, the first one first; what an axis leaves stays in a block of scratch memory.

A row is the places of the last axis, each of them with its lanes. A block holds as many rows as the first level of the
cache does, and each loop takes all of them before the next one begins. Rows have identities where the padding is, so
that no window of the last axis has a border. FEW taps are added one after the other. More of them are an aligned binary
tree, of which neighbouring windows share the parts: level by level, each place gets the part that begins there, and
each window adds the part of every level that is in its number of taps.
"""
from ..core.element cimport (
    Block,
    DIVIDES,
    Divisor,
    LANES,
    acc_of,
    acc_t,
    block_t,
    divide,
    divisor_of,
    elem_t,
    finish,
    finish_each,
    join,
    read,
    vec_empty,
    vec_read,
    vec_t,
    watch_nothing,
    watch_suspects,
    watch_t,
    width,
)
from ..core.job cimport FEW, Axis, Rule, Run, Tile, Window, run_at, window_at
from ..core.rows cimport (
    MOST,
    SLACK,
    SLOTS,
    Columns,
    Room,
    Trees,
    fill_row,
    is_flat,
    is_padded,
    is_tree,
    lay,
    load_rows_of,
    pick_rows,
    reduce_trees,
    split_rows,
    sum_all,
)


cdef void prepare_columns(const Tile* tile, const Room* room, Columns* c) noexcept nogil:
    """How rows are loaded."""
    cdef int last = tile.rank - 1, a
    cdef Py_ssize_t inside = room.high - room.low
    cdef const Axis* first = &tile.axis[0]
    c.pieces, c.n, c.piece = 1, inside * tile.lanes, tile.x_stride[last]
    if tile.x_stride[last] != tile.lanes:
        c.pieces, c.n = inside, tile.lanes
    c.taps, c.tap, c.step = 1, first.dilation * tile.x_stride[0], tile.x_item
    c.fresh, c.ahead = 0, first.stride * tile.x_stride[0]
    c.pitch, c.left = room.pitch, (room.low - room.begin) * tile.lanes
    c.gap = room.pitch - inside * tile.lanes
    if not inside:
        c.n = 0
    c.limit, c.rule = <const elem_t*> tile.x, tile.rule
    if tile.x_item < 0:
        return
    for a in range(tile.rank):
        if tile.x_stride[a] < 0:
            return
    c.limit += (tile.items - 1) * tile.x_item + tile.lanes
    for a in range(tile.rank):
        c.limit += (tile.axis[a].size - 1) * tile.x_stride[a]


cdef void load_rows(const Columns* c, const elem_t* x, acc_t* y, Py_ssize_t rows) noexcept nogil:
    if not (c.n and rows):
        fill_row(y, rows * c.pitch)
    elif c.taps == 3:
        load_rows_of(c, x, y, rows, 3)
    elif c.taps == 2:
        load_rows_of(c, x, y, rows, 2)
    else:
        load_rows_of(c, x, y, rows, c.taps)


cdef void load_windows(const Tile* tile, const Room* room, Columns* c, const elem_t* x, Py_ssize_t begin,
                       acc_t* y) noexcept nogil:
    """Rows that are few taps of the first of two axes, from a window on."""
    cdef const Axis* axis = &tile.axis[0]
    cdef Py_ssize_t w = begin, end = begin + room.rows[0].windows
    cdef Run run
    c.step = axis.stride * tile.x_stride[0]
    while w < end:
        run = run_at(axis, w, end)
        c.taps, c.fresh = run.window.taps, min(run.window.taps, axis.stride) if tile.far else 0
        if c.taps:
            load_rows(c, x + run.window.first * tile.x_stride[0], y, run.n)
        else:
            fill_row(y, run.n * room.pitch)
        w, y = w + run.n, y + run.n * room.pitch


cdef void load_places(const Tile* tile, const Room* room, Columns* c, const elem_t* x, acc_t* y) noexcept nogil:
    """Rows of all places of the axis before the last one; without taps, all of them are in the padding."""
    cdef int inner = tile.rank - 2
    cdef Py_ssize_t begin = room.rows[inner].begin, n = room.rows[inner].n
    cdef Py_ssize_t low = min(n, max(0, -begin)), high = max(low, min(n, tile.axis[inner].size - begin))
    if not c.taps:
        fill_row(y, n * room.pitch)
        return
    c.step = tile.x_stride[inner]
    fill_row(y, low * room.pitch)
    load_rows(c, x + (begin + low) * c.step, y + low * room.pitch, high - low)
    fill_row(y + high * room.pitch, (n - high) * room.pitch)


cdef bint advance(Py_ssize_t* at, const Py_ssize_t* begin, const Py_ssize_t* end, int axes) noexcept nogil:
    """The next place of so many axes, the last one first; false behind the last place."""
    cdef int a = axes - 1
    while a >= 0:
        at[a] += 1
        if at[a] < end[a]:
            return True
        at[a] = begin[a]
        a -= 1
    return False


cdef void load_block(const Tile* tile, const Room* room, Columns* c, const elem_t* x, Py_ssize_t begin,
                     acc_t* y) noexcept nogil:
    """The rows of all axes but the last one, for windows of the first axis from `begin` on: few taps of it are reduced
    on the way."""
    cdef int inner = tile.rank - 2, a
    cdef bint few = not is_padded(tile, 0)
    cdef Py_ssize_t[MOST] at, low, high
    cdef const elem_t* source
    cdef Window window
    if inner < 0:
        load_rows(c, x, y, room.items)
        return
    if inner == 0 and few:
        load_windows(tile, room, c, x, begin, y)
        return
    for a in range(inner):
        low[a], high[a] = room.rows[a].begin, room.rows[a].begin + room.rows[a].n
        if a == 0 and few:
            low[0], high[0] = begin, begin + room.rows[0].windows
        at[a] = low[a]
    while True:
        source, c.taps = x, 1
        for a in range(inner):
            if a == 0 and few:
                window = window_at(&tile.axis[0], at[0])
                source, c.taps = source + window.first * tile.x_stride[0], window.taps
                continue
            source += at[a] * tile.x_stride[a]
            if not 0 <= at[a] < tile.axis[a].size:
                c.taps = 0
        load_places(tile, room, c, source, y)
        y += room.rows[inner].n * room.pitch
        if not advance(at, low, high, inner):
            return


cdef void reduce_axis(const Tile* tile, const Room* room, int a, Py_ssize_t before, Py_ssize_t post, acc_t* x,
                      acc_t* y) noexcept nogil:
    """An axis before the last one, of which neighbours are `post` values apart."""
    cdef const Axis* axis = &tile.axis[a]
    cdef Py_ssize_t _, w, windows = room.rows[a].windows
    cdef Window window
    for _ in range(before):
        if is_tree(axis):
            reduce_trees(x, y, Trees(axis.kernel, axis.dilation * post, room.rows[a].n * post, windows, post,
                                     axis.stride * post))
        elif is_padded(tile, a):
            sum_all(x, y, windows * post, axis.kernel, axis.dilation * post)
        else:
            for w in range(windows):
                window = window_at(axis, tile.begin[a] + w)
                if window.taps:
                    sum_all(x + (window.first - room.rows[a].begin) * post, y + w * post, post, window.taps,
                            axis.dilation * post)
                else:
                    fill_row(y + w * post, post)
        x, y = x + room.rows[a].n * post, y + windows * post


cdef acc_t* reduce_block(const Tile* tile, const Room* room, acc_t* x, acc_t* y) noexcept nogil:
    """The axes of a block, but for taps of the last one that are left to `finish_rows`; where the rows then are."""
    cdef int last = tile.rank - 1, a, b
    cdef Py_ssize_t rows = room.items, post, values
    cdef const Axis* axis = &tile.axis[last]
    for a in range(last):
        if a > 0 or is_padded(tile, 0):
            post = room.pitch
            for b in range(a + 1, last):
                post *= room.rows[b].n
            reduce_axis(tile, room, a, rows, post, x, y)
            x, y = y, x
        rows *= room.rows[a].windows
    if room.split:
        split_rows(x, y, rows, room.pitch, axis.stride)
        return y
    if not (room.picked or is_tree(axis) or is_flat(tile)):
        return x
    # All rows at once, as if they were one: what crosses from a row into the next is in no window.
    values = rows * room.pitch - (axis.kernel - 1) * axis.dilation * tile.lanes
    if is_tree(axis):
        reduce_trees(x, y, Trees(axis.kernel, axis.dilation * tile.lanes, rows * room.pitch, 1, values, values))
    else:
        sum_all(x, y, values, axis.kernel, axis.dilation * tile.lanes)
    if not room.picked:
        return y
    pick_rows(y, x, rows, room.pitch, tile.end[last] - tile.begin[last], axis.stride * tile.lanes, tile.lanes)
    return x


cdef struct Segment:
    # Windows of the last axis that divide by the same.
    Py_ssize_t begin, n
    double count

cdef struct Along:
    # The last axis of a tile.
    Py_ssize_t windows, begin, end   # those from begin to end have taps
    Py_ssize_t taps                  # that are left, and how far they are from a window in a row
    Py_ssize_t[FEW] tap
    Py_ssize_t pitch, step           # from row to row, and from window to window in a row
    Py_ssize_t y_row, y_step         # the same of results
    Py_ssize_t lanes
    elem_t* limit                    # results before it may be written: they are written again later
    const Rule* rule
    Segment* segments
    Py_ssize_t n_segments
    double* last_counts
    bint each                        # whether each value has a divisor: lanes are few, and windows divide differently
    acc_t* divisors
    double[SLOTS] count              # by what the taps of other axes count: of it, counts and inverses are there
    Py_ssize_t values                # from slot to slot
    int slot

cdef struct Lines:
    # Neighbouring rows, or neighbouring windows of one row, that are finished together.
    Py_ssize_t rows, x_row, y_row, n
    const acc_t* counts              # by what values are divided, and its inverses
    const acc_t* inverses


cdef void prepare_segments(const Tile* tile, Along* along) noexcept nogil:
    """By what windows divide."""
    cdef const Axis* axis = &tile.axis[tile.rank - 1]
    cdef Py_ssize_t w, first = tile.begin[tile.rank - 1]
    cdef Window window
    cdef Segment* segment = along.segments
    cdef bint taps = False
    segment[0] = Segment(0, 0, 0)
    along.begin, along.end = along.windows, along.windows
    for w in range(along.windows):
        window = window_at(axis, first + w)
        if window.taps:
            along.begin = along.begin if taps else w
            along.end, taps = w + 1, True
        along.last_counts[w] = window.count
        if not w:
            segment.count = window.count
        elif DIVIDES and window.count != segment.count:
            segment += 1
            segment[0] = Segment(w, 0, window.count)
        segment.n += 1
    along.n_segments = segment - along.segments + 1
    along.each = along.n_segments > 1 and tile.lanes < LANES and along.step == tile.lanes == along.y_step
    if along.each:
        along.segments[0], along.n_segments = Segment(0, along.windows, 0), 1


cdef void prepare_along(const Tile* tile, const Room* room, Along* along) noexcept nogil:
    cdef int last = tile.rank - 1, slot
    cdef const Axis* axis = &tile.axis[last]
    cdef acc_t* scratch = <acc_t*> tile.scratch
    cdef Py_ssize_t t
    along.windows, along.lanes, along.rule = tile.end[last] - tile.begin[last], tile.lanes, tile.rule
    along.pitch, along.y_step = room.pitch, tile.y_stride[last]
    along.y_row = tile.y_stride[last - 1] if last else tile.y_item
    along.step = tile.lanes if room.split or room.picked else axis.stride * tile.lanes
    along.taps = 1 if room.picked or is_tree(axis) or is_flat(tile) else axis.kernel
    for t in range(along.taps):
        along.tap[t] = t * axis.dilation * tile.lanes
        if room.split:
            along.tap[t] = (t * axis.dilation % axis.stride * (room.pitch // axis.stride)
                            + t * axis.dilation // axis.stride)
    along.divisors, along.values = scratch + 2 * room.block, room.divisors
    along.last_counts = <double*> (scratch + room.last_counts)
    along.segments = <Segment*> (scratch + room.segments)
    for slot in range(SLOTS):
        along.count[slot] = -1
    along.slot = 0
    prepare_segments(tile, along)


cdef elem_t* limit_of(const Tile* tile, const Along* along) noexcept nogil:
    """Where results end, if they are written in the order of memory; else where they begin."""
    cdef elem_t* y = <elem_t*> tile.y
    cdef Py_ssize_t stride = tile.lanes
    cdef int a
    if along.n_segments > 1:
        return y
    for a in range(tile.rank - 1, -1, -1):
        if tile.y_stride[a] != stride or (a and tile.end[a] - tile.begin[a] != tile.axis[a].out):
            return y
        stride *= tile.axis[a].out
    if tile.items > 1 and (tile.y_item != stride or tile.end[0] - tile.begin[0] != tile.axis[0].out):
        return y
    return y + (tile.items - 1) * stride + tile.end[0] * tile.y_stride[0]


cdef inline void set_divisors(acc_t* counts, acc_t* inverses, Py_ssize_t n, double count) noexcept nogil:
    cdef Py_ssize_t i
    cdef acc_t value = acc_of(count), inverse = acc_of(1 / count)
    for i in range(n):
        counts[i], inverses[i] = value, inverse


cdef int slot_of(Along* along, double count) noexcept nogil:
    """The divisors of rows whose other axes count so much; they may be there already."""
    cdef Py_ssize_t w, lanes = along.lanes, n = along.windows * lanes
    cdef acc_t* counts
    cdef int slot
    for slot in range(SLOTS):
        if along.count[slot] == count:
            return slot
    along.slot = (along.slot + 1) % SLOTS
    along.count[along.slot] = count
    counts = along.divisors + 2 * along.slot * along.values
    if not along.each:
        set_divisors(counts, counts + along.values, SLACK, count)
        return along.slot
    for w in range(along.windows):
        set_divisors(counts + w * lanes, counts + along.values + w * lanes, lanes, along.last_counts[w] * count)
    set_divisors(counts + n, counts + along.values + n, along.values - n, 1)
    return along.slot


cdef inline void finish_lines(block_t* unused, const Along* a, const Lines* lines, const acc_t* x, elem_t* y,
                              bint divides, watch_t* watch) noexcept nogil:
    """y = the values of x at each of the taps' distances, finished, by divisions where `vec_finish` is not exact. The
    last block of a line overlaps the one before it."""
    cdef block_t v, later
    cdef watch_t seen = watch[0]  # in registers, like all that loops need
    cdef Py_ssize_t _, t, i, block = width(unused), n = lines.n, behind = max(0, n - block)
    cdef Py_ssize_t rows = lines.rows, x_row = lines.x_row, y_row = lines.y_row, taps = a.taps, first = a.tap[0]
    cdef Py_ssize_t each = 1 if a.each else 0, values
    cdef const acc_t* counts = lines.counts
    cdef const acc_t* inverses = lines.inverses
    cdef elem_t* limit = a.limit - LANES
    cdef const Rule* rule = a.rule
    for _ in range(rows):
        i = 0
        values = n if y > limit else max(n, LANES)
        while True:
            i = min(i, behind)
            read(&v, x + first + i)
            for t in range(1, taps):
                read(&later, x + a.tap[t] + i)
                join(&v, &later)
            if block_t is vec_t and divides:
                divide(y + i, values, &v, vec_read(counts + i * each), rule, &seen)
            else:
                finish_each(y + i, values, &v, counts + i * each, inverses + i * each, rule, &seen)
            i += block
            if i >= n:
                break
        x += x_row
        y += y_row
    watch[0] = seen


cdef void finish_rows(Along* a, const acc_t* x, elem_t* y, Py_ssize_t rows, double outer,
                      watch_t* watch) noexcept nogil:
    """The windows along rows: all of a segment at once, if they lie side by side."""
    cdef bint together = a.step == a.lanes == a.y_step
    cdef Py_ssize_t s, r
    cdef Segment* segment
    cdef Lines lines
    cdef const acc_t* source
    cdef elem_t* target
    for s in range(a.n_segments):
        segment = a.segments + s
        if DIVIDES:
            lines.counts = a.divisors + 2 * slot_of(a, outer if a.each else outer * segment.count) * a.values
            lines.inverses = lines.counts + a.values
        lines.rows, lines.x_row, lines.y_row, lines.n = rows, a.pitch, a.y_row, segment.n * a.lanes
        if not together:
            lines.rows, lines.x_row, lines.y_row, lines.n = segment.n, a.step, a.y_step, a.lanes
        for r in range(1 if together else rows):
            source, target = x + r * a.pitch + segment.begin * a.step, y + r * a.y_row + segment.begin * a.y_step
            if DIVIDES and a.rule.careful:
                finish_lines(<vec_t*> NULL, a, &lines, source, target, True, watch)
            elif lines.n < 4 * LANES:
                finish_lines(<vec_t*> NULL, a, &lines, source, target, False, watch)
            else:
                finish_lines(<Block*> NULL, a, &lines, source, target, False, watch)


cdef void finish_empty(const Along* a, Py_ssize_t begin, Py_ssize_t end, elem_t* y, Py_ssize_t rows, double outer,
                       watch_t* watch) noexcept nogil:
    """Windows that are wholly in the padding: sums of them are 0, not the -0 that changes no other sum."""
    cdef Py_ssize_t _, w, i
    cdef Divisor by
    cdef vec_t empty = vec_empty()
    for _ in range(rows):
        for w in range(begin, end):
            i = 0
            if DIVIDES:
                by = divisor_of(a.last_counts[w] * outer)
            while i < a.lanes:  # 0 / count is exact
                finish(y + w * a.y_step + i, a.lanes - i, &empty, &by, a.rule, watch)
                i += LANES
        y += a.y_row


cdef void finish_windows(Along* along, const acc_t* x, elem_t* y, Py_ssize_t rows, double outer, bint empty,
                         watch_t* watch) noexcept nogil:
    """Rows whose other axes divide by the same; empty: they are in the padding."""
    if empty:
        finish_empty(along, 0, along.windows, y, rows, outer, watch)
        return
    finish_rows(along, x, y, rows, outer, watch)
    finish_empty(along, 0, along.begin, y, rows, outer, watch)
    finish_empty(along, along.end, along.windows, y, rows, outer, watch)


cdef void finish_block(const Tile* tile, const Room* room, Along* along, const acc_t* x, elem_t* y, Py_ssize_t begin,
                       watch_t* watch) noexcept nogil:
    """The rows of all windows of the axes before the last one, of the first of them from `begin` on."""
    cdef int inner = tile.rank - 2, a
    cdef Py_ssize_t[MOST] at, low, high
    cdef Py_ssize_t w
    cdef elem_t* target
    cdef double count
    cdef bint empty
    cdef Window window
    cdef Run run
    if inner < 0:
        finish_windows(along, x, y, room.items, 1, False, watch)
        return
    for a in range(inner + 1):
        low[a], high[a] = tile.begin[a], tile.end[a]
        if a == 0:
            low[0], high[0] = begin, begin + room.rows[0].windows
        at[a] = low[a]
    while True:
        target, count, empty = y, 1, False
        for a in range(inner):
            target += at[a] * tile.y_stride[a]
            window = window_at(&tile.axis[a], at[a])
            count *= window.count
            empty |= window.taps == 0
        w = low[inner]
        while w < high[inner]:
            run = run_at(&tile.axis[inner], w, high[inner])
            finish_windows(along, x, target + w * tile.y_stride[inner], run.n, count * run.window.count,
                           empty or run.window.taps == 0, watch)
            x += run.n * room.pitch
            w += run.n
        if not advance(at, low, high, inner):
            return


cdef void pool_items(const Tile* tile, Room* room, Columns* c, Along* along, const elem_t* x, elem_t* y,
                     watch_t* watch) noexcept nogil:
    """An item, or as many as there is room for if they are rows."""
    cdef int last = tile.rank - 1
    cdef acc_t* block = <acc_t*> tile.scratch
    cdef Py_ssize_t w = tile.begin[0] if last else 0, end = tile.end[0] if last else 1
    x += room.low * tile.x_stride[last]
    y += tile.begin[last] * tile.y_stride[last]
    while w < end:
        if last:
            room.rows[0].windows = min(room.chunk, end - w)
            if not is_padded(tile, 0):
                room.rows[0].n = room.rows[0].windows
        load_block(tile, room, c, x, w, block)
        finish_block(tile, room, along, reduce_block(tile, room, block, block + room.block), y, w, watch)
        w += room.chunk


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef watch_t watch = watch_nothing()
    cdef Py_ssize_t item = 0
    cdef Room room
    cdef Along along
    cdef Columns c
    lay(tile, &room)
    prepare_along(tile, &room, &along)
    prepare_columns(tile, &room, &c)
    along.limit = limit_of(tile, &along)
    while item < tile.items:
        room.items = min(room.items, tile.items - item)
        pool_items(tile, &room, &c, &along, <const elem_t*> tile.x + item * tile.x_item,
                   <elem_t*> tile.y + item * tile.y_item, &watch)
        item += room.items
    tile.suspect |= watch_suspects(&watch)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    """Bytes of scratch memory for a tile of so many windows."""
    cdef Room room
    lay(tile, &room)
    return room.all * sizeof(acc_t)
