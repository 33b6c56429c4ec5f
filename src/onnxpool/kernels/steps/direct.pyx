"""direct: every window reads all of its taps, for lanes that lie side by side; the totals stay in registers.

Taps of the first axis are reduced first, then those of the next one. More than FEW taps of an axis
are reduced as a binary tree: pairs, pairs of pairs, aligned at the first tap of the window, in the padding or not.
"""
from ..core.element cimport (
    Block,
    Divisor,
    LANES,
    ORDERED,
    block_t,
    divisor_of,
    elem_t,
    fill,
    finish,
    fold,
    join,
    load,
    vec_empty,
    vec_none,
    vec_t,
    watch_nothing,
    watch_suspects,
    watch_t,
    width,
)
from ..core.job cimport FEW, fetch, Rule, Tile, Window, window_at

cdef enum:
    LEVELS = 48  # of a tree: more than taps can fill
    MOST = 64    # axes

cdef struct Taps:
    # Of one window along its axes, the first of which is reduced first. There are at least three, some of one tap.
    int axes
    Py_ssize_t[MOST] n, stride, skipped
    bint[MOST] tree
    Py_ssize_t next, fresh    # values to the next window, and how many taps of the last axis only that one has
    bint many, plain          # whether there is a tree, or more than three axes; whether not, and no axis without a tap
    char* stacks


cdef inline void plant(block_t* stack, Py_ssize_t place, block_t* value) noexcept nogil:
    """Adds the value of a place to a tree, of which the stack holds a finished part for each bit of the place."""
    cdef int level = 0
    cdef block_t earlier
    while place >> level & 1:
        earlier = stack[level]
        join(&earlier, value)
        value[0] = earlier
        level += 1
    stack[level] = value[0]


cdef inline void skip(block_t* stack, Py_ssize_t places) noexcept nogil:
    """As if so many places had been planted that change nothing."""
    cdef int level
    for level in range(LEVELS):
        if places >> level & 1:
            fill(&stack[level], vec_none())


cdef inline void harvest(block_t* total, const block_t* stack, Py_ssize_t places) noexcept nogil:
    cdef int level = 0
    cdef block_t earlier
    while not places >> level & 1:
        level += 1
    total[0] = stack[level]
    level += 1
    while places >> level:
        if places >> level & 1:
            earlier = stack[level]
            join(&earlier, total)
            total[0] = earlier
        level += 1


cdef inline void reduce_few(block_t* total, const Taps* t, const elem_t* x, Py_ssize_t n,
                            const Rule* rule) noexcept nogil:
    """The taps of a window, one after the other along each axis."""
    cdef block_t row, column
    cdef const elem_t* tap
    cdef Py_ssize_t i, j, k
    fill(total, vec_none())
    for k in range(t.n[2]):
        if ORDERED and t.n[1] > 1:
            fill(&row, vec_none())
        for j in range(t.n[1]):
            tap = x + k * t.stride[2] + j * t.stride[1]
            if not ORDERED:
                for i in range(t.n[0]):
                    fold(total, tap + i * t.stride[0], n, rule)
                continue
            load(&column, tap, n, rule)
            for i in range(1, t.n[0]):
                fold(&column, tap + i * t.stride[0], n, rule)
            if t.n[1] > 1:
                join(&row, &column)
            else:
                join(total, &column)
        if ORDERED and t.n[1] > 1:
            join(total, &row)


cdef inline void reduce_eight(block_t* total, const elem_t* x, Py_ssize_t stride, Py_ssize_t n,
                              const Rule* rule) noexcept nogil:
    cdef block_t pair, four
    load(total, x, n, rule)
    fold(total, x + stride, n, rule)
    load(&pair, x + 2 * stride, n, rule)
    fold(&pair, x + 3 * stride, n, rule)
    join(total, &pair)
    load(&four, x + 4 * stride, n, rule)
    fold(&four, x + 5 * stride, n, rule)
    load(&pair, x + 6 * stride, n, rule)
    fold(&pair, x + 7 * stride, n, rule)
    join(&four, &pair)
    join(total, &four)


