"""Rows of a block in scratch memory: the size that a tile needs, and the loops along rows. Each loop processes many
rows."""
from libc.string cimport memcpy

from .element cimport (
    DIVIDES,
    EXACT,
    IDEMPOTENT,
    KEEPS,
    LANES,
    Block,
    Ends,
    acc_t,
    block_t,
    elem_t,
    ends_suit,
    join,
    load,
    read,
    set_row,
    vec_merge,
    vec_none,
    vec_read,
    vec_t,
    vec_without,
    vec_write,
    width,
    write,
)
from .job cimport CACHE_LINE, FEW, MOST_AXES, Axis, Rule, Tile, bits_of, elements_of, fetch, round_up

cdef enum:
    SLACK = 8 * LANES     # values after an area that loops may read or write
    NARROW = 4 * LANES    # rows of fewer values are not rounded up
    NEAR = 8192           # bytes of a block that stays in the L1 cache
    AHEAD = 2048          # prefetch distance for rows, in bytes, approximately
    STRIP = 24576         # bytes of a strip that stays in the L1 cache
    PIECE = 8192          # bytes of a row that are read before the next row, if windows are reduced one by one
    PART = 16384          # maximum bytes of accumulators for such a piece
    MOST_FRESH = 3        # maximum new taps of a window whose sum is derived from the window before it
    SLOTS = 4             # kinds of rows whose divisors are kept (along.pxd)

cdef struct Rows:
    # The rows of a block along any axis but the last: places, or windows once the axis is reduced.
    Py_ssize_t begin, n, windows
    bint alone                               # whether windows are reduced one by one, each as a tree of its own

cdef struct Layout:
    # The areas of scratch memory that a tile needs: sizes and positions, in accumulators.
    Rows[MOST_AXES] rows
    # Axes before `loaded` are loaded place by place, and axes before `finished` are finished place by place. Other axes
    # are processed at once. If `finished` is -1, items are finished at once, too.
    int loaded, finished
    bint even                                # whether loaded rows are equally far apart across items
    Py_ssize_t chunk, items                  # windows of the first axis, and items, that are processed at a time
    Py_ssize_t begin, places, low, high      # last axis: first place, number of places, range of places inside
    Py_ssize_t pitch                         # from row to row
    Py_ssize_t split, joined                 # number of phases of a row, and how many of them are joined; or 0
    bint picked                              # whether windows of stride 1 are reduced, and every stride-th is picked
    bint alone                               # whether windows of the last axis are reduced one by one
    bint folded                              # whether the taps of such windows are also adjacent
    Py_ssize_t block                         # size of each of the two blocks
    Py_ssize_t part                          # size of a part of a window that is reduced on its own
    # Positions of rows whose first axis was a tree, and of a strip or of parts; then of the areas after these.
    Py_ssize_t trees, strips
    Py_ssize_t divisors, segments, all


cdef inline bint is_tree(const Axis* axis) noexcept nogil:
    return axis.kernel > FEW


cdef inline bint starts_as_tree(const Tile* tile) noexcept nogil:
    """Whether the first of several axes is reduced as a tree, while it is loaded, strip by strip."""
    return tile.rank > 1 and is_tree(&tile.axis[0])


cdef inline bint is_alone(const Axis* axis) noexcept nogil:
    """Whether the windows of an axis are reduced one by one, because they share few places. Otherwise, each place is
    loaded twice, added and stored on every level of the tree. Retries are rare and always share trees."""
    return not KEEPS and axis.singly


cdef inline void lay_last(const Tile* tile, Layout* layout) noexcept nogil:
    cdef int last = tile.rank - 1
    cdef const Axis* axis = &tile.axis[last]
    cdef Py_ssize_t windows = tile.end[last] - tile.begin[last]
    cdef bint strided = axis.stride > 1 and axis.out > 1 and tile.most_lanes < LANES
    layout.begin = tile.begin[last] * axis.stride - axis.pad
    layout.places = (windows - 1) * axis.stride + axis.span
    layout.low = min(max(0, layout.begin), layout.begin + layout.places)  # a whole row may lie before the first element
    layout.high = max(layout.low, min(axis.size, layout.begin + layout.places))
    layout.split, layout.joined = 0, 0
    if strided and tile.all_lanes == 1 and axis.stride <= 4 and not is_tree(axis) and not starts_as_tree(tile):
        layout.split = axis.stride
        # Windows without padding that share no place, if other axes are reduced before the last one.
        if axis.span == axis.kernel <= axis.stride and tile.rank <= 2 and layout.high - layout.low == layout.places:
            layout.joined = axis.kernel
    layout.picked = strided and not layout.split
    layout.alone = is_alone(axis)
    layout.folded = layout.alone and tile.all_lanes == 1
    if layout.alone and last == 0:  # a row of results, because elements are reduced while they are loaded
        layout.begin, layout.places, layout.low, layout.high = 0, windows, 0, 1
    # Rows and their phases are whole vectors. Short rows need not be: later writes replace values written past them.
    layout.pitch = layout.places * tile.lanes
    if layout.split or layout.pitch >= NARROW:
        layout.pitch = round_up(layout.pitch, LANES * axis.stride if layout.split else LANES)


