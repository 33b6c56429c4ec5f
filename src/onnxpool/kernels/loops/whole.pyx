"""whole: one window that covers a whole channel.

Places are reduced as a binary tree whose leaves are rows, in row-major order. A row is one place if its lanes fill ROW
bytes of accumulators. Otherwise, it consists of as many neighbours along a single axis as fill ROW bytes, or of all
places along the last of several axes. The places of a row are reduced last: the first half is joined with the second
half, until one place is left. The order of a sum therefore does not depend on the width of a register.

Rows are read 4 or 8 at a time (a leaf), and reduced to one in registers. In memory, each full part of the tree has a
row of accumulators. If the last vector of a row would be partial, it takes the last LANES values instead, and so
computes some values again. If the vectors of rows are aligned to cache lines, a vector at the start of a row (`head`)
overlaps its neighbour in the same way. Sums of bytes are integers, whose order does not matter, so a leaf has up to
MOST_WORDS rows of bytes.

Where items follow each other along the last axis, as with batch axes between pooled ones, the rows of several items
form one long row, so that memory is read in long runs.
"""
from libc.string cimport memcpy

from ..core.element cimport (
    LANES,
    Pair,
    acc_t,
    divide,
    elem_t,
    join,
    read,
    vec_fill,
    vec_keep,
    vec_load,
    vec_load_part,
    vec_none,
    vec_ones,
    vec_t,
    write,
)
from ..core.boxes cimport copy_each
from ..core.cursor cimport advance
from ..core.fetches cimport BEYOND
from ..core.job cimport MOST_AXES, Array, Axis, Rule, Tile, bits_of, ceil_div, fetch, round_up
from ..core.leaves cimport (
    FOLDS,
    FULL,
    MOST_LEVEL,
    MOST_WORDS,
    PART,
    ROW,
    WORDS,
    fold_lanes,
    leaf_load,
    leaf_merge,
    leaf_t,
    leaf_widen,
    load_part,
    load_rows,
    put_before,
    reduce_few,
    reduce_rows,
    sum_line,
)
from ..core.parts cimport graft, part_t

cdef enum:
    # Prefetches are 1.0x to 1.5x faster from main memory, and take 1.05 to 1.2 times as long from the L3 cache (Zen 3).
    AHEAD = 8192          # prefetch distance in bytes
    LEAST = 256           # minimum bytes of rows that are prefetched
    LARGEST = 1024        # maximum bytes of rows that are prefetched
    ALIGNED = 6           # minimum vectors of a row for which aligning them to cache lines is worth another vector
    BASKET = 16           # maximum number of items whose neighbours are joined together
    STRIP = 32768         # bytes of rows that are read in columns
    LONG = 2048           # maximum values of a row, and of all items' rows that are reduced together
    REGISTERS = 4         # maximum number of registers of a row of few lanes
    TOGETHER = 8          # rows that are copied before they are planted

cdef struct Tree:
    # The tree over the rows that have been planted.
    Py_ssize_t group, width              # places and values of a row
    Py_ssize_t items, values             # items that are reduced together, and the values of a row of all of them
    Py_ssize_t pitch                     # values from row to row of the stack
    Py_ssize_t rows                      # number of rows planted so far
    const elem_t* rest                   # rows that follow and wait to be planted, fewer than 8
    Py_ssize_t waiting, rest_stride      # number of rows that wait, and elements from row to row
    Py_ssize_t head                      # values before the first aligned vector, in a vector of their own; or 0
    Py_ssize_t ahead                     # prefetch distance in values, or 0
    acc_t* stack                         # a finished part for each bit of `rows`
    char* together                       # elements of TOGETHER rows
    acc_t* basket                        # rows of items whose neighbours are joined together
    Py_ssize_t held, basket_pitch        # number of rows in the basket, and values from row to row
    const elem_t* limit                  # where the last vector of all items begins; or NULL
    const Rule* rule


