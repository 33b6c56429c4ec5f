"""disjoint: windows that share no place along rows of few lanes, with strides of 2 to 4.

A group of windows is loaded as one register for each place of a stride, and reduced along the other axes. Then taps
are picked for all windows of the group at once. Nothing goes through scratch memory. Windows that overhang an end, and
windows in rows shorter than a group, are reduced one by one.
"""
from libc.stdint cimport int64_t

from ..core.element cimport (
    DIVIDES,
    DIVISION,
    EXACT,
    FREQUENT,
    LANES,
    PRODUCT,
    QUOTIENT,
    Divisor,
    Woven,
    Woven4,
    divisor_of,
    elem_t,
    end_of,
    vec_divide_part,
    vec_finish_by,
    vec_finish_few,
    vec_finish_part,
    vec_load,
    vec_load_few,
    vec_load_neighbours,
    vec_merge,
    vec_t,
)
from ..core.fetches cimport BEYOND
from ..core.job cimport Axis, Rule, Tile, Window, fetch, wide_window_at
from ..core.phases cimport Triple, group_t, join_group, load_group, phases_of, split
from ..core.picks cimport PICKS, picks_of_windows, picks_t, vec_pick, vec_replace
from ..core.planes cimport Planes, RowRun, next_run, start_planes

cdef enum:
    AHEAD = 2048     # prefetch distance in bytes, approximately
    MOST_STRIDE = 4
    EACH = MOST_STRIDE - 1  # maximum picks per tap
    # How the taps of windows are found: elements are split into phases or picked, or neighbours are added.
    SPLIT, PICKED, SUMMED

cdef struct Disjoint:
    const Axis* axis                     # the last one
    Py_ssize_t lanes
    Py_ssize_t begin, end                # the range of its windows whose taps are all inside
    Py_ssize_t group                     # values of a group, which has only whole windows
    int taps, stride
    picks_t[EACH * MOST_STRIDE] picks  # for each tap, picks from one register of a group after another
    const elem_t* limit                  # the end of the elements
    Py_ssize_t fresh, ahead              # how many of the last rows are prefetched, and how many values ahead
    const Rule* rule


cdef inline Py_ssize_t group_of(const Tile* tile) noexcept nogil:
    return LANES // tile.lanes * tile.lanes


cdef inline Py_ssize_t first_inside(const Tile* tile) noexcept nogil:
    return max(tile.begin[tile.rank - 1], tile.axis[tile.rank - 1].begin)


cdef inline Py_ssize_t last_inside(const Tile* tile) noexcept nogil:
    return min(tile.end[tile.rank - 1], tile.axis[tile.rank - 1].end)


