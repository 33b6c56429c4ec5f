"""whole: one window that covers a whole channel.

Places are reduced as a binary tree whose leaves are rows, in row-major order. A row is one place if its lanes fill ROW
bytes of accumulators. Otherwise, it consists of as many neighbours along a single axis as fill them, or of all places
along the last of several axes. The places of a row are reduced last: the first half is joined with the second half,
until one place is left. The order of a sum therefore does not depend on the width of a register.

Rows are read 4, 8 or 16 at a time (a leaf), and reduced to one in registers. In memory, each full part of the tree has
a row of accumulators, whose vectors begin at multiples of LANES. If the last vector would be partial, it holds the last
LANES values of the row instead, and so repeats some values of the vector before it.

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
    vec_read,
    vec_t,
    vec_write,
    watch_nothing,
    watch_suspects,
    watch_t,
    write,
)
from ..core.boxes cimport copy_each
from ..core.cursor cimport advance
from ..core.job cimport MOST_AXES, Array, Rule, Tile, ceil_div, fetch, round_up
from ..core.leaves cimport FULL, MOST_LEVEL, PART, ROW, leaf_t, leaf_widen, load_rows, part_t, reduce_rows

cdef enum:
    AHEAD = 8192          # prefetch distance in bytes,
    LEAST = 256           # for rows of at least this many bytes,
    LARGEST = 1024        # and at most this many
    BASKET = 16           # maximum number of items whose neighbours are joined together
    LONG = 2048           # maximum number of values of a row, and of the rows of items that are reduced together
    TOGETHER = 8          # rows that are copied before they are planted

cdef struct Tree:
    # The tree over the rows that have been planted.
    Py_ssize_t group, width              # places and values of a row
    Py_ssize_t items, values             # items that are reduced together, and the values of a row of all of them
    Py_ssize_t pitch                     # values from row to row of the stack
    Py_ssize_t rows                      # number of rows planted so far
    Py_ssize_t ahead                     # prefetch distance in values, or 0
    acc_t* stack                         # a finished part for each bit of `rows`
    char* together                       # elements of TOGETHER rows
    acc_t* basket                        # rows of items whose neighbours are joined together
    Py_ssize_t held, basket_pitch        # rows of the basket, and values from one to the next
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
    tree.pitch = round_up(tree.values, LANES) + 4 * LANES
    tree.rows, tree.rule, tree.ahead, tree.limit = 0, tile.rule, 0, NULL
    row = tree.values * sizeof(elem_t)
    if tile.far and LEAST <= row <= LARGEST:
        tree.ahead = AHEAD // <Py_ssize_t> sizeof(elem_t)
    tree.held = max(1, min(BASKET, LONG // tree.width)) if tree.group > 1 else 0
    tree.basket_pitch = round_up(tree.width + tile.lanes + LANES, LANES)
    tree.together = tile.scratch
    tree.basket = <acc_t*> (tree.together + round_up(TOGETHER * tree.pitch * sizeof(elem_t), ROW))
    tree.stack = tree.basket + tree.held * tree.basket_pitch
    return tree


cdef inline void graft(const Tree* tree, int level, Py_ssize_t i, vec_t* v, vec_t* w) noexcept nogil:
    """Join values of 2 ** level rows with the full parts before them: a vector, or two if w is not NULL."""
    cdef acc_t* part = tree.stack + level * tree.pitch + i
    cdef Py_ssize_t rows = tree.rows >> level, pitch = tree.pitch
    cdef vec_t earlier
    while rows & 1:
        read(&earlier, part)
        join(&earlier, v)
        v[0] = earlier
        if w != NULL:
            read(&earlier, part + LANES)
            join(&earlier, w)
            w[0] = earlier
        part, rows = part + pitch, rows >> 1
    write(part, v)
    if w != NULL:
        write(part + LANES, w)


cdef inline void plant_rows(Tree* tree, int level, const elem_t* x, Py_ssize_t stride,
                            Py_ssize_t values) noexcept nogil:
    """Plant 2 ** level rows, two vectors at a time."""
    cdef Rule rule = tree.rule[0]  # a copy, which no store changes
    cdef Py_ssize_t i = 0
    cdef leaf_t leaf
    cdef vec_t v, w
    while i + 2 * LANES <= values:
        load_rows(&leaf, level, x + i, stride, 2 * LANES, &rule)
        leaf_widen(&v, &w, leaf)
        graft(tree, level, i, &v, &w)
        i += 2 * LANES
    while i < values:
        if values >= LANES:
            load_rows(&v, level, x + min(i, values - LANES), stride, LANES, &rule)
        else:
            load_rows(&v, level, x, stride, values, &rule)
        graft(tree, level, i, &v, NULL)
        i += LANES
    tree.rows += 1 << level


cdef void plant(Tree* tree, const elem_t* x, Py_ssize_t stride, Py_ssize_t rows) noexcept nogil:
    """Plant rows of elements, as many at a time as form a full part."""
    cdef Py_ssize_t most = 1 << MOST_LEVEL, n
    while rows:
        n = most
        while n > rows or tree.rows & (n - 1):
            n = n // 2 if n > 4 else 1
        if tree.ahead and n > 1 and stride == tree.values:
            fetch(x + tree.ahead, n * stride * sizeof(elem_t))
        if n == 1:
            plant_rows(tree, 0, x, stride, tree.values)
        elif n == 4:
            plant_rows(tree, 2, x, stride, tree.values)
        elif n == 8:
            plant_rows(tree, 3, x, stride, tree.values)
        else:
            plant_rows(tree, 4, x, stride, tree.values)
        rows, x = rows - n, x + n * stride


cdef inline vec_t load_rest(const Tree* tree, const elem_t* x, Py_ssize_t n) noexcept nogil:
    """Load a vector of which only the first n values exist. n may exceed LANES, or be negative."""
    if n >= LANES:
        return vec_load(x, tree.rule)
    if n <= 0:
        return vec_none()
    return vec_keep(vec_load(x, tree.rule) if x <= tree.limit else vec_load_part(x, n, tree.rule), vec_ones(0, n))


cdef void plant_part(Tree* tree, const elem_t* x, Py_ssize_t n) noexcept nogil:
    """Plant a row of which only the first n values exist."""
    cdef Py_ssize_t i = 0, first
    cdef vec_t v
    while i < tree.values:
        first = min(i, max(0, tree.values - LANES))
        v = load_rest(tree, x + first, n - first)
        graft(tree, 0, i, &v, NULL)
        i += LANES
    tree.rows += 1


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


cdef acc_t* harvest(Tree* tree) noexcept nogil:
    """Compute the total of each value of a row, by joining the parts of the tree from the smallest on."""
    cdef int level = 0
    cdef acc_t* total
    while not tree.rows >> level & 1:
        level += 1
    total = tree.stack + level * tree.pitch
    level += 1
    while tree.rows >> level:
        if tree.rows >> level & 1:
            join_values(tree.stack + level * tree.pitch, tree.stack + level * tree.pitch, total, tree.values)
            total = tree.stack + level * tree.pitch
        level += 1
    if tree.values > LANES:  # the last vector holds the end of a row
        vec_write(total + tree.values - LANES, vec_read(total + (tree.values - 1) // LANES * LANES))
    return total


cdef void join_neighbours(const Tree* tree, Py_ssize_t items, Py_ssize_t lanes) noexcept nogil:
    """Reduce the rows in the basket to one place each, by joining halves. Each step handles all items before the next
    step begins, which would otherwise wait for it."""
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
    """Copy the places of a line after those that wait to be planted, and return how many are waiting then."""
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
        plant(tree, x, step, lines)
        return
    for i in range(lines):
        plant(tree, x + i * step, tree.group * tile.x_stride[last], rows)
        if n % tree.group:
            plant_part(tree, x + i * step + rows * tree.group * tile.x_stride[last], n % tree.group * tile.lanes)


cdef void pool_items(const Tile* tile, Tree* tree, const char* x) noexcept nogil:
    """Plant all places of the items that are reduced together."""
    cdef int last = tile.rank - 1, along = last if tile.strided or not last else last - 1, a, b
    cdef Py_ssize_t waiting = 0
    cdef Py_ssize_t[MOST_AXES] at, zero, sizes, strides
    for a in range(along):
        at[a], zero[a], sizes[a] = 0, 0, tile.axis[a].size
        strides[a] = tile.strided.axis[a] if tile.strided else tile.x_stride[a] * sizeof(elem_t)
    tree.rows, a = 0, 0
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


cdef void finish_values(const Tile* tile, const acc_t* total, elem_t* y, Py_ssize_t n, double count,
                        watch_t* watch) noexcept nogil:
    cdef Py_ssize_t i = 0
    cdef vec_t v, by = vec_fill(count)
    while i < n:
        read(&v, total + i)
        divide(y + i, n - i, &v, by, tile.rule, watch)
        i += LANES


cdef void empty_basket(const Tile* tile, const Tree* tree, elem_t* y, Py_ssize_t items, double count,
                       watch_t* watch) noexcept nogil:
    """Finish the items in the basket, whose rows have several places."""
    cdef Py_ssize_t k
    join_neighbours(tree, items, tile.lanes)
    if tile.lanes == tile.y_item == 1:  # they are one line
        for k in range(1, items):
            tree.basket[k] = tree.basket[k * tree.basket_pitch]
        finish_values(tile, tree.basket, y, items, count, watch)
        return
    for k in range(items):
        finish_values(tile, tree.basket + k * tree.basket_pitch, y + k * tile.y_item, tile.lanes, count, watch)


cdef void pool_lines(const Tile* tile, Tree* tree, watch_t* watch) noexcept nogil:
    """Pool items, each of which is a single line of few lanes."""
    cdef Py_ssize_t places = tile.axis[0].size, item = 0, n
    cdef Py_ssize_t rows = places // tree.group, rest = places % tree.group * tile.lanes
    cdef const elem_t* x = <const elem_t*> tile.x
    if tile.x_item >= 0:
        tree.limit = x + (tile.items - 1) * tile.x_item + places * tile.lanes - LANES
    while item < tile.items:
        n = min(tree.held, tile.items - item)
        if PART == <Py_ssize_t> LANES:
            reduce_lines(<vec_t*> NULL, tree, x + item * tile.x_item, tile.x_item, n, rows, rest)
        else:
            reduce_lines(<Pair*> NULL, tree, x + item * tile.x_item, tile.x_item, n, rows, rest)
        empty_basket(tile, tree, <elem_t*> tile.y + item * tile.y_item, n, places, watch)
        item += n


cdef inline bint follow(const Tile* tile) noexcept nogil:
    """Whether the rows of items form one long row."""
    cdef int last = tile.rank - 1
    cdef Py_ssize_t n = tile.axis[last].size
    if tile.rank == tile.joined or tile.strided:
        return False
    return tile.x_item == n * tile.x_stride[last] and group_of(tile) == n


cdef Py_ssize_t most_items(const Tile* tile) noexcept nogil:
    """The maximum number of items whose rows are reduced together."""
    return max(1, LONG // (group_of(tile) * tile.lanes))


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef watch_t watch = watch_nothing()
    cdef Tree tree = tree_of(tile, min(tile.items, most_items(tile)) if follow(tile) else 1)
    cdef Py_ssize_t item = 0, k, waiting = 0
    cdef Py_ssize_t x_item = tile.strided.item if tile.strided else tile.x_item * sizeof(elem_t)
    cdef Py_ssize_t places = places_of(tile, tile.rank)
    cdef elem_t* y = <elem_t*> tile.y
    cdef acc_t* total
    if tile.rank == 1 and tree.group > 1 and tree.width >= PART and not tile.strided:
        pool_lines(tile, &tree, &watch)
        tile.suspect |= watch_suspects(&watch)
        return
    while item < tile.items:
        tree.items = min(tree.items, tile.items - item)
        tree.values = tree.items * tree.width
        pool_items(tile, &tree, tile.x + item * x_item)
        total = harvest(&tree)
        if tree.group == 1:
            finish_values(tile, total, y + item * tile.y_item, tile.lanes, places, &watch)
        for k in range(tree.items if tree.group > 1 else 0):
            if waiting == tree.held:
                empty_basket(tile, &tree, y + (item + k - waiting) * tile.y_item, waiting, places, &watch)
                waiting = 0
            memcpy(tree.basket + waiting * tree.basket_pitch, total + k * tree.width, tree.width * sizeof(acc_t))
            waiting += 1
        item += tree.items
    if waiting:
        empty_basket(tile, &tree, y + (item - waiting) * tile.y_item, waiting, places, &watch)
    tile.suspect |= watch_suspects(&watch)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    """Bytes of scratch memory: a row for each bit of the number of rows, and one more."""
    cdef Tree tree = tree_of(tile, most_items(tile) if tile.rank > tile.joined else 1)
    cdef Py_ssize_t levels = 2, places = places_of(tile, tile.rank)
    while places >> (levels - 2):
        levels += 1
    return <char*> (tree.stack + levels * tree.pitch) - tile.scratch
