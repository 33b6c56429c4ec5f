"""The normal form of a problem: as few dimensions as its arrays allow, each with its role in the loops."""

cdef struct Found:
    # Dimensions with windows, and other dimensions, each from the fastest to the slowest.
    Dim[MOST_AXES] dims, rest
    Axis[MOST_AXES] axes
    int rank, others


cdef inline bint is_kept(const Axis* axis) noexcept nogil:
    """Whether every element is a window of its own."""
    return axis.kernel == 1 and axis.out == axis.size and axis.pad == 0 and axis.pad_end == 0


cdef bint are_one(const Request* r, int axis, int other) noexcept nogil:
    """
    Whether two pooled axes count as one in the order of sums, which they do if no other axis lies between them.

    An axis between them counts even if it has one element, because the size of a batch must not affect a sum.
    """
    cdef int between
    if other == axis + 1:
        return True
    for between in range(axis + 1, other):
        if r.along[between] < 0:
            return False
    return True


cdef bint results_follow(const Request* r, int y_axis, const Dim* last) noexcept nogil:
    """Whether results along an axis and results along a dimension can be flattened into one dimension."""
    cdef int i
    for i in range(r.results):
        if r.y[i][y_axis] != last.size * r.y[i][last.y]:
            return False
    return True


cdef void set_whole(Axis* axis, Py_ssize_t size) noexcept nogil:
    """The window that covers an axis."""
    memset(axis, 0, sizeof(Axis))
    axis.size = axis.kernel = axis.span = axis.most = size
    axis.out = axis.stride = axis.dilation = axis.end = 1


cdef void dims_of(const Request* r, bint alone, Found* found) noexcept nogil:
    """
    The dimensions of the arrays.

    Adjacent axes are merged if every array allows flattening them, and either no windows lie along them or one window
    covers both. If `alone`, the axis before a pooled axis is not merged with earlier axes.
    """
    cdef Dim* last = NULL
    cdef bint last_pooled = False, before_pooled = False, pooled, kept, follows
    cdef int axis, y_axis = r.y_ndim
    cdef Py_ssize_t size
    found.rank = found.others = 0
    for axis in range(r.ndim - 1, -1, -1):
        size, pooled = r.shape[axis], r.along[axis] >= 0
        kept = r.keepdims or not pooled
        y_axis -= kept
        pooled = pooled and not is_kept(&r.windows[r.along[axis]])
        if size == 1 and not pooled:
            continue
        follows = last != NULL and pooled == last_pooled and r.x[axis] == last.size * r.x[last.x]
        if follows and pooled:
            follows = r.recipe.whole and are_one(r, axis, last.x)
        elif follows:
            follows = (r.place[axis] == last.size * last.place and not (alone and before_pooled)
                       and results_follow(r, y_axis, last))
        if follows:
            last.size *= size
            if pooled:
                set_whole(&found.axes[found.rank - 1], last.size)
            continue
        before_pooled = last != NULL and last_pooled
        if pooled:
            last, found.axes[found.rank] = &found.dims[found.rank], r.windows[r.along[axis]]
            found.rank += 1
        else:
            last = &found.rest[found.others]
            found.others += 1
        last.size, last.place, last.x, last.y, last_pooled = size, r.place[axis], axis, y_axis if kept else -1, pooled


cdef inline bint is_nearer(const Request* r, const Dim* dim, const Dim* other) noexcept nogil:
    return llabs(r.x[dim.x]) < llabs(r.x[other.x])


cdef void set_form(const Request* r, const Found* found, const Found* others, int lane, bint apart,
                   Form* form) noexcept nogil:
    """The form with these lanes. Of the other dimensions, the one with the smallest stride becomes the items."""
    cdef int i, item = -1
    form.lane = Dim(1, 0, -1, -1)
    if lane >= 0:
        form.lane = others.rest[lane]
    form.apart, form.outer, form.rank, form.item = apart, 0, found.rank, Dim(1, 0, -1, -1)
    for i in range(others.others):
        if i != lane and (item < 0 or is_nearer(r, &others.rest[i], &others.rest[item])):
            item = i
    if item >= 0:
        form.item = others.rest[item]
    for i in range(others.others - 1, -1, -1):
        if i != lane and i != item:
            form.groups[form.outer] = others.rest[i]
            form.outer += 1
    for i in range(found.rank):
        form.dims[i], form.axes[i] = found.dims[found.rank - 1 - i], found.axes[found.rank - 1 - i]
    if found.rank == 0:
        form.rank, form.dims[0] = 1, Dim(1, 0, -1, -1)
        set_whole(form.axes, 1)


cdef int forms_of(const Request* r, Form* forms) noexcept nogil:
    """
    The forms that a problem can have: rows, lanes that are made adjacent, or both. If there are both, costs decide.
    Return their number.
    """
    cdef Found found, alone
    cdef const Found* others = &found
    cdef int i, lane = -1, last = -1, count = 0
    cdef Py_ssize_t stride = -1
    cdef bint apart, lanes_fit
    dims_of(r, False, &found)
    # The number of lanes can affect the sum of a whole channel. Lanes are therefore a single axis, without the batch.
    if r.recipe.whole:
        for i in range(found.others):
            if found.rest[i].size > r.shape[found.rest[i].x] and others == &found:
                dims_of(r, True, &alone)
                others = &alone
    if found.rank:
        last = found.dims[0].x
    # The first axis of an array of whole channels is its batch, whose size must not affect a result. Axes of stride 0
    # are not lanes, unless they follow the pooled axes.
    for i in range(others.others - 1, -1, -1):
        if not (r.recipe.whole and others.rest[i].x == 0) and (r.x[others.rest[i].x] or others.rest[i].x > last):
            if lane < 0 or is_nearer(r, &others.rest[i], &others.rest[lane]):
                lane = i
    if lane >= 0:
        for i in range(found.rank - 1, -1, -1):
            if found.dims[i].size > 1:
                stride = llabs(r.x[found.dims[i].x])
        apart = stride >= 0 and llabs(r.x[others.rest[lane].x]) >= stride
        lanes_fit = others.rest[lane].size >= VECTOR // r.recipe.itemsize
        if apart:
            lanes_fit = lanes_fit and (r.recipe.whole or r.contiguous)
        else:  # few lanes of a whole channel must be packed without gaps, unless they are the last axes of the array
            lanes_fit = (lanes_fit or not r.recipe.whole or others.rest[lane].x > last
                         or found.rank == 1 and r.x[others.rest[lane].x] == r.recipe.itemsize
                         and r.x[found.dims[0].x] == others.rest[lane].size * r.recipe.itemsize)
        if lanes_fit:
            if not apart:
                set_form(r, &found, others, lane, False, forms)
                return 1
            set_form(r, &found, others, lane, True, forms + 1)
            count = 1
    set_form(r, &found, &found, -1, False, forms)
    return count + 1


cdef int joined_of(const Request* r, const Form* form) noexcept nogil:
    """The number of trailing axes that count as one in the order of sums."""
    cdef int count = 1
    while count < form.rank and are_one(r, form.dims[form.rank - count - 1].x, form.dims[form.rank - count].x):
        count += 1
    return count
