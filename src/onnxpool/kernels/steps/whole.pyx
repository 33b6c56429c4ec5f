"""whole: one window that is all of a channel.

Places are taken in row-major order, and reduced as a binary tree whose leaves are rows. A row is one place. Where
places have few lanes, it is as many neighbours along the last axis as fill ROW bytes of accumulators. These are
reduced last. So the order of a sum does not depend on the register.

Rows are read 4, 8 or 16 at a time (a leaf), which stay in registers until they are one. In memory each full part of the
tree has a row of accumulators. There the values of a row begin at multiples of LANES. If the last vector would not be
full, it holds the last LANES values of the row. The vector before it holds some of these as well.
"""
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
from ..core.job cimport MOST_AXES, Rule, Tile, fetch
from ..core.leaves cimport FULL, MOST_LEVEL, ROW, leaf_t, leaf_widen, load_rows, reduce_rows

cdef enum:
    AHEAD = 8192          # bytes from what is read to what is fetched,
    LEAST = 256           # if rows have so many bytes at least,
    LARGEST = 1024        # and these at most
    BASKET = 16           # items whose neighbours are joined together

cdef struct Tree:
    # Of rows that have been planted.
    Py_ssize_t group, values, pitch      # places of a row, its values, and values from row to row of the stack
    Py_ssize_t rows                      # that have been planted
    Py_ssize_t ahead                     # values from what is read to what is fetched, or 0
    acc_t* stack                         # a finished part for each bit of `rows`
    char* together                       # elements of eight rows
    acc_t* basket                        # rows of items, whose neighbours are joined together; of groups only
    Py_ssize_t full, rest                # rows of an item that is one line, and values of one more that is not full
    const elem_t* limit                  # where the last vector of all items begins; or NULL
    const Rule* rule


