"""Computes the windows along each axis of an array from attributes. This is for plain calls; Python reports errors."""

cdef enum:
    SMALL = 1 << 30  # sums, and products of two, of attributes and sizes below this fit into 64 bits


cdef inline Py_ssize_t floor_div(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """The quotient a / b, rounded down."""
    return a // b if a >= 0 else -((-a + b - 1) // b)


cdef bint resolve(const Attributes* given, int i, Py_ssize_t size, Axis* axis) noexcept nogil:
    """Compute the windows along pooled axis number i. Return whether there are any, and their sizes fit."""
    cdef Py_ssize_t kernel = given.kernel[i], dilation = given.dilation[i]
    # At a distance beyond the largest sum of a size and its padding, there is no second window.
    cdef Py_ssize_t stride = min(given.stride[i], 3 * <Py_ssize_t> SMALL)
    cdef Py_ssize_t pad = given.pad[i], pad_end = given.pad_end[i], span, out, total, room
    if size < 1 or size >= SMALL:
        return False
    if given.whole:
        set_whole(axis, size)
        return True
    if max(max(kernel, dilation), max(pad, pad_end)) >= SMALL:
        return False
    span = (kernel - 1) * dilation + 1
    if given.mode == SAME_UPPER or given.mode == SAME_LOWER:
        out = ceil_div(size, stride)
        total = max(<Py_ssize_t> 0, (out - 1) * stride + span - size)
        pad = total // 2 if given.mode == SAME_UPPER else total - total // 2
        pad_end = total - pad
    else:
        room = size + pad + pad_end - span
        out = (-floor_div(-room, stride) if given.ceil_mode else floor_div(room, stride)) + 1
        if out < 1:
            return False
        if given.ceil_mode and (out - 1) * stride >= size + pad:
            out -= 1  # drop a window that would start in the padding at the end
    axis.size, axis.out, axis.kernel, axis.span = size, out, kernel, span
    axis.most, axis.counts_pads, axis.wide = min(kernel, ceil_div(size, dilation)), given.counts_pads, False
    axis.pad, axis.pad_end = pad, pad_end
    axis.begin = max(<Py_ssize_t> 0, min(out, ceil_div(pad, stride)))
    axis.end = max(axis.begin, min(out, floor_div(size - span + pad, stride) + 1))
    axis.stride, axis.dilation = stride if out > 1 else 1, dilation if kernel > 1 else 1
    return out - (axis.end - axis.begin) <= MOST_BORDER


cdef bint resolve_all(const Attributes* given, const Py_ssize_t* shape, const Py_ssize_t* strides, Request* r,
                      Py_ssize_t* y_shape, int64_t* taps_of, bint* are_picked) noexcept nogil:
    """
    Make the request for an array of this shape, which is C-contiguous if `strides` is NULL. Also find the shape of the
    result, how many taps of a window can be inside, and whether results are elements. Return False for shapes and
    errors that Python must handle.
    """
    cdef const Recipe* recipe = given.recipe
    cdef Py_ssize_t step = recipe.itemsize, index = 8, place = 1, across = 0, most = 0
    cdef double results = 1, taps = 1, divisor = 1
    cdef const Axis* axis
    cdef bint picked = given.picks and given.rank, covers = given.may_cover
    cdef int a, i, y = 0
    r.recipe, r.ndim, r.keepdims, r.results = recipe, given.ndim, given.keepdims, 1 + recipe.indexed
    r.contiguous = strides == NULL
    for a in range(given.ndim):
        r.shape[a], r.along[a], r.place[a] = shape[a], given.along[a], 0
        i = given.along[a]
        if shape[a] < 1:
            return False
        if i >= 0:
            if not resolve(given, i, shape[a], &r.windows[i]):
                return False
            axis = &r.windows[i]
            if given.fills and (axis.dilation > axis.size or not touch(axis, 0, axis.out)):  # some may have no taps
                return False
            taps, divisor = taps * axis.most, divisor * (axis.kernel if axis.counts_pads else axis.most)
            covers = covers and axis.kernel == axis.span == axis.size and axis.pad == axis.pad_end == 0
            picked = picked and axis.kernel == 1 and axis.end - axis.begin == axis.out
        if i < 0 or given.keepdims:
            y_shape[y] = shape[a] if i < 0 else r.windows[i].out
            results *= y_shape[y]
            y += 1
    r.y_ndim = y
    are_picked[0] = picked
    if covers or results * 16 > MOST_RESULTS or taps > given.most_taps or not (
            given.least_divisor <= divisor <= given.most_divisor):
        return False
    taps_of[0] = <int64_t> taps
    for a in range(given.ndim - 1, -1, -1):
        r.x[a] = 0 if shape[a] == 1 else step if strides == NULL else strides[a]
        step *= shape[a]
    step = recipe.itemsize
    for a in range(y - 1, -1, -1):
        r.y[0][a], r.y[1][a] = step if y_shape[a] > 1 else 0, index if y_shape[a] > 1 else 0
        step, index = step * y_shape[a], index * y_shape[a]
    if not recipe.indexed:
        return True
    for i in range(given.ndim - 1, -1, -1):
        a = given.order[i]
        r.place[a] = place
        place *= shape[a]
        if given.along[a] >= 0:
            most += (shape[a] - 1) * r.place[a]
            across = max(across, min(r.windows[given.along[a]].span, 2 * shape[a]) * r.place[a])
    return recipe.itemsize == 8 or not (given.rank > 1 and most >= MOST_PLACES or across * given.rank > MOST_PLACES)