cdef inline Py_ssize_t values_of_strip(bint wide) noexcept nogil:
    return (2 if IDEMPOTENT and wide else 1) * STRIP // <Py_ssize_t> sizeof(acc_t)


cdef inline Py_ssize_t strip_of(const Rows* rows, bint wide) noexcept nogil:
    """The width of a strip in values. A strip has a row for each place of an axis. If `wide`, elements come from main
    memory, where longer pieces of rows arrive faster."""
    cdef Py_ssize_t near = values_of_strip(wide) // rows.n
    cdef Py_ssize_t line = CACHE_LINE // <Py_ssize_t> sizeof(elem_t)
    return max(1, near // line) * line


cdef inline Py_ssize_t rows_from(const Layout* layout, int first, int last) noexcept nogil:
    """The number of rows of a block for each place of the axes before `first`."""
    cdef Py_ssize_t rows = 1
    cdef int a
    for a in range(first, last):
        rows *= layout.rows[a].n
    return rows


cdef inline Py_ssize_t piece_of() noexcept nogil:
    """How many values of a row are read before the next row, if windows are reduced one by one."""
    return min(PIECE // <Py_ssize_t> sizeof(elem_t), PART // <Py_ssize_t> sizeof(acc_t))


cdef inline Py_ssize_t strips_of(const Tile* tile, const Layout* layout) noexcept nogil:
    """Values of a strip, before and after reduction. They suffice for tiles with fewer windows and wider strips."""
    cdef Py_ssize_t near = values_of_strip(True), most = 0
    cdef Py_ssize_t line = CACHE_LINE // <Py_ssize_t> sizeof(elem_t)
    cdef int a
    for a in range(tile.rank):
        if not is_tree(&tile.axis[a]):
            continue
        if a < tile.rank - 1:
            most = max(most, max((layout.rows[a].n + 1 + layout.rows[a].windows) * line, 2 * near + near // FEW))
        if layout.alone and not layout.folded if a == tile.rank - 1 else layout.rows[a].alone:
            most = max(most, (bits_of(tile.axis[a].kernel) + 1) * layout.part)
    return most + 2 * SLACK if most else 0


cdef inline Py_ssize_t largest_block(const Layout* layout, int last) noexcept nogil:
    """The maximum number of values that a block has before or after a pass along an axis other than the first."""
    cdef Py_ssize_t n = rows_from(layout, 1, last) * layout.pitch, most = n
    cdef int a
    for a in range(1, last):
        n = n // layout.rows[a].n * layout.rows[a].windows
        most = max(most, n)
    return most


cdef inline void keep_elements(const Tile* tile, int a, Rows* rows) noexcept nogil:
    """Keep only the places that windows read, because others may lie outside the array."""
    cdef Py_ssize_t high
    elements_of(&tile.axis[a], tile.begin[a], tile.end[a], &rows.begin, &high)
    rows.n = high - rows.begin
    if not rows.n:  # keep one place in the padding
        rows.begin, rows.n = -1, 1


cdef inline void lay(const Tile* tile, Layout* layout) noexcept nogil:
    """Lay out the scratch memory of a tile. Its size depends on the number of windows, not on their positions."""
    cdef int a, last = tile.rank - 1
    cdef bint tree = starts_as_tree(tile)
    cdef const Axis* axis
    cdef Py_ssize_t windows = tile.end[last] - tile.begin[last], segments, near = NEAR // <Py_ssize_t> sizeof(acc_t)
    lay_last(tile, layout)
    for a in range(last):
        axis = &tile.axis[a]
        layout.rows[a].windows = tile.end[a] - tile.begin[a]
        layout.rows[a].n = (layout.rows[a].windows - 1) * axis.stride + axis.span
        layout.rows[a].begin = tile.begin[a] * axis.stride - axis.pad
        if not is_tree(&tile.axis[a]):
            layout.rows[a].n = min(layout.rows[a].n, axis.size)
        layout.rows[a].alone = is_alone(axis)
    layout.part = round_up(min(piece_of(), rows_from(layout, 1, last) * layout.pitch), LANES) + LANES
    layout.block = largest_block(layout, last)
    layout.chunk = layout.rows[0].windows if last else 1
    layout.trees = layout.chunk * rows_from(layout, 1, last) * layout.pitch + SLACK if tree else 0
    # At least NEAR bytes, because tiles with fewer windows have larger chunks, and more items at a time.
    layout.items = 1 if tree else min(tile.items, max(1, near // (layout.chunk * layout.block)))
    layout.chunk = min(layout.chunk, max(1, near // layout.block))
    layout.block = max(near, layout.items * layout.chunk * layout.block) + SLACK
    # Windows of the interior share one divisor; each other window may have its own.
    axis = &tile.axis[last]
    segments = min(windows, axis.begin + axis.out - axis.end) + 1
    layout.divisors = 0
    if DIVIDES:
        layout.divisors = SLACK + (round_up(windows * min(tile.lanes, LANES), LANES) if segments > 1 else 0)
    # The areas follow each other in this order: two blocks, divisors, trees, a strip, segments.
    layout.strips = 2 * layout.block + 2 * SLOTS * layout.divisors + layout.trees
    layout.trees = layout.strips - layout.trees
    layout.segments = round_up(layout.strips + strips_of(tile, layout), LANES)
    layout.all = layout.segments + segments * (1 + 24 // sizeof(acc_t))
    for a in range(1, last):
        if not is_tree(&tile.axis[a]):
            keep_elements(tile, a, &layout.rows[a])


cdef inline void fill_row(acc_t* y, Py_ssize_t n) noexcept nogil:
    """Write at least n identities."""
    cdef Py_ssize_t i = 0
    while i < n:
        vec_write(y + i, vec_none())
        i += LANES


cdef inline void calm(acc_t* end) noexcept nogil:
    """Write identities behind an area, because loops compute with these values. Other values could raise exceptions,
    after which a tile is computed again."""
    vec_write(end, vec_none())


cdef inline void fill_exactly(acc_t* y, Py_ssize_t n) noexcept nogil:
    cdef vec_t none = vec_none()
    cdef Py_ssize_t i = 0
    while i < n:
        memcpy(y + i, &none, min(<Py_ssize_t> LANES, n - i) * sizeof(acc_t))
        i += LANES


cdef struct Columns:
    # How rows of elements become rows of a block: `taps` rows of elements are reduced to one.
    Py_ssize_t pieces, n, piece              # pieces of a row, values of each; values of x from piece to piece
    Py_ssize_t taps, tap                     # number of taps, and values from one tap to the next
    Py_ssize_t step                          # from one row to the next
    Py_ssize_t fresh, ahead                  # how many of the last taps are prefetched, and how many values ahead
    Py_ssize_t pitch, left, gap              # pitch of the block; identities before the first row, and between rows
    Py_ssize_t split, joined                 # number of phases, and how many of the first are merged; or 0
    Py_ssize_t phase, length                 # values from phase to phase, and of a phase
    const elem_t* begin                      # all elements from `begin` to `limit` may be read, needed or not;
    const elem_t* limit                      # or NULL
    const Rule* rule


cdef inline void load_columns(block_t* unused, const Columns* c, Py_ssize_t n, const elem_t* x, acc_t* y,
                              Py_ssize_t rows, bint is_last) noexcept nogil:
    """Load a piece of n values of each row, and write identities after the last piece. The last block of a piece
    overlaps the block before it. A piece shorter than a vector writes past its end, where later writes replace the
    values."""
    cdef block_t v, later
    cdef Py_ssize_t _, t, i, g, block = width(unused), behind = max(0, n - block)
    cdef Py_ssize_t tap = c.tap, step = c.step, pitch = c.pitch, gap = c.gap if is_last else 0
    cdef Py_ssize_t taps = c.taps, fetched = taps - c.fresh, ahead = c.ahead
    cdef const elem_t* limit = c.limit
    cdef Rule rule = c.rule[0]  # a copy, which no store changes
    if limit != NULL:
        limit -= (taps - 1) * tap + LANES
    set_row(&v, n)
    set_row(&later, n)
    for _ in range(rows):
        i = 0
        while True:
            i = min(i, behind)
            for t in range(fetched, taps):
                fetch(x + i + t * tap + ahead, block * sizeof(elem_t))
            if block == LANES and n < LANES and x > limit:
                load(&v, x, n, &rule)
                for t in range(1, taps):
                    load(&later, x + t * tap, n, &rule)
                    join(&v, &later)
            else:
                load(&v, x + i, LANES, &rule)
                for t in range(1, taps):
                    load(&later, x + i + t * tap, LANES, &rule)
                    join(&v, &later)
            write(y + i, &v)
            i += block
            if block == LANES or i >= n:
                break
        g = 0
        while g < gap:
            vec_write(y + n + g, vec_none())
            g += LANES
        x += step
        y += pitch


cdef inline void load_rows_of(const Columns* c, const elem_t* x, acc_t* y, Py_ssize_t rows) noexcept nogil:
    cdef Py_ssize_t p, r, each, n = c.n
    cdef const elem_t* source
    if c.pieces == 1 and n == c.step == c.pitch:  # consecutive rows without padding are one long row
        n, rows = rows * n, 1
    each = rows if c.pieces == 1 else 1  # the pieces of a row are loaded in order
    fill_row(y, c.left)
    y += c.left
    for r in range(rows // each):
        for p in range(c.pieces):
            source = x + r * c.step + p * c.piece
            if n <= LANES:
                load_columns(<vec_t*> NULL, c, n, source, y + r * c.pitch + p * n, each, p == c.pieces - 1)
            elif ends_suit(n):
                load_columns(<Ends*> NULL, c, n, source, y + r * c.pitch + p * n, each, p == c.pieces - 1)
            else:
                load_columns(<Block*> NULL, c, n, source, y + r * c.pitch + p * n, each, p == c.pieces - 1)


cdef inline Py_ssize_t sum_rows(block_t* unused, Py_ssize_t i, const acc_t* x, acc_t* y, Py_ssize_t n, Py_ssize_t taps,
                                Py_ssize_t stride, bint onto) noexcept nogil:
    """Reduce `taps` rows of accumulators to one, or onto y. The last vector may write past the end."""
    cdef block_t v, later
    cdef Py_ssize_t t, block = width(unused)
    while i + block <= n or (block == LANES and i < n):
        read(&v, (<const acc_t*> y if onto else x) + i)
        for t in range(0 if onto else 1, taps):
            read(&later, x + i + t * stride)
            join(&v, &later)
        write(y + i, &v)
        i += block
    return i


cdef inline void sum_all(const acc_t* x, acc_t* y, Py_ssize_t n, Py_ssize_t taps, Py_ssize_t stride) noexcept nogil:
    sum_rows(<vec_t*> NULL, sum_rows(<Block*> NULL, 0, x, y, n, taps, stride, False), x, y, n, taps, stride, False)


cdef inline void sum_onto(const acc_t* x, acc_t* y, Py_ssize_t n, Py_ssize_t taps, Py_ssize_t stride) noexcept nogil:
    sum_rows(<vec_t*> NULL, sum_rows(<Block*> NULL, 0, x, y, n, taps, stride, True), x, y, n, taps, stride, True)


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
    """y = x joined with `later`. The last vector may write past the end."""
    add_rows(<vec_t*> NULL, add_rows(<Block*> NULL, 0, x, later, y, n), x, later, y, n)


cdef inline Py_ssize_t add_pairs(block_t* unused, Py_ssize_t i, const acc_t* x, const acc_t* rest, acc_t* y,
                                 Py_ssize_t n, Py_ssize_t half) noexcept nogil:
    """y = x joined with x + half and with `rest`. For maxima, y is also joined with rest + half."""
    cdef block_t v, w, later
    cdef Py_ssize_t block = width(unused)
    while i + block <= n or (block == LANES and i < n):
        read(&v, x + i)
        read(&later, x + half + i)
        join(&v, &later)
        read(&w, rest + i)
        if IDEMPOTENT:
            read(&later, rest + half + i)
            join(&w, &later)
        join(&v, &w)
        write(y + i, &v)
        i += block
    return i


cdef struct Trees:
    # Windows of many taps.
    Py_ssize_t taps, distance  # number of taps, and values from tap to tap
    Py_ssize_t values          # number of values of x
    Py_ssize_t windows         # number of windows
    Py_ssize_t width, step     # values of a window, and values from window to window


cdef inline void slide_sums(const acc_t* x, acc_t* y, const Trees* t, Py_ssize_t fresh) noexcept nogil:
    """y[window] = the sum of each window's taps, of which `fresh` are not in the window before it."""
    cdef Py_ssize_t w, i, k
    cdef const acc_t* later
    cdef acc_t* target
    cdef vec_t v
    sum_all(x, y, t.width, t.taps, t.distance)
    for w in range(1, t.windows):
        target, i = y + w * t.width, 0
        later = x + t.taps * t.distance
        while i < t.width:
            v = vec_read(target - t.width + i)
            for k in range(fresh):
                v = vec_merge(vec_without(v, vec_read(x + k * t.distance + i)), vec_read(later + k * t.distance + i))
            vec_write(target + i, v)
            i += LANES
        x += t.step


cdef inline void sum_windows(const acc_t* x, acc_t* y, const Trees* t, Py_ssize_t taps, bint onto) noexcept nogil:
    """y[window] = the sum of these taps of each window. If `onto`, the sum is added to y."""
    cdef Py_ssize_t w
    for w in range(t.windows):
        if onto:
            sum_onto(x + w * t.step, y + w * t.width, t.width, taps, t.distance)
        else:
            sum_all(x + w * t.step, y + w * t.width, t.width, taps, t.distance)


cdef inline Py_ssize_t factor_of(Py_ssize_t taps) noexcept nogil:
    """How many taps to add in the first round: 3 to 5, chosen so that few are left over."""
    cdef Py_ssize_t factor = 4
    if taps % 5 < taps % 4:
        factor = 5
    return 3 if taps % 3 < taps % factor else factor


cdef inline void sum_in_rounds(acc_t* x, acc_t* y, Trees t) noexcept nogil:
    """y[window] = the sum of each window's taps, in any order. Each round adds a few adjacent taps in place. Trees
    would read and write twice as often."""
    cdef Py_ssize_t factor, rest
    cdef bint onto = False
    while t.taps > FEW:
        factor = factor_of(t.taps)
        rest = t.taps % factor
        if rest:
            sum_windows(x + (t.taps - rest) * t.distance, y, &t, rest, onto)
            onto = True
        t.values -= (factor - 1) * t.distance
        sum_all(x, x, t.values, factor, t.distance)  # in place: a block is read before it is written
        t.taps, t.distance = t.taps // factor, t.distance * factor
    sum_windows(x, y, &t, t.taps, onto)


cdef inline void reduce_trees(acc_t* x, acc_t* y, Trees t) noexcept nogil:
    """y[window] = the total of the tree over each window's taps. x is overwritten. If windows are not adjacent, their
    values fill whole vectors, so that no write reaches another window. The largest part is computed only where windows
    begin. Where a tap may count twice, two overlapping parts of this size cover a window."""
    cdef Py_ssize_t part = 1, w, before, half
    cdef bint begun = False
    cdef const acc_t* source
    cdef const acc_t* rest
    cdef acc_t* target
    calm(x + t.values)
    if EXACT and t.windows > 1 and t.step % t.distance == 0 and t.step <= MOST_FRESH * t.distance:
        slide_sums(x, y, &t, t.step // t.distance)
        return
    if t.step == t.width:
        t.width, t.windows = t.windows * t.width, 1
    if EXACT:
        sum_in_rounds(x, y, t)
        return
    while True:
        if t.taps & part and not IDEMPOTENT:
            before = t.taps // (2 * part) * (2 * part)  # taps in larger parts
            for w in range(t.windows):
                source, target = x + before * t.distance + w * t.step, y + w * t.width
                if begun:
                    add_all(source, target, target, t.width)
                else:
                    memcpy(target, source, t.width * sizeof(acc_t))
            begun = True
        half = part * t.distance
        if 4 * part > t.taps:
            break
        t.values -= half
        # In place: a block and its later operand are read before either is written.
        add_all(x, x + half, x, t.values)
        part *= 2
    for w in range(t.windows):
        source, target = x + w * t.step, y + w * t.width
        rest = source + (t.taps - 2 * part) * t.distance if IDEMPOTENT else target
        if IDEMPOTENT or begun:
            add_pairs(<vec_t*> NULL, add_pairs(<Block*> NULL, 0, source, rest, target, t.width, half), source, rest,
                      target, t.width, half)
        else:
            add_all(source, source + half, target, t.width)


cdef inline void pick_rows(const acc_t* x, acc_t* y, Py_ssize_t rows, Py_ssize_t pitch, Py_ssize_t windows,
                           Py_ssize_t step, Py_ssize_t lanes) noexcept nogil:
    """Copy the lanes at every `step` of each row. Values written past their end are overwritten later."""
    cdef Py_ssize_t _, w
    for _ in range(rows):
        for w in range(windows):
            if lanes == 1:
                y[w] = x[w * step]
            else:
                vec_write(y + w * lanes, vec_read(x + w * step))
        x += pitch
        y += pitch