cdef Tree tree_of(const Tile* tile) noexcept nogil:
    cdef Tree tree
    cdef Py_ssize_t row
    tree.group = 1 if tile.all_lanes >= FULL else (FULL + tile.all_lanes - 1) // tile.all_lanes
    tree.values = tree.group * tile.lanes
    tree.pitch = (tree.values + LANES - 1) // LANES * LANES + 4 * LANES
    tree.rows, tree.rule, tree.ahead, tree.limit = 0, tile.rule, 0, NULL
    row = tree.values * sizeof(elem_t)
    if tile.far and LEAST <= row <= LARGEST:
        tree.ahead = AHEAD // <Py_ssize_t> sizeof(elem_t)
    tree.together = tile.scratch
    tree.basket = <acc_t*> (tree.together + (8 * tree.pitch * sizeof(elem_t) + ROW - 1) // ROW * ROW)
    tree.stack = tree.basket + (BASKET * tree.pitch if tree.group > 1 else 0)
    return tree


cdef inline void graft(const Tree* tree, int level, Py_ssize_t i, vec_t* v, vec_t* w) noexcept nogil:
    """Joins values of 2 ** level rows with the full parts before them: a vector, or two if w is not NULL."""
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
    """2 ** level rows, two vectors at a time."""
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
    """Rows of elements, as many at a time as a full part may have."""
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
    """A vector of which only n values are there, all or none perhaps."""
    if n >= LANES:
        return vec_load(x, tree.rule)
    if n <= 0:
        return vec_none()
    return vec_keep(vec_load(x, tree.rule) if x <= tree.limit else vec_load_part(x, n, tree.rule), vec_ones(0, n))


cdef void plant_part(Tree* tree, const elem_t* x, Py_ssize_t n) noexcept nogil:
    """A row of which only n values are there."""
    cdef Py_ssize_t i = 0, first
    cdef vec_t v
    while i < tree.values:
        first = min(i, max(0, tree.values - LANES))
        v = load_rest(tree, x + first, n - first)
        graft(tree, 0, i, &v, NULL)
        i += LANES
    tree.rows += 1


cdef void reduce_line(const Tree* tree, const elem_t* x, acc_t* y) noexcept nogil:
    """The total of each value of a row."""
    cdef Rule rule = tree.rule[0]  # a copy, which no store changes
    cdef const elem_t* rest = x + tree.full * tree.values
    cdef Py_ssize_t i = 0, first
    cdef Pair pair
    cdef vec_t v
    while i + 2 * LANES <= tree.values:
        if tree.rest:
            pair.a = load_rest(tree, rest + i, tree.rest - i)
            pair.b = load_rest(tree, rest + i + LANES, tree.rest - i - LANES)
        reduce_rows(&pair, tree.rest > 0, x + i, tree.full, tree.values, &rule)
        write(y + i, &pair)
        i += 2 * LANES
    while i < tree.values:
        first = min(i, max(0, tree.values - LANES))
        if tree.rest:
            v = load_rest(tree, rest + first, tree.rest - first)
        reduce_rows(&v, tree.rest > 0, x + first, tree.full, tree.values, &rule)
        write(y + first, &v)
        i += LANES


cdef void join_values(acc_t* y, const acc_t* x, const acc_t* later, Py_ssize_t n) noexcept nogil:
    """y = x and later; what lies behind the last value is written as well."""
    cdef Py_ssize_t i = 0
    cdef vec_t v, w
    while i < n:
        read(&v, x + i)
        read(&w, later + i)
        join(&v, &w)
        write(y + i, &v)
        i += LANES


cdef acc_t* harvest(Tree* tree) noexcept nogil:
    """The total of each value of a row: parts of the tree, the smallest first."""
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


cdef void collect(const Tree* tree, const acc_t* total, acc_t* y, Py_ssize_t lanes) noexcept nogil:
    """A row into the basket. The first half of its neighbours is joined with the second one, if they are even."""
    cdef Py_ssize_t half = tree.group // 2 * lanes, i = 0
    if tree.group % 2 == 0:
        join_values(y, total, total + half, half)
        return
    while i < tree.values:
        vec_write(y + i, vec_read(total + i))
        i += LANES


cdef void join_neighbours(const Tree* tree, Py_ssize_t items, Py_ssize_t lanes) noexcept nogil:
    """The total of each lane of the items in the basket: neighbours of a row, half and half. Each step takes all items
    before the next one, which would wait for it."""
    cdef Py_ssize_t group = tree.group if tree.group % 2 else tree.group // 2, pitch = tree.pitch, k, g, i
    cdef acc_t* row
    cdef vec_t v, later
    while group % 2 == 0:
        group //= 2
        for k in range(items):
            row = tree.basket + k * pitch
            join_values(row, row, row + group * lanes, group * lanes)
    for k in range(items if group > 1 else 0):
        i = 0
        while i < lanes:  # what a vector writes behind the lanes has been read by then
            read(&v, tree.basket + k * pitch + i)
            for g in range(1, group):
                read(&later, tree.basket + k * pitch + g * lanes + i)
                join(&v, &later)
            write(tree.basket + k * pitch + i, &v)
            i += LANES


cdef void put_together(const Tile* tile, const char* x, char* y, Py_ssize_t places) noexcept nogil:
    """Elements of a line that lie apart, or in the other byte order."""
    cdef Py_ssize_t i, step = tile.x_stride[tile.rank - 1], size = sizeof(elem_t)
    if places >= tile.lanes:
        for i in range(tile.lanes):
            copy_each(x + i * tile.x_lane, step, y + i * size, tile.lanes * size, places, size, tile.swapped)
    else:
        for i in range(places):
            copy_each(x + i * step, tile.x_lane, y + i * tile.lanes * size, size, tile.lanes, size, tile.swapped)


cdef void plant_places(const Tile* tile, Tree* tree, const elem_t* x, Py_ssize_t places) noexcept nogil:
    """Places that lie side by side; a row that is not full must be the last one."""
    cdef Py_ssize_t rows = places // tree.group
    plant(tree, x, tree.values, rows)
    if places % tree.group:
        plant_part(tree, x + rows * tree.values, places % tree.group * tile.lanes)


cdef Py_ssize_t plant_line(const Tile* tile, Tree* tree, const char* x, Py_ssize_t n,
                           Py_ssize_t waiting) noexcept nogil:
    """A line of places. Those that lie apart are put behind others that wait for it; how many then wait."""
    cdef Py_ssize_t places, size = sizeof(elem_t)
    cdef Py_ssize_t step = tile.x_stride[tile.rank - 1]
    if not tile.apart:
        plant(tree, <const elem_t*> x, step, n)
        return 0
    while n:
        places = min(n, 8 * tree.group - waiting)
        put_together(tile, x, tree.together + waiting * tile.lanes * size, places)
        x, n, waiting = x + places * step, n - places, waiting + places
        if waiting == 8 * tree.group:
            plant_places(tile, tree, <const elem_t*> tree.together, waiting)
            waiting = 0
    return waiting


cdef void pool_item(const Tile* tile, Tree* tree, const char* x) noexcept nogil:
    """All places of an item, as few lines as can be."""
    cdef int last = tile.rank - 1, lines = last, a
    cdef Py_ssize_t unit = 1 if tile.apart else sizeof(elem_t), n = tile.axis[last].size, waiting = 0
    cdef Py_ssize_t[MOST_AXES] at
    while lines and tile.x_stride[lines - 1] == n * tile.x_stride[last]:
        lines -= 1
        n *= tile.axis[lines].size
    for a in range(lines):
        at[a] = 0
    while True:
        waiting = plant_line(tile, tree, x, n, waiting)
        a = lines - 1
        while a >= 0:
            at[a] += 1
            x += tile.x_stride[a] * unit
            if at[a] < tile.axis[a].size:
                break
            x -= at[a] * tile.x_stride[a] * unit
            at[a] = 0
            a -= 1
        if a < 0:
            break
    if waiting:
        plant_places(tile, tree, <const elem_t*> tree.together, waiting)


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
    """The results of items whose rows have few lanes."""
    cdef Py_ssize_t k
    join_neighbours(tree, items, tile.lanes)
    if tile.lanes == tile.y_item == 1:  # they are one line
        for k in range(1, items):
            tree.basket[k] = tree.basket[k * tree.pitch]
        finish_values(tile, tree.basket, y, items, count, watch)
        return
    for k in range(items):
        finish_values(tile, tree.basket + k * tree.pitch, y + k * tile.y_item, tile.lanes, count, watch)


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef watch_t watch = watch_nothing()
    cdef Tree tree = tree_of(tile)
    cdef Py_ssize_t item, waiting = 0, unit = 1 if tile.apart else sizeof(elem_t), places = 1
    cdef elem_t* y = <elem_t*> tile.y
    cdef const char* x
    cdef acc_t* total = tree.stack
    cdef int a
    for a in range(tile.rank):
        places *= tile.axis[a].size
    tree.full, tree.rest = places // tree.group, places % tree.group * tile.lanes
    if tile.x_item >= 0 and not tile.apart:
        tree.limit = <const elem_t*> tile.x + (tile.items - 1) * tile.x_item + places * tile.lanes - LANES
    for item in range(tile.items):
        x = tile.x + item * tile.x_item * unit
        if tree.group > 1 and not tile.apart:  # then places are in one piece
            reduce_line(&tree, <const elem_t*> x, total)
        else:
            tree.rows = 0
            pool_item(tile, &tree, x)
            total = harvest(&tree)
        if tree.group == 1:
            finish_values(tile, total, y + item * tile.y_item, tile.lanes, places, &watch)
            continue
        collect(&tree, total, tree.basket + waiting * tree.pitch, tile.lanes)
        waiting += 1
        if waiting == BASKET or item == tile.items - 1:
            empty_basket(tile, &tree, y + (item + 1 - waiting) * tile.y_item, waiting, places, &watch)
            waiting = 0
    tile.suspect |= watch_suspects(&watch)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    """Bytes of scratch memory: a row for each bit of the number of rows, and one more."""
    cdef Tree tree = tree_of(tile)
    cdef Py_ssize_t levels = 2, places = 1
    cdef int a
    for a in range(tile.rank):
        places *= tile.axis[a].size
    while places >> (levels - 2):
        levels += 1
    return <char*> (tree.stack + levels * tree.pitch) - tile.scratch
