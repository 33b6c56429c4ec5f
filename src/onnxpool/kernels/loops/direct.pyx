"""direct: every window reads all of its taps, a block of adjacent lanes at a time. Totals stay in registers.

Taps of the first axis are reduced first, then taps of the next axis. If the order matters, more than FEW taps of an
axis are reduced as a binary tree: pairs, then pairs of pairs. The tree is aligned at the first tap of the window, even
if that tap lies in the padding.
"""
from ..core.cursor cimport Row, advance, find_row
from ..core.element cimport (
    DIVIDES,
    FREQUENT,
    Divisor,
    LANES,
    ORDERED,
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
    width,
    write,
)
from ..core.empty cimport finish_without_taps
from ..core.fetches cimport DISTANT, Fetches, distance_ahead, fetch_part, start_fetches
from ..core.job cimport FEW, MOST_AXES, Axis, Rule, Run, Tile, fetch, run_at, tap_distance

cdef enum:
    LEVELS = 64  # maximum levels of a tree: the bits of a tap's number, counted with the padding
    MOST_TAPS = FEW * FEW * FEW
    # Maximum bytes of a window after which the next one is prefetched. For windows four times as large, prefetches add
    # up to 40 % of the time (Zen 5).
    MOST_FETCHED = 1 << 17
    # Fewer than FEW_LANES lanes are pooled block by block, for as many windows as read NEAR bytes. This is 1.1x to 1.7x
    # faster (Zen 3).
    FEW_LANES = 4 * LANES
    NEAR = 1 << 13
    # Windows that are pooled by columns: minimum values of a column, maximum lanes, and minimum bytes of windows that
    # share places. This is 1.1x to 6x faster (Zen 3).
    LEAST_COLUMN = 48 * LANES
    MOST_LANES = 384 * LANES
    LARGE = 24 << 10

cdef struct Taps:
    # The taps of a window along its axes, which are reduced from the first on. There are at least three axes. Extra
    # axes have one tap.
    int axes, last            # number of axes, and which one is the last axis of the tile: the first, or the third
    Py_ssize_t most           # maximum taps along the last axis
    Py_ssize_t[MOST_AXES] n, stride, skipped
    bint[MOST_AXES] tree
    bint many                 # whether there is a tree, or more axes or taps than the loops for few taps support
    char* stacks
    Py_ssize_t[3] listed      # tap counts of the axes whose distances `offset` lists, in the order of sums
    Py_ssize_t[MOST_TAPS] offset

cdef struct Windows:
    # Neighbouring windows that read the same taps.
    Py_ssize_t n, x_step, y_step, lanes
    Py_ssize_t each, columns, lines  # taps of a column, columns of a line, and lines
    const Py_ssize_t* offset
    Py_ssize_t all                 # number of taps
    acc_t* totals                  # the sums of the lines and of the columns so far, if windows are pooled by columns
    Fetches fetches
    const Rule* rule


cdef inline void plant(block_t* stack, Py_ssize_t place, block_t* value) noexcept nogil:
    """Add the value of a place to a tree. The stack holds a finished part for each bit that is set in the place."""
    cdef int level = 0
    cdef block_t earlier
    while place >> level & 1:
        earlier = stack[level]
        join(&earlier, value)
        value[0] = earlier
        level += 1
    stack[level] = value[0]


cdef inline void skip(block_t* stack, Py_ssize_t places) noexcept nogil:
    """Plant identities in the first places of a tree."""
    cdef int level = 0
    while places >> level:
        if places >> level & 1:
            fill(&stack[level], vec_none())
        level += 1


cdef inline void harvest(block_t* total, const block_t* stack, Py_ssize_t places, bint grown) noexcept nogil:
    """Join the finished parts of a tree, the last one first. If `grown`, `total` already holds later values."""
    cdef int level = 0
    cdef block_t earlier
    while places >> level:
        if places >> level & 1:
            earlier = stack[level]
            if grown:
                join(&earlier, total)
            total[0], grown = earlier, True
        level += 1