cdef Py_ssize_t places_of(const Tile* tile, int axes) noexcept nogil:
    """The number of places along the last `axes` axes."""
    cdef Py_ssize_t places = 1
    cdef int a
    for a in range(tile.rank - axes, tile.rank):
        places *= tile.axis[a].size
    return places


cdef Py_ssize_t group_of(const Tile* tile) noexcept nogil:
    """The number of places of a row. If the last axis is cut into several rows, they are of about equal length."""
    cdef Py_ssize_t n
    if tile.all_lanes >= FULL:
        return 1
    if tile.rank == tile.joined:
        return ceil_div(FULL, tile.all_lanes)
    n = places_of(tile, tile.joined)
    return ceil_div(n, ceil_div(n * tile.all_lanes, LONG))


cdef Tree tree_of(const Tile* tile, Py_ssize_t items) noexcept nogil:
    """An empty tree for reducing `items` items together."""
    cdef Tree tree
    cdef Py_ssize_t row
    tree.group = group_of(tile)
    tree.width = tree.group * tile.lanes
    tree.items, tree.values = items, items * tree.width
    tree.pitch = round_up(tree.values, LANES) + 5 * LANES
    tree.head, tree.rows, tree.waiting, tree.rule, tree.ahead, tree.limit = 0, 0, 0, tile.rule, 0, NULL
    tree.rest, tree.rest_stride = <const elem_t*> tile.x, 0
    row = tree.values * sizeof(elem_t)
    if tile.far >= BEYOND and LEAST <= row <= LARGEST:
        tree.ahead = AHEAD // <Py_ssize_t> sizeof(elem_t)
    tree.held = max(1, min(BASKET, LONG // tree.width)) if tree.group > 1 else 0
    tree.basket_pitch = round_up(tree.width + tile.lanes + LANES, LANES)
    tree.together = tile.scratch
    tree.basket = <acc_t*> (tree.together + round_up(TOGETHER * tree.pitch * sizeof(elem_t), ROW))
    tree.stack = tree.basket + tree.held * tree.basket_pitch
    return tree


cdef inline void plant_rows(Tree* tree, int level, const elem_t* x, Py_ssize_t stride, Py_ssize_t n) noexcept nogil:
    """Plant n parts of 2 ** level rows, of at least one vector."""
    cdef Rule rule = tree.rule[0]  # a copy, which no store changes
    cdef Py_ssize_t head = tree.head, values = tree.values, pitch = tree.pitch, parts = tree.rows >> level, i
    cdef Py_ssize_t ahead = tree.ahead if level and stride == tree.values else 0
    cdef acc_t* part = tree.stack + level * pitch + LANES - head  # so that stores behind the head are aligned as well
    cdef Pair v
    tree.rows += n << level
    for parts in range(parts, parts + n):
        if ahead:
            fetch(x + ahead, stride * sizeof(elem_t) << level)
        if head:
            load_rows(&v.a, level, x, stride, LANES, &rule)
            graft(part, pitch, parts, &v.a)
        i = head
        while i + 2 * LANES <= values:
            load_part(&v, level, x + i, stride, &rule)
            graft(part + i, pitch, parts, &v)
            i += 2 * LANES
        while i < values:
            i = min(i, values - LANES)
            load_rows(&v.a, level, x + i, stride, LANES, &rule)
            graft(part + i, pitch, parts, &v.a)
            i += LANES
        x += stride * (<Py_ssize_t> 1 << level)


cdef inline vec_t load_rest(const Tree* tree, const elem_t* x, Py_ssize_t n) noexcept nogil:
    """Load a vector of which only the first n values exist. n may exceed LANES, or be negative."""
    if n >= LANES:
        return vec_load(x, tree.rule)
    if n <= 0:
        return vec_none()
    return vec_keep(vec_load(x, tree.rule) if x <= tree.limit else vec_load_part(x, n, tree.rule), vec_ones(0, n))


cdef void plant_part(Tree* tree, const elem_t* x, Py_ssize_t n) noexcept nogil:
    """Plant a row of which only the first n values exist."""
    cdef Py_ssize_t i = 0
    cdef vec_t v
    while i < tree.values:
        i = min(i, max(0, tree.values - LANES))
        v = load_rest(tree, x + i, n - i)
        graft(tree.stack + LANES + i, tree.pitch, tree.rows, &v)
        i += LANES
    tree.rows += 1


cdef inline void plant_leaf(const Tree* tree, Py_ssize_t i, const leaf_t* leaf) noexcept nogil:
    cdef Pair v
    leaf_widen(&v.a, &v.b, leaf[0])
    graft(tree.stack + LANES + i, tree.pitch, tree.rows, &v)


cdef void plant_words(Tree* tree, const elem_t* x, Py_ssize_t stride, Py_ssize_t rows) noexcept nogil:
    """Plant the sum of at most MOST_WORDS rows of bytes as if it were one row, which is allowed because the order of
    integer sums does not matter. Eight registers of values are read at a time, so that a cache line is read at once."""
    cdef Py_ssize_t values = tree.values, i = 0, _
    cdef leaf_t a, b, c, d
    cdef const elem_t* row
    cdef vec_t v, later
    while i < values:
        if values >= 8 * LANES:
            i = min(i, values - 8 * LANES)
            row = x + i
            a, b = leaf_load(row, tree.rule), leaf_load(row + 2 * LANES, tree.rule)
            c, d = leaf_load(row + 4 * LANES, tree.rule), leaf_load(row + 6 * LANES, tree.rule)
            for _ in range(1, rows):
                row += stride
                a = leaf_merge(a, leaf_load(row, tree.rule))
                b = leaf_merge(b, leaf_load(row + 2 * LANES, tree.rule))
                c = leaf_merge(c, leaf_load(row + 4 * LANES, tree.rule))
                d = leaf_merge(d, leaf_load(row + 6 * LANES, tree.rule))
            plant_leaf(tree, i, &a)
            plant_leaf(tree, i + 2 * LANES, &b)
            plant_leaf(tree, i + 4 * LANES, &c)
            plant_leaf(tree, i + 6 * LANES, &d)
            i += 8 * LANES
        elif values >= 2 * LANES:
            i = min(i, values - 2 * LANES)
            row = x + i
            a = leaf_load(row, tree.rule)
            for _ in range(1, rows):
                row += stride
                a = leaf_merge(a, leaf_load(row, tree.rule))
            plant_leaf(tree, i, &a)
            i += 2 * LANES
        else:
            i = min(i, values - LANES)
            row = x + i
            v = vec_load(row, tree.rule)
            for _ in range(1, rows):
                row += stride
                later = vec_load(row, tree.rule)
                join(&v, &later)
            graft(tree.stack + LANES + i, tree.pitch, tree.rows, &v)
            i += LANES
    tree.rows += 1


cdef void plant(Tree* tree, const elem_t* x, Py_ssize_t stride, Py_ssize_t rows) noexcept nogil:
    """Plant rows of elements, as many at a time as form a full part."""
    cdef Py_ssize_t n, parts
    if tree.values < LANES:
        for n in range(rows):
            plant_part(tree, x + n * stride, tree.values)
        return
    while rows:
        if WORDS:
            n, parts = min(rows, max(8, min(<Py_ssize_t> MOST_WORDS, STRIP // tree.values))), 1
            plant_words(tree, x, stride, n)
        else:
            n = 1 << MOST_LEVEL
            while n > rows or tree.rows & (n - 1):
                n = n // 2 if n > 4 else 1
            parts = 1
            if n == 1:
                plant_rows(tree, 0, x, stride, 1)
            elif n == 4:
                plant_rows(tree, 2, x, stride, 1)
            else:
                parts = rows >> MOST_LEVEL
                plant_rows(tree, MOST_LEVEL, x, stride, parts)
        rows, x = rows - parts * n, x + parts * n * stride


cdef void plant_lanes(Tree* tree, const elem_t* x, Py_ssize_t stride, Py_ssize_t rows) noexcept nogil:
    """Plant rows of full lanes. The last rows wait, because they need not be stored if no others follow."""
    cdef Py_ssize_t waiting = tree.waiting
    tree.waiting = 0
    if waiting:
        plant(tree, tree.rest, tree.rest_stride, waiting)
    if not WORDS and tree.values >= LANES and tree.rows % 8 == 0:
        tree.waiting = rows % 8
    rows -= tree.waiting
    plant(tree, x, stride, rows)
    tree.rest, tree.rest_stride = x + rows * stride, stride


cdef inline void load_last(part_t* v, const Tree* tree, const elem_t* x, Py_ssize_t n) noexcept nogil:
    """Load a part of a row of which only the first n values exist."""
    if part_t is Pair:
        v.a, v.b = load_rest(tree, x, n), load_rest(tree, x + LANES, n - LANES)
    else:
        v[0] = load_rest(tree, x, n)


cdef inline void reduce_lines(part_t* unused, const Tree* tree, const elem_t* x, Py_ssize_t step, Py_ssize_t items,
                              Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """Reduce the contiguous rows of each item, and a last row of only n values, to a row of the basket. The last part
    of a row overlaps the one before it."""
    cdef Rule rule = tree.rule[0]  # a copy, which no store changes
    cdef Py_ssize_t width = tree.width, pitch = tree.basket_pitch, i = 0, _
    cdef Py_ssize_t part = 2 * LANES if part_t is Pair else LANES
    cdef const elem_t* source
    cdef const elem_t* rest
    cdef acc_t* y
    cdef part_t v
    while i < width:
        i = min(i, width - part)
        source, rest, y = x + i, x + i + rows * width, tree.basket + i
        for _ in range(items):
            if n:
                load_last(&v, tree, rest, n - i)
            reduce_rows(&v, n > 0, source, rows, width, &rule)
            write(y, &v)
            source, rest, y = source + step, rest + step, y + pitch
        i += part


cdef void join_values(acc_t* y, const acc_t* x, const acc_t* later, Py_ssize_t n) noexcept nogil:
    """y = x joined with `later`. The last vector may write past the end."""
    cdef Py_ssize_t i = 0
    cdef vec_t v, w
    while i < n:
        read(&v, x + i)
        read(&w, later + i)
        join(&v, &w)
        write(y + i, &v)
        i += LANES


cdef inline void reduce_parts(part_t* v, const Tree* tree, Py_ssize_t i) noexcept nogil:
    """Join all parts of the tree from the smallest on, starting with the rows that wait."""
    cdef const acc_t* part = tree.stack + LANES - tree.head + i
    cdef Py_ssize_t parts = tree.rows
    cdef part_t earlier
    cdef bint begun = not WORDS and reduce_few(v, False, tree.rest + i, tree.waiting, tree.rest_stride, tree.rule)
    while parts:
        if parts & 1:
            read(&earlier, part)
            put_before(v, &begun, &earlier)
        part, parts = part + tree.pitch, parts >> 1


cdef acc_t* harvest(const Tree* tree) noexcept nogil:
    """Compute the total of each value of a row."""
    cdef acc_t* total = tree.stack + bits_of(tree.rows | 1) * tree.pitch
    cdef Py_ssize_t i = 0
    cdef vec_t v
    while i < tree.values:
        i = min(i, max(0, tree.values - LANES))
        reduce_parts(&v, tree, i)
        write(total + i, &v)
        i += LANES
    return total


cdef void join_neighbours(const Tree* tree, Py_ssize_t items, Py_ssize_t lanes) noexcept nogil:
    """Reduce the rows in the basket to one place each, by joining halves. Each step handles all items before the next
    step begins, so that no step waits for the results of the last one."""
    cdef Py_ssize_t group = tree.group, pitch = tree.basket_pitch, k, i
    cdef acc_t* row
    cdef vec_t none = vec_none()
    while group > 1:
        for k in range(items if group % 2 else 0):  # add an identity as one more neighbour
            i = 0
            while i < lanes:
                write(tree.basket + k * pitch + group * lanes + i, &none)
                i += LANES
        group = ceil_div(group, 2)
        for k in range(items):
            row = tree.basket + k * pitch
            join_values(row, row, row + group * lanes, group * lanes)


cdef void put_together(const Tile* tile, const char* x, char* y, Py_ssize_t places) noexcept nogil:
    """Copy the elements of a line that are strided or byte-swapped."""
    cdef const Array* from_ = tile.strided
    cdef Py_ssize_t i, step = from_.axis[tile.rank - 1], size = sizeof(elem_t)
    if places >= tile.lanes:
        for i in range(tile.lanes):
            copy_each(x + i * from_.lane, step, y + i * size, tile.lanes * size, places, size, from_.swapped)
    else:
        for i in range(places):
            copy_each(x + i * step, from_.lane, y + i * tile.lanes * size, size, tile.lanes, size, from_.swapped)


cdef void plant_places(Tree* tree, const elem_t* x, Py_ssize_t places, Py_ssize_t lanes) noexcept nogil:
    """Plant contiguous places. Only the last row may be incomplete."""
    cdef Py_ssize_t rows = places // tree.group
    plant(tree, x, tree.values, rows)
    if places % tree.group:
        plant_part(tree, x + rows * tree.values, places % tree.group * lanes)


cdef Py_ssize_t plant_copied(const Tile* tile, Tree* tree, const char* x, Py_ssize_t n,
                             Py_ssize_t waiting) noexcept nogil:
    """Append the places of a line to the places that wait to be planted, and return how many now wait."""
    cdef Py_ssize_t places, size = tile.lanes * sizeof(elem_t)
    while n:
        if waiting == TOGETHER * tree.group:
            plant_places(tree, <const elem_t*> tree.together, waiting, tile.lanes)
            waiting = 0
        places = min(n, TOGETHER * tree.group - waiting)
        put_together(tile, x, tree.together + waiting * size, places)
        x, n, waiting = x + places * tile.strided.axis[tile.rank - 1], n - places, waiting + places
    return waiting


cdef void plant_lines(const Tile* tile, Tree* tree, const elem_t* x, Py_ssize_t lines) noexcept nogil:
    """Plant lines along the last axis. If each line is one row, all of them form a single run."""
    cdef int last = tile.rank - 1
    cdef Py_ssize_t n = tile.axis[last].size, rows = n // tree.group, i
    cdef Py_ssize_t step = tile.x_stride[last - 1] if last else 0
    if n == tree.group:
        if tree.group == 1:
            plant_lanes(tree, x, step, lines)
        else:
            plant(tree, x, step, lines)
        return
    for i in range(lines):
        if tree.group == 1:
            plant_lanes(tree, x + i * step, tile.x_stride[last], n)
            continue
        plant(tree, x + i * step, tree.group * tile.x_stride[last], rows)
        if n % tree.group:
            plant_part(tree, x + i * step + rows * tree.group * tile.x_stride[last], n % tree.group * tile.lanes)


cdef Py_ssize_t head_of(const Tile* tile, const Tree* tree, const char* x) noexcept nogil:
    """The number of values before the first aligned vector, if it is the same in all rows; else 0."""
    cdef Py_ssize_t size = sizeof(elem_t), line = LANES * sizeof(elem_t), head = -<Py_ssize_t> x & (line - 1)
    cdef int a
    if WORDS or tile.strided != NULL or tree.group > 1 or tree.values < ALIGNED * LANES or head % size:
        return 0
    for a in range(tile.rank):
        if tile.x_stride[a] * size % line:
            return 0
    return head // size


cdef void pool_items(const Tile* tile, Tree* tree, const char* x) noexcept nogil:
    """Plant all places of the items that are reduced together."""
    cdef int last = tile.rank - 1, along = last if tile.strided or not last else last - 1, a, b
    cdef Py_ssize_t waiting = 0
    cdef Py_ssize_t[MOST_AXES] at, zero, sizes, strides
    for a in range(along):
        at[a], zero[a], sizes[a] = 0, 0, tile.axis[a].size
        strides[a] = tile.strided.axis[a] if tile.strided else tile.x_stride[a] * sizeof(elem_t)
    tree.rows, tree.waiting, tree.head, a = 0, 0, head_of(tile, tree, x), 0
    while a >= 0:
        if tile.strided:
            waiting = plant_copied(tile, tree, x, tile.axis[last].size, waiting)
        else:
            plant_lines(tile, tree, <const elem_t*> x, tile.axis[along].size if last else 1)
        a = advance(at, zero, sizes, along)
        if waiting % tree.group and a < tile.rank - tile.joined:  # no row continues past the joined axes
            plant_places(tree, <const elem_t*> tree.together, waiting, tile.lanes)
            waiting = 0
        if a >= 0:
            x += strides[a]
        for b in range(a + 1, along):
            x -= (sizes[b] - 1) * strides[b]
    plant(tree, <const elem_t*> tree.together, tree.values, waiting // tree.group)


cdef void finish_values(const Tile* tile, const acc_t* total, elem_t* y, Py_ssize_t n, double count) noexcept nogil:
    cdef Py_ssize_t i = 0
    cdef vec_t v, by = vec_fill(count)
    while i < n:
        read(&v, total + i)
        divide(y + i, n - i, &v, by, tile.rule)
        i += LANES


cdef void finish_tree(const Tile* tile, const Tree* tree, elem_t* y, double count) noexcept nogil:
    """Finish the totals of an item whose rows are single places."""
    cdef Py_ssize_t i = 0, values = tree.values
    cdef Pair pair
    cdef vec_t v, by = vec_fill(count)
    while i + 2 * LANES <= values:
        reduce_parts(&pair, tree, i)
        divide(y + i, LANES, &pair.a, by, tile.rule)
        divide(y + i + LANES, LANES, &pair.b, by, tile.rule)
        i += 2 * LANES
    while i < values:
        i = min(i, max(0, values - LANES))
        reduce_parts(&v, tree, i)
        divide(y + i, values - i, &v, by, tile.rule)
        i += LANES


cdef void fold_lines(const Tree* tree, Py_ssize_t items) noexcept nogil:
    """Join neighbours in rows of FULL values of a single lane, as many rows at a time as a register has lanes. The
    results are adjacent."""
    cdef vec_t[LANES] v
    cdef vec_t[REGISTERS] parts
    cdef const acc_t* row
    cdef Py_ssize_t item = 0, k, n, i
    while item < items:
        for k in range(LANES):
            row = tree.basket + min(item + k, items - 1) * tree.basket_pitch
            for i in range(FULL // LANES):
                read(&parts[i], row + i * LANES)
            n = FULL // LANES
            while n > 1:
                n //= 2
                for i in range(n):
                    join(&parts[i], &parts[i + n])
            v[k] = parts[0]
        fold_lanes(v)
        write(tree.basket + item, &v[0])
        item += LANES


cdef void finish_basket(const Tile* tile, const acc_t* results, Py_ssize_t pitch, elem_t* y, Py_ssize_t items,
                        double count) noexcept nogil:
    """Finish items, each reduced to one place."""
    cdef Py_ssize_t k
    if pitch == tile.y_item == 1:  # the results of all items are one line
        finish_values(tile, results, y, items, count)
        return
    for k in range(items):
        finish_values(tile, results + k * pitch, y + k * tile.y_item, tile.lanes, count)


cdef void empty_basket(const Tile* tile, const Tree* tree, elem_t* y, Py_ssize_t items, double count) noexcept nogil:
    """Finish the items in the basket, whose rows have several places."""
    cdef Py_ssize_t k, pitch = tree.basket_pitch
    if FOLDS and tree.width == FULL and tile.lanes == 1:
        fold_lines(tree, items)
        pitch = 1
    else:
        join_neighbours(tree, items, tile.lanes)
        if tile.lanes == 1:
            for k in range(1, items):
                tree.basket[k] = tree.basket[k * pitch]
            pitch = 1
    finish_basket(tile, tree.basket, pitch, y, items, count)


cdef void sum_lines(const Tile* tile, Tree* tree) noexcept nogil:
    """Pool items of bytes. Each item is a single line with a single lane."""
    cdef Py_ssize_t places = tile.axis[0].size, item = 0, k, n
    while item < tile.items:
        n = min(tree.held, tile.items - item)
        for k in range(n):
            tree.basket[k] = sum_line(<const elem_t*> tile.x + (item + k) * tile.x_item, places)
        finish_basket(tile, tree.basket, 1, <elem_t*> tile.y + item * tile.y_item, n, places)
        item += n


cdef void reduce_items(const Tile* tile, Tree* tree, Py_ssize_t item, Py_ssize_t n) noexcept nogil:
    """Reduce n items, which are single lines of few lanes, to one row of the basket each."""
    cdef Py_ssize_t places = tile.axis[0].size, rows = places // tree.group, rest = places % tree.group * tile.lanes
    cdef const elem_t* x = <const elem_t*> tile.x + item * tile.x_item
    if PART == <Py_ssize_t> LANES:
        reduce_lines(<vec_t*> NULL, tree, x, tile.x_item, n, rows, rest)
    else:
        reduce_lines(<Pair*> NULL, tree, x, tile.x_item, n, rows, rest)


cdef void pool_lines(const Tile* tile, Tree* tree) noexcept nogil:
    """Pool items that are single lines of few lanes."""
    cdef Py_ssize_t places = tile.axis[0].size, item = 0, n
    if WORDS and tile.lanes == 1:
        sum_lines(tile, tree)
        return
    if tile.x_item >= 0:
        tree.limit = <const elem_t*> tile.x + (tile.items - 1) * tile.x_item + places * tile.lanes - LANES
    while item < tile.items:
        n = min(tree.held, tile.items - item)
        reduce_items(tile, tree, item, n)
        empty_basket(tile, tree, <elem_t*> tile.y + item * tile.y_item, n, places)
        item += n


cdef inline bint follow(const Tile* tile) noexcept nogil:
    """Whether the rows of items form one long row."""
    cdef int last = tile.rank - 1
    cdef Py_ssize_t n = tile.axis[last].size
    if tile.rank == tile.joined or tile.strided:
        return False
    return tile.x_item == n * tile.x_stride[last] and group_of(tile) == n > 1


cdef Py_ssize_t most_items(const Tile* tile) noexcept nogil:
    """The maximum number of items whose rows are reduced together."""
    return max(1, LONG // (group_of(tile) * tile.lanes))


cdef inline acc_t* totals_of(const Tile* tile, Py_ssize_t item, Py_ssize_t part) noexcept nogil:
    """The totals of a part of an item, which another thread may have written."""
    return <acc_t*> (tile.totals + (item * tile.parts + part) * tile.part_bytes)


cdef inline bint in_lines(const Tile* tile, const Tree* tree) noexcept nogil:
    """Whether each item is a single line of few lanes."""
    return tile.rank == 1 and tree.group > 1 and tree.width >= PART and tile.strided == NULL


cdef inline void plant_totals(Tree* tree, const acc_t* x) noexcept nogil:
    """Plant a row of accumulators."""
    cdef Py_ssize_t i = 0
    cdef vec_t v
    while i < tree.values:
        read(&v, x + i)
        graft(tree.stack + LANES + i, tree.pitch, tree.rows, &v)
        i += LANES
    tree.rows += 1


cdef void take_share(const Tile* tile, Tree* tree, Py_ssize_t rows, Py_ssize_t first, Py_ssize_t end) noexcept nogil:
    """Compute the totals of parts of all items. A part is a full part of the tree, with `rows` rows. The last part is
    the remainder of an item."""
    cdef Tile own = tile[0]
    cdef Axis axis = tile.axis[0]
    cdef Py_ssize_t places = rows * tree.group, item, part
    cdef const acc_t* total
    own.axis, own.items, tree.limit = &axis, 1, NULL
    for item in range(tile.items):
        for part in range(first, end):
            axis.size = min(places, tile.axis[0].size - part * places)
            own.x = tile.x + (item * tile.x_item + part * places * tile.x_stride[0]) * <Py_ssize_t> sizeof(elem_t)
            if in_lines(tile, tree):
                reduce_items(&own, tree, 0, 1)
                total = tree.basket
            else:
                pool_items(&own, tree, own.x)
                total = harvest(tree)
            memcpy(totals_of(tile, item, part), total, tree.width * sizeof(acc_t))


cdef void share(Tile* tile) noexcept nogil:
    """Compute one share of the parts of all items, or join the totals of all parts."""
    cdef Tree tree = tree_of(tile, 1)
    cdef Py_ssize_t places = tile.axis[0].size, count = ceil_div(places, tree.group), rows = 1, parts, item, part
    cdef elem_t* y = <elem_t*> tile.y
    while ceil_div(count, rows) > tile.parts:
        rows *= 2
    parts = ceil_div(count, rows)
    if tile.share < tile.shares:
        take_share(tile, &tree, rows, parts * tile.share // tile.shares, parts * (tile.share + 1) // tile.shares)
        return
    for item in range(tile.items):
        tree.rows = tree.waiting = tree.head = 0
        for part in range(parts):
            plant_totals(&tree, totals_of(tile, item, part))
        if tree.group == 1:
            finish_tree(tile, &tree, y + item * tile.y_item, places)
        else:
            memcpy(tree.basket, harvest(&tree), tree.width * sizeof(acc_t))
            empty_basket(tile, &tree, y + item * tile.y_item, 1, places)


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef Tree tree = tree_of(tile, min(tile.items, most_items(tile)) if follow(tile) else 1)
    cdef Py_ssize_t item = 0, k, waiting = 0
    cdef Py_ssize_t x_item = tile.strided.item if tile.strided else tile.x_item * sizeof(elem_t)
    cdef Py_ssize_t places = places_of(tile, tile.rank)
    cdef elem_t* y = <elem_t*> tile.y
    cdef acc_t* total
    if tile.shares:
        share(tile)
        return
    if in_lines(tile, &tree):
        pool_lines(tile, &tree)
        return
    while item < tile.items:
        tree.items = min(tree.items, tile.items - item)
        tree.values = tree.items * tree.width
        pool_items(tile, &tree, tile.x + item * x_item)
        if tree.group == 1:
            finish_tree(tile, &tree, y + item * tile.y_item, places)
            item += tree.items
            continue
        total = harvest(&tree)
        for k in range(tree.items):
            if waiting == tree.held:
                empty_basket(tile, &tree, y + (item + k - waiting) * tile.y_item, waiting, places)
                waiting = 0
            memcpy(tree.basket + waiting * tree.basket_pitch, total + k * tree.width, tree.width * sizeof(acc_t))
            waiting += 1
        item += tree.items
    if waiting:
        empty_basket(tile, &tree, y + (item - waiting) * tile.y_item, waiting, places)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    """Bytes of scratch memory: a row for each bit of the number of rows, and one more."""
    cdef Tree tree = tree_of(tile, most_items(tile) if tile.rank > tile.joined else 1)
    cdef Py_ssize_t levels = 2, places = places_of(tile, tile.rank)
    while places >> (levels - 2):
        levels += 1
    return <char*> (tree.stack + levels * tree.pitch) - tile.scratch
