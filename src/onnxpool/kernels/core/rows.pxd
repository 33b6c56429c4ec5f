"""Rows of a block: what a tile needs of scratch memory, and the loops along rows."""
from libc.string cimport memcpy

from .element cimport (
    DIVIDES,
    LANES,
    Block,
    acc_t,
    block_t,
    elem_t,
    join,
    load,
    read,
    vec_none,
    vec_t,
    vec_write,
    width,
    write,
)
from .job cimport FEW, Axis, Rule, Tile, Window, fetch, window_at

cdef enum:
    MOST = 64             # axes
    SLACK = 8 * LANES     # values behind an area that loops may read or write
    NARROW = 16 * LANES   # values of a row that is short

cdef struct Rows:
    # The rows of a block along one axis but the last one: places, or windows once the axis is reduced.
    Py_ssize_t begin, n, windows

cdef struct Room:
    # What a tile needs, and where in the scratch memory it lies, in accumulators.
    Rows[MOST] rows
    Py_ssize_t begin, places, low, high      # of the last axis: first place, how many, and which are inside
    Py_ssize_t pitch                         # from row to row
    Py_ssize_t block                         # of either of two blocks
    Py_ssize_t phases, phase                 # rows of every stride-th place, and values of each
    Py_ssize_t counts, divisors, last_counts, all


cdef inline Py_ssize_t span_of(const Axis* axis) noexcept nogil:
    return (axis.kernel - 1) * axis.dilation + 1


cdef inline bint is_tree(const Axis* axis) noexcept nogil:
    return axis.kernel > FEW


cdef inline bint is_flat(const Tile* tile) noexcept nogil:
    """Whether rows are so short that all of a block are better reduced as one: where windows follow each other."""
    cdef int last = tile.rank - 1, a
    for a in range(tile.rank):
        if tile.axis[a].stride > 1 and tile.axis[a].out > 1:
            return False
    # The same for all tiles of a job, as it decides about scratch memory.
    return (tile.axis[last].size + 2 * tile.axis[last].pad) * tile.most_lanes <= NARROW


cdef inline bint is_padded(const Tile* tile, int a) noexcept nogil:
    """Whether rows of the padding are part of a block along an axis before the last one."""
    return is_tree(&tile.axis[a]) or is_flat(tile)


cdef inline bint makes_rows(const Tile* tile) noexcept nogil:
    """Whether rows are made one by one, of few taps of two axes."""
    return tile.rank == 2 and not is_padded(tile, 0) and not is_tree(&tile.axis[1])


cdef inline void lay(const Tile* tile, Room* room) noexcept nogil:
    """The room of a tile. What it holds depends on how many windows it has, not on which."""
    cdef int a, last = tile.rank - 1
    cdef const Axis* axis
    cdef Py_ssize_t windows, places, before = 1, behind = 1, block = 0
    for a in range(last):
        axis = &tile.axis[a]
        windows = tile.end[a] - tile.begin[a]
        places = (windows - 1) * axis.stride + span_of(axis)
        room.rows[a] = Rows(tile.begin[a] * axis.stride - axis.pad, places, windows)
        if not is_padded(tile, a):
            room.rows[a].n = min(places, axis.size)
            room.rows[a].begin = max(0, min(room.rows[a].begin, axis.size - room.rows[a].n))
    axis = &tile.axis[last]
    windows = tile.end[last] - tile.begin[last]
    room.begin = tile.begin[last] * axis.stride - axis.pad
    room.places = (windows - 1) * axis.stride + span_of(axis)
    room.low, room.high = max(0, room.begin), min(axis.size, room.begin + room.places)
    room.high = max(room.low, room.high)
    # Whole vectors: what is written behind a row is not in the next one.
    room.pitch = (room.places * tile.lanes + LANES - 1) // LANES * LANES
    for a in range(last):
        behind *= room.rows[a].n
    if makes_rows(tile):
        last = 0
    for a in range(last):  # before each pass, and after it
        block = max(block, before * behind)
        behind //= room.rows[a].n
        before *= room.rows[a].windows
        block = max(block, before * behind)
    room.block = max(block, 1) * room.pitch + SLACK
    room.phases = 2 * room.block
    room.phase = (room.places + axis.stride - 1) // axis.stride * tile.lanes + SLACK
    room.counts = room.phases + (axis.stride * room.phase if axis.stride > 1 else 0)
    room.divisors = windows * min(tile.lanes, LANES) + SLACK if DIVIDES else 0
    room.last_counts = room.counts + 4 * room.divisors  # counts and inverses, twice
    room.all = room.last_counts + 2 * room.divisors  # these are doubles


cdef inline void fill_row(acc_t* y, Py_ssize_t n) noexcept nogil:
    """At least n identities."""
    cdef Py_ssize_t i = 0
    while i < n:
        vec_write(y + i, vec_none())
        i += LANES


cdef struct Taps:
    # Of rows of elements: how many, values from one to the next; how many of those of the next window are not among
    # them, and values to that window.
    Py_ssize_t n, stride, fresh, next


