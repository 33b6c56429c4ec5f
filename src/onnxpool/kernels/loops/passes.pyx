"""passes: reduces axis by axis, from the first on. Intermediate results stay in a block of scratch memory.

A row holds the places of the last axis, each with its lanes. A block has as many rows as fit into the L1 cache, and
each loop processes all of them before the next one begins. Rows hold identities in place of the padding, so windows of
the last axis need no special cases at borders. Up to FEW taps are added in sequence. More taps form an aligned binary
tree, whose parts neighbouring windows share: level by level, each place gets the part that begins there. Each set bit
of a window's number of taps is a level whose part the window adds. Where windows of many taps share few places and rows
are long, each window is reduced on its own (`core/stack.pxd`): 8 rows at a time, in long pieces. The solvers `stack`
and `folded` do this along the axes that planning marks, and `folded` reduces windows along rows in registers.
"""
from libc.string cimport memcpy

from ..core.along cimport Along, finish_empty, finish_rows, limit_of, prepare_along
from ..core.cursor cimport advance
from ..core.element cimport (
    AS_STORED,
    DIVIDES,
    EXACT,
    LANES,
    Woven4,
    acc_t,
    elem_t,
    end_of,
    seen_t,
    vec_load,
    vec_load_part,
    vec_merge,
    vec_read,
    vec_t,
    vec_without,
    vec_write,
)
from ..core.empty cimport finish_outside
from ..core.fetches cimport BEYOND
from ..core.folds cimport reduce_adjacent
from ..core.job cimport (
    MOST_AXES,
    TOO_LARGE,
    Axis,
    Rule,
    Run,
    Tile,
    Window,
    fetch,
    round_up,
    run_at,
    touch,
    touching_of,
    wide_window_at,
    window_at,
)
from ..core.phases cimport load_split
from ..core.rows cimport (
    AHEAD,
    MOST_FRESH,
    SLACK,
    STRIP,
    Columns,
    Layout,
    Rows,
    Trees,
    calm,
    fill_exactly,
    fill_row,
    is_tree,
    lay,
    load_rows_of,
    pick_rows,
    piece_of,
    reduce_trees,
    rows_from,
    starts_as_tree,
    strip_of,
    sum_all,
)
from ..core.stack cimport Stack, begin_after, pop_total, push_rows