cdef void prepare(const Tile* tile, Disjoint* d) noexcept nogil:
    cdef int row = tile.rank - 2
    d.axis, d.lanes, d.rule, d.limit = &tile.axis[tile.rank - 1], tile.lanes, tile.rule, end_of(tile)
    d.begin, d.end, d.group = first_inside(tile), last_inside(tile), group_of(tile)
    d.taps, d.stride = <int> d.axis.kernel, <int> d.axis.stride
    d.fresh, d.ahead = 0, max(<Py_ssize_t> 1, tile.axis[row].stride * tile.x_stride[row] if row >= 0 else tile.x_item)
    if tile.far >= BEYOND:
        d.fresh = tile.axis[row].stride if row >= 0 else 1
        d.ahead *= max(<Py_ssize_t> 1, AHEAD // (d.ahead * <Py_ssize_t> sizeof(elem_t)))
    if PICKS and d.lanes > 1:
        picks_of_windows(d.picks, d.lanes, d.stride, d.taps)


cdef inline void load_places(group_t* v, const elem_t* x, Py_ssize_t group, const Rule* rule, int way) noexcept nogil:
    if way == SUMMED:
        v.a = v.b = vec_load_neighbours(x, rule)
        return
    if way == SPLIT:
        load_group(v, x, rule)
        return
    v.a, v.b = vec_load(x, rule), vec_load(x + group, rule)
    if group_t is not Woven:
        v.c = vec_load(x + 2 * group, rule)
    if group_t is Woven4:
        v.d = vec_load(x + 3 * group, rule)


cdef inline void load_lines(group_t* v, const elem_t* x, Py_ssize_t group, Py_ssize_t line, Py_ssize_t lines,
                            const Rule* rule, int way) noexcept nogil:
    cdef group_t later
    cdef Py_ssize_t i
    load_places(v, x, group, rule, way)
    for i in range(1, lines):
        load_places(&later, x + i * line, group, rule, way)
        join_group(v, &later)


cdef inline vec_t picked_tap(const group_t* v, const picks_t* picks) noexcept nogil:
    cdef vec_t tap = vec_pick(v.a, v.b, picks)
    if group_t is not Woven:
        tap = vec_replace(tap, v.c, picks + 1)
    if group_t is Woven4:
        tap = vec_replace(tap, v.d, picks + 2)
    return tap


cdef inline vec_t total_of(group_t* v, const picks_t* picks, Py_ssize_t taps, int way) noexcept nogil:
    """Join the taps of each window."""
    cdef vec_t total
    cdef Py_ssize_t t
    if way == SUMMED:
        return v.a
    if way == PICKED:
        total = picked_tap(v, picks)
        for t in range(1, taps):
            total = vec_merge(total, picked_tap(v, picks + t * EACH))
        return total
    split(v)
    total = v.a
    if taps > 1:
        total = vec_merge(total, v.b)
    if group_t is not Woven and taps > 2:
        total = vec_merge(total, v.c)
    if group_t is Woven4 and taps > 3:
        total = vec_merge(total, v.d)
    return total


cdef inline void pool_groups(group_t* unused, const Disjoint* d, const Planes* planes, const elem_t* x, elem_t* y,
                             Py_ssize_t rows, Py_ssize_t windows, Py_ssize_t taps, Py_ssize_t column, Py_ssize_t lines,
                             int way, int finish) noexcept nogil:
    """Pool windows whose taps are all inside, from the first one on. The last group of a row overlaps the group before
    it. A window has `taps` taps along the last axis, `column` along the row axis, and `lines` along the axis before
    that."""
    cdef picks_t[EACH * MOST_STRIDE] picks  # copies in registers, which stores cannot change
    cdef Rule rule = d.rule[0]
    cdef Py_ssize_t n = windows * d.lanes, group = d.group, tap = planes.tap, line = planes.line, i, j, k, _
    cdef Py_ssize_t old = column - min(column, d.fresh), old_lines = lines - planes.fresh, ahead = d.ahead
    cdef Py_ssize_t x_row = planes.x_row, y_row = planes.y_row
    cdef Divisor by = divisor_of(d.axis.kernel * planes.rows[planes.run].count * planes.count, &rule)
    cdef const elem_t* source
    cdef group_t v, later
    cdef vec_t total
    if way == PICKED:
        picks = (<Disjoint*> d).picks
    x += (d.begin * d.stride - d.axis.pad) * d.lanes
    y += d.begin * d.lanes
    for _ in range(rows):
        i = 0
        while i < n:
            i = min(i, n - group)
            source = x + i * phases_of(unused)
            for j in range(old, column):
                for k in range(old_lines, lines):
                    fetch(source + j * tap + k * line + ahead, phases_of(unused) * group * sizeof(elem_t))
            load_lines(&v, source, group, line, lines, &rule, way)
            for j in range(1, column):
                load_lines(&later, source + j * tap, group, line, lines, &rule, way)
                join_group(&v, &later)
            total = total_of(&v, picks, taps, way)
            if way != PICKED or n - i >= LANES:  # values after the group are overwritten later
                vec_finish_by(y + i, total, by.count, by.inverse, &rule, finish)
            elif DIVIDES and finish == DIVISION:
                vec_divide_part(y + i, group, total, by.count, &rule)
            else:
                vec_finish_part(y + i, group, total, by.count, by.inverse, &rule)
            i += group
        x += x_row
        y += y_row


cdef inline void pool_singly(const Disjoint* d, const Planes* planes, const elem_t* x, elem_t* y,
                             Py_ssize_t w) noexcept nogil:
    """Pool a window of a row whose place 0 is x. It may overhang an end."""
    cdef const RowRun* run = &planes.rows[planes.run]
    cdef const elem_t* source
    cdef Py_ssize_t t, j, i
    cdef vec_t total, place, value
    cdef Window window = wide_window_at(d.axis, w)  # a call, because its code is long
    cdef Divisor by
    for t in range(window.taps):
        for j in range(run.taps):
            source = x + (window.first + t) * d.lanes + j * planes.tap
            value = vec_load_few(source, d.lanes, d.rule)
            for i in range(1, planes.lines):
                value = vec_merge(value, vec_load_few(source + i * planes.line, d.lanes, d.rule))
            place = vec_merge(place, value) if j else value
        total = vec_merge(total, place) if t else place
    by = divisor_of(window.divisor * run.count * planes.count, d.rule)
    if DIVIDES and d.rule.careful:
        vec_divide_part(y + w * d.lanes, d.lanes, total, by.count, d.rule)
    else:
        vec_finish_few(y + w * d.lanes, d.lanes, total, by.count, by.inverse, d.rule)


cdef void pool_inside(group_t* unused, const Disjoint* d, const Planes* planes, const elem_t* x, elem_t* y,
                      Py_ssize_t rows, Py_ssize_t windows) noexcept nogil:
    """Pool windows that share no place. For 2x2 taps, tap counts are compile-time constants."""
    cdef const RowRun* run = &planes.rows[planes.run]
    cdef Py_ssize_t column = run.taps, lines = planes.lines
    # Padding that counts can make the divisor larger than the number of taps.
    cdef int64_t divisor = d.axis.kernel * <int64_t> (run.count * planes.count)
    cdef int finish = QUOTIENT
    cdef bint square
    if DIVIDES and d.rule.careful:
        finish = DIVISION
    elif DIVIDES and FREQUENT and divisor & (divisor - 1) == 0:
        finish = PRODUCT
    square = (FREQUENT or EXACT) and group_t is Woven and d.taps == column == 2 and lines == 1 and finish != DIVISION
    if PICKS and d.lanes > 1:
        if square:
            pool_groups(unused, d, planes, x, y, rows, windows, 2, 2, 1, PICKED, finish)
        else:
            pool_groups(unused, d, planes, x, y, rows, windows, d.taps, column, lines, PICKED, finish)
    elif EXACT and square:
        pool_groups(unused, d, planes, x, y, rows, windows, 2, 2, 1, SUMMED, QUOTIENT)
    elif not EXACT and square and (finish == PRODUCT or not DIVIDES):
        pool_groups(unused, d, planes, x, y, rows, windows, 2, 2, 1, SPLIT, PRODUCT)
    elif group_t is not Triple:
        pool_groups(unused, d, planes, x, y, rows, windows, d.taps, column, lines, SPLIT, finish)


cdef void pool_rows(const Disjoint* d, const Planes* planes, const Tile* tile) noexcept nogil:
    """Pool a run of rows. If a row's last group would read past the elements, its windows are pooled one by one."""
    cdef const RowRun* run = &planes.rows[planes.run]
    cdef const elem_t* x = planes.x + run.x
    cdef elem_t* y = planes.y + run.y
    cdef Py_ssize_t all_windows = d.end - d.begin, windows, rows = run.n, many = rows, last = tile.rank - 1, w, _
    # How far rows read from place 0 on, up to the end of their last group.
    cdef Py_ssize_t reach = ((run.taps - 1) * planes.tap + (planes.lines - 1) * planes.line
                             + (d.end * d.stride - d.axis.pad) * d.lanes - d.group + LANES)
    if all_windows * d.lanes < d.group:
        all_windows = 0
    windows = all_windows
    while windows and many and (d.limit == NULL or x + (many - 1) * planes.x_row + reach > d.limit):
        many -= 1
    while rows:
        if not many:
            many, windows = 1, windows - d.group // d.lanes
            if windows * d.lanes < d.group:
                windows = 0
        if windows and d.stride == 2:
            pool_inside(<Woven*> NULL, d, planes, x, y, many, windows)
        elif windows and d.stride == 3:
            pool_inside(<Triple*> NULL, d, planes, x, y, many, windows)
        elif windows:
            pool_inside(<Woven4*> NULL, d, planes, x, y, many, windows)
        for _ in range(many):
            w = tile.begin[last]
            while True:
                if w == d.begin:
                    w += windows
                if w == tile.end[last]:
                    break
                pool_singly(d, planes, x, y, w)
                w += 1
            x += planes.x_row
            y += planes.y_row
        rows, many, windows = rows - many, 0, all_windows


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef Planes planes
    cdef Disjoint d
    prepare(tile, &d)
    start_planes(&planes, tile)
    while next_run(&planes):
        pool_rows(&d, &planes, tile)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    return 0
