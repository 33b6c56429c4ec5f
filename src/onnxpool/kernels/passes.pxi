"""Passes: one axis of x[pre, size, post] is reduced to y[pre, out, post].

A window is its first tap, the distance between its taps (`hop`) and how many of them are inside the input. Outputs in
the interior [begin, end) have all taps and lie `step` apart, so they go through a loop together; the others, at the
border, have a first tap and a number of taps each. Padding is not known here.

Up to FEW taps are combined in registers. Longer windows go one of two ways, to the same bits (see reductions.pxd):
windows that share most of their taps look up sums of 1, 2, 4, ... neighbours (tables.pxi, rings.pxi), others are read
once (folds.pxi, or `cascade` where they do not fill vectors). Long windows of several whole steps are T of steps
instead, each of them T of its taps (`reduce_steps`); those at the border are not.
"""
from libc.string cimport memcpy

from .elements cimport copy_vector
from .geometry cimport Axis, Run, Span, first_tap, is_interior, run_at, taps_inside
from .job cimport NEAR, PLAIN, parts
from .reductions cimport combine, few, nothing, running_t

cdef enum:
    VECTOR = 64   # bytes that are reduced together, as in tiling.py
    FEW = 8       # taps that `few` combines
    CHUNK = 512   # neighbouring windows that a cascade takes together: rows apart are best read in long pieces
    BLOCK = 1024  # taps that a lone window halves at a time; a power of two
    LEVELS = 56   # rows that a cascade can hold back: more than log2 of any number of taps


cdef inline void steps(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop,
                       Py_ssize_t pace, int taps) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        y[j * pace] = few(x + j * step, hop, taps)


cdef inline void strides(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop,
                         Py_ssize_t pace, int taps) noexcept nogil:
    # Constants let the compiler load vectors.
    if pace == 1 and step == 1:
        steps(x, y, n, 1, hop, 1, taps)
    elif pace == 1 and step == 2 and hop == 1:
        steps(x, y, n, 2, 1, 1, taps)
    elif pace == 1 and step == 3 and hop == 1 and taps <= 5:
        steps(x, y, n, 3, 1, 1, taps)
    else:
        steps(x, y, n, step, hop, pace, taps)


cdef void quarter(const running_t* x, running_t* y, Py_ssize_t n) noexcept nogil:
    """y[n] = T(4) of x[n, 4]: pairs, and pairs of them."""
    cdef running_t[2 * CHUNK] space
    cdef running_t* pairs = space
    cdef Py_ssize_t done = 0, part
    while done < n:
        part = min(n - done, CHUNK)
        steps(x + 4 * done, pairs, 2 * part, 2, 1, 1, 2)
        steps(pairs, y + done, part, 2, 1, 1, 2)
        done += part


cdef void sweep_apart(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop,
                      Py_ssize_t taps, Py_ssize_t pace) noexcept nogil:
    """y[j * pace] = T(taps) of x[j * step], x[j * step + hop], ... for j < n and at most FEW taps."""
    cdef Py_ssize_t j
    if taps == 0:
        for j in range(n):
            y[j * pace] = nothing(y[j * pace])
    elif taps == 1:
        strides(x, y, n, step, hop, pace, 1)
    elif taps == 2:
        strides(x, y, n, step, hop, pace, 2)
    elif taps == 3:
        strides(x, y, n, step, hop, pace, 3)
    elif taps == 4 and step == 4 and hop == 1 and pace == 1:
        quarter(x, y, n)
    elif taps == 4:
        strides(x, y, n, step, hop, pace, 4)
    elif taps == 5:
        strides(x, y, n, step, hop, pace, 5)
    elif taps == 6:
        strides(x, y, n, step, hop, pace, 6)
    elif taps == 7:
        strides(x, y, n, step, hop, pace, 7)
    else:
        strides(x, y, n, step, hop, pace, 8)


cdef inline void sweep(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop,
                       Py_ssize_t taps) noexcept nogil:
    sweep_apart(x, y, n, step, hop, taps, 1)


cdef inline void blocks(const running_t* x, running_t* y, Py_ssize_t count, Py_ssize_t n, Py_ssize_t step,
                        Py_ssize_t hop, int taps) noexcept nogil:
    cdef running_t[VECTOR] space
    cdef running_t* lanes = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), window, j
    cdef Py_ssize_t whole = max(0, count - parts(width, min(n, step)) if n < width else 0)
    for window in range(whole):  # a vector is more than a window: what is written behind it is the next one's
        for j in range(width):
            lanes[j] = few(x + window * step + j, hop, taps)
        copy_vector(y + window * n, lanes)
    for window in range(whole, count):
        for j in range(n):
            y[window * n + j] = few(x + window * step + j, hop, taps)


