"""indexed: maxima, and where the first one of each window is.

Lines of x are loaded as core/lines.pxd says. The taps of a row of windows are compared in row-major order, all values
of the row side by side. Where a later one wins, so does its place. If windows share lines and lines have many taps,
each line is reduced by itself before. A maximum and a place for each window are kept of it. Where elements are
accumulators and lanes fill vectors, small windows are read from x as it is.

Places are counted from the first tap of each window. A window that begins in the padding, and has nothing but the least
value, may name its first tap in the padding. Then the first tap inside is meant.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from ..core.indexed cimport (
    DIRECT,
    HAS_NANS,
    Any,
    Best,
    Block,
    block_t,
    fold,
    fold_each,
    indices_write,
    place_t,
    places_add,
    places_fill,
    places_read,
    places_t,
    seen_nan,
    start,
    start_each,
    vec_finish,
    width,
    write,
)
from ..core.job cimport Axis, Tile, Window, window_at
from ..core.lines cimport (
    LANES,
    Line,
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
    vec_read,
)

cdef struct Taps:
    # Of each value along the last axis. The first one may be somewhere else.
    Py_ssize_t values, n, first
    Py_ssize_t* distance
    int64_t hop           # from the index of one to that of the next one

cdef struct Room:
    # Rows of values in scratch memory: of a line that is loaded, and of the maxima.
    Lines lines
    bint kept             # whether lines are reduced by themselves
    bint direct           # whether lines are not loaded, but windows read from x, one by one
    Taps taps
    Py_ssize_t row        # accumulators from the values of a row to its places
    acc_t* loaded
    acc_t* values
    place_t* places
    int64_t* shift        # from the index of a place of the first window and lane to that of another one
    int64_t* least        # the same of first taps inside, for the values of windows that begin in the padding; or -1
    Py_ssize_t begin, inside, end     # values of windows with taps; the first one of a window that begins inside
    Py_ssize_t size       # of the scratch memory


cdef void lay(Room* room, const Tile* tile, Py_ssize_t begin, Py_ssize_t end, char* scratch) noexcept nogil:
    cdef Lines* lines = &room.lines
    cdef Py_ssize_t loaded, row, taps, lines_of_each = 1, shared = 1
    cdef const Axis* axis
    cdef int a
    plan(lines, tile, begin, end)
    for a in range(tile.rank - 1):
        lines_of_each *= min(tile.axis[a].kernel, tile.axis[a].size)
    if tile.rank > 1:
        axis = &tile.axis[tile.rank - 2]
        shared = min(axis.stride, axis.kernel, axis.size) * (lines_of_each // min(axis.kernel, axis.size))
    taps = min(tile.axis[tile.rank - 1].kernel, tile.axis[tile.rank - 1].size)
    # Comparisons, and about two more for each value that is kept or read again.
    room.kept = shared * (taps + 2) + 2 * lines_of_each < lines_of_each * taps
    room.direct = DIRECT and not room.kept and tile.lanes >= LANES
    room.row = lines.results + LANES
    loaded = lines.phases * lines.phase_pitch
    row = 2 * room.row if room.kept else loaded  # which tiles of few lanes need, even if this one is direct
    room.shift = <int64_t*> scratch
    room.least = room.shift + lines.windows * tile.lanes
    room.size = 2 * lines.windows * tile.lanes * sizeof(int64_t)
    room.size += settle(lines, scratch + room.size, row * sizeof(acc_t))
    room.loaded = <acc_t*> (scratch + room.size)
    room.values = room.loaded + loaded
    room.places = <place_t*> (room.values + room.row)
    room.size += (loaded + 2 * room.row) * sizeof(acc_t)


cdef inline Py_ssize_t reduce_taps(block_t* unused, Py_ssize_t i, const Taps* taps, const Line* line, Py_ssize_t n,
                                   acc_t* values, place_t* places) noexcept nogil:
    """The taps of n lines, for values from i on that fill blocks; the last vector may overlap another one."""
    cdef Py_ssize_t block = width(unused), k, t
    cdef block_t best
    cdef const acc_t* x
    cdef places_t place, hop = places_fill(<place_t> taps.hop)
    while i + block <= taps.values or (block == LANES and i < taps.values):
        i = max(0, min(i, taps.values - block))
        for k in range(n):
            x, place = <const acc_t*> line[k].row + taps.first + i, places_fill(<place_t> line[k].place)
            if k == 0:
                start(&best, x, place)
            else:
                fold(&best, x, place)
            for t in range(1, taps.n):
                place = places_add(place, hop)
                fold(&best, x + taps.distance[t], place)
        write(&best, values + i, places + i)
        i += block
    return i


cdef inline Py_ssize_t reduce_kept(block_t* unused, Py_ssize_t i, const Room* room, const Line* line, Py_ssize_t n,
                                   acc_t* values, place_t* places) noexcept nogil:
    """The same of n lines that have been reduced."""
    cdef const Lines* lines = &room.lines
    cdef Py_ssize_t block = width(unused), k
    cdef block_t best
    cdef const acc_t* x
    while i + block <= lines.values or (block == LANES and i < lines.values):
        i = max(0, min(i, lines.values - block))
        x = <const acc_t*> line.row + i
        start_each(&best, x, <const place_t*> (x + room.row))
        for k in range(1, n):
            x = <const acc_t*> line[k].row + i
            fold_each(&best, x, <const place_t*> (x + room.row))
        write(&best, values + i, places + i)
        i += block
    return i


cdef void reduce_row(const Room* room, const Line* line, Py_ssize_t n, bint kept, bint nans, acc_t* values,
                     place_t* places) noexcept nogil:
    cdef Py_ssize_t i
    if kept:
        if HAS_NANS and nans:
            reduce_kept(<Any*> NULL, 0, room, line, n, values, places)
        else:
            i = reduce_kept(<Block*> NULL, 0, room, line, n, values, places)
            reduce_kept(<Best*> NULL, i, room, line, n, values, places)
    else:
        if HAS_NANS and nans:
            reduce_taps(<Any*> NULL, 0, &room.taps, line, n, values, places)
        else:
            i = reduce_taps(<Block*> NULL, 0, &room.taps, line, n, values, places)
            reduce_taps(<Best*> NULL, i, &room.taps, line, n, values, places)


cdef void load_lines(const Room* room, seen_t* seen) noexcept nogil:
    cdef Py_ssize_t k
    cdef Line line
    cdef Line* each
    for k in range(room.lines.n):
        each = &room.lines.line[k]
        if room.direct:
            each.row = <char*> each.x
        elif each.fresh and room.kept:
            load_line(&room.lines, each.x, room.loaded, seen)
            line = each[0]
            line.row = <char*> room.loaded
            reduce_row(room, &line, 1, False, seen_nan(seen), <acc_t*> each.row,
                       <place_t*> (<acc_t*> each.row + room.row))
        elif each.fresh:
            load_line(&room.lines, each.x, <acc_t*> each.row, seen)


cdef void reduce_windows(Room* room, Py_ssize_t begin, elem_t* y, int64_t* indices, int64_t base) noexcept nogil:
    """The windows of a row, one by one. Nobody has looked whether there are NaNs."""
    cdef const Tile* tile = room.lines.tile
    cdef int last = tile.rank - 1
    cdef const Axis* axis = &tile.axis[last]
    cdef Py_ssize_t w
    cdef Window window
    for w in range(room.lines.windows):
        window = window_at(axis, begin + w)
        if window.taps:
            room.taps.n, room.taps.first = window.taps, window.first * tile.x_stride[last]
            reduce_row(room, room.lines.line, room.lines.n, False, True, room.values, room.places)
            finish_values(room.values, room.places, tile.lanes, y + w * tile.y_stride[last],
                          indices + w * tile.index_stride[last], room.shift, base + window.first * tile.pace[last])
        else:
            leave_empty(tile, 1, y + w * tile.y_stride[last], indices + w * tile.index_stride[last])


cdef void finish_values(const acc_t* values, const place_t* places, Py_ssize_t n, elem_t* y, int64_t* indices,
                        const int64_t* shift, int64_t base) noexcept nogil:
    """The results of n values."""
    cdef Py_ssize_t i = 0
    cdef elem_t[LANES] part
    if n < LANES:
        vec_finish(part, vec_read(values))
        memcpy(y, part, n * sizeof(elem_t))
        for i in range(n):
            indices[i] = base + shift[i] + places[i]
        return
    while i < n:
        i = min(i, n - LANES)
        vec_finish(y + i, vec_read(values + i))
        indices_write(indices + i, places_read(places + i), shift + i, base)
        i += LANES


cdef void mend_values(const Room* room, Py_ssize_t at, Py_ssize_t n, int64_t* indices, int64_t base) noexcept nogil:
    """No index is before that of the first tap inside; values of windows without a tap have none."""
    cdef Py_ssize_t i
    cdef int64_t least
    for i in range(min(n, room.inside - at)):
        least = room.least[at + i]  # no tap is inside, perhaps, if taps are so far apart that all elements are between
        indices[i] = max(indices[i], base + room.lines.line.place + least) if least >= 0 else -1
    for i in range(min(n, room.begin - at)):
        indices[i] = -1
    for i in range(max(0, room.end - at), n):
        indices[i] = -1


cdef void finish_row(const Room* room, elem_t* y, int64_t* indices, int64_t base) noexcept nogil:
    cdef const Tile* tile = room.lines.tile
    cdef Py_ssize_t y_stride = tile.y_stride[tile.rank - 1], index_stride = tile.index_stride[tile.rank - 1]
    cdef Py_ssize_t w, windows = room.lines.windows, n = tile.lanes, item, at
    if y_stride == n == index_stride:
        n, windows = windows * n, 1
    for item in range(room.lines.group):
        for w in range(windows):
            at = item * room.lines.pitch + w * n
            finish_values(room.values + at, room.places + at, n, y + w * y_stride, indices + w * index_stride,
                          room.shift + w * n, base + room.lines.first * tile.pace[tile.rank - 1])
            mend_values(room, w * n, n, indices + w * index_stride, base)
        y, indices, base = y + tile.y_item, indices + tile.index_item, base + tile.base_item


cdef void leave_empty(const Tile* tile, Py_ssize_t windows, elem_t* y, int64_t* indices) noexcept nogil:
    """Windows without a tap."""
    cdef Py_ssize_t w, i
    cdef elem_t[LANES] none
    vec_finish(none, vec_none())
    for w in range(windows):
        for i in range(tile.lanes):
            y[w * tile.y_stride[tile.rank - 1] + i] = none[0]
            indices[w * tile.index_stride[tile.rank - 1] + i] = -1


cdef void pool_items(Room* room, Py_ssize_t begin, const elem_t* x, elem_t* y, int64_t* indices,
                     int64_t base) noexcept nogil:
    """All rows of results of a group of items, whose windows of the last axis are those from `begin` on."""
    cdef Lines* lines = &room.lines
    cdef const Tile* tile = lines.tile
    cdef int last = tile.rank - 1, a
    cdef Py_ssize_t to, index, item
    cdef seen_t seen = seen_nothing()
    cdef bint more = first_row(lines)
    while more:
        find_lines(lines, x)
        to, index = begin * tile.y_stride[last], begin * tile.index_stride[last]
        for a in range(last):
            to += lines.at[a] * tile.y_stride[a]
            index += lines.at[a] * tile.index_stride[a]
        load_lines(room, &seen)
        if lines.n == 0:
            for item in range(lines.group):
                leave_empty(tile, lines.windows, y + to + item * tile.y_item, indices + index + item * tile.index_item)
        elif room.direct:
            reduce_windows(room, begin, y + to, indices + index, base)
        else:
            reduce_row(room, lines.line, lines.n, room.kept, seen_nan(&seen), room.values, room.places)
            finish_row(room, y + to, indices + index, base)
        more = next_row(lines)


cdef void prepare_taps(Room* room) noexcept nogil:
    cdef const Tile* tile = room.lines.tile
    cdef int last = tile.rank - 1
    cdef Py_ssize_t t
    room.taps = Taps(room.lines.values, room.lines.taps, 0, room.lines.tap, tile.axis[last].dilation * tile.pace[last])
    if room.direct:
        room.taps.values = tile.lanes
        for t in range(room.taps.n):
            room.taps.distance[t] = t * tile.axis[last].dilation * tile.x_stride[last]


cdef void prepare_indices(Room* room, Py_ssize_t begin) noexcept nogil:
    cdef const Tile* tile = room.lines.tile
    cdef int last = tile.rank - 1
    cdef Py_ssize_t w, lane, i = 0
    cdef Window window
    room.begin = room.inside = room.end = 0
    for w in range(room.lines.windows):
        window = window_at(&tile.axis[last], begin + w)
        for lane in range(tile.lanes):
            room.shift[i] = w * tile.axis[last].stride * tile.pace[last] + lane * tile.base_lane
            room.least[i] = window.first * tile.pace[last] + lane * tile.base_lane if window.taps else -1
            i += 1
        if window.taps == 0 and room.end == 0:
            room.begin = i
        if window.skipped and room.lines.windows > 1:
            room.inside = i
        if window.taps:
            room.end = i


cdef void pool_columns(const Tile* tile, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The results of some windows of the last axis."""
    cdef Room room
    cdef Py_ssize_t item = 0
    lay(&room, tile, begin, end, tile.scratch)
    prepare(&room.lines)
    prepare_indices(&room, begin)
    while item < tile.items:
        set_group(&room.lines, 1 if room.direct else min(room.lines.most, tile.items - item))
        prepare_taps(&room)
        pool_items(&room, begin, <const elem_t*> tile.x + item * tile.x_item, <elem_t*> tile.y + item * tile.y_item,
                   <int64_t*> tile.indices + item * tile.index_item, tile.base + item * tile.base_item)
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
