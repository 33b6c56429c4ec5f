"""slide: windows of 3 or 2 taps along each of two or three axes, which slide along rows of adjacent lanes.

A column holds the elements at one place of the last axis, reduced along the other axes. Neighbouring windows share
columns, whose totals are kept, so that elements are read once for each row of windows. Where the L1 cache holds the
rows that a window reads, each block of lanes slides along all windows before the next block starts. Its totals stay in
registers, which is 1.1x to 2x faster. Elsewhere, totals are kept in scratch memory, and elements are read in memory
order.

3x3 and 2x2 windows are 1.1x to 2.5x faster than with `passes`. Column counts are compile-time constants: with
variables, 3x3 means take 1.7 times as long (Zen 3). If lanes fill less than two registers, as 24 channels do with
AVX-512, this is 1.8x to 2.2x faster than other loops (Zen 5).
"""
from ..core.cursor cimport Row, advance, find_row
from ..core.element cimport (
    DIVIDES,
    LANES,
    Divisor,
    Woven,
    Woven4,
    acc_t,
    block_t,
    divide,
    divisor_of,
    elem_t,
    fill,
    finish,
    fold,
    join,
    load,
    read,
    vec_none,
    vec_t,
    vec_write,
    width,
    write,
)
from ..core.empty cimport finish_without_taps
from ..core.fetches cimport DISTANT, Fetches, distance_ahead, fetch_part, start_fetches
from ..core.job cimport MOST_AXES, Axis, Rule, Run, Tile, round_up, run_at, tap_distance

cdef enum:
    MOST_COLUMN = 3  # maximum taps of a column along an axis, and columns of a window
    NEAR = 32 << 10  # bytes of rows that the L1 cache holds
    FEW_LANES = 6 * LANES  # most lanes of windows that share no column, for which one block after the other is faster

ctypedef acc_t* kept_t

cdef struct Slide:
    const Axis* axis                       # the last one
    Py_ssize_t begin, end                  # windows along the last axis
    int kept, fresh                        # how many columns a window shares with the one before it, and how many not
    int known, low, high, passed           # at a border: kept columns, range of fresh columns inside, columns not kept
    int first, second                      # the axes along which a column has taps; the second one may be -1
    int taps, lines                        # number of taps of a column along `first` and `second`
    Py_ssize_t tap, line                   # from tap to tap along these axes
    int rows                               # how many of a column's last taps no other row of windows has read
    Py_ssize_t stride, y_step, lanes       # from column to column, and from result to result
    const Rule* rule
    kept_t[MOST_COLUMN - 1] column         # totals of columns that are kept
    bint near                              # whether the L1 cache holds what a row of windows reads
    Fetches fetches
    Py_ssize_t[2 * MOST_COLUMN * MOST_COLUMN] fetched


cdef void prepare(const Tile* tile, Slide* s) noexcept nogil:
    cdef int last = tile.rank - 1, i
    cdef const Axis* first
    s.axis, s.begin, s.end = &tile.axis[last], tile.begin[last], tile.end[last]
    s.fresh, s.kept = s.axis.stride, s.axis.kernel - s.axis.stride
    s.first = s.second = -1
    for i in range(last):
        if tile.axis[i].kernel > 1:
            s.first, s.second = i if s.first < 0 else s.first, i if s.first >= 0 else -1
    first = &tile.axis[s.first]
    s.tap, s.stride, s.y_step = tap_distance(first, tile.x_stride[s.first]), tile.x_stride[last], tile.y_stride[last]
    s.line = 0 if s.second < 0 else tap_distance(&tile.axis[s.second], tile.x_stride[s.second])
    s.lanes, s.rule, s.rows = tile.lanes, tile.rule, 0
    if s.kept < 2 and tile.far >= DISTANT and (s.kept or s.lanes > FEW_LANES):
        s.rows = first.stride
    s.near = not s.rows and s.axis.size * s.stride * <Py_ssize_t> sizeof(elem_t) <= NEAR // max(
        1, first.kernel * (1 if s.second < 0 else tile.axis[s.second].kernel))
    for i in range(s.kept):
        s.column[i] = <acc_t*> tile.scratch + i * round_up(tile.lanes, 2 * LANES)
    s.fetches.n, s.fetches.offset, s.fetches.lanes = 0, s.fetched, tile.lanes
    s.fetches.ahead = distance_ahead(s.fresh * s.stride)


