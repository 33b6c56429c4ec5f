"""ordered: taps in row-major order, for maxima with indices, and for quantised means as onnxruntime defines them.

Lines of x are loaded as described in core/lines.pxd. For a row of windows, taps are taken in row-major order, and
vectors hold the values of several windows. A total is a value with a place, which is where the first maximum is. Sums
have no places, and the code for places is compiled for maxima only.

If windows share lines, and lines have many taps, each line is first reduced by itself, to a maximum for each window.
Where elements serve as accumulators and lanes fill vectors, windows read x directly, unless lines are reduced.

Places are counted from the first tap of each window. If a window begins in the padding and all of its elements are the
least value, its place may be a tap in the padding. The first tap inside then replaces it.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from ..core.element cimport (
    DIVIDES,
    LANES,
    acc_of,
    acc_t,
    elem_t,
    seen_nothing,
    seen_t,
    vec_finish,
    vec_none,
    vec_read,
)
from ..core.job cimport TOO_LARGE, Axis, Rule, Tile, Window, tap_distance, window_at
from ..core.lines cimport (
    Line,
    Lines,
    calm_windows,
    find_lines,
    first_row,
    load_line,
    next_row,
    plan,
    prepare,
    set_group,
    settle,
)
from ..core.ordered cimport (
    DIRECT,
    HAS_NANS,
    PLACES,
    Total,
    Totals,
    fold,
    indices_write,
    place_t,
    places_add,
    places_fill,
    places_read,
    places_t,
    seen_nan,
    start,
    totals_t,
    width,
    write,
)

cdef struct RowTaps:
    # The taps of each value along the last axis. The first tap is at `first`, others are at a distance from it.
    Py_ssize_t values, n, first
    Py_ssize_t* distance
    int64_t hop           # the difference between the indices of two neighbouring taps
    Py_ssize_t kept       # if a line has been reduced to one tap: from its values to its places; else 0

cdef struct Room:
    # Rows of values in scratch memory: a loaded line, and totals.
    Lines lines
    bint kept             # whether lines are reduced by themselves
    bint direct           # whether windows read x one by one, instead of loaded lines
    RowTaps taps
    Py_ssize_t row        # accumulators from the values of a row to its places
    acc_t* loaded
    acc_t* values
    place_t* places
    acc_t* counts         # the divisor of each value
    double divisor        # the factor from other axes for which `counts` was computed
    elem_t* results       # a row of results
    int64_t* shift        # for each value, its index minus the index of the first window and lane
    int64_t* least        # for each value that begins in the padding, its first tap inside likewise; -1 without taps
    Py_ssize_t begin, inside, end     # range of values with taps; first value of a window that begins inside
    Py_ssize_t size       # bytes of scratch memory


cdef inline bint is_kept(const Tile* tile) noexcept nogil:
    cdef Py_ssize_t lines = 1, shared = 1, taps
    cdef const Axis* axis = &tile.axis[tile.rank - 1]
    cdef int a
    taps = min(axis.kernel, axis.size)
    for a in range(tile.rank - 1):
        lines *= min(tile.axis[a].kernel, tile.axis[a].size)
    if tile.rank > 1:
        axis = &tile.axis[tile.rank - 2]
        shared = min(axis.stride, axis.kernel, axis.size) * (lines // min(axis.kernel, axis.size))
    # Compare costs: one per comparison, and about two more per value that is kept or read again.
    return PLACES and shared * (taps + 2) + 2 * lines < lines * taps


cdef void lay(Room* room, const Tile* tile, Py_ssize_t begin, Py_ssize_t end, char* scratch) noexcept nogil:
    cdef Lines* lines = &room.lines
    cdef Py_ssize_t loaded, row, shifts
    plan(lines, tile, begin, end)
    room.kept = is_kept(tile)
    room.direct = DIRECT and not room.kept and tile.lanes >= LANES and tile.rule != NULL and not tile.rule.order.flip
    room.row = lines.results + LANES
    loaded = lines.most_phases * lines.phase_pitch
    row = 2 * room.row if room.kept else loaded  # suffices even if this tile is direct and a smaller one is not
    shifts = lines.windows * tile.lanes + LANES if PLACES else 0
    room.shift = <int64_t*> scratch
    room.least = room.shift + shifts
    room.size = 2 * shifts * sizeof(int64_t)
    room.size += settle(lines, scratch + room.size, row * sizeof(acc_t))
    room.loaded = <acc_t*> (scratch + room.size)
    room.values = room.loaded + (loaded if PLACES else 0)
    room.places = <place_t*> (room.values + room.row)
    room.counts = room.values + room.row
    room.results = <elem_t*> (room.values + 2 * room.row)
    room.size = <char*> (room.results + room.row) - scratch


cdef inline Py_ssize_t reduce_taps(totals_t* unused, Py_ssize_t i, const RowTaps* taps, const Line* line, Py_ssize_t n,
                                   bint kept, bint nans, acc_t* values, place_t* places) noexcept nogil:
    """Reduce the taps of n lines, for values from i on that fill blocks. The last vector may overlap the one before it.
    A line that is already reduced has one tap, and a place for each value."""
    cdef Py_ssize_t block = width(unused), k, t
    cdef totals_t total
    cdef const acc_t* x
    cdef const place_t* each = NULL
    cdef places_t place, hop = places_fill(taps.hop)
    while i + block <= taps.values or (block == LANES and i < taps.values):
        i = max(0, min(i, taps.values - block))
        for k in range(n):
            x, place = <const acc_t*> line[k].row + taps.first + i, places_fill(line[k].place)
            if kept:
                each = <const place_t*> (x + taps.kept)
            if k == 0:
                start(&total, x, place, each)
            else:
                fold(&total, x, place, each, nans)
            for t in range(1, 1 if kept else taps.n):
                place = places_add(place, hop)
                fold(&total, x + taps.distance[t], place, NULL, nans)
        write(values + i, places + i, &total)
        i += block
    return i


cdef void reduce_row(const RowTaps* taps, const Line* line, Py_ssize_t n, bint nans, acc_t* values,
                     place_t* places) noexcept nogil:
    cdef Py_ssize_t i
    if PLACES and taps.kept:
        if HAS_NANS and nans:
            reduce_taps(<Total*> NULL, 0, taps, line, n, True, True, values, places)
        else:
            i = reduce_taps(<Totals*> NULL, 0, taps, line, n, True, False, values, places)
            reduce_taps(<Total*> NULL, i, taps, line, n, True, False, values, places)
    elif HAS_NANS and nans:
        reduce_taps(<Total*> NULL, 0, taps, line, n, False, True, values, places)
    else:
        i = reduce_taps(<Totals*> NULL, 0, taps, line, n, False, False, values, places)
        reduce_taps(<Total*> NULL, i, taps, line, n, False, False, values, places)


cdef void load_lines(const Room* room, seen_t* seen) noexcept nogil:
    cdef Py_ssize_t k
    cdef Line line
    cdef Line* each
    for k in range(room.lines.n):
        each = &room.lines.line[k]
        if room.direct:
            each.row = <char*> each.x
        elif each.fresh:
            load_line(&room.lines, each.x, room.loaded if room.kept else <acc_t*> each.row, seen)
            if room.kept:
                line = each[0]
                line.row = <char*> room.loaded
                reduce_row(&room.taps, &line, 1, seen_nan(seen), <acc_t*> each.row,
                           <place_t*> (<acc_t*> each.row + room.row))


cdef void finish_values(const Room* room, Py_ssize_t at, Py_ssize_t n, elem_t* y, const int64_t* shift,
                        int64_t* indices, int64_t base) noexcept nogil:
    """Finish n values, at least a vector of them. The last vector overlaps the one before it."""
    cdef Py_ssize_t i = 0
    cdef const acc_t* values = room.values + at
    cdef const acc_t* counts = room.counts + at
    cdef const place_t* places = room.places + at
    cdef Rule rule = room.lines.tile.rule[0]  # a copy, which stores of results cannot change
    while i < n:
        i = min(i, n - LANES)
        vec_finish(y + i, vec_read(values + i), vec_read(counts + i), vec_read(counts + i), &rule)
        if PLACES and indices != NULL:
            indices_write(indices + i, places_read(places + i), shift + i, base)
        i += LANES


cdef void correct_indices(const Room* room, Py_ssize_t at, Py_ssize_t n, int64_t* indices, int64_t base) noexcept nogil:
    """Raise indices to the index of the first tap inside. Windows without a tap get the index -1."""
    cdef Py_ssize_t i
    cdef int64_t least
    for i in range(min(n, room.inside - at)):
        least = room.least[at + i]  # -1 if taps are so far apart that all elements lie between them
        indices[i] = max(indices[i], base + room.lines.line.place + least) if least >= 0 else -1
    for i in range(min(n, room.begin - at)):
        indices[i] = -1
    for i in range(max(0, room.end - at), n):
        indices[i] = -1


cdef void finish_row(const Room* room, elem_t* y, int64_t* indices, int64_t base) noexcept nogil:
    """Finish a row of results. The row passes through scratch memory if results do not fill vectors in the array, or if
    a division costs more than a copy."""
    cdef const Lines* lines = &room.lines
    cdef const Tile* tile = lines.tile
    cdef int last = tile.rank - 1
    cdef Py_ssize_t w, windows = lines.windows, n = tile.lanes, item, at
    cdef int64_t first = lines.first * tile.pace[last] if PLACES else 0
    cdef elem_t* to
    cdef int64_t* index = NULL
    cdef int64_t[LANES] part
    cdef bint packed
    if tile.y_stride[last] == n and not (PLACES and tile.index_stride[last] != n):
        n, windows = windows * n, 1
    packed = n < LANES or (DIVIDES and lines.group > 1)
    if packed:
        finish_values(room, 0, max(<Py_ssize_t> LANES, lines.values), room.results, NULL, NULL, 0)
    for item in range(lines.group):
        for w in range(windows):
            at, to = item * lines.pitch + w * n, y + item * tile.y_item + w * tile.y_stride[last]
            if PLACES:
                index = indices + item * tile.index_item + w * tile.index_stride[last]
            if not packed:
                finish_values(room, at, n, to, room.shift + w * n, index, base + first)
            else:
                memcpy(to, room.results + at, n * sizeof(elem_t))
                if PLACES:
                    indices_write(part, places_read(room.places + at), room.shift + w * n, base + first)
                    memcpy(index, part, n * sizeof(int64_t))
            if PLACES:
                correct_indices(room, w * n, n, index, base)
        base += tile.base_item


cdef void leave_empty(const Tile* tile, Py_ssize_t windows, elem_t* y, int64_t* indices) noexcept nogil:
    """Write the results of windows without a tap. Arrays need not be aligned."""
    cdef Py_ssize_t w, i
    cdef elem_t[LANES] none
    cdef int64_t nowhere = -1
    vec_finish(none, vec_none(), vec_none(), vec_none(), tile.rule)  # a sum has a count of 0 as well
    for w in range(windows):
        for i in range(tile.lanes):
            memcpy(y + w * tile.y_stride[tile.rank - 1] + i, none, sizeof(elem_t))
            if PLACES:
                memcpy(indices + w * tile.index_stride[tile.rank - 1] + i, &nowhere, sizeof(int64_t))


cdef void reduce_windows(Room* room, Py_ssize_t begin, elem_t* y, int64_t* indices, int64_t base) noexcept nogil:
    """Reduce the windows of a row one by one, from elements that have not been checked for NaNs."""
    cdef const Tile* tile = room.lines.tile
    cdef int last = tile.rank - 1
    cdef const Axis* axis = &tile.axis[last]
    cdef Py_ssize_t w
    cdef Window window
    for w in range(room.lines.windows):
        window = window_at(axis, begin + w)
        if window.taps:
            room.taps.n, room.taps.first = window.taps, window.first * tile.x_stride[last]
            reduce_row(&room.taps, room.lines.line, room.lines.n, True, room.values, room.places)
            finish_values(room, 0, tile.lanes, y, room.shift, indices, base + window.first * tile.pace[last])
        else:
            leave_empty(tile, 1, y, indices)
        y, indices = y + tile.y_stride[last], indices + tile.index_stride[last]


cdef void set_counts(Room* room, Py_ssize_t begin) noexcept nogil:
    """Set the divisors of a row of values."""
    cdef const Lines* lines = &room.lines
    cdef const Tile* tile = lines.tile
    cdef Py_ssize_t i, w, item, lane
    cdef acc_t count
    if room.divisor == lines.divisor:
        return
    room.divisor = lines.divisor
    for i in range(room.row):
        room.counts[i] = acc_of(1)
    for w in range(lines.windows):
        count = acc_of(lines.divisor * window_at(&tile.axis[tile.rank - 1], begin + w).divisor)
        for item in range(lines.group):
            for lane in range(tile.lanes):
                room.counts[item * lines.pitch + w * tile.lanes + lane] = count


cdef void pool_items(Room* room, Py_ssize_t begin, const elem_t* x, elem_t* y, int64_t* indices,
                     int64_t base) noexcept nogil:
    """Compute all rows of results of a group of items, with the windows of the last axis from `begin` on."""
    cdef Lines* lines = &room.lines
    cdef const Tile* tile = lines.tile
    cdef int last = tile.rank - 1, a
    cdef Py_ssize_t to, index, item
    cdef seen_t seen = seen_nothing()
    cdef RowTaps kept = RowTaps(lines.values, 1, 0, NULL, 0, room.row)
    cdef bint more = first_row(lines)
    while more:
        find_lines(lines, x)
        to, index = begin * tile.y_stride[last], begin * tile.index_stride[last] if PLACES else 0
        for a in range(last):
            to += lines.at[a] * tile.y_stride[a]
            index += lines.at[a] * tile.index_stride[a] if PLACES else 0
        load_lines(room, &seen)
        if DIVIDES:
            set_counts(room, begin)
        if lines.n == 0:
            for item in range(lines.group):
                leave_empty(tile, lines.windows, y + to + item * tile.y_item, indices + index + item * tile.index_item)
        elif DIRECT and room.direct:
            reduce_windows(room, begin, y + to, indices + index, base)
        else:
            reduce_row(&kept if room.kept else &room.taps, lines.line, lines.n, seen_nan(&seen), room.values,
                       room.places)
            finish_row(room, y + to, indices + index, base)
        more = next_row(lines)


cdef void prepare_taps(Room* room) noexcept nogil:
    cdef const Tile* tile = room.lines.tile
    cdef int last = tile.rank - 1
    cdef Py_ssize_t t
    room.taps = RowTaps(room.lines.values, room.lines.taps, 0, room.lines.tap,
                        tap_distance(&tile.axis[last], tile.pace[last]) if PLACES else 0, 0)
    if room.direct:
        room.taps.values = tile.lanes
        for t in range(room.taps.n):
            room.taps.distance[t] = tap_distance(&tile.axis[last], t * tile.x_stride[last])


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
    """Compute the results of windows [begin, end) of the last axis."""
    cdef Room room
    cdef Py_ssize_t item = 0
    lay(&room, tile, begin, end, tile.scratch)
    prepare(&room.lines)
    room.divisor = -1
    if PLACES:
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
    if tile.end[last] - tile.begin[last] <= calm_windows(tile):
        pool_columns(tile, tile.begin[last], tile.end[last])
    else:
        for w in range(tile.begin[last], tile.end[last]):
            pool_columns(tile, w, w + 1)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    """The bytes that this tile and smaller ones need. A smaller tile may pool all windows at once although this tile
    does not."""
    cdef Room room
    cdef int last = tile.rank - 1
    cdef Py_ssize_t most = min(tile.end[last] - tile.begin[last], calm_windows(tile)), size
    lay(&room, tile, tile.begin[last], tile.begin[last] + most, NULL)
    size = room.size
    lay(&room, tile, tile.begin[last], tile.begin[last] + 1, NULL)
    return min(TOO_LARGE, max(size, room.size))