cdef void prepare_columns(const Tile* tile, const Layout* layout, Columns* c) noexcept nogil:
    """Describe how rows are loaded."""
    cdef int last = tile.rank - 1
    cdef Py_ssize_t inside = layout.high - layout.low
    cdef const Axis* first = &tile.axis[0]
    c.pieces, c.n, c.piece = 1, inside * tile.lanes, tile.x_stride[last]
    if tile.x_stride[last] != tile.lanes:
        c.pieces, c.n = inside, tile.lanes
    c.taps, c.tap, c.step = 1, first.dilation * tile.x_stride[0], tile.x_item
    c.fresh, c.ahead = 0, first.stride * tile.x_stride[0]
    if c.ahead > 0:
        c.ahead *= max(1, AHEAD // (c.ahead * <Py_ssize_t> sizeof(elem_t)))
    c.pitch, c.left = layout.pitch, (layout.low - layout.begin) * tile.lanes
    c.gap = layout.pitch - inside * tile.lanes
    if not inside:
        c.n = 0
    c.split, c.joined = layout.split, layout.joined
    c.phase = c.length = layout.pitch // max(<Py_ssize_t> 1, layout.split)
    c.begin, c.limit, c.rule = <const elem_t*> tile.x, end_of(tile), tile.rule


cdef inline bint is_far(const Tile* tile) noexcept nogil:
    """Whether rows are prefetched. Rows of a single lane gain even where a cache holds them."""
    return tile.far >= (BEYOND if tile.lanes > 1 else 1)


cdef void load_rows(const Columns* c, const elem_t* x, acc_t* y, Py_ssize_t rows) noexcept nogil:
    cdef seen_t seen
    if not (c.n and rows):
        fill_row(y, rows * c.pitch)
    elif c.split:
        load_split(c, x, y, rows, &seen)
    else:
        load_rows_of(c, x, y, rows)


cdef void load_windows(const Tile* tile, const Layout* layout, Columns* c, const elem_t* x, Py_ssize_t begin,
                       acc_t* y) noexcept nogil:
    """Load a row for each window of the first of two axes, from `begin` on, and reduce its few taps on the way. The
    rows of several items are loaded at once if they are equally far apart."""
    cdef const Axis* axis = &tile.axis[0]
    cdef Py_ssize_t w = begin, end = begin + layout.rows[0].windows, items = layout.items if layout.even else 1
    cdef Run run
    c.step = axis.stride * tile.x_stride[0]
    while w < end:
        run = run_at(axis, w, end)
        c.taps, c.fresh = run.window.taps, min(run.window.taps, axis.stride) if is_far(tile) else 0
        if c.taps:
            load_rows(c, x + run.window.first * tile.x_stride[0], y, run.n * items)
        else:
            fill_row(y, run.n * layout.pitch)
        w, y = w + run.n, y + run.n * layout.pitch


cdef void load_places(const Tile* tile, const Layout* layout, Columns* c, const elem_t* x, acc_t* y) noexcept nogil:
    """Load the rows of all places along the axes from `loaded` on. Without taps, all of these places are in the
    padding."""
    cdef int inner = tile.rank - 2
    cdef Py_ssize_t begin = layout.rows[inner].begin, n = rows_from(layout, layout.loaded, inner + 1), low = 0, high = n
    if layout.loaded == inner:  # otherwise, no place is in the padding
        low = min(n, max(0, -begin))
        high = max(low, min(n, tile.axis[inner].size - begin))
    if not c.taps:
        fill_row(y, n * layout.pitch)
        return
    c.step = tile.x_stride[inner]
    fill_row(y, low * layout.pitch)
    load_rows(c, x + (begin + low) * c.step, y + low * layout.pitch, high - low)
    fill_row(y + high * layout.pitch, (n - high) * layout.pitch)


cdef void load_block(const Tile* tile, const Layout* layout, Columns* c, const elem_t* x, Py_ssize_t begin,
                     acc_t* y) noexcept nogil:
    """Load the rows for windows of the first axis from `begin` on, and reduce the taps of that axis on the way."""
    cdef int inner = tile.rank - 2, a
    cdef Py_ssize_t[MOST_AXES] at, low, high
    cdef Py_ssize_t taps = 1
    cdef const elem_t* source
    cdef Window window
    if inner < 0 and layout.alone:
        for a in range(layout.items):
            if layout.folded:
                fold_elements(tile, x + a * tile.x_item, y + a * layout.pitch)
            else:
                load_each(tile, layout, x + a * tile.x_item, y + a * layout.pitch, tile.lanes, tile.lanes)
        return
    if inner < 0:
        load_rows(c, x, y, layout.items)
        return
    if inner == 0:
        load_windows(tile, layout, c, x, begin, y)
        return
    low[0], high[0] = begin, begin + layout.rows[0].windows
    for a in range(1, layout.loaded):
        low[a], high[a] = layout.rows[a].begin, layout.rows[a].begin + layout.rows[a].n
    for a in range(layout.loaded):
        at[a] = low[a]
    for a in range(layout.loaded, inner):
        x += layout.rows[a].begin * tile.x_stride[a]
    while True:
        window = window_at(&tile.axis[0], at[0])
        source, taps = x + window.first * tile.x_stride[0], window.taps
        for a in range(1, layout.loaded):
            source += at[a] * tile.x_stride[a]
            if not 0 <= at[a] < tile.axis[a].size:
                taps = 0
        c.taps = taps
        load_places(tile, layout, c, source, y)
        y += rows_from(layout, layout.loaded, inner + 1) * layout.pitch
        if advance(at, low, high, layout.loaded) < 0:
            return


# These functions have several callers, so they are not inlined, and are compiled once.
cdef void lay_out(const Tile* tile, Layout* layout) noexcept nogil:
    lay(tile, layout)


cdef void fill_part(acc_t* y, Py_ssize_t n) noexcept nogil:
    fill_exactly(y, n)


cdef void reduce_tree(acc_t* x, acc_t* y, Trees t) noexcept nogil:
    reduce_trees(x, y, t)


cdef void sum_taps(const acc_t* x, acc_t* y, Py_ssize_t n, Py_ssize_t taps, Py_ssize_t stride) noexcept nogil:
    sum_all(x, y, n, taps, stride)


cdef void push_elements(Stack* stack, const elem_t* x, Py_ssize_t stride, Py_ssize_t rows,
                        const Rule* rule) noexcept nogil:
    push_rows(stack, x, stride, rows, rule)


cdef void push_values(Stack* stack, const acc_t* x, Py_ssize_t stride, Py_ssize_t rows,
                      const Rule* rule) noexcept nogil:
    push_rows(stack, x, stride, rows, rule)


cdef void reduce_one(const Tile* tile, const Layout* layout, const elem_t* x, const acc_t* values, Py_ssize_t stride,
                     Py_ssize_t skipped, Py_ssize_t taps, acc_t* y, Py_ssize_t n) noexcept nogil:
    """y = the total of the tree over a window's rows of n elements or, if x is NULL, of n values: a row per tap. The
    skipped taps before them are in the padding. Nothing is written past the end of y."""
    cdef Py_ssize_t i = 0, piece = piece_of()
    cdef Stack stack
    stack.pitch, stack.parts = layout.part, <acc_t*> tile.scratch + layout.strips
    if AS_STORED and x == NULL:
        x = <const elem_t*> values
    while i < n:
        stack.values = min(piece, n - i)
        begin_after(&stack, skipped)
        if AS_STORED or x != NULL:
            push_elements(&stack, x + i, stride, taps, tile.rule)
        else:
            push_values(&stack, values + i, stride, taps, tile.rule)
        pop_total(&stack, y + i)
        i += piece


cdef acc_t reduce_elements(const elem_t* x, Py_ssize_t skipped, Py_ssize_t taps, const Rule* rule) noexcept nogil:
    return reduce_adjacent(x, skipped, taps, rule)


cdef acc_t reduce_values(const acc_t* x, Py_ssize_t taps, const Rule* rule) noexcept nogil:
    if AS_STORED:
        return reduce_elements(<const elem_t*> x, 0, taps, rule)
    return reduce_adjacent(x, 0, taps, rule)


cdef void fold_elements(const Tile* tile, const elem_t* x, acc_t* y) noexcept nogil:
    """Reduce the windows along the single axis of an item."""
    cdef Py_ssize_t w
    cdef Window window
    for w in range(tile.begin[0], tile.end[0]):
        window = wide_window_at(&tile.axis[0], w)
        if window.taps:
            y[w - tile.begin[0]] = reduce_elements(x + window.first, window.skipped, window.taps, tile.rule)
        else:
            fill_part(y + w - tile.begin[0], 1)


cdef void fold_rows(const Tile* tile, const Layout* layout, const acc_t* x, acc_t* y, Py_ssize_t rows) noexcept nogil:
    """Reduce the windows along the last axis of a block."""
    cdef const Axis* axis = &tile.axis[tile.rank - 1]
    cdef Py_ssize_t _, w
    for _ in range(rows):
        for w in range(tile.end[tile.rank - 1] - tile.begin[tile.rank - 1]):
            y[w] = reduce_values(x + w * axis.stride, axis.kernel, tile.rule)
        x, y = x + layout.pitch, y + layout.pitch


cdef void reduce_each(const Tile* tile, const Layout* layout, int a, const acc_t* x, acc_t* y, Py_ssize_t rows,
                      Py_ssize_t post) noexcept nogil:
    """Reduce the windows along an axis of a block one by one, to `post` values each."""
    cdef const Axis* axis = &tile.axis[a]
    cdef Py_ssize_t _, w
    for _ in range(rows):
        for w in range(tile.end[a] - tile.begin[a]):
            reduce_one(tile, layout, NULL, x + w * axis.stride * post, axis.dilation * post, 0, axis.kernel,
                       y + w * post, post)
        x, y = x + layout.pitch, y + layout.pitch


cdef void load_each(const Tile* tile, const Layout* layout, const elem_t* x, acc_t* y, Py_ssize_t step,
                    Py_ssize_t n) noexcept nogil:
    """Reduce the windows of the first axis one by one while loading them, to a row of n values each. If places are not
    adjacent, a piece of a row lies within one place."""
    cdef Py_ssize_t low = (layout.low - layout.begin) * tile.lanes, high = (layout.high - layout.begin) * tile.lanes
    cdef Py_ssize_t windows = tile.end[0] - tile.begin[0], width = high - low, row = tile.x_stride[0], w, v, m
    cdef Window window
    for w in range(windows):
        fill_part(y + w * step, low)
        fill_part(y + w * step + high, n - high)
    if tile.x_stride[tile.rank - 1] != tile.lanes:
        width = tile.lanes
    while low < high:
        v = 0
        while v < width:
            m = min(width - v, piece_of())
            for w in range(windows):
                window = wide_window_at(&tile.axis[0], tile.begin[0] + w)  # a call, because its code is long
                if window.taps:
                    reduce_one(tile, layout, x + window.first * row + v, NULL, tile.axis[0].dilation * row,
                               window.skipped, window.taps, y + w * step + low + v, m)
                else:
                    fill_part(y + w * step + low + v, m)
            v += m
        low, x = low + width, x + tile.x_stride[tile.rank - 1]


cdef void reduce_strip(const Tile* tile, const Layout* layout, int a, Py_ssize_t width, acc_t* y, Py_ssize_t step,
                       Py_ssize_t n) noexcept nogil:
    """Reduce a strip along an axis as trees, and store n values of each window."""
    cdef const Axis* axis = &tile.axis[a]
    cdef Py_ssize_t places = layout.rows[a].n, windows = tile.end[a] - tile.begin[a], w
    cdef acc_t* strip = <acc_t*> tile.scratch + layout.strips
    cdef acc_t* reduced = strip + (places + 1) * width + SLACK
    reduce_tree(strip, reduced, Trees(axis.kernel, axis.dilation * width, places * width, windows, width,
                                      axis.stride * width))
    for w in range(windows):
        memcpy(y + w * step, reduced + w * width, n * sizeof(acc_t))


cdef void load_tree_rows(const Tile* tile, const Layout* layout, Columns* c, const elem_t* x, acc_t* y,
                         Py_ssize_t step) noexcept nogil:
    """Load one row of each window of the first axis, strip by strip. If places are not adjacent, a strip lies within
    one place."""
    cdef int last = tile.rank - 1
    cdef const Rows* rows = &layout.rows[0]
    cdef Py_ssize_t low = (layout.low - layout.begin) * tile.lanes, high = (layout.high - layout.begin) * tile.lanes
    cdef Py_ssize_t above = min(rows.n, max(0, -rows.begin))
    cdef Py_ssize_t below = max(above, min(rows.n, tile.axis[0].size - rows.begin))
    cdef Py_ssize_t v = 0, most = strip_of(rows, tile.far >= BEYOND), end, first, width, w
    cdef acc_t* strip = <acc_t*> tile.scratch + layout.strips
    c.step, c.pieces, c.taps = tile.x_stride[0], 1, 1
    c.fresh, c.ahead = 1 if is_far(tile) else 0, most
    x += (rows.begin + above) * c.step
    while v < layout.pitch:
        end = min(layout.pitch, v + most)
        if tile.x_stride[last] != tile.lanes:
            end = min(end, (v // tile.lanes + 1) * tile.lanes)
        first, width = min(end, max(v, low)), round_up(end - v, LANES)
        c.left, c.n, c.pitch = first - v, max(0, min(end, high) - first), width
        c.gap = width - c.n
        if not c.n:
            fill_row(strip, width)
            for w in range(tile.end[0] - tile.begin[0]):
                memcpy(y + v + w * step, strip, (end - v) * sizeof(acc_t))
            v = end
            continue
        fill_row(strip, above * width)
        load_rows(c, x + (first - low) // tile.lanes * tile.x_stride[last] + (first - low) % tile.lanes,
                  strip + above * width, below - above)
        fill_row(strip + below * width, (rows.n - below) * width)
        reduce_strip(tile, layout, 0, width, y + v, step, end - v)
        v = end


cdef enum:
    LONG_ROW = 8      # minimum vectors of a row whose values are added to sums and subtracted again
    MANY_WINDOWS = 4  # minimum number of windows along the first axis, for the same purpose
    LEAST_PIECE = 1024  # minimum bytes of a piece of such a row; half as many take 1.2 times as long


cdef inline bint slides(const Tile* tile, const Layout* layout) noexcept nogil:
    """Whether windows of the first axis take few new rows, whose values can be added to sums and subtracted again. With
    short rows or few windows, this takes 1.3 to 1.5 times as long. Otherwise, it is 1.06x faster on average, 1.6x at
    best (Zen 5)."""
    cdef const Axis* axis = &tile.axis[0]
    return (EXACT and tile.x_stride[tile.rank - 1] == tile.lanes and axis.stride % axis.dilation == 0
            and axis.stride <= MOST_FRESH * axis.dilation and axis.stride < axis.kernel * axis.dilation
            and layout.pitch >= LONG_ROW * LANES and tile.end[0] - tile.begin[0] >= MANY_WINDOWS)


cdef void change_row(const acc_t* before, acc_t* y, Py_ssize_t n, const elem_t* old, const elem_t* fresh,
                     const Rule* shared, Py_ssize_t ahead) noexcept nogil:
    """y = `before`, minus an old row, plus a fresh row, of n values each. A row may be NULL. Fresh elements are
    prefetched this far ahead, unless `ahead` is 0."""
    cdef Rule rule = shared[0]  # a copy, which no store changes
    cdef Py_ssize_t i = 0
    cdef vec_t v, last  # memcpy takes the address of `last`, so only v stays in a register
    while i + LANES <= n:
        if ahead and fresh != NULL:
            fetch(fresh + i + ahead, LANES * sizeof(elem_t))
        v = vec_read(before + i)
        if old != NULL:
            v = vec_without(v, vec_load(old + i, &rule))
        if fresh != NULL:
            v = vec_merge(v, vec_load(fresh + i, &rule))
        vec_write(y + i, v)
        i += LANES
    if i < n:
        last = vec_read(before + i)
        if old != NULL:
            last = vec_without(last, vec_load_part(old + i, n - i, &rule))
        if fresh != NULL:
            last = vec_merge(last, vec_load_part(fresh + i, n - i, &rule))
        memcpy(y + i, &last, (n - i) * sizeof(acc_t))


cdef inline const elem_t* row_at(const Tile* tile, const elem_t* x, Py_ssize_t place) noexcept nogil:
    """A row of the first axis, or NULL in the padding."""
    return x + place * tile.x_stride[0] if 0 <= place < tile.axis[0].size else NULL


cdef void slide_piece(const Tile* tile, const elem_t* x, acc_t* y, Py_ssize_t step, Py_ssize_t n) noexcept nogil:
    """Load n values of a row for each window of the first axis: the row of the window before it, minus old rows, plus
    fresh rows."""
    cdef const Axis* axis = &tile.axis[0]
    cdef Py_ssize_t fresh = axis.stride // axis.dilation, place = tile.begin[0] * axis.stride - axis.pad, k, _
    cdef Py_ssize_t ahead = axis.stride * tile.x_stride[0] if is_far(tile) else 0
    cdef const acc_t* before
    fill_part(y, n)
    for k in range(axis.kernel):
        change_row(y, y, n, NULL, row_at(tile, x, place + k * axis.dilation), tile.rule, ahead)
    for _ in range(1, tile.end[0] - tile.begin[0]):
        before = y
        y += step
        for k in range(fresh):
            change_row(before, y, n, row_at(tile, x, place + k * axis.dilation),
                       row_at(tile, x, place + (axis.kernel + k) * axis.dilation), tile.rule, ahead)
            before = y
        place += axis.stride


cdef void slide_rows(const Tile* tile, const Layout* layout, const elem_t* x, acc_t* y, Py_ssize_t step) noexcept nogil:
    """Load one row of each window of the first axis, in pieces whose elements stay in the L1 cache until they are
    subtracted."""
    cdef Py_ssize_t low = (layout.low - layout.begin) * tile.lanes, high = (layout.high - layout.begin) * tile.lanes
    cdef Py_ssize_t near = tile.axis[0].span * <Py_ssize_t> sizeof(elem_t) + 2 * <Py_ssize_t> sizeof(acc_t), w, n
    cdef Py_ssize_t piece = STRIP // near // SLACK * SLACK
    if piece * <Py_ssize_t> sizeof(elem_t) < LEAST_PIECE:
        piece = high - low
    for w in range(tile.end[0] - tile.begin[0]):
        fill_part(y + w * step, low)
        fill_part(y + w * step + high, layout.pitch - high)
    while low < high:
        n = min(piece, high - low)
        slide_piece(tile, x, y + low, step, n)
        x, low = x + n, low + n


cdef void load_trees(const Tile* tile, const Layout* layout, Columns* c, const elem_t* x, acc_t* y) noexcept nogil:
    """Load the rows of all windows of the first axis, which is reduced as a tree."""
    cdef int last = tile.rank - 1, a
    cdef Py_ssize_t step = rows_from(layout, 1, last) * layout.pitch, w
    cdef Py_ssize_t[MOST_AXES] at, low, high
    cdef const elem_t* source
    cdef bint inside
    for a in range(1, last):
        low[a], high[a] = layout.rows[a].begin, layout.rows[a].begin + layout.rows[a].n
        at[a] = low[a]
    while True:
        source, inside = x, True
        for a in range(1, last):
            source += at[a] * tile.x_stride[a]
            inside &= 0 <= at[a] < tile.axis[a].size
        if inside and layout.rows[0].alone:
            load_each(tile, layout, source, y, step, layout.pitch)
        elif inside and slides(tile, layout):
            slide_rows(tile, layout, source, y, step)
        elif inside:
            load_tree_rows(tile, layout, c, source, y, step)
        else:
            for w in range(tile.end[0] - tile.begin[0]):  # exactly to the end, because later values are already written
                fill_part(y + w * step, layout.pitch)
        y += layout.pitch
        if advance(at + 1, low + 1, high + 1, last - 1) < 0:
            return


cdef void reduce_tree_axis(const Tile* tile, const Layout* layout, int a, Py_ssize_t post, const acc_t* x,
                           acc_t* y) noexcept nogil:
    """Reduce an axis after the first one as a tree."""
    cdef Py_ssize_t v = 0, width = strip_of(&layout.rows[a], False), n, p
    cdef acc_t* strip = <acc_t*> tile.scratch + layout.strips
    while v < post:
        n = min(width, post - v)
        for p in range(layout.rows[a].n):
            memcpy(strip + p * width, x + p * post + v, n * sizeof(acc_t))
        reduce_strip(tile, layout, a, width, y + v, post, n)
        v += n


cdef void reduce_axis(const Tile* tile, const Layout* layout, int a, Py_ssize_t before, Py_ssize_t post, const acc_t* x,
                      acc_t* y) noexcept nogil:
    """Reduce an axis before the last one, with `post` values from one place to the next."""
    cdef const Axis* axis = &tile.axis[a]
    cdef Py_ssize_t _, w, n, windows = layout.rows[a].windows
    cdef Run run
    for _ in range(before):
        w = 0
        if layout.rows[a].alone:
            reduce_each(tile, layout, a, x, y, 1, post)
            w = windows
        elif is_tree(axis):
            reduce_tree_axis(tile, layout, a, post, x, y)
            w = windows
        while w < windows:  # adjacent windows are summed together, if their taps are adjacent too
            run = run_at(axis, tile.begin[a] + w, tile.begin[a] + windows)
            n = run.n if axis.stride == 1 else 1
            if run.window.taps:
                sum_taps(x + (run.window.first - layout.rows[a].begin) * post, y + w * post, n * post,
                         run.window.taps, axis.dilation * post)
            else:
                fill_row(y + w * post, n * post)
            w += n
        x, y = x + layout.rows[a].n * post, y + windows * post


cdef acc_t* reduce_block(const Tile* tile, const Layout* layout, acc_t* x, acc_t* y, acc_t* z) noexcept nogil:
    """Reduce the axes of a block x, but leave taps of the last axis that `finish_rows` reduces. Returns the address of
    the reduced rows: x, y or z. z may be x."""
    cdef int last = tile.rank - 1, a
    cdef Py_ssize_t rows = layout.items, values
    cdef const Axis* axis = &tile.axis[last]
    for a in range(last):
        if a > 0:
            reduce_axis(tile, layout, a, rows, rows_from(layout, a + 1, last) * layout.pitch, x, y)
            x, y, z = y, z, y
        rows *= layout.rows[a].windows
    if not (layout.picked or is_tree(axis)) or layout.alone and last == 0:
        return x
    if layout.folded:
        fold_rows(tile, layout, x, y, rows)
        return y
    if layout.alone:
        reduce_each(tile, layout, last, x, y, rows, tile.lanes)
        return y
    # All rows are reduced at once, as if they were one. Totals that cross from row to row belong to no window.
    values = rows * layout.pitch - (axis.kernel - 1) * axis.dilation * tile.lanes
    if is_tree(axis):
        reduce_tree(x, y, Trees(axis.kernel, axis.dilation * tile.lanes, rows * layout.pitch, 1, values, values))
    else:
        sum_taps(x, y, values, axis.kernel, axis.dilation * tile.lanes)
    calm(y + values)
    if not layout.picked:
        return y
    pick_rows(y, x, rows, layout.pitch, tile.end[last] - tile.begin[last], axis.stride * tile.lanes, tile.lanes)
    return x


cdef void finish_windows(Along* along, const acc_t* x, elem_t* y, Py_ssize_t rows, double outer,
                         bint empty) noexcept nogil:
    """Finish rows whose other axes have the same divisor. If `empty`, they are in the padding."""
    if not empty:
        finish_rows(along, x, y, rows, outer)
    finish_empty(along, empty, y, rows, outer)


cdef void finish_axis(const Tile* tile, const Layout* layout, Along* along, const acc_t* x, elem_t* y, Py_ssize_t begin,
                      double count, bint empty) noexcept nogil:
    """Finish the rows of windows of the second-to-last axis, from `begin` on."""
    cdef int inner = tile.rank - 2
    cdef Py_ssize_t w = begin, end = begin + layout.rows[inner].windows
    cdef Run run
    while w < end:
        run = run_at(&tile.axis[inner], w, end)
        finish_windows(along, x, y + w * tile.y_stride[inner], run.n, count * run.window.divisor,
                       empty or run.window.taps == 0)
        x += run.n * layout.pitch
        w += run.n


cdef void finish_block(const Tile* tile, const Layout* layout, Along* along, const acc_t* x, elem_t* y,
                       Py_ssize_t begin) noexcept nogil:
    """Finish the rows of all windows of the axes before the last one. Windows of the first axis start at `begin`."""
    cdef int inner = tile.rank - 2, a
    cdef Py_ssize_t[MOST_AXES] at, low, high
    cdef Py_ssize_t rows = layout.items if layout.finished < 0 else 1
    cdef elem_t* target
    cdef double count
    cdef bint empty
    cdef Window window
    if inner < 0:
        finish_windows(along, x, y, rows, 1, False)
        return
    for a in range(inner + 1):
        low[a], high[a] = tile.begin[a], tile.end[a]
        if a == 0:
            low[0], high[0] = begin, begin + layout.rows[0].windows
        at[a] = low[a]
        if a >= layout.finished:
            rows *= high[a] - low[a]
    while True:
        target, count, empty = y, 1, False
        for a in range(inner):
            target += at[a] * tile.y_stride[a]
            window = window_at(&tile.axis[a], at[a])
            count *= window.divisor
            empty |= window.taps == 0
        if layout.finished > inner:
            finish_axis(tile, layout, along, x, target, low[inner], count, empty)
            x += (high[inner] - low[inner]) * layout.pitch
        else:
            finish_windows(along, x, target + low[inner] * tile.y_stride[inner], rows, 1, False)
            x += rows * layout.pitch
        if advance(at, low, high, min(inner, layout.finished)) < 0:
            return


cdef bint is_inside(const Tile* tile, const Layout* layout, int a) noexcept nogil:
    """Whether no row of a block along an axis is in the padding."""
    return layout.rows[a].begin >= 0 and layout.rows[a].begin + layout.rows[a].n <= tile.axis[a].size


cdef inline bint is_inner(const Axis* axis, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Whether no tap of the windows [begin, end) is in the padding."""
    return axis.begin <= begin and end <= axis.end


cdef bint reads_all(const Tile* tile, int a) noexcept nogil:
    """Whether every window of an axis has taps."""
    cdef Py_ssize_t w = tile.begin[a]
    while w < tile.end[a]:
        if w == tile.axis[a].begin and w < tile.axis[a].end:
            w = tile.axis[a].end
        elif window_at(&tile.axis[a], w).taps:
            w += 1
        else:
            return False
    return True


cdef void merge_axes(const Tile* tile, Layout* layout) noexcept nogil:
    """Find which axes before the last one can be processed together, because their rows follow each other in memory.
    Axes of results, and items, are joined only if nothing is divided and every window has taps."""
    cdef int inner = tile.rank - 2, a
    cdef Py_ssize_t windows = tile.end[0] - tile.begin[0]
    layout.even = inner < 0 or inner == 0 and is_inner(&tile.axis[0], tile.begin[0], tile.end[0]) and (
        tile.x_item == windows * tile.axis[0].stride * tile.x_stride[0])
    if inner < 0:
        layout.finished = -1
        return
    layout.loaded, layout.finished = inner, inner + 1
    while (layout.loaded > 1 and is_inside(tile, layout, layout.loaded - 1) and is_inside(tile, layout, layout.loaded)
           and tile.x_stride[layout.loaded - 1] == layout.rows[layout.loaded].n * tile.x_stride[layout.loaded]):
        layout.loaded -= 1
    for a in range(inner + 1):
        if DIVIDES or not reads_all(tile, a):
            return
    a = inner
    while a > 0 and tile.y_stride[a - 1] == (tile.end[a] - tile.begin[a]) * tile.y_stride[a]:
        a -= 1
    if a == 0 and tile.y_item == windows * tile.y_stride[0]:
        a = -1
    layout.finished = a


cdef void pool_items(const Tile* tile, Layout* layout, Columns* c, Along* along, const elem_t* x,
                     elem_t* y) noexcept nogil:
    """Pool one item, or as many small items as fit."""
    cdef int last = tile.rank - 1, a
    cdef Py_ssize_t k, loaded, finished
    cdef acc_t* block = <acc_t*> tile.scratch
    cdef acc_t* rows = block
    cdef Py_ssize_t w = tile.begin[0] if last else 0, end = tile.end[0] if last else 1
    cdef bint tree = starts_as_tree(tile)
    cdef acc_t* next_rows
    cdef acc_t* reduced
    cdef vec_t kept
    x += layout.low * tile.x_stride[last]
    y += tile.begin[last] * tile.y_stride[last]
    if tree:
        rows = block + layout.trees
        load_trees(tile, layout, c, x, rows)
        calm(rows + (end - w) * rows_from(layout, 1, last) * layout.pitch)
    while w < end:
        if last:
            layout.rows[0].windows = min(layout.chunk, end - w)
            if not is_tree(&tile.axis[0]):
                layout.rows[0].n = layout.rows[0].windows
        loaded = finished = layout.pitch
        for a in range(last):
            loaded *= layout.rows[a].windows if a == 0 else layout.rows[a].n
            finished *= layout.rows[a].windows
        if tree:  # passes in place may write a partial vector past these rows, into the rows that follow
            next_rows = rows + loaded
            kept = vec_read(next_rows)
        for k in range(0 if tree else 1 if layout.even else layout.items):
            load_block(tile, layout, c, x + k * tile.x_item, w, rows + k * loaded)
        if not tree:
            calm(rows + layout.items * loaded)
        reduced = reduce_block(tile, layout, rows, block + layout.block, block)
        for k in range(1 if layout.finished < 0 else layout.items):
            finish_block(tile, layout, along, reduced + k * finished, y + k * tile.y_item, w)
        w += layout.chunk
        if tree:
            vec_write(next_rows, kept)
            rows = next_rows


cdef void pool_tile(const Tile* tile) noexcept nogil:
    cdef Py_ssize_t item = 0
    cdef Layout layout
    cdef Along along
    cdef Columns c
    lay_out(tile, &layout)
    prepare_along(tile, &layout, &along)
    merge_axes(tile, &layout)
    prepare_columns(tile, &layout, &c)
    along.limit = limit_of(tile, &along)
    while item < tile.items:
        layout.items = min(layout.items, tile.items - item)
        pool_items(tile, &layout, &c, &along, <const elem_t*> tile.x + item * tile.x_item,
                   <elem_t*> tile.y + item * tile.y_item)
        item += layout.items


cdef void pool_touching(const Tile* tile) noexcept nogil:
    """Pool the windows that touch the input, and finish the others. Rows of all windows would hold long padding."""
    cdef Py_ssize_t[MOST_AXES] low, high
    cdef Tile touching = tile[0]
    cdef bint some = True
    cdef int a
    for a in range(tile.rank):
        touching_of(&tile.axis[a], tile.begin[a], tile.end[a], &low[a], &high[a])
        some &= low[a] < high[a]
    finish_outside(tile, low, high)
    touching.begin, touching.end = low, high
    if some:
        pool_tile(&touching)


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef bint all_windows = True
    cdef int a
    for a in range(tile.rank):
        all_windows &= touch(&tile.axis[a], tile.begin[a], tile.end[a])
    if all_windows:
        pool_tile(tile)
    else:
        pool_touching(tile)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    """Bytes of scratch memory for a tile of this size."""
    cdef Py_ssize_t[MOST_AXES] low, high
    cdef Layout layout
    cdef Tile touching = tile[0]
    cdef int a
    cdef double elements = <double> tile.items * tile.lanes  # before a product of their number wraps around
    touching.begin, touching.end = low, high
    for a in range(tile.rank):
        elements *= min(<double> tile.axis[a].size, <double> (tile.end[a] - tile.begin[a]) * tile.axis[a].stride
                        + <double> tile.axis[a].kernel * tile.axis[a].dilation)
    if elements * sizeof(Woven4) > TOO_LARGE:
        return TOO_LARGE
    for a in range(tile.rank):
        touching_of(&tile.axis[a], 0, tile.axis[a].out, &low[a], &high[a])
        low[a], high[a] = 0, max(1, min(tile.end[a] - tile.begin[a], high[a] - low[a]))
    lay_out(&touching, &layout)
    return layout.all * sizeof(acc_t)
