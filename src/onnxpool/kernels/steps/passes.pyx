"""passes: one axis after the other, the first one first; what an axis leaves stays in a block of scratch memory.

A row is the places of the last axis, each of them with its lanes; where there are fewer lanes than a vector has, rows
of x and of y lie in one piece. Rows of a block have identities where the padding is, so that no window of the last axis
has a border. FEW taps are added one after the other. More of them are an aligned binary tree, of which neighbouring
windows share the parts: level by level, each place gets the part that begins there, and each window adds the part of
every level that is in its number of taps.
"""
from libc.string cimport memcpy

from ..core.element cimport (
    Block,
    DIVIDES,
    Divisor,
    LANES,
    acc_of,
    acc_t,
    block_t,
    divisor_of,
    elem_t,
    finish,
    finish_each,
    join,
    read,
    vec_empty,
    vec_read,
    vec_split,
    vec_t,
    vec_write,
    watch_nothing,
    watch_suspects,
    watch_t,
    width,
)
from ..core.job cimport FEW, Axis, Rule, Tile, Window, window_at
from ..core.rows cimport (
    MOST,
    Room,
    Trees,
    is_tree,
    is_flat,
    is_padded,
    makes_rows,
    lay,
    fill_row,
    sum_all,
    reduce_trees,
    pad_row,
    load_row,
)


cdef void load_rows(const Tile* tile, const Room* room, int a, const elem_t* x, Py_ssize_t taps,
                    acc_t* y) noexcept nogil:
    """The rows along an axis; no taps: all of them are in the padding."""
    cdef const Axis* axis = &tile.axis[a]
    cdef bint few = a == 0 and not is_padded(tile, 0)
    cdef Py_ssize_t r, place, n = room.rows[a].windows if few else room.rows[a].n
    cdef Window window
    for r in range(n):
        place = room.rows[a].begin + r
        if few:
            window = window_at(axis, tile.begin[0] + r)
            place, taps = window.first, window.taps
        if taps and 0 <= place < axis.size:
            pad_row(tile, room, y)
            load_row(tile, room, x + place * tile.x_stride[a], y, taps)
        else:
            fill_row(y, room.pitch)
        y += room.pitch


cdef void load_block(const Tile* tile, const Room* room, const elem_t* x, acc_t* y) noexcept nogil:
    """The rows of all axes but the last one; few taps of the first one are summed on the way."""
    cdef int inner = tile.rank - 2, a
    cdef bint few = not is_padded(tile, 0)
    cdef Py_ssize_t[MOST] at
    cdef Py_ssize_t taps, place
    cdef Window window
    cdef const elem_t* source
    if inner < 0:
        pad_row(tile, room, y)
        load_row(tile, room, x, y, 1)
        return
    for a in range(inner):
        at[a] = 0
    while True:
        source, taps = x, 1
        for a in range(inner):
            place = room.rows[a].begin + at[a]
            if a == 0 and few:
                window = window_at(&tile.axis[0], tile.begin[0] + at[0])
                place, taps = window.first, window.taps
            if not 0 <= place < tile.axis[a].size:
                taps = 0
            source += place * tile.x_stride[a]
        load_rows(tile, room, inner, source, taps, y)
        y += room.pitch * (room.rows[inner].windows if inner == 0 and few else room.rows[inner].n)
        a = inner - 1
        while a >= 0:
            at[a] += 1
            if at[a] < (room.rows[a].windows if a == 0 and few else room.rows[a].n):
                break
            at[a] = 0
            a -= 1
        if a < 0:
            return


