"""whole: one window that is all of a channel.

Places are taken in row-major order, and reduced as a binary tree whose leaves are rows. A row is one place. Where
places have few lanes, it is as many neighbours along the last axis as fill ROW bytes of accumulators. These are
reduced last. So the order of a sum does not depend on the register.

Rows are read 4, 8 or 16 at a time (a leaf), which stay in registers until they are one. In memory each full part of the
tree has a row of accumulators. There the values of a row begin at multiples of LANES. If the last vector would not be
full, it holds the last LANES values of the row. The vector before it holds some of these as well.
"""
from libc.string cimport memcpy

from ..core.element cimport (
    LANES,
    acc_t,
    divide,
    elem_t,
    join,
    load,
    read,
    vec_fill,
    vec_load,
    vec_load_part,
    vec_none,
    vec_read,
    vec_t,
    vec_write,
    watch_nothing,
    watch_suspects,
    watch_t,
    write,
)
from ..core.boxes cimport copy_each
from ..core.job cimport Rule, Tile, fetch

cdef extern from "leaves.h" nogil:
    ctypedef struct leaf_t:
        pass
    leaf_t leaf_load(const elem_t* x, const Rule* rule) noexcept
    leaf_t leaf_merge(leaf_t earlier, leaf_t later) noexcept
    void leaf_widen(vec_t* first, vec_t* second, leaf_t leaf) noexcept
    enum:
        ROW      # bytes of accumulators,
        FULL     # and how many these are
        PACKED   # whether one register holds a leaf_t

ctypedef fused rows_t:
    leaf_t
    vec_t

cdef enum:
    AHEAD = 8192          # bytes from what is read to what is fetched,
    LEAST = 256           # if rows have so many bytes at least,
    LARGEST = 1024        # and these at most; or if they have FULL values:
    LINE = 64             # then so many of small elements, behind which the processor fetches more by itself
    BASKET = 16           # items whose neighbours are joined together
    MOST = 64             # axes

cdef struct Tree:
    # Of rows that have been planted.
    Py_ssize_t group, values, pitch      # places of a row, its values, and values from row to row of the stack
    Py_ssize_t rows                      # that have been planted
    Py_ssize_t ahead                     # values from what is read to what is fetched, or 0
    acc_t* stack                         # a finished part for each bit of `rows`
    char* together                       # elements of eight rows
    acc_t* basket                        # rows of items, whose neighbours are joined together; of groups only
    const Rule* rule


