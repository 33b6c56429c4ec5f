"""Short rows: windows along rows of places that fit into at most MOST_REGISTERS registers, on AVX-512.

A row of places, with its padding, stays in registers while taps along the axes before the last one are reduced. Then
each tap along the last axis is picked for all windows at once, from two registers. Nothing goes through scratch memory.
Against blocks of rows there, planes of 14x14 to 35x35 take 0.5 to 0.7 of the time (Zen 5).
"""
from .element cimport (
    DIVIDES,
    LANES,
    PICKS,
    acc_inverse,
    acc_of,
    acc_t,
    elem_t,
    picks_of,
    picks_t,
    vec_divide_part,
    vec_finish,
    vec_finish_part,
    vec_load_within,
    vec_merge,
    vec_pick,
    vec_read,
    vec_t,
    within_of,
    within_t,
)
from .job cimport FEW, Axis, Rule, Run, Tile, Window, ceil_div, fetch, run_at, window_at

cdef enum:
    AHEAD = 4096  # prefetch distance in bytes
    MOST_REGISTERS = 3
    MOST_LANES = 32
    MOST_RUNS = 2 * FEW  # of rows: a window that overhangs an end is a run of its own

cdef struct RowRun:
    # Neighbouring rows of windows whose columns have the same taps.
    Py_ssize_t n, x, y, taps             # number of rows, position of the first one, taps along the row axis
    double count
    vec_t[MOST_REGISTERS] counts, inverses  # divisors of each window

cdef struct Places:
    within_t[MOST_REGISTERS] within      # the places of a row that are inside the array
    picks_t[FEW] picks                   # the place of each tap along the last axis
    double[MOST_REGISTERS * MOST_LANES] along  # divisors of windows along it

cdef struct Short:
    const Places* places
    int registers, results               # registers of a row of places, and of its results
    int taps                             # number of taps along the last axis
    bint careful                         # whether quotients must be computed by division
    Py_ssize_t windows                   # number of windows of a row
    Py_ssize_t begin                     # the first place of a row
    Py_ssize_t tap, line, lines          # from tap to tap along the row axis, along the one before it; taps along that
    Py_ssize_t x_row, y_row              # from row to row
    Py_ssize_t fresh                     # number of last lines that are prefetched,
    Py_ssize_t ahead, fetched            # how many values ahead, and how many bytes for each row
    const Rule* rule


cdef inline Py_ssize_t span_of(const Axis* axis) noexcept nogil:
    return (axis.kernel - 1) * axis.dilation + 1


cdef inline bint is_covered(const Axis* axis) noexcept nogil:
    """Whether every window has a tap inside."""
    return (not axis.wide and axis.kernel <= FEW and axis.dilation <= axis.size and axis.pad < span_of(axis)
            and (axis.out - 1) * axis.stride - axis.pad < axis.size)


cdef inline Py_ssize_t borders(const Axis* axis) noexcept nogil:
    """The number of windows that overhang an end."""
    return axis.out - max(0, axis.end - axis.begin)


cdef inline bint can_pick(const Tile* tile) noexcept nogil:
    """Whether there is a loop for these rows."""
    cdef int last = tile.rank - 1, a
    cdef const Axis* axis = &tile.axis[last]
    cdef Py_ssize_t places
    if not PICKS or tile.all_lanes != 1 or tile.rank > 3 or tile.x_stride[last] != 1 or tile.y_stride[last] != 1:
        return False
    for a in range(tile.rank):
        if not is_covered(&tile.axis[a]):
            return False
    if tile.rank > 1 and borders(&tile.axis[last - 1]) >= MOST_RUNS:
        return False
    places = (axis.out - 1) * axis.stride + span_of(axis)
    if axis.stride > 1:
        return places <= 2 * LANES
    return places <= MOST_REGISTERS * LANES and span_of(axis) <= LANES