cdef inline void reduce_line(block_t* total, const Slide* s, const elem_t* x, Py_ssize_t lanes) noexcept nogil:
    load(total, x, lanes, s.rule)
    if s.taps > 1:
        fold(total, x + s.tap, lanes, s.rule)
    if s.taps > 2:
        fold(total, x + 2 * s.tap, lanes, s.rule)


cdef inline void reduce_column(block_t* total, const Slide* s, const elem_t* x, bint deep) noexcept nogil:
    cdef block_t line
    reduce_line(total, s, x, s.lanes)
    if deep and s.lines > 1:
        reduce_line(&line, s, x + s.line, s.lanes)
        join(total, &line)
    if deep and s.lines > 2:
        reduce_line(&line, s, x + 2 * s.line, s.lanes)
        join(total, &line)


cdef inline Py_ssize_t past(const block_t* unused, Py_ssize_t lanes) noexcept nogil:
    """
    The lane from which on blocks of this size lack too many lanes. The last one or two registers may overlap earlier
    registers, and the last register may be partial. Blocks of four may not overlap, because columns need the same lanes
    in each loop.
    """
    cdef Py_ssize_t block = width(unused)
    return lanes + LANES - block if block <= min(lanes, <Py_ssize_t> 2 * LANES) or block == LANES else lanes + 1 - block


cdef inline Py_ssize_t slide_lanes(block_t* unused, Py_ssize_t lane, Py_ssize_t* at, Slide* s, const elem_t* x,
                                   elem_t* y, const Divisor* by, int kept, int fresh, bint deep) noexcept nogil:
    """Pool those lanes of a window that fill blocks; see `past`. Compile-time constants: `kept` and `fresh`, which are
    0 at a border; and `deep`, whether columns may have several lines."""
    cdef block_t total, column
    cdef Py_ssize_t block = width(unused), end = past(unused, s.lanes)
    cdef int i, known = kept if fresh else s.known, low = 0 if fresh else s.low, high = fresh if fresh else s.high
    cdef int passed = (fresh - kept if fresh > kept else 0) if fresh else s.passed
    while lane < end:
        lane = max(0, min(lane, s.lanes - block))
        if fresh and kept < 2:  # `prepare` says which windows are prefetched
            fetch_part(&s.fetches, x, block)
        if kept:
            read(&total, s.column[0] + at[0])
        elif fresh:
            reduce_column(&total, s, x + lane, deep)
        else:
            fill(&total, vec_none())
        for i in range(1 if kept else 0, known):
            read(&column, s.column[i] + at[0])
            join(&total, &column)
        for i in range(1 if fresh and not kept else low, high):
            reduce_column(&column, s, x + lane + i * s.stride, deep)
            join(&total, &column)
            if i >= passed:
                write(s.column[i - passed] + at[0], &column)
        if block_t is vec_t and DIVIDES and s.rule.careful:
            divide(y + lane, s.lanes, &total, by.count, s.rule)
        else:
            finish(y + lane, s.lanes, &total, by, s.rule)
        lane += block
        at[0] += block
    return lane


cdef inline void rotate(Slide* s) noexcept nogil:
    """Restore the order of kept columns, after fresh columns have replaced the first ones."""
    cdef kept_t first = s.column[0]
    if s.kept == 2:
        s.column[0], s.column[1] = s.column[1], first