cdef inline void reduce_column(block_t* total, const Windows* w, const Py_ssize_t* offset, Py_ssize_t taps,
                               const elem_t* x, Py_ssize_t n) noexcept nogil:
    """Reduce taps in sequence."""
    cdef Py_ssize_t i
    load(total, x + offset[0], n, w.rule)
    for i in range(1, taps):
        fold(total, x + offset[i], n, w.rule)


cdef inline void reduce_line(block_t* total, const Windows* w, const Py_ssize_t* offset, Py_ssize_t columns,
                             const elem_t* x, Py_ssize_t n) noexcept nogil:
    """Reduce columns in sequence."""
    cdef block_t column
    cdef Py_ssize_t k
    reduce_column(total, w, offset, w.each, x, n)
    for k in range(1, columns):
        reduce_column(&column, w, offset + k * w.each, w.each, x, n)
        join(total, &column)


cdef inline void reduce_few(block_t* total, const Windows* w, const elem_t* x, Py_ssize_t n) noexcept nogil:
    """Reduce the taps of a window, in sequence along each axis."""
    cdef block_t line
    cdef Py_ssize_t k
    if not ORDERED:
        reduce_column(total, w, w.offset, w.all, x, n)
        return
    reduce_line(total, w, w.offset, w.columns, x, n)
    for k in range(1, w.lines):
        reduce_line(&line, w, w.offset + k * w.columns * w.each, w.columns, x, n)
        join(total, &line)


cdef inline void reduce_pair(block_t* total, const elem_t* x, Py_ssize_t stride, Py_ssize_t n,
                             const Rule* rule) noexcept nogil:
    load(total, x, n, rule)
    fold(total, x + stride, n, rule)


cdef inline void reduce_four(block_t* total, const elem_t* x, Py_ssize_t stride, Py_ssize_t n,
                             const Rule* rule) noexcept nogil:
    cdef block_t pair
    reduce_pair(total, x, stride, n, rule)
    reduce_pair(&pair, x + 2 * stride, stride, n, rule)
    join(total, &pair)


cdef inline void reduce_last(block_t* total, const elem_t* x, Py_ssize_t taps, Py_ssize_t stride, Py_ssize_t n,
                             const Rule* rule) noexcept nogil:
    """Reduce 1 to 7 last taps of a tree: four, then two, then one. Later parts are joined first."""
    cdef block_t part
    if taps & 1:
        load(total, x + (taps - 1) * stride, n, rule)
    if taps & 2:
        reduce_pair(&part, x + (taps & 4) * stride, stride, n, rule)
        if taps & 1:
            join(&part, total)
        total[0] = part
    if taps & 4:
        reduce_four(&part, x, stride, n, rule)
        if taps & 3:
            join(&part, total)
        total[0] = part