cdef inline void count_along(const Tile* tile, Places* s, Py_ssize_t windows) noexcept nogil:
    """The divisors of windows along the last axis, and 1 where there is none."""
    cdef int last = tile.rank - 1
    cdef Py_ssize_t w = 0, i
    cdef Run run
    while w < windows:
        run = run_at(&tile.axis[last], tile.begin[last] + w, tile.end[last])
        for i in range(w, w + run.n):
            s.along[i] = run.window.count
        w += run.n
    for i in range(w, MOST_REGISTERS * LANES):
        s.along[i] = 1


cdef inline void set_divisors(const Short* s, RowRun* run, double outer_count) noexcept nogil:
    cdef acc_t[LANES] counts, inverses
    cdef double count
    cdef Py_ssize_t i
    cdef int k
    for k in range(s.results):
        for i in range(LANES):
            count = s.places.along[k * LANES + i] * run.count * outer_count
            counts[i], inverses[i] = acc_of(count), acc_inverse(count)
        run.counts[k], run.inverses[k] = vec_read(counts), vec_read(inverses)


cdef inline int list_runs(const Tile* tile, Short* s, RowRun* rows) noexcept nogil:
    """List the runs of rows along the axis before the last one. Rows of a single axis belong to one item each."""
    cdef int a = tile.rank - 2, n = 0
    cdef const Axis* axis = &tile.axis[tile.rank - 1]
    cdef Py_ssize_t w
    cdef Run run
    if a < 0:
        rows.n, rows.x, rows.y, rows.taps, rows.count = tile.items, 0, 0, 1, 1
        s.x_row, s.y_row, s.tap = tile.x_item, tile.y_item, 0
        return 1
    s.tap, s.x_row = tile.axis[a].dilation * tile.x_stride[a], tile.axis[a].stride * tile.x_stride[a]
    s.y_row = tile.y_stride[a]
    if 0 < tile.x_stride[a] < 2 * axis.size:  # without large gaps between rows, all elements of a plane are read
        s.fetched = ceil_div(tile.axis[a].size, tile.axis[a].out) * tile.x_stride[a] * <Py_ssize_t> sizeof(elem_t)
    w = tile.begin[a]
    while w < tile.end[a]:
        run = run_at(&tile.axis[a], w, tile.end[a])
        rows[n].n, rows[n].taps, rows[n].count = run.n, run.window.taps, run.window.count
        rows[n].x, rows[n].y = run.window.first * tile.x_stride[a], w * s.y_row
        n += 1
        w += run.n
    return n


cdef inline void prepare_short(const Tile* tile, Short* s, Places* of) noexcept nogil:
    cdef int last = tile.rank - 1, k
    cdef const Axis* axis = &tile.axis[last]
    cdef Py_ssize_t begin = tile.begin[last] * axis.stride - axis.pad, places, t
    s.windows, s.rule = tile.end[last] - tile.begin[last], tile.rule
    s.places, s.careful = of, tile.rule.careful
    places = (s.windows - 1) * axis.stride + span_of(axis)
    s.registers, s.results = ceil_div(places, LANES), ceil_div(s.windows, LANES)
    s.begin = begin
    for k in range(s.registers):
        of.within[k] = within_of(-begin - k * LANES, axis.size - begin - k * LANES)
    s.taps = axis.kernel
    for t in range(s.taps):
        of.picks[t] = picks_of(t * axis.dilation, axis.stride, t * axis.dilation + (s.windows - 1) * axis.stride)
    s.lines, s.line = 1, 0
    s.fresh = 1 if tile.far else 0
    s.ahead, s.fetched = AHEAD // <Py_ssize_t> sizeof(elem_t), places * sizeof(elem_t)
    if DIVIDES:
        count_along(tile, of, s.windows)


cdef inline void load_place(vec_t* v, const Short* s, const within_t* within, const elem_t* x, int registers,
                            bint deep) noexcept nogil:
    """Load the row at a place of the row axis, with all lines of that place reduced to one."""
    cdef Py_ssize_t i
    cdef int k
    for k in range(registers):
        v[k] = vec_load_within(x + k * LANES, within[k], s.rule)
    if deep:
        for i in range(1, s.lines):
            for k in range(registers):
                v[k] = vec_merge(v[k], vec_load_within(x + i * s.line + k * LANES, within[k], s.rule))