cdef inline void slide_windows(Slide* shared, Py_ssize_t n, const elem_t* x, elem_t* y, const Divisor* by, int kept,
                               int fresh, bint deep) noexcept nogil:
    cdef Slide s = shared[0]  # copies in registers, which stores cannot change
    cdef Rule rule = shared.rule[0]
    cdef Py_ssize_t _, lane, at
    s.rule = &rule
    for _ in range(n):
        at = lane = 0
        start_fetches(&s.fetches)
        if not (DIVIDES and s.rule.careful):
            # For volumes, larger blocks are hardly faster. Nor are smaller ones for windows that share no column.
            if not (kept and deep):
                lane = slide_lanes(<Woven4*> NULL, 0, &at, &s, x, y, by, kept, fresh, deep)
            if kept:
                lane = slide_lanes(<Woven*> NULL, lane, &at, &s, x, y, by, kept, fresh, deep)
        slide_lanes(<vec_t*> NULL, lane, &at, &s, x, y, by, kept, fresh, deep)
        rotate(&s)
        x += fresh * s.stride
        y += s.y_step
    shared.column = s.column


cdef inline Py_ssize_t slide_along(block_t* unused, Py_ssize_t lane, Py_ssize_t* at, const Slide* s, Py_ssize_t n,
                                   const elem_t* x, elem_t* y, const Divisor* by, int kept, int fresh,
                                   bint deep) noexcept nogil:
    """Pool a run of windows like `slide_lanes`, but with kept columns in registers."""
    cdef block_t total, first, second
    cdef Py_ssize_t block = width(unused), end = past(unused, s.lanes), w
    while lane < end:
        lane = min(lane, s.lanes - block)
        if kept:
            read(&second, s.column[kept - 1] + at[0])
        if kept == 2:
            read(&first, s.column[0] + at[0])
        for w in range(n):
            if kept == 2:
                total = first
                first = second
                join(&total, &second)
            elif kept:
                total = second
            else:
                reduce_column(&total, s, x + lane + w * fresh * s.stride, deep)
            if kept == 1:
                reduce_column(&second, s, x + lane + w * fresh * s.stride, deep)
                join(&total, &second)
            reduce_column(&second, s, x + lane + (w * fresh + fresh - 1) * s.stride, deep)
            join(&total, &second)
            finish(y + lane + w * s.y_step, LANES, &total, by, s.rule)
        if kept:
            write(s.column[kept - 1] + at[0], &second)
        if kept == 2:
            write(s.column[0] + at[0], &first)
        lane += block
        at[0] += block
    return lane


cdef inline void slide_near(Slide* shared, Py_ssize_t n, const elem_t* x, elem_t* y, const Divisor* by, int kept,
                            int fresh, bint deep) noexcept nogil:
    """Pool a run of windows whose rows the L1 cache holds, block by block of lanes."""
    cdef Slide s = shared[0]
    cdef Rule rule = shared.rule[0]
    cdef Py_ssize_t at = 0, lane
    s.rule = &rule
    lane = slide_along(<Woven4*> NULL, 0, &at, &s, n, x, y, by, kept, fresh, deep)
    lane = slide_along(<Woven*> NULL, lane, &at, &s, n, x, y, by, kept, fresh, deep)
    slide_along(<vec_t*> NULL, lane, &at, &s, n, x, y, by, kept, fresh, deep)


cdef inline void slide_run(Slide* s, Py_ssize_t n, const elem_t* x, elem_t* y, const Divisor* by,
                           bint deep) noexcept nogil:
    """Pool a run of windows that share columns."""
    cdef bint near = s.near and not deep and s.lanes >= LANES and not (DIVIDES and s.rule.careful)
    if s.kept == 2:
        if near:
            slide_near(s, n, x, y, by, 2, 1, False)
        else:
            slide_windows(s, n, x, y, by, 2, 1, deep)
    elif near:
        slide_near(s, n, x, y, by, 1, 2, False)
    else:
        slide_windows(s, n, x, y, by, 1, 2, deep)


cdef inline void slide_apart(Slide* s, Py_ssize_t n, const elem_t* x, elem_t* y, const Divisor* by) noexcept nogil:
    """Pool a run of windows that share no column. For these, a variable number of lines costs nothing."""
    if s.near and LANES <= s.lanes <= FEW_LANES and not (DIVIDES and s.rule.careful):
        slide_near(s, n, x, y, by, 0, 2, True)
    else:
        slide_windows(s, n, x, y, by, 0, 2, True)