cdef acc_t* reduce_block(const Tile* tile, const Room* room, acc_t* x, acc_t* y) noexcept nogil:
    """The passes of all axes but the last one, and of that one if it is taken at once; where the rows then are."""
    cdef int last = tile.rank - 1, a, b
    cdef Py_ssize_t before = 1, post, i, w
    cdef Window window
    cdef const Axis* axis
    cdef acc_t* source
    cdef acc_t* target
    for a in range(last):
        axis = &tile.axis[a]
        post = room.pitch
        for b in range(a + 1, last):
            post *= room.rows[b].n
        if a > 0 or is_padded(tile, 0):
            for i in range(before):
                source, target = x + i * room.rows[a].n * post, y + i * room.rows[a].windows * post
                if is_tree(axis):
                    reduce_trees(source, target, Trees(axis.kernel, axis.dilation * post, room.rows[a].n * post,
                                                       room.rows[a].windows, post, axis.stride * post))
                    continue
                if is_padded(tile, a):
                    sum_all(source, target, room.rows[a].windows * post, axis.kernel, axis.dilation * post)
                    continue
                for w in range(room.rows[a].windows):
                    window = window_at(axis, tile.begin[a] + w)
                    if window.taps:
                        sum_all(source + (window.first - room.rows[a].begin) * post, target + w * post, post,
                                window.taps, axis.dilation * post)
                    else:
                        fill_row(target + w * post, post)
            x, y = y, x
        before *= room.rows[a].windows
    # The last axis of all rows at once, as if they were one: what crosses from a row into the next is in no window.
    axis = &tile.axis[last]
    post = before * room.pitch
    i = post - (axis.kernel - 1) * axis.dilation * tile.lanes
    if is_tree(axis):
        reduce_trees(x, y, Trees(axis.kernel, axis.dilation * tile.lanes, post, 1, i, i))
        return y
    if is_flat(tile):
        sum_all(x, y, i, axis.kernel, axis.dilation * tile.lanes)
        return y
    return x


cdef struct Along:
    # The last axis of a tile: how far apart taps are, and by what totals are divided.
    Py_ssize_t windows, begin, end  # those from begin to end have taps
    Py_ssize_t[FEW] tap
    Py_ssize_t taps
    bint phased, apart            # apart: windows are finished one by one,
    Py_ssize_t step               # from one to the next
    acc_t* phases
    const Rule* rule
    acc_t* counts
    acc_t* inverses
    double* last_counts
    bint same                     # whether windows can be finished at once: all divide by the same,
    bint each                     # or each value has a divisor, as lanes are few
    double[2] outer_count         # that these are for: those of the border and of the interior stay
    int slot
    double outer                  # the count of a row along the axes before


cdef void prepare_along(const Tile* tile, const Room* room, Along* along) noexcept nogil:
    cdef int last = tile.rank - 1
    cdef const Axis* axis = &tile.axis[last]
    cdef acc_t* scratch = <acc_t*> tile.scratch
    cdef Py_ssize_t t, w, place
    cdef bint same = True
    along.windows = tile.end[last] - tile.begin[last]
    along.rule = tile.rule
    along.taps = 1 if is_tree(axis) or is_flat(tile) else axis.kernel
    along.phases = scratch + room.phases
    along.phased, along.apart = False, tile.y_stride[last] != tile.lanes
    along.step = tile.lanes
    if axis.stride > 1 and along.windows > 1:
        along.phased = tile.lanes < LANES
        if not along.phased:
            along.apart, along.step = True, axis.stride * tile.lanes
    for t in range(along.taps):
        place = t * axis.dilation
        along.tap[t] = place * tile.lanes
        if along.phased:
            along.tap[t] = place % axis.stride * room.phase + place // axis.stride * tile.lanes
    along.outer_count[0] = along.outer_count[1] = -1
    along.slot = 0
    along.counts = along.inverses = NULL
    along.last_counts = <double*> (scratch + room.last_counts)
    if DIVIDES:
        for w in range(along.windows):
            along.last_counts[w] = window_at(axis, tile.begin[last] + w).count
            same &= along.last_counts[w] == along.last_counts[0]
    along.begin, along.end = 0, along.windows
    while along.begin < along.end and not window_at(axis, tile.begin[last] + along.begin).taps:
        along.begin += 1
    while along.end > along.begin and not window_at(axis, tile.begin[last] + along.end - 1).taps:
        along.end -= 1
    along.each = not same and tile.lanes < LANES and not along.apart
    along.same = same or along.each


cdef void divide_by(const Tile* tile, const Room* room, Along* along, double outer_count) noexcept nogil:
    """Divisors of a row: those of a row before if they are the same."""
    cdef Py_ssize_t w, i
    cdef double count
    cdef acc_t* scratch = <acc_t*> tile.scratch
    along.outer = outer_count
    if not DIVIDES or not along.each or outer_count == along.outer_count[along.slot]:
        return
    along.slot ^= 1
    along.counts = scratch + room.counts + along.slot * 2 * room.divisors
    along.inverses = along.counts + room.divisors
    if outer_count == along.outer_count[along.slot]:
        return
    along.outer_count[along.slot] = outer_count
    for w in range(along.windows):
        count = along.last_counts[w] * outer_count
        for i in range(w * tile.lanes, (w + 1) * tile.lanes):
            along.counts[i], along.inverses[i] = acc_of(count), acc_of(1 / count)