cdef void sweep_blocks(const running_t* x, running_t* y, Py_ssize_t count, Py_ssize_t n, Py_ssize_t step,
                       Py_ssize_t hop, Py_ssize_t taps) noexcept nogil:
    """As `sweep` for `count` windows of n neighbours each, read `step` apart; 2 to 4 taps without a call for each."""
    cdef Py_ssize_t window
    if taps == 2:
        blocks(x, y, count, n, step, hop, 2)
    elif taps == 3:
        blocks(x, y, count, n, step, hop, 3)
    elif taps == 4:
        blocks(x, y, count, n, step, hop, 4)
    else:
        for window in range(count):
            sweep(x + window * step, y + window * n, n, 1, hop, taps)


cdef inline void merge(running_t* earlier, const running_t* later, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        earlier[j] = combine(earlier[j], later[j])


cdef inline void merge_after(const running_t* earlier, running_t* later, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        later[j] = combine(earlier[j], later[j])


cdef running_t halve(const running_t* x, Py_ssize_t hop, Py_ssize_t taps, running_t* scratch) noexcept nogil:
    """T(taps) of one window by combining neighbours until one is left; scratch holds `taps` values."""
    cdef running_t tail = x[0]
    cdef bint has_tail = False
    while taps > 1:
        if taps & 1:
            tail = combine(x[(taps - 1) * hop], tail) if has_tail else x[(taps - 1) * hop]
            has_tail = True
        taps >>= 1
        sweep(x, scratch, taps, 2 * hop, hop, 2)
        x = scratch
        scratch += taps
        hop = 1
    return combine(x[0], tail) if has_tail else x[0]


cdef void cascade(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop, Py_ssize_t taps,
                  running_t* scratch) noexcept nogil:
    """As `sweep` for any number of taps and n <= CHUNK; scratch holds LEVELS * CHUNK + BLOCK values."""
    cdef Py_ssize_t group = FEW if n > 1 else BLOCK
    cdef Py_ssize_t done, held = 0, here, part
    cdef running_t* rows = scratch + BLOCK
    for done in range((taps + group - 1) // group):
        part = min(group, taps - done * group)
        if n > 1:
            sweep(x + done * group * hop, rows + held * CHUNK, n, step, hop, part)
        else:
            rows[held * CHUNK] = halve(x + done * group * hop, hop, part, scratch)
        held += 1
        here = done
        # Two sums of equally many taps become one, as a carry runs through a binary counter.
        while part == group and (here & 1) == 1:
            merge(rows + (held - 2) * CHUNK, rows + (held - 1) * CHUNK, n)
            held -= 1
            here >>= 1
    while held > 1:
        merge(rows + (held - 2) * CHUNK, rows + (held - 1) * CHUNK, n)
        held -= 1
    sweep(rows, y, n, 1, 1, 1)


cdef void windows(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop,
                  Py_ssize_t taps, running_t* scratch) noexcept nogil:
    cdef Py_ssize_t done = 0, width = VECTOR // <Py_ssize_t> sizeof(running_t), units
    if taps <= FEW:
        sweep(x, y, n, step, hop, taps)
        return
    while step == 1 and done < n and n >= width:
        done = min(done, n - width)  # the last vector overlaps the one before
        units = min(n - done, CHUNK) // width
        cascade_units(<const char*> (x + done), hop * <Py_ssize_t> sizeof(running_t), taps, scratch, units, NEAR,
                      PLAIN)
        memcpy(y + done, scratch, units * VECTOR)
        done += units * width
    while done < n:
        cascade(x + done * step, y + done, min(n - done, CHUNK), step, hop, taps, scratch)
        done += CHUNK


cdef void halve_rows(const running_t* x, running_t* y, Py_ssize_t rows, Py_ssize_t length,
                     running_t* scratch) noexcept nogil:
    """y[row] = T(length) of x[row, length]: neighbours of all rows at once, as long as rows are even."""
    while length > FEW and length % 2 == 0:
        length //= 2
        sweep(x, scratch, rows * length, 2, 1, 2)
        x = scratch
        scratch += rows * length
    windows(x, y, rows, length, 1, length, scratch)


cdef void reduce_border(const running_t* x, running_t* y, Py_ssize_t pre, const Axis* axis, Span span, Py_ssize_t post,
                        running_t* scratch) noexcept nogil:
    """The windows of `reduce_axis` that are not in the interior."""
    cdef Py_ssize_t length = span.high - span.low, count = span.end - span.begin, window = span.begin, p, taps
    cdef const running_t* first
    cdef running_t* target
    while window < span.end:
        if is_interior(axis, window):
            window = axis.end
            continue
        taps = taps_inside(axis, window)
        first = x + (first_tap(axis, window) - span.low) * post
        target = y + (window - span.begin) * post
        if post == 1 and taps <= FEW:
            sweep_apart(first, target, pre, length, axis.hop, taps, count)
        else:
            for p in range(pre):
                windows(first + p * length * post, target + p * count * post, post, 1, axis.hop * post, taps, scratch)
        window += 1


cdef void reduce_interior(const running_t* x, running_t* y, Py_ssize_t pre, const Axis* axis, Span span,
                          Py_ssize_t begin, Py_ssize_t end, Py_ssize_t post, running_t* scratch) noexcept nogil:
    """The windows [begin, end) of `reduce_axis`, which are all in the interior."""
    cdef Py_ssize_t length = span.high - span.low, count = span.end - span.begin, p, window
    cdef Run run
    for p in range(pre):
        window = begin
        if post > 1 and axis.step > 1 and axis.taps <= FEW:
            sweep_blocks(x + (p * length + first_tap(axis, begin) - span.low) * post,
                         y + (p * count + begin - span.begin) * post, end - begin, post, axis.step * post,
                         axis.hop * post, axis.taps)
            continue
        while window < end:
            run = run_at(axis, window, end, post)
            windows(x + (p * length + first_tap(axis, window) - span.low) * post,
                    y + (p * count + window - span.begin) * post, run.n, run.step, axis.hop * post, axis.taps, scratch)
            window += run.windows


cdef inline bint in_steps(const Axis* axis) noexcept nogil:
    """Whether long windows in the interior are whole steps: each step is then reduced once, for all its windows."""
    return axis.taps > FEW and axis.hop == 1 and 1 < axis.step < axis.taps and axis.taps % axis.step == 0


cdef void reduce_steps(const running_t* x, running_t* y, const Axis* axis, Py_ssize_t count, Py_ssize_t post,
                       running_t* scratch) noexcept nogil:
    """y[count, post] of windows in the interior from x[elements, post], as T of steps; scratch as for `reduce_axis`."""
    cdef Py_ssize_t steps = axis.taps // axis.step, all_steps = count - 1 + steps
    cdef Axis one = axis[0], many = axis[0]
    one.begin, one.end, one.start, one.taps, one.most = 0, all_steps, 0, axis.step, axis.step
    reduce_interior(x, scratch, 1, &one, Span(0, all_steps, 0, all_steps * axis.step), 0, all_steps, post,
                    scratch + all_steps * post)
    many.begin, many.end, many.start, many.step, many.taps, many.most = 0, count, 0, 1, steps, steps
    reduce_axis(scratch, y, 1, &many, Span(0, count, 0, all_steps), post, scratch + all_steps * post)


cdef void reduce_axis(const running_t* x, running_t* y, Py_ssize_t pre, const Axis* whole, Span span, Py_ssize_t post,
                      running_t* scratch) noexcept nogil:
    """y[pre, span windows, post] from x[pre, span elements, post].

    scratch holds twice (span elements) * post and pre * (span elements) values, and LEVELS * CHUNK + BLOCK and tables
    more if a window has more than FEW taps.
    """
    cdef Axis axis = whole[0]
    cdef Py_ssize_t length = span.high - span.low, count = span.end - span.begin, p
    cdef Py_ssize_t begin = max(axis.begin, span.begin), end = min(axis.end, span.end)
    if pre == 0:
        return
    if in_steps(whole):
        if begin < end:
            for p in range(pre):
                reduce_steps(x + (p * length + first_tap(whole, begin) - span.low) * post,
                             y + (p * count + begin - span.begin) * post, whole, end - begin, post, scratch)
        reduce_border(x, y, pre, whole, span, post, scratch)
        return
    if share_taps(&axis, count, length):
        look_up_axis(x, y, pre, &axis, span, post, scratch)
        return
    if begin < end:
        # From here on the interior begins where the span's does, whatever the step is taken to be.
        axis.start, axis.begin = first_tap(whole, begin), begin
        axis.step = length if count == 1 else axis.step
        if count * axis.step == length:
            # Windows continue without a gap from slice to slice, as if on one long axis. What this leaves where a slice
            # has a border is replaced below.
            end += (pre - 1) * count
            axis.end = end
            pre, p = 1, pre
        else:
            p = pre
        if count == 1 and post == 1 and axis.hop == 1 and axis.taps == length:
            halve_rows(x, y, p, length, scratch)
            return
        reduce_interior(x, y, pre, &axis, span, begin, end, post, scratch)
        pre = p
    reduce_border(x, y, pre, whole, span, post, scratch)