cdef inline Py_ssize_t columns(block_t* unused, Py_ssize_t i, const elem_t* x, acc_t* y, Py_ssize_t n, const Taps* taps,
                               const Rule* rule) noexcept nogil:
    """y = taps of x for the values from i on that fill blocks; the last vector may overlap another one."""
    cdef block_t v, later
    cdef Py_ssize_t t, block = width(unused)
    cdef acc_t[LANES] part
    while i + block <= n or (block == LANES and i < n):
        i = max(0, min(i, n - block))
        for t in range(taps.n - taps.fresh, taps.n):
            fetch(x + i + t * taps.stride + taps.next, block * sizeof(elem_t))
        load(&v, x + i, n, rule)
        for t in range(1, taps.n):
            load(&later, x + i + t * taps.stride, n, rule)
            join(&v, &later)
        if n >= LANES:
            write(y + i, &v)
        else:
            write(part, &v)
            memcpy(y, part, n * sizeof(acc_t))
        i += block
    return i


cdef inline Py_ssize_t sum_rows(block_t* unused, Py_ssize_t i, const acc_t* x, acc_t* y, Py_ssize_t n, Py_ssize_t taps,
                                Py_ssize_t stride) noexcept nogil:
    """The same of accumulators; what lies behind the last value is written as well."""
    cdef block_t v, later
    cdef Py_ssize_t t, block = width(unused)
    while i + block <= n or (block == LANES and i < n):
        read(&v, x + i)
        for t in range(1, taps):
            read(&later, x + i + t * stride)
            join(&v, &later)
        write(y + i, &v)
        i += block
    return i


cdef inline void sum_all(const acc_t* x, acc_t* y, Py_ssize_t n, Py_ssize_t taps, Py_ssize_t stride) noexcept nogil:
    sum_rows(<vec_t*> NULL, sum_rows(<Block*> NULL, 0, x, y, n, taps, stride), x, y, n, taps, stride)


cdef inline Py_ssize_t add_rows(block_t* unused, Py_ssize_t i, const acc_t* x, const acc_t* later, acc_t* y,
                                Py_ssize_t n) noexcept nogil:
    cdef block_t v, w
    cdef Py_ssize_t block = width(unused)
    while i + block <= n or (block == LANES and i < n):
        read(&v, x + i)
        read(&w, later + i)
        join(&v, &w)
        write(y + i, &v)
        i += block
    return i


cdef inline void add_all(const acc_t* x, const acc_t* later, acc_t* y, Py_ssize_t n) noexcept nogil:
    """y = x and later; what lies behind the last value is written as well."""
    add_rows(<vec_t*> NULL, add_rows(<Block*> NULL, 0, x, later, y, n), x, later, y, n)


cdef struct Trees:
    # Windows of many taps: values from tap to tap, values of x; windows, values of each, and from one to the next.
    Py_ssize_t taps, distance, values, windows, width, step


cdef inline void reduce_trees(acc_t* x, acc_t* y, Trees t) noexcept nogil:
    """y[window] = trees of x, of which x keeps nothing. Where windows are apart, their values fill vectors: what is
    written behind one window is in no other."""
    cdef Py_ssize_t part = 1, before, w
    cdef bint begun = False
    cdef acc_t* source
    if t.step == t.width:
        t.width, t.windows = t.windows * t.width, 1
    while True:
        if t.taps & part:
            before = t.taps // (2 * part) * (2 * part)  # taps in larger parts
            source = x + before * t.distance
            for w in range(t.windows):
                if begun:
                    add_all(source + w * t.step, y + w * t.width, y + w * t.width, t.width)
                else:
                    memcpy(y + w * t.width, source + w * t.step, t.width * sizeof(acc_t))
            begun = True
        if 2 * part > t.taps:
            return
        t.values -= part * t.distance
        # In place: each block is read before it is written, what it is added to later still.
        add_all(x, x + part * t.distance, x, t.values)
        part *= 2


cdef inline void sum_columns(const elem_t* x, acc_t* y, Py_ssize_t n, const Taps* taps,
                             const Rule* rule) noexcept nogil:
    columns(<vec_t*> NULL, columns(<Block*> NULL, 0, x, y, n, taps, rule), x, y, n, taps, rule)


cdef inline Taps taps_of(const Tile* tile, Py_ssize_t n) noexcept nogil:
    """Taps of the first axis."""
    cdef const Axis* axis = &tile.axis[0]
    cdef Py_ssize_t fresh = min(n, axis.stride) if tile.far and tile.rank > 1 else 0
    return Taps(n, axis.dilation * tile.x_stride[0], fresh, axis.stride * tile.x_stride[0])


cdef inline void pad_row(const Tile* tile, const Room* room, acc_t* y) noexcept nogil:
    """What a row has in the padding."""
    cdef Py_ssize_t left = (room.low - room.begin) * tile.lanes, right = (room.high - room.begin) * tile.lanes
    fill_row(y, left)
    fill_row(y + right, room.places * tile.lanes - right)


cdef inline void load_row(const Tile* tile, const Room* room, const elem_t* x, acc_t* y,
                          Py_ssize_t n_taps) noexcept nogil:
    """Taps of elements for what a row has inside."""
    cdef Taps taps = taps_of(tile, n_taps)
    cdef Py_ssize_t left = (room.low - room.begin) * tile.lanes, n = (room.high - room.low) * tile.lanes
    cdef Py_ssize_t step = tile.x_stride[tile.rank - 1], place
    if step == tile.lanes:
        sum_columns(x + room.low * step, y + left, n, &taps, tile.rule)
        return
    for place in range(room.low, room.high):
        sum_columns(x + place * step, y + (place - room.begin) * tile.lanes, tile.lanes, &taps, tile.rule)