cdef inline void split_four(const acc_t* x, acc_t* y, Py_ssize_t phase) noexcept nogil:
    """The elements of each place of four, of four vectors."""
    cdef vec_t a = vec_read(x), b = vec_read(x + LANES), c = vec_read(x + 2 * LANES), d = vec_read(x + 3 * LANES)
    vec_split(&a, &b)
    vec_split(&c, &d)
    vec_split(&a, &c)
    vec_split(&b, &d)
    vec_write(y, a)
    vec_write(y + phase, b)
    vec_write(y + 2 * phase, c)
    vec_write(y + 3 * phase, d)


cdef void split_phases(const Room* room, const Axis* axis, const acc_t* x, acc_t* y, Py_ssize_t taps,
                       Py_ssize_t lanes) noexcept nogil:
    """Rows of every stride-th place."""
    cdef Py_ssize_t t, i = 0, p, q, n
    cdef vec_t even, odd
    if axis.stride == 2 and lanes == 1:
        while i < (room.places + 1) // 2:
            even, odd = vec_read(x + 2 * i), vec_read(x + 2 * i + LANES)
            vec_split(&even, &odd)
            vec_write(y + i, even)
            vec_write(y + room.phase + i, odd)
            i += LANES
        return
    if axis.stride == 4 and lanes == 1:
        while i < (room.places + 3) // 4:
            split_four(x + 4 * i, y + i, room.phase)
            i += LANES
        return
    for t in range(min(taps, axis.stride)):
        p = t * axis.dilation % axis.stride
        n = (room.places - p + axis.stride - 1) // axis.stride
        if lanes == 1:
            for q in range(n):
                y[p * room.phase + q] = x[q * axis.stride + p]
            continue
        for q in range(n):
            memcpy(y + p * room.phase + q * lanes, x + (q * axis.stride + p) * lanes, lanes * sizeof(acc_t))


cdef inline Py_ssize_t along(block_t* unused, Py_ssize_t i, const acc_t* x, const Along* a, elem_t* y, Py_ssize_t n,
                             const Divisor* by, watch_t* watch) noexcept nogil:
    """y = the values of x at each of the taps' distances, finished; with a divisor for each or one for all."""
    cdef block_t v, later
    cdef watch_t seen = watch[0]  # in registers
    cdef Py_ssize_t t, block = width(unused)
    while i + block <= n or (block == LANES and i < n):
        i = max(0, min(i, n - block))
        read(&v, x + a.tap[0] + i)
        for t in range(1, a.taps):
            read(&later, x + a.tap[t] + i)
            join(&v, &later)
        if a.each:
            finish_each(y + i, n, &v, a.counts + i, a.inverses + i, a.rule, &seen)
        else:
            finish(y + i, n, &v, by, a.rule, &seen)
        i += block
    watch[0] = seen
    return i


cdef void finish_values(const Tile* tile, const Along* a, const acc_t* x, elem_t* y, Py_ssize_t n, const Divisor* by,
                        watch_t* watch) noexcept nogil:
    along(<vec_t*> NULL, along(<Block*> NULL, 0, x, a, y, n, by, watch), x, a, y, n, by, watch)


cdef void finish_row(const Tile* tile, const Room* room, const Along* a, acc_t* x, elem_t* y,
                     watch_t* watch) noexcept nogil:
    """The windows along a row, as many at once as lie side by side and divide by the same."""
    cdef Py_ssize_t w = 0, n
    cdef Divisor by
    if a.phased:
        split_phases(room, &tile.axis[tile.rank - 1], x, a.phases, a.taps, tile.lanes)
        x = a.phases
    while w < a.windows:
        n = 1 if a.apart or not a.same else a.windows
        if DIVIDES and not a.each:
            by = divisor_of(a.last_counts[w] * a.outer)
            while not a.apart and w + n < a.windows and a.last_counts[w + n] == a.last_counts[w]:
                n += 1
        finish_values(tile, a, x + w * a.step, y + w * tile.y_stride[tile.rank - 1], n * tile.lanes, &by, watch)
        w += n