cdef inline void reduce_first(block_t* total, const Taps* t, const elem_t* x, Py_ssize_t n,
                              const Rule* rule) noexcept nogil:
    """Reduce the taps of the first axis."""
    cdef block_t* stack = <block_t*> t.stacks
    cdef Py_ssize_t i = 0, place = t.skipped[0], stride = t.stride[0], taps = t.n[0]
    cdef block_t eight, four
    if not (ORDERED and t.tree[0]):
        load(total, x, n, rule)
        for i in range(1, taps):
            fold(total, x + i * stride, n, rule)
        return
    skip(stack, place)
    # The last taps of means are reduced in registers: 1.1x to 1.7x faster for 9 to 31 taps (Zen 3).
    while i < taps and not (FREQUENT and (place + i) % 8 == 0 and taps - i < 8):
        if (place + i) % 8 or taps - i < 8:
            load(&eight, x + i * stride, n, rule)
            plant(stack, place + i, &eight)
            i += 1
        else:
            reduce_four(&eight, x + i * stride, stride, n, rule)
            reduce_four(&four, x + (i + 4) * stride, stride, n, rule)
            join(&eight, &four)
            plant(stack + 3, (place + i) // 8, &eight)
            i += 8
    if FREQUENT and i < taps:
        reduce_last(total, x + i * stride, taps - i, stride, n, rule)
        harvest(total, stack + 3, (place + i) // 8, True)
    else:
        harvest(total, stack, place + i, False)


cdef inline void add(block_t* total, const Taps* t, int axis, Py_ssize_t i, block_t* value) noexcept nogil:
    """Add the value of tap i of an axis."""
    if ORDERED and t.tree[axis]:
        plant(<block_t*> t.stacks + axis * LEVELS, t.skipped[axis] + i, value)
    elif i:
        join(total, value)
    else:
        total[0] = value[0]


cdef void reduce_axes(block_t* total, const Taps* t, int axis, const elem_t* x, Py_ssize_t n,
                      const Rule* rule) noexcept nogil:
    """Reduce the taps of an axis and of all axes before it."""
    cdef block_t* stack = <block_t*> t.stacks + axis * LEVELS
    cdef block_t value
    cdef Py_ssize_t i
    if axis == 0:
        reduce_first(total, t, x, n, rule)
        return
    if ORDERED and t.tree[axis]:
        skip(stack, t.skipped[axis])
    for i in range(t.n[axis]):
        reduce_axes(&value, t, axis - 1, x + i * t.stride[axis], n, rule)
        add(total, t, axis, i, &value)
    if ORDERED and t.tree[axis]:
        harvest(total, stack, t.skipped[axis] + t.n[axis], False)


cdef void reduce_window(block_t* total, const Taps* t, const elem_t* x, Py_ssize_t n, const Rule* rule) noexcept nogil:
    """Reduce a window with a tree or with many axes. Such windows are rare, or long."""
    cdef int a = t.axes - 1
    while a and t.n[a] == 1 and not t.tree[a]:
        a -= 1
    reduce_axes(total, t, a, x, n, rule)


cdef inline void pool_block(block_t* unused, Py_ssize_t lane, const Windows* w, const elem_t* x, elem_t* y,
                            const Divisor* by) noexcept nogil:
    """Pool a block of lanes of a window."""
    cdef block_t total
    reduce_few(&total, w, x + lane, w.lanes)
    if block_t is vec_t and DIVIDES and w.rule.careful:
        divide(y + lane, w.lanes, &total, by.count, w.rule)
    else:
        finish(y + lane, w.lanes, &total, by, w.rule)


cdef inline Py_ssize_t past(const block_t* unused, Py_ssize_t lanes) noexcept nogil:
    """The lane from which on blocks of this size lack a register of lanes or more. A last block may overlap the one
    before it, and a last register may be partial."""
    cdef Py_ssize_t block = width(unused)
    return lanes + LANES - block if block == LANES or block <= lanes else 0


cdef inline Py_ssize_t pool_lanes(block_t* unused, Py_ssize_t lane, Windows* w, const elem_t* x, elem_t* y,
                                  const Divisor* by) noexcept nogil:
    """Pool the lanes of a window that fill blocks."""
    cdef Py_ssize_t block = width(unused), end = past(unused, w.lanes)
    while lane < end:
        lane = max(0, min(lane, w.lanes - block))
        fetch_part(&w.fetches, x, block)
        pool_block(unused, lane, w, x, y, by)
        lane += block
    return lane


cdef inline Py_ssize_t pool_few_lanes(block_t* unused, Py_ssize_t lane, const Windows* w, const elem_t* x, elem_t* y,
                                      const Divisor* by) noexcept nogil:
    """Like `pool_lanes`, for several windows: one block of lanes after the other."""
    cdef Py_ssize_t block = width(unused), end = past(unused, w.lanes), i
    while lane < end:
        lane = max(0, min(lane, w.lanes - block))
        for i in range(w.n):
            pool_block(unused, lane, w, x + i * w.x_step, y + i * w.y_step, by)
        lane += block
    return lane


cdef inline void pool_column(const Windows* w, Py_ssize_t column, Py_ssize_t taps, const elem_t* x, elem_t* y,
                             const Divisor* by) noexcept nogil:
    """Join a column with the columns before it, and lines with the lines before them. The last column finishes the
    window. The last block may overlap the block before it."""
    cdef Woven4 value, earlier
    cdef Py_ssize_t place = 0, lane, block = width(&value), line = w.columns * w.each
    cdef bint begins = column % line == 0, ends = (column + taps) % line == 0 or column + taps == w.all
    cdef acc_t* columns = w.totals + MOST_LANES
    while place < w.lanes:
        lane = min(place, w.lanes - block)
        reduce_column(&value, w, w.offset + column, taps, x + lane, w.lanes)
        if not begins:
            read(&earlier, columns + place)
            join(&earlier, &value)
            value = earlier
        if ends and column >= line:
            read(&earlier, w.totals + place)
            join(&earlier, &value)
            value = earlier
        if column + taps == w.all:
            finish(y + lane, w.lanes, &value, by, w.rule)
        else:
            write((w.totals if ends else columns) + place, &value)
        place += block


cdef void pool_columns(const Windows* shared, const elem_t* x, elem_t* y, const Divisor* by) noexcept nogil:
    """Pool neighbouring windows, a column of few taps after the other, so that few streams are read in long pieces."""
    cdef Windows w = shared[0]  # copies in registers, which stores cannot change
    cdef Rule rule = shared.rule[0]
    cdef Py_ssize_t column, taps, _
    w.rule = &rule
    if not ORDERED:
        w.each, w.columns = FEW, w.all
    for _ in range(w.n):
        column = 0
        while column < w.all:
            taps = min(w.each, w.all - column)
            pool_column(&w, column, taps, x, y, by)
            column += taps
        x += w.x_step
        y += w.y_step


cdef void pool_windows(const Windows* shared, const elem_t* x, elem_t* y, const Divisor* by) noexcept nogil:
    """Pool neighbouring windows."""
    cdef Windows w = shared[0]  # copies in registers, which stores cannot change
    cdef Rule rule = shared.rule[0]
    cdef Divisor divisor = by[0]
    cdef Py_ssize_t _, lane
    w.rule = &rule
    for _ in range(w.n):
        lane = 0
        start_fetches(&w.fetches)
        if not (DIVIDES and w.rule.careful):
            lane = pool_lanes(<Woven4*> NULL, 0, &w, x, y, &divisor)
            lane = pool_lanes(<Woven*> NULL, lane, &w, x, y, &divisor)
        pool_lanes(<vec_t*> NULL, lane, &w, x, y, &divisor)
        x += w.x_step
        y += w.y_step


cdef void pool_narrow(const Windows* shared, const elem_t* x, elem_t* y, const Divisor* by) noexcept nogil:
    """Pool neighbouring windows of few lanes, as many at a time as read few bytes."""
    cdef Windows w = shared[0]
    cdef Rule rule = shared.rule[0]
    cdef Divisor divisor = by[0]
    cdef Py_ssize_t lane, left = w.n
    cdef Py_ssize_t most = NEAR // max(1, w.columns * w.lines * w.x_step * <Py_ssize_t> sizeof(elem_t))
    w.rule = &rule
    while left:
        w.n = min(left, max(1, most))
        lane = pool_few_lanes(<Woven*> NULL, 0, &w, x, y, &divisor)
        pool_few_lanes(<vec_t*> NULL, lane, &w, x, y, &divisor)
        x += w.n * w.x_step
        y += w.n * w.y_step
        left -= w.n


cdef inline void fetch_long(const Taps* t, const Windows* w, const elem_t* behind,
                            Py_ssize_t step) noexcept nogil:
    """Prefetch the elements that a later window reads and this one does not."""
    cdef Py_ssize_t i
    for i in range(min(t.n[0], step)):
        fetch(behind + w.fetches.ahead - (i + 1) * t.stride[0], w.lanes * sizeof(elem_t))


cdef void pool_long(const Taps* t, const Windows* w, const elem_t* x, elem_t* y, const Divisor* by) noexcept nogil:
    """Pool a window of many taps."""
    cdef Woven4 block
    cdef vec_t total
    cdef Py_ssize_t lane = 0
    while lane + width(&block) <= w.lanes and not (DIVIDES and w.rule.careful):
        reduce_window(&block, t, x + lane, w.lanes, w.rule)
        finish(y + lane, w.lanes, &block, by, w.rule)
        lane += width(&block)
    while lane < w.lanes:
        lane = max(0, min(lane, w.lanes - LANES))
        reduce_window(&total, t, x + lane, w.lanes, w.rule)
        if DIVIDES and w.rule.careful:
            divide(y + lane, w.lanes, &total, by.count, w.rule)
        else:
            finish(y + lane, w.lanes, &total, by, w.rule)
        lane += LANES


cdef void list_taps(Taps* t) noexcept nogil:
    """List the offsets of the taps for all windows of a row, unless they are listed already. The last axis is the outer
    loop here, so windows with fewer taps along it use the beginning of the list."""
    cdef Py_ssize_t[3] taps = [t.n[0], t.n[1], t.n[2]]
    cdef Py_ssize_t i, j, k, n = 0
    taps[t.last] = t.most
    if taps[0] == t.listed[0] and taps[1] == t.listed[1] and taps[2] == t.listed[2]:
        return
    for k in range(taps[2]):
        for j in range(taps[1]):
            for i in range(taps[0]):
                t.offset[n] = i * t.stride[0] + j * t.stride[1] + k * t.stride[2]
                n += 1
    t.listed = taps


cdef inline void take_taps(const Taps* t, Windows* w) noexcept nogil:
    """Take the numbers of taps of the next windows. Axes of one tap do not count."""
    cdef int a
    w.each = w.columns = w.lines = 1
    for a in range(3):
        if w.each == 1:
            w.each = t.n[a]
        elif w.columns == 1:
            w.columns = t.n[a]
        else:
            w.lines = t.n[a]
    w.all = w.each * w.columns * w.lines


cdef inline bint suits_columns(const Windows* w, Py_ssize_t reach) noexcept nogil:
    """Whether to pool windows by columns, which need so many lanes: windows of many taps that share no place, or that
    the L1 cache does not hold. Taps of unordered windows are reduced in sequence anyway, so that any form a column."""
    cdef Py_ssize_t each = w.each if ORDERED else FEW
    return (w.all >= 2 * FEW and w.lanes <= MOST_LANES and each * w.lanes >= LEAST_COLUMN
            and not (ORDERED and w.each == w.all) and not w.rule.careful
            and (reach <= w.x_step or w.all * w.lanes * <Py_ssize_t> sizeof(elem_t) >= LARGE))


cdef void pool_row(const Tile* tile, Taps* t, const elem_t* x, elem_t* y, double outer_count) noexcept nogil:
    """Pool the windows along the last axis."""
    cdef int last = tile.rank - 1
    cdef const Axis* axis = &tile.axis[last]
    cdef Py_ssize_t at = tile.begin[last], stride = tile.x_stride[last]
    cdef Py_ssize_t step = min(axis.stride, axis.size)  # windows further apart have no neighbours in the interior
    cdef double count = -1
    # Adjacent windows with stride 1 become one window with all their lanes: 1.0x to 2.5x faster for three taps of 32
    # lanes (Zen 3).
    cdef bint joins = axis.stride == 1 and stride == tile.lanes == tile.y_stride[last]
    cdef Divisor by
    cdef Run run
    cdef Windows w
    w.x_step, w.y_step, w.lanes, w.rule = step * stride, tile.y_stride[last], tile.lanes, tile.rule
    w.fetches.lanes, w.fetches.ahead = tile.lanes, distance_ahead(w.x_step)
    w.offset, w.totals = t.offset, <acc_t*> t.stacks
    if not t.many:
        list_taps(t)
    while at < tile.end[last]:
        run = run_at(axis, at, tile.end[last])
        if run.window.divisor * outer_count != count:
            count = run.window.divisor * outer_count
            by = divisor_of(count, tile.rule)
        t.n[t.last], t.skipped[t.last] = run.window.taps, run.window.skipped
        if not run.window.taps:
            finish_without_taps(y + at * w.y_step, run.n, w.y_step, tile.lanes, count, tile.rule)
        elif t.many:
            run.n, w.lanes = 1, tile.lanes
            if tile.far >= DISTANT and t.last == 0:
                fetch_long(t, &w, x + (run.window.first + run.window.taps) * stride, step)
            pool_long(t, &w, x + run.window.first * stride, y + at * w.y_step, &by)
        else:
            w.n = 1 if joins else run.n
            w.lanes = run.n // w.n * tile.lanes
            w.fetches.n = 0
            take_taps(t, &w)
            if tile.far >= DISTANT and not joins and (
                    FEW_LANES <= w.lanes <= MOST_FETCHED // (w.all * <Py_ssize_t> sizeof(elem_t))):
                w.fetches.n = min(run.window.taps, step) * (w.all // run.window.taps)
            w.fetches.offset = w.offset + w.all - w.fetches.n
            if FREQUENT and not joins and suits_columns(&w, run.window.taps * stride):
                pool_columns(&w, x + run.window.first * stride, y + at * w.y_step, &by)
            elif FREQUENT and w.lanes < FEW_LANES and not tile.rule.careful:
                pool_narrow(&w, x + run.window.first * stride, y + at * w.y_step, &by)
            else:
                pool_windows(&w, x + run.window.first * stride, y + at * w.y_step, &by)
        at += run.n


cdef void prepare(const Tile* tile, Taps* t) noexcept nogil:
    cdef int rank = tile.rank, a, place
    cdef bint alone = True
    cdef Py_ssize_t taps = 1
    t.axes, t.stacks, t.many, t.listed[0] = max(3, rank), tile.scratch, rank > 3, 0
    for a in range(t.axes):
        t.n[a], t.stride[a], t.skipped[a], t.tree[a] = 1, 0, 0, False
    for a in range(rank - 1):
        alone &= tile.axis[a].kernel == 1
    t.last = 0 if alone else t.axes - 1  # if only the last axis has several taps, it becomes the innermost loop
    for a in range(rank):
        place = t.last if a == rank - 1 else a + alone
        t.stride[place] = tap_distance(&tile.axis[a], tile.x_stride[a])
        t.tree[place] = ORDERED and tile.axis[a].kernel > FEW
        taps = min(<Py_ssize_t> MOST_TAPS + 1, taps * min(tile.axis[a].kernel, tile.axis[a].size))
        t.many |= t.tree[place] or taps > MOST_TAPS
    t.most = min(tile.axis[rank - 1].kernel, tile.axis[rank - 1].size)


cdef void pool_item(const Tile* tile, const elem_t* x, elem_t* y) noexcept nogil:
    """Pool all windows of an item, row by row along the last axis."""
    cdef int last = tile.rank - 1, a, place
    cdef Py_ssize_t[MOST_AXES] at
    cdef Row row
    cdef Taps t
    prepare(tile, &t)
    for a in range(last):
        at[a] = tile.begin[a]
    while True:
        find_row(tile, at, &row)
        if row.empty:
            finish_without_taps(y + row.y + tile.begin[last] * tile.y_stride[last], tile.end[last] - tile.begin[last],
                                tile.y_stride[last], tile.lanes, row.count, tile.rule)
        else:
            for a in range(last):
                place = a + (t.last == 0)
                t.n[place], t.skipped[place] = row.window[a].taps, row.window[a].skipped
            pool_row(tile, &t, x + row.x, y + row.y, row.count)
        if advance(at, tile.begin, tile.end, last) < 0:
            return


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef Py_ssize_t item
    for item in range(tile.items):
        pool_item(tile, <const elem_t*> tile.x + item * tile.x_item, <elem_t*> tile.y + item * tile.y_item)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    """Bytes of scratch memory: a stack of blocks for each axis."""
    return max(3, tile.rank) * LEVELS * <Py_ssize_t> sizeof(Woven4)
