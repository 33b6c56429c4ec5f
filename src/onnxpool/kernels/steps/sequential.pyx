"""sequential: quantised means whose float32 sums are taken tap by tap in row-major order, as onnxruntime defines them.

Lines of x are dequantised as core/lines.pxd says. The sums of a row of windows stay in registers from the first tap to
the last one. As the order is fixed, a window costs as much as it has taps.
"""
from libc.string cimport memcpy, memset

from ..core.job cimport Rule, Tile, window_at
from ..core.lines cimport (
    LANES,
    Lines,
    acc_t,
    elem_t,
    find_lines,
    first_row,
    is_calm,
    load_line,
    next_row,
    plan,
    prepare,
    seen_nothing,
    seen_t,
    set_group,
    settle,
    vec_none,
    vec_t,
)
from ..core.sequential cimport Block, add, block_t, finish, read, vec_finish, width

cdef struct Room:
    Lines lines
    double divisor        # of the other axes, that the counts are for
    acc_t* counts         # by what each value of a row is divided
    elem_t* results       # a row of them
    Py_ssize_t size       # of the scratch memory


cdef void lay(Room* room, const Tile* tile, Py_ssize_t begin, Py_ssize_t end, char* scratch) noexcept nogil:
    plan(&room.lines, tile, begin, end)
    room.size = settle(&room.lines, scratch, room.lines.phases * room.lines.phase_pitch * sizeof(acc_t))
    room.counts = <acc_t*> (scratch + room.size)
    room.results = <elem_t*> (room.counts + room.lines.results + LANES)
    room.size += (room.lines.results + LANES) * (sizeof(acc_t) + sizeof(elem_t))


cdef inline void add_taps(block_t* total, const Lines* lines, Py_ssize_t i) noexcept nogil:
    cdef Py_ssize_t k, t
    cdef const acc_t* x
    read(total, <const acc_t*> lines.line.row + lines.tap[0] + i)
    for k in range(lines.n):
        x = <const acc_t*> lines.line[k].row + i
        for t in range(k == 0, lines.taps):
            add(total, x + lines.tap[t])


cdef inline Py_ssize_t pool_values(block_t* unused, Py_ssize_t i, const Room* room, elem_t* y) noexcept nogil:
    """Values of a row from i on that fill blocks; the last vector may overlap another one, and go on behind the row."""
    cdef const Lines* lines = &room.lines
    cdef Py_ssize_t block = width(unused)
    cdef block_t total
    cdef Rule rule = lines.tile.rule[0]  # results may not alias it
    while i + block <= lines.values or (block == LANES and i < lines.values):
        i = max(0, min(i, lines.values - block))
        add_taps(&total, lines, i)
        finish(y + i, &total, room.counts + i, &rule)
        i += block
    return i


cdef void pool_row(const Room* room, elem_t* y) noexcept nogil:
    """The results of a row; by way of scratch memory if they do not lie side by side, or do not fill a vector."""
    cdef const Lines* lines = &room.lines
    cdef const Tile* tile = lines.tile
    cdef Py_ssize_t stride = tile.y_stride[tile.rank - 1], windows = lines.windows, n = tile.lanes, w, item
    cdef elem_t* results = y
    cdef elem_t[LANES] none
    if stride == n:
        n, windows = windows * n, 1
    if lines.group > 1 or windows > 1 or n < LANES:
        results = room.results
    if lines.n:
        pool_values(<vec_t*> NULL, pool_values(<Block*> NULL, 0, room, results), room, results)
    else:
        vec_finish(none, vec_none(), vec_none(), tile.rule)
        memset(results, <unsigned char> none[0], lines.values)
    if results == room.results:
        for item in range(lines.group):
            for w in range(windows):
                memcpy(y + item * tile.y_item + w * stride, results + item * lines.pitch + w * n, n)


cdef void count(Room* room, Py_ssize_t begin) noexcept nogil:
    """By what the values of a row are divided."""
    cdef const Lines* lines = &room.lines
    cdef const Tile* tile = lines.tile
    cdef Py_ssize_t i, w, item, lane
    cdef double divisor
    if room.divisor == lines.divisor:
        return
    room.divisor = lines.divisor
    for i in range(lines.values):
        room.counts[i] = 1
    for w in range(lines.windows):
        divisor = lines.divisor * window_at(&tile.axis[tile.rank - 1], begin + w).count
        for item in range(lines.group):
            for lane in range(tile.lanes):
                room.counts[item * lines.pitch + w * tile.lanes + lane] = <acc_t> divisor


cdef void pool_items(Room* room, Py_ssize_t begin, const elem_t* x, elem_t* y) noexcept nogil:
    """All rows of results of a group of items, whose windows of the last axis are those from `begin` on."""
    cdef Lines* lines = &room.lines
    cdef const Tile* tile = lines.tile
    cdef int last = tile.rank - 1, a
    cdef Py_ssize_t to, k
    cdef seen_t seen = seen_nothing()
    cdef bint more = first_row(lines)
    while more:
        find_lines(lines, x)
        count(room, begin)
        for k in range(lines.n):
            if lines.line[k].fresh:
                load_line(lines, lines.line[k].x, <acc_t*> lines.line[k].row, &seen)
        to = begin * tile.y_stride[last]
        for a in range(last):
            to += lines.at[a] * tile.y_stride[a]
        pool_row(room, y + to)
        more = next_row(lines)


cdef void pool_columns(const Tile* tile, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The results of some windows of the last axis."""
    cdef Room room
    cdef Py_ssize_t item = 0
    lay(&room, tile, begin, end, tile.scratch)
    prepare(&room.lines)
    room.divisor = -1
    while item < tile.items:
        set_group(&room.lines, min(room.lines.most, tile.items - item))
        pool_items(&room, begin, <const elem_t*> tile.x + item * tile.x_item, <elem_t*> tile.y + item * tile.y_item)
        item += room.lines.group


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef int last = tile.rank - 1
    cdef Py_ssize_t w
    if is_calm(tile):
        pool_columns(tile, tile.begin[last], tile.end[last])
    else:
        for w in range(tile.begin[last], tile.end[last]):
            pool_columns(tile, w, w + 1)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    cdef Room room
    cdef int last = tile.rank - 1
    lay(&room, tile, tile.begin[last], tile.end[last] if is_calm(tile) else tile.begin[last] + 1, NULL)
    return room.size