cdef inline void slide_border(Slide* s, Py_ssize_t place, bint first, const elem_t* x, elem_t* y,
                              const Divisor* by) noexcept nogil:
    """Pool the first window of a row, or one with fresh columns in the padding."""
    cdef Py_ssize_t at = 0, values, size = s.axis.size, lane = 0
    cdef int i, columns = s.kept + s.fresh if first else s.fresh
    s.known = 0 if first else s.kept
    s.passed = s.fresh if first else max(0, s.fresh - s.kept)
    place += s.known
    s.low, s.high = max(0, min(<Py_ssize_t> columns, -place)), max(0, min(<Py_ssize_t> columns, size - place))
    if not (DIVIDES and s.rule.careful):
        lane = slide_lanes(<Woven*> NULL, 0, &at, s, x + place * s.stride, y, by, 0, 0, True)
    slide_lanes(<vec_t*> NULL, lane, &at, s, x + place * s.stride, y, by, 0, 0, True)
    for i in range(s.passed, columns):
        values = 0 if s.low <= i < s.high else at
        while values:
            values -= LANES
            vec_write(s.column[i - s.passed] + values, vec_none())
    if not first:
        rotate(s)


cdef void slide_row(Slide* s, const elem_t* x, elem_t* y, double outer_count) noexcept nogil:
    """Pool a row of windows. `taps` and `lines` of each column are inside the array."""
    cdef Py_ssize_t at = s.begin, place
    cdef int i, t, k
    cdef bint first
    cdef Divisor by
    cdef Run run
    s.fetches.n = 0
    for i in range(s.fresh if s.rows else 0):
        for k in range(s.lines):
            for t in range(max(0, s.taps - s.rows), s.taps):
                s.fetched[s.fetches.n] = t * s.tap + k * s.line + i * s.stride
                s.fetches.n += 1
    while at < s.end:
        run = run_at(s.axis, at, s.end)
        if DIVIDES:
            by = divisor_of(run.window.divisor * outer_count, s.rule)
        place = at * s.axis.stride - s.axis.pad
        first = at == s.begin
        if first and (s.kept or place < 0) or place + s.axis.kernel > s.axis.size:
            slide_border(s, place, first, x, y + at * s.y_step, &by)
            run.n = 1
        elif not s.kept:
            slide_apart(s, run.n, x + place * s.stride, y + at * s.y_step, &by)
        elif s.lines == 1:
            slide_run(s, run.n, x + (place + s.kept) * s.stride, y + at * s.y_step, &by, False)
        else:
            slide_run(s, run.n, x + (place + s.kept) * s.stride, y + at * s.y_step, &by, True)
        at += run.n


cdef void pool_item(const Tile* tile, Slide* s, const elem_t* x, elem_t* y) noexcept nogil:
    """Pool all windows of an item, row by row along the last axis."""
    cdef int last = tile.rank - 1, a
    cdef Py_ssize_t[MOST_AXES] at
    cdef Row row
    for a in range(last):
        at[a] = tile.begin[a]
    while True:
        find_row(tile, at, &row)
        if row.empty:
            finish_without_taps(y + row.y + tile.begin[last] * s.y_step, tile.end[last] - tile.begin[last], s.y_step,
                                tile.lanes, row.count, tile.rule)
        else:
            s.taps, s.lines = <int> row.window[s.first].taps, 1 if s.second < 0 else <int> row.window[s.second].taps
            slide_row(s, x + row.x, y + row.y, row.count)
        if advance(at, tile.begin, tile.end, last) < 0:
            return


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef Slide s
    cdef Py_ssize_t item
    prepare(tile, &s)
    for item in range(tile.items):
        pool_item(tile, &s, <const elem_t*> tile.x + item * tile.x_item, <elem_t*> tile.y + item * tile.y_item)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    """Bytes of scratch memory: the columns that windows share."""
    return (MOST_COLUMN - 1) * round_up(tile.lanes, 2 * LANES) * sizeof(acc_t)