cdef inline void pool_run(const Short* shared, const RowRun* run, const elem_t* x, elem_t* y, int registers,
                          bint deep) noexcept nogil:
    """Pool a run of rows. Constants: the number of registers, and whether there are several lines."""
    cdef Short s = shared[0]  # copies in registers, which stores cannot change
    cdef Rule rule = shared.rule[0]
    cdef Py_ssize_t taps = run.taps, _, j, n
    cdef within_t[MOST_REGISTERS] within
    cdef vec_t[MOST_REGISTERS] v, later
    cdef vec_t total, second
    cdef int k, t
    s.rule = &rule
    for k in range(registers):
        within[k] = shared.places.within[k]
    x += run.x
    y += run.y
    for _ in range(run.n):
        for j in range(s.lines - s.fresh, s.lines):
            fetch(x + j * s.line + s.ahead, s.fetched)
        load_place(v, &s, within, x, registers, deep)
        for j in range(1, taps):
            load_place(later, &s, within, x + j * s.tap, registers, deep)
            for k in range(registers):
                v[k] = vec_merge(v[k], later[k])
        for k in range(registers):
            n = s.windows - k * LANES
            if n > 0:
                second = v[min(k + 1, registers - 1)]
                total = vec_pick(v[k], second, s.places.picks[0])
                for t in range(1, s.taps):
                    total = vec_merge(total, vec_pick(v[k], second, s.places.picks[t]))
                if DIVIDES and s.careful:
                    vec_divide_part(y + k * LANES, min(n, <Py_ssize_t> LANES), total, run.counts[k], s.rule)
                elif n >= LANES:
                    vec_finish(y + k * LANES, total, run.counts[k], run.inverses[k], s.rule)
                else:
                    vec_finish_part(y + k * LANES, n, total, run.counts[k], run.inverses[k], s.rule)
        x += s.x_row
        y += s.y_row


cdef inline void pool_rows(const Short* s, const RowRun* run, const elem_t* x, elem_t* y, bint deep) noexcept nogil:
    if s.registers == 1:
        pool_run(s, run, x, y, 1, deep)
    elif s.registers == 2:
        pool_run(s, run, x, y, 2, deep)
    else:
        pool_run(s, run, x, y, 3, deep)


cdef inline void pool_short(const Tile* tile) noexcept nogil:
    """Pool all rows of a tile."""
    cdef const elem_t* x = <const elem_t*> tile.x
    cdef elem_t* y = <elem_t*> tile.y
    cdef double known = -1
    cdef Py_ssize_t item, w
    cdef Window window
    cdef RowRun[MOST_RUNS] rows
    cdef Places of
    cdef Short s
    cdef int r, runs
    prepare_short(tile, &s, &of)
    runs = list_runs(tile, &s, rows)
    window.first, window.taps, window.count = 0, 1, 1
    for item in range(1 if tile.rank == 1 else tile.items):
        for w in range(tile.begin[0] if tile.rank == 3 else 0, tile.end[0] if tile.rank == 3 else 1):
            if tile.rank == 3:
                window = window_at(&tile.axis[0], w)
                s.lines, s.line = window.taps, tile.axis[0].dilation * tile.x_stride[0]
                s.fresh = min(window.taps, tile.axis[0].stride) if tile.far else 0
                x = <const elem_t*> tile.x + item * tile.x_item + window.first * tile.x_stride[0]
                y = <elem_t*> tile.y + item * tile.y_item + w * tile.y_stride[0]
            for r in range(runs):
                if DIVIDES and known != window.count:
                    set_divisors(&s, &rows[r], window.count)
                if s.lines > 1:
                    pool_rows(&s, &rows[r], x + s.begin, y + tile.begin[tile.rank - 1], True)
                else:
                    pool_rows(&s, &rows[r], x + s.begin, y + tile.begin[tile.rank - 1], False)
            known = window.count
        if tile.rank < 3:
            x += tile.x_item
            y += tile.y_item