cdef Tree tree_of(const Tile* tile) noexcept nogil:
    cdef Tree tree
    cdef Py_ssize_t row
    tree.group = 1 if tile.all_lanes >= FULL else (FULL + tile.all_lanes - 1) // tile.all_lanes
    tree.values = tree.group * tile.lanes
    tree.pitch = (tree.values + LANES - 1) // LANES * LANES + 4 * LANES
    tree.rows, tree.rule, tree.ahead = 0, tile.rule, 0
    row = tree.values * sizeof(elem_t)
    if tile.far and (tree.values == FULL or LEAST <= row <= LARGEST):
        tree.ahead = AHEAD // <Py_ssize_t> sizeof(elem_t)
    tree.together = tile.scratch
    tree.basket = <acc_t*> (tree.together + (8 * tree.pitch * sizeof(elem_t) + ROW - 1) // ROW * ROW)
    tree.stack = tree.basket + (BASKET * tree.pitch if tree.group > 1 else 0)
    return tree


cdef inline void load_row(rows_t* v, const elem_t* x, Py_ssize_t n, const Rule* rule) noexcept nogil:
    if rows_t is leaf_t:
        v[0] = leaf_load(x, rule)
    else:
        load(v, x, n, rule)


cdef inline void merge(rows_t* earlier, const rows_t* later) noexcept nogil:
    if rows_t is leaf_t:
        earlier[0] = leaf_merge(earlier[0], later[0])
    else:
        join(earlier, later)


cdef inline void load_two(rows_t* v, const elem_t* x, Py_ssize_t stride, Py_ssize_t n,
                          const Rule* rule) noexcept nogil:
    cdef rows_t later
    load_row(v, x, n, rule)
    load_row(&later, x + stride, n, rule)
    merge(v, &later)


cdef inline void load_four(rows_t* v, const elem_t* x, Py_ssize_t stride, Py_ssize_t n,
                           const Rule* rule) noexcept nogil:
    cdef rows_t later
    load_two(v, x, stride, n, rule)
    load_two(&later, x + 2 * stride, stride, n, rule)
    merge(v, &later)


cdef inline void load_eight(rows_t* v, const elem_t* x, Py_ssize_t stride, Py_ssize_t n,
                            const Rule* rule) noexcept nogil:
    cdef rows_t later
    load_four(v, x, stride, n, rule)
    load_four(&later, x + 4 * stride, stride, n, rule)
    merge(v, &later)


cdef inline void load_rows(rows_t* v, int level, const elem_t* x, Py_ssize_t stride, Py_ssize_t n,
                           const Rule* rule) noexcept nogil:
    """2 ** level rows, as a tree: 1, 4, 8 or 16."""
    cdef rows_t later
    if level == 0:
        load_row(v, x, n, rule)
    elif level == 2:
        load_four(v, x, stride, n, rule)
    else:
        load_eight(v, x, stride, n, rule)
    if level == 4:
        load_eight(&later, x + 8 * stride, stride, n, rule)
        merge(v, &later)


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
    """2 ** level rows, two vectors at a time, or one where 16 rows of two would need too many registers."""
    cdef Rule rule = tree.rule[0]  # a copy, which no store changes
    cdef Py_ssize_t i = 0
    cdef leaf_t leaf
    cdef vec_t v, w
    while i + 2 * LANES <= values and (PACKED or level < 4):
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
    cdef bint full = tree.values == FULL and stride == FULL  # and known to the compiler
    cdef Py_ssize_t most = 16 if full or PACKED else 8, n
    while rows:
        n = most
        while n > rows or tree.rows & (n - 1):
            n = n // 2 if n > 4 else 1
        if tree.ahead and n > 1 and stride == tree.values:
            fetch(x + tree.ahead, LINE if full and sizeof(elem_t) < 4 else n * stride * sizeof(elem_t))
        if n == 1:
            plant_rows(tree, 0, x, stride, tree.values)
        elif n == 4:
            plant_rows(tree, 2, x, stride, tree.values)
        elif n == 8:
            plant_rows(tree, 3, x, stride, tree.values)
        elif full:
            plant_rows(tree, 4, x, FULL, FULL)
        else:
            plant_rows(tree, 4, x, stride, tree.values)
        rows, x = rows - n, x + n * stride


cdef inline vec_t load_end(const elem_t* x, Py_ssize_t n, bint follows, const Rule* rule) noexcept nogil:
    """Fewer values than a vector has, and identities. If they follow others, no element is moved alone."""
    cdef acc_t[2 * LANES] end
    vec_write(end + LANES, vec_none())
    if follows:
        vec_write(end, vec_load(x + n - LANES, rule))
        return vec_read(end + LANES - n)
    vec_write(end, vec_load_part(x, n, rule))
    memcpy(end + n, end + LANES, (LANES - n) * sizeof(acc_t))
    return vec_read(end)


cdef void plant_part(Tree* tree, const elem_t* x, Py_ssize_t n, Py_ssize_t before) noexcept nogil:
    """A row of which only n values are there. So many elements before it may be read."""
    cdef Py_ssize_t i = 0, first, rest
    cdef vec_t v
    while i < tree.values:
        first = min(i, max(0, tree.values - LANES))
        rest = n - first
        if rest >= LANES:
            v = vec_load(x + first, tree.rule)
        elif rest > 0:
            v = load_end(x + first, rest, before + n >= LANES, tree.rule)
        else:
            v = vec_none()
        graft(tree, 0, i, &v, NULL)
        i += LANES
    tree.rows += 1


cdef void join_values(acc_t* x, const acc_t* later, Py_ssize_t n) noexcept nogil:
    """x = x and later; what lies behind the last value is written as well."""
    cdef Py_ssize_t i = 0
    cdef vec_t v, w
    while i < n:
        read(&v, x + i)
        read(&w, later + i)
        join(&v, &w)
        write(x + i, &v)
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
            join_values(tree.stack + level * tree.pitch, total, tree.values)
            total = tree.stack + level * tree.pitch
        level += 1
    if tree.values > LANES:  # the last vector holds the end of a row
        vec_write(total + tree.values - LANES, vec_read(total + (tree.values - 1) // LANES * LANES))
    return total


cdef void join_neighbours(const Tree* tree, Py_ssize_t items, Py_ssize_t lanes) noexcept nogil:
    """The total of each lane of the items in the basket: neighbours of a row, half and half. Each step takes all items
    before the next one, which would wait for it."""
    cdef Py_ssize_t group = tree.group, pitch = tree.pitch, k, g, i
    cdef vec_t v, later
    while group % 2 == 0:
        group //= 2
        for k in range(items):
            join_values(tree.basket + k * pitch, tree.basket + k * pitch + group * lanes, group * lanes)
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
        plant_part(tree, x + rows * tree.values, places % tree.group * tile.lanes, rows * tree.values)


cdef Py_ssize_t plant_line(const Tile* tile, Tree* tree, const char* x, Py_ssize_t n,
                           Py_ssize_t waiting) noexcept nogil:
    """A line of places. Those that lie apart are put behind others that wait for it; how many then wait."""
    cdef Py_ssize_t places, size = sizeof(elem_t)
    cdef Py_ssize_t step = tile.x_stride[tile.rank - 1]
    if not tile.apart and tree.group == 1:
        plant(tree, <const elem_t*> x, step, n)
        return 0
    if not tile.apart:
        plant_places(tile, tree, <const elem_t*> x, n)
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
    cdef Py_ssize_t[MOST] at
    # Few lanes that do not lie apart are in one piece.
    while lines and ((tree.group > 1 and not tile.apart) or tile.x_stride[lines - 1] == n * tile.x_stride[last]):
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
    cdef Py_ssize_t item, waiting = 0, i, unit = 1 if tile.apart else sizeof(elem_t)
    cdef elem_t* y = <elem_t*> tile.y
    cdef acc_t* total
    cdef int a
    cdef double count = 1
    for a in range(tile.rank):
        count *= tile.axis[a].size
    for item in range(tile.items):
        tree.rows = 0
        pool_item(tile, &tree, tile.x + item * tile.x_item * unit)
        total = harvest(&tree)
        if tree.group == 1:
            finish_values(tile, total, y + item * tile.y_item, tile.lanes, count, &watch)
            continue
        i = 0
        while i < tree.values:
            vec_write(tree.basket + waiting * tree.pitch + i, vec_read(total + i))
            i += LANES
        waiting += 1
        if waiting == BASKET or item == tile.items - 1:
            empty_basket(tile, &tree, y + (item + 1 - waiting) * tile.y_item, waiting, count, &watch)
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