cdef inline void reduce_column(block_t* total, const Taps* t, const elem_t* x, Py_ssize_t n,
                               const Rule* rule) noexcept nogil:
    """The taps of the first axis."""
    cdef block_t* stack = <block_t*> t.stacks
    cdef Py_ssize_t i = 0, place = t.skipped[0]
    cdef block_t eight
    if not t.tree[0]:
        load(total, x, n, rule)
        for i in range(1, t.n[0]):
            fold(total, x + i * t.stride[0], n, rule)
        return
    skip(stack, place)
    while i < t.n[0]:
        if (place + i) % 8 or t.n[0] - i < 8:
            load(&eight, x + i * t.stride[0], n, rule)
            plant(stack, place + i, &eight)
            i += 1
        else:
            reduce_eight(&eight, x + i * t.stride[0], t.stride[0], n, rule)
            plant(stack + 3, (place + i) // 8, &eight)
            i += 8
    harvest(total, stack, place + i)


cdef inline void add(block_t* total, const Taps* t, int axis, Py_ssize_t i, block_t* value) noexcept nogil:
    """Adds what the tap i of an axis reduced to."""
    if t.tree[axis]:
        plant(<block_t*> t.stacks + axis * LEVELS, t.skipped[axis] + i, value)
    elif i:
        join(total, value)
    else:
        total[0] = value[0]


cdef void reduce_axes(block_t* total, const Taps* t, int axis, const elem_t* x, Py_ssize_t n,
                      const Rule* rule) noexcept nogil:
    """The taps of an axis and of all before it."""
    cdef block_t* stack = <block_t*> t.stacks + axis * LEVELS
    cdef block_t value
    cdef Py_ssize_t i
    if axis == 0:
        reduce_column(total, t, x, n, rule)
        return
    if t.tree[axis]:
        skip(stack, t.skipped[axis])
    for i in range(t.n[axis]):
        reduce_axes(&value, t, axis - 1, x + i * t.stride[axis], n, rule)
        add(total, t, axis, i, &value)
    if t.tree[axis]:
        harvest(total, stack, t.skipped[axis] + t.n[axis])


cdef void reduce_window(block_t* total, const Taps* t, const elem_t* x, Py_ssize_t n, const Rule* rule) noexcept nogil:
    """A window that has a tree, many axes, or no tap at all: rare, or long."""
    cdef int a
    for a in range(t.axes):
        if t.n[a] == 0:
            fill(total, vec_empty())
            return
    reduce_axes(total, t, t.axes - 1, x, n, rule)


cdef inline void fetch_next(const Taps* t, const elem_t* x, Py_ssize_t bytes) noexcept nogil:
    """What the next window reads and this one does not."""
    cdef Py_ssize_t i, j, k
    for k in range(max(0, t.n[2] - t.fresh), t.n[2]):
        for j in range(t.n[1]):
            for i in range(t.n[0]):
                fetch(x + t.next + i * t.stride[0] + j * t.stride[1] + k * t.stride[2], bytes)


cdef Py_ssize_t pool_lanes(block_t* unused, const Taps* t, const elem_t* x, elem_t* y, Py_ssize_t lanes,
                           const Divisor* by, const Rule* rule, watch_t* watch) noexcept nogil:
    """The lanes of one window that fill blocks; the last vector may overlap the one before."""
    cdef block_t total
    cdef watch_t seen = watch[0]  # in registers
    cdef Py_ssize_t lane = 0, block = width(unused), n
    while lane + block <= lanes or (block == LANES and lane < lanes):
        lane = max(0, min(lane, lanes - block))
        n = lanes - lane
        if t.fresh:
            fetch_next(t, x + lane, block * sizeof(elem_t))
        if t.plain:
            reduce_few(&total, t, x + lane, n, rule)
        else:
            reduce_window(&total, t, x + lane, n, rule)
        finish(y + lane, n, &total, by, rule, &seen)
        lane += block
    watch[0] = seen
    return lane


cdef void pool_row(const Tile* tile, Taps* t, const elem_t* x, elem_t* y, double outer_count,
                   watch_t* watch) noexcept nogil:
    """The windows along the last axis."""
    cdef int last = tile.rank - 1
    cdef Py_ssize_t w, lane
    cdef double count = -1
    cdef Divisor by
    cdef Window window
    cdef const elem_t* source
    cdef elem_t* target
    for w in range(tile.begin[last], tile.end[last]):
        window = window_at(&tile.axis[last], w)
        t.n[t.axes - 1], t.skipped[t.axes - 1] = window.taps, window.skipped
        if window.count * outer_count != count:
            count = window.count * outer_count
            by = divisor_of(count)
        source, target = x + window.first * tile.x_stride[last], y + w * tile.y_stride[last]
        t.plain = not t.many and t.n[0] and t.n[1] and t.n[2]
        lane = pool_lanes(<Block*> NULL, t, source, target, tile.lanes, &by, tile.rule, watch)
        if lane < tile.lanes:
            lane = max(0, min(lane, tile.lanes - LANES))
            pool_lanes(<vec_t*> NULL, t, source + lane, target + lane, tile.lanes - lane, &by, tile.rule, watch)


cdef void prepare(const Tile* tile, Taps* t) noexcept nogil:
    cdef int rank = tile.rank, a, place
    t.axes, t.stacks, t.many = max(3, rank), tile.scratch, rank > 3
    t.next = tile.axis[rank - 1].stride * tile.x_stride[rank - 1]
    t.fresh = tile.axis[rank - 1].stride if tile.far and rank <= 3 else 0
    for a in range(t.axes):
        t.n[a], t.stride[a], t.skipped[a], t.tree[a] = 1, 0, 0, False
    for a in range(rank):  # the last axis is the last of three, and the first one the innermost loop
        place = t.axes - 1 if a == rank - 1 else a
        t.stride[place] = tile.axis[a].dilation * tile.x_stride[a]
        t.tree[place] = tile.axis[a].kernel > FEW
        t.many |= t.tree[place]


cdef void pool_item(const Tile* tile, const elem_t* x, elem_t* y, watch_t* watch) noexcept nogil:
    """The windows along the axes before the last one."""
    cdef int last = tile.rank - 1, a
    cdef Py_ssize_t[MOST] at
    cdef const elem_t* source
    cdef elem_t* target
    cdef double count
    cdef Window window
    cdef Taps t
    prepare(tile, &t)
    for a in range(last):
        at[a] = tile.begin[a]
    while True:
        source, target, count = x, y, 1
        for a in range(last):
            window = window_at(&tile.axis[a], at[a])
            t.n[a], t.skipped[a] = window.taps, window.skipped
            source += window.first * tile.x_stride[a]
            target += at[a] * tile.y_stride[a]
            count *= window.count
        pool_row(tile, &t, source, target, count, watch)
        a = last - 1
        while a >= 0:
            at[a] += 1
            if at[a] < tile.end[a]:
                break
            at[a] = tile.begin[a]
            a -= 1
        if a < 0:
            return


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef watch_t watch = watch_nothing()
    cdef Py_ssize_t item
    for item in range(tile.items):
        pool_item(tile, <const elem_t*> tile.x + item * tile.x_item, <elem_t*> tile.y + item * tile.y_item, &watch)
    tile.suspect |= watch_suspects(&watch)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    """Bytes of scratch memory: a stack of blocks for each axis."""
    return max(3, tile.rank) * LEVELS * sizeof(Block)
