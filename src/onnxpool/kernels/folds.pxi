"""Folds: long windows over values beside each other, from elements to vectors; each tap is read once.

Groups of taps are combined in registers, and their results held back until there are two of equally many taps. A long
piece of each row of taps is read before the next, as memory gives more that way than for a little of each in turn.
"""
from libc.stdint cimport int16_t, int32_t
from libc.string cimport memcpy

from .elements cimport (
    copy_vector,
    fetch_lines,
    keys_of_row,
    load_once,
    widen_bfloat16_half,
    widen_bfloat16_row,
    widen_bytes,
    widen_float16_row,
)
from .job cimport (
    BFLOAT16,
    BFLOAT16_EVEN,
    BFLOAT16_KEYS,
    BFLOAT16_ODD,
    BFLOAT16_PAIRS,
    BYTES,
    FARTHEST,
    FLOAT16,
    FLOAT16_KEYS,
    PLAIN,
    SIGNED_BYTES,
    Distance,
    Format,
)
from .reductions cimport MaxF32, MaxI16, SumF32, SumF64, SumI32, combine, few, running_t

cdef enum:
    GROUP = 2 * FEW  # taps that a fold takes together


cdef inline void widen(const char* x, running_t* lanes, Format format) noexcept nogil:
    """A vector of elements of a format as running values."""
    cdef char[VECTOR] space
    cdef char* raw = space
    if running_t is SumI32:
        widen_bytes(x, <int32_t*> lanes, format == SIGNED_BYTES)
    elif running_t is SumF64:
        square_row(x, <double*> lanes, VECTOR // <int> sizeof(double), format)
    elif running_t is MaxI16:
        load_once(x, raw)
        keys_of_row(<const unsigned short*> raw, <int16_t*> lanes, VECTOR // <int> sizeof(int16_t), nans_of(format))
    elif format == FLOAT16:
        widen_float16_row(<const unsigned short*> x, <float*> lanes, VECTOR // <int> sizeof(float))
    elif format == BFLOAT16_EVEN or format == BFLOAT16_ODD:
        widen_bfloat16_half(<const unsigned short*> x, <float*> lanes, format == BFLOAT16_ODD)
    else:
        widen_bfloat16_row(<const unsigned short*> x, <float*> lanes, VECTOR // <int> sizeof(float))


cdef inline int vectors_of(Format format) noexcept nogil:
    """How many vectors of running values become one of elements."""
    return 2 if format == BFLOAT16_PAIRS else 1


cdef inline void reduce_widened(const char* x, running_t* lanes, Py_ssize_t hop, int taps,
                                Format format) noexcept nogil:
    """A vector of `reduce_taps`. Four taps at a time can stay in registers."""
    cdef running_t[4 * VECTOR] space
    cdef running_t* box = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), j
    cdef int tap
    for tap in range(min(taps, 4)):
        widen(x + tap * hop, box + tap * width, format)
    for j in range(width):
        lanes[j] = few(box + j, width, min(taps, 4))
    if taps > 4:
        x += 4 * hop
        for tap in range(taps - 4):
            widen(x + tap * hop, box + tap * width, format)
        for j in range(width):
            lanes[j] = combine(lanes[j], few(box + j, width, taps - 4))


cdef inline void reduce_taps(const char* x, running_t* lanes, Py_ssize_t hop, int taps, Format format) noexcept nogil:
    """T(taps) in every lane of `vectors_of` vectors, from taps `hop` bytes apart."""
    cdef char[FEW * VECTOR] space
    cdef char* raw = space
    cdef int tap
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), j
    if format == PLAIN:
        for j in range(width):
            lanes[j] = few(<const running_t*> x + j, hop // <Py_ssize_t> sizeof(running_t), taps)
    elif format == BFLOAT16_PAIRS:
        for tap in range(taps):
            load_once(x + tap * hop, raw + tap * VECTOR)
        reduce_widened(raw, lanes, VECTOR, taps, BFLOAT16_EVEN)
        reduce_widened(raw, lanes + width, VECTOR, taps, BFLOAT16_ODD)
    else:
        reduce_widened(x, lanes, hop, taps, format)


cdef inline void reduce_before(const char* x, running_t* lanes, Py_ssize_t hop, int taps, bint any_after,
                               Format format) noexcept nogil:
    """As `reduce_taps`, of taps before those whose result is in `lanes`, if any."""
    cdef running_t[2 * VECTOR] space
    cdef running_t* first = space
    if any_after:
        reduce_taps(x, first, hop, taps, format)
        merge_after(first, lanes, vectors_of(format) * (VECTOR // <Py_ssize_t> sizeof(running_t)))
    else:
        reduce_taps(x, lanes, hop, taps, format)


cdef inline void reduce_rest(const char* x, running_t* lanes, Py_ssize_t hop, Py_ssize_t taps,
                             Format format) noexcept nogil:
    """As `reduce_taps`, for 1 to GROUP - 1 taps: the powers of two that they are the sum of, from the last one on."""
    if taps & 1:
        reduce_before(x + (taps & ~1) * hop, lanes, hop, 1, False, format)
    if taps & 2:
        reduce_before(x + (taps & ~3) * hop, lanes, hop, 2, (taps & 1) != 0, format)
    if taps & 4:
        reduce_before(x + (taps & ~7) * hop, lanes, hop, 4, (taps & 3) != 0, format)
    if taps & 8:
        reduce_before(x, lanes, hop, 8, (taps & 7) != 0, format)


cdef struct Fold:
    Py_ssize_t groups, depth  # groups of GROUP taps so far, and how many results are held back


cdef inline void merge_held(Fold* fold, running_t* held, Py_ssize_t units, Format format) noexcept nogil:
    """The last two of the results held back become one."""
    cdef running_t[VECTOR] earlier_space, later_space  # apart, so that nothing has to be known of where they are
    cdef running_t* earlier = earlier_space
    cdef running_t* later = later_space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), row = units * vectors_of(format) * width, vector
    fold.depth -= 1
    held += (fold.depth - 1) * row
    for vector in range(units * vectors_of(format)):
        copy_vector(earlier, held + vector * width)
        copy_vector(later, held + row + vector * width)
        merge(earlier, later, width)
        copy_vector(held + vector * width, earlier)


cdef inline void merge_before(const running_t* y, running_t* lanes) noexcept nogil:
    cdef running_t[VECTOR] space  # apart, so that nothing has to be known of where y is
    cdef running_t* before = space
    copy_vector(before, y)
    merge_after(before, lanes, VECTOR // <Py_ssize_t> sizeof(running_t))


cdef inline void reduce_units(const char* x, running_t* y, Py_ssize_t hop, Py_ssize_t units, bint any_before,
                              Format format) noexcept nogil:
    """FEW taps, after those whose result is in y if any, of so many units of `vectors_of` vectors beside each other."""
    cdef running_t[2 * VECTOR] space
    cdef running_t* lanes = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), unit
    cdef int vector
    for unit in range(units):
        reduce_taps(x, lanes, hop, FEW, format)
        for vector in range(vectors_of(format)):
            if any_before:
                merge_before(y, lanes + vector * width)
            copy_vector(y, lanes + vector * width)
            y += width
        x += vectors_of(format) * unit_of(y, format)


cdef inline void fold_in(Fold* fold, const char* x, Py_ssize_t hop, Py_ssize_t groups, running_t* held,
                         Py_ssize_t units, bint fetches, Format format) noexcept nogil:
    """More groups of taps, for so many units beside each other. Lines that are fetched must follow each other.

    Two results of equally many taps become one, as a carry runs through a binary counter.
    """
    cdef Py_ssize_t row = units * vectors_of(format) * (VECTOR // <Py_ssize_t> sizeof(running_t)), group, here
    for group in range(groups):
        if fetches:
            fetch_lines(x + FARTHEST_AHEAD, FEW * hop // 64)
        reduce_units(x, held + fold.depth * row, hop, units, False, format)
        x += FEW * hop
        if fetches:
            fetch_lines(x + FARTHEST_AHEAD, FEW * hop // 64)
        reduce_units(x, held + fold.depth * row, hop, units, True, format)
        x += FEW * hop
        fold.depth += 1
        here = fold.groups
        while here & 1:
            merge_held(fold, held, units, format)
            here >>= 1
        fold.groups += 1


cdef inline void fold_rest(Fold* fold, const char* x, Py_ssize_t hop, Py_ssize_t taps, running_t* held,
                           Py_ssize_t units, Format format) noexcept nogil:
    """The last taps, fewer than a group, and all before them: held[0]."""
    cdef running_t[2 * VECTOR] space
    cdef running_t* lanes = space
    cdef Py_ssize_t width = vectors_of(format) * (VECTOR // <Py_ssize_t> sizeof(running_t)), unit
    cdef Py_ssize_t bytes = vectors_of(format) * unit_of(held, format)
    if taps:
        for unit in range(units):
            reduce_rest(x + unit * bytes, lanes, hop, taps, format)
            memcpy(held + (fold.depth * units + unit) * width, lanes, vectors_of(format) * VECTOR)
        fold.depth += 1
    while fold.depth > 1:
        merge_held(fold, held, units, format)


cdef inline void fold(const char* x, Py_ssize_t hop, Py_ssize_t taps, running_t* held, Py_ssize_t units,
                      Distance far, Format format) noexcept nogil:
    cdef Py_ssize_t groups = taps // GROUP
    cdef Py_ssize_t bytes = vectors_of(format) * unit_of(held, format)
    cdef Fold state = Fold(0, 0)
    fold_in(&state, x, hop, groups, held, units, far == FARTHEST and hop == units * bytes, format)
    fold_rest(&state, x + groups * GROUP * hop, hop, taps % GROUP, held, units, format)


cdef void cascade_units(const char* x, Py_ssize_t hop, Py_ssize_t taps, running_t* held, Py_ssize_t units,
                        Distance far, Format format) noexcept nogil:
    """As `cascade`, of elements, for windows beside each other that fill so many units; held[0] is the result.

    Taps lie `hop` bytes apart; held has room for LEVELS times the result.
    """
    if running_t is MaxI16:
        if format == FLOAT16_KEYS:
            fold(x, hop, taps, held, units, far, FLOAT16_KEYS)
            return
        elif format == BFLOAT16_KEYS:
            fold(x, hop, taps, held, units, far, BFLOAT16_KEYS)
            return
    elif running_t is SumF32 or running_t is MaxF32:
        if format == FLOAT16:
            fold(x, hop, taps, held, units, far, FLOAT16)
            return
        elif format == BFLOAT16:
            fold(x, hop, taps, held, units, far, BFLOAT16)
            return
        elif format == BFLOAT16_PAIRS:
            fold(x, hop, taps, held, units, far, BFLOAT16_PAIRS)
            return
    elif running_t is SumI32:
        if format == BYTES:
            fold(x, hop, taps, held, units, far, BYTES)
            return
        elif format == SIGNED_BYTES:
            fold(x, hop, taps, held, units, far, SIGNED_BYTES)
            return
    fold(x, hop, taps, held, units, far, PLAIN)