cdef void finish_empty(const Tile* tile, const Along* a, Py_ssize_t begin, Py_ssize_t end, elem_t* y,
                       watch_t* watch) noexcept nogil:
    """Windows that are wholly in the padding: sums of them are 0, not the -0 that changes no other sum."""
    cdef Py_ssize_t w, i
    cdef Divisor by
    cdef vec_t empty = vec_empty()
    for w in range(begin, end):
        i = 0
        if DIVIDES:
            by = divisor_of(a.last_counts[w] * a.outer)
        while i < tile.lanes:
            finish(y + w * tile.y_stride[tile.rank - 1] + i, tile.lanes - i, &empty, &by, tile.rule, watch)
            i += LANES


cdef void finish_windows(const Tile* tile, const Room* room, const Along* a, acc_t* x, bint empty, elem_t* y,
                         watch_t* watch) noexcept nogil:
    """The windows along a row; empty: all of the row is in the padding."""
    if empty:
        finish_empty(tile, a, 0, a.windows, y, watch)
        return
    finish_row(tile, room, a, x, y, watch)
    finish_empty(tile, a, 0, a.begin, y, watch)
    finish_empty(tile, a, a.end, a.windows, y, watch)


cdef void finish_block(const Tile* tile, const Room* room, Along* along, acc_t* x, elem_t* y,
                       watch_t* watch) noexcept nogil:
    """The rows of all windows of the axes before the last one."""
    cdef int last = tile.rank - 1, a
    cdef Py_ssize_t[MOST] at
    cdef elem_t* target
    cdef double count
    cdef bint empty
    cdef Window window
    for a in range(last):
        at[a] = tile.begin[a]
    while True:
        target, count, empty = y, 1, False
        for a in range(last):
            target += at[a] * tile.y_stride[a]
            window = window_at(&tile.axis[a], at[a])
            count *= window.count
            empty |= window.taps == 0
        divide_by(tile, room, along, count)
        finish_windows(tile, room, along, x, empty, target, watch)
        x += room.pitch
        a = last - 1
        while a >= 0:
            at[a] += 1
            if at[a] < tile.end[a]:
                break
            at[a] = tile.begin[a]
            a -= 1
        if a < 0:
            return


cdef void make_rows(const Tile* tile, const Room* room, Along* along, const elem_t* x, elem_t* y,
                    watch_t* watch) noexcept nogil:
    """The rows of the only axis before the last one, one by one; what is in the padding stays from row to row."""
    cdef acc_t* row = <acc_t*> tile.scratch
    cdef Py_ssize_t w
    cdef Window window
    pad_row(tile, room, row)
    for w in range(tile.begin[0], tile.end[0]):
        window = window_at(&tile.axis[0], w)
        if window.taps:
            load_row(tile, room, x + window.first * tile.x_stride[0], row, window.taps)
        divide_by(tile, room, along, window.count)
        finish_windows(tile, room, along, row, window.taps == 0, y + w * tile.y_stride[0], watch)


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef watch_t watch = watch_nothing()
    cdef Py_ssize_t item
    cdef Room room
    cdef Along along
    cdef acc_t* x
    cdef const elem_t* elements
    cdef elem_t* results
    lay(tile, &room)
    prepare_along(tile, &room, &along)
    for item in range(tile.items):
        elements = <const elem_t*> tile.x + item * tile.x_item
        results = <elem_t*> tile.y + item * tile.y_item + tile.begin[tile.rank - 1] * tile.y_stride[tile.rank - 1]
        if makes_rows(tile):
            make_rows(tile, &room, &along, elements, results, &watch)
        else:
            x = <acc_t*> tile.scratch
            load_block(tile, &room, elements, x)
            x = reduce_block(tile, &room, x, x + room.block)
            finish_block(tile, &room, &along, x, results, &watch)
    tile.suspect |= watch_suspects(&watch)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    """Bytes of scratch memory for a tile of so many windows."""
    cdef Room room
    lay(tile, &room)
    return room.all * sizeof(acc_t)
