"""What a kernel is told: the problem x[outer, axis 0, ..., axis n-1, inner], its tiles, and the arrays of one call."""
from libc.stdint cimport int64_t

from .geometry cimport Axis, Span, first_tap, taps_inside

cdef enum:
    MAX_AXES = 64  # as many as NumPy has

cdef enum Format:
    PLAIN      # elements are what the loads and stores read and write
    FLOAT16    # elements are widened to float on the way in and narrowed on the way out
    BFLOAT16
    BFLOAT16_PAIRS  # 32 elements become the 16 of even place and then the 16 of odd place
    BFLOAT16_EVEN   # one half of them, within a kernel
    BFLOAT16_ODD
    FLOAT16_KEYS   # elements become integers of the same order on the way in
    BFLOAT16_KEYS
    BYTES          # elements are widened to 32-bit integers
    SIGNED_BYTES
    FLOAT16_SQUARES  # elements become squares in double
    BFLOAT16_SQUARES
    FLOAT32_SQUARES
    FLOAT64_SQUARES

cdef enum Running:
    MAX_I8
    MAX_U8
    MAX_I16
    MAX_F32
    MAX_F64
    SUM_I32
    SUM_I64
    SUM_F32
    SUM_F64
    SUM_WIDE
    PLACED_I8
    PLACED_U8
    PLACED_F32
    PLACED_F64
    PLACED_ANY

cdef struct Rule:
    double p                # of the Lp norm; 0 for a mean
    double low, high        # the safe range of a sum of powers
    int dropped             # bits of the float result when it is narrowed to 16, or 0
    int nans                # of either sign that a 16-bit format has
    int64_t bias            # of a quantised mean: zero point of x, times taps if the sum is of integers,
    float scale, y_scale    # what one unit of the sum is worth, in units of y or real,
    float lowest, highest   # the range of y (less its zero point, if the sum is of integers),
    int zero                # and the zero point of y


cdef struct Row:
    Py_ssize_t inner        # values of each place
    Py_ssize_t place        # of the first value within its channel, in row-major order
    Py_ssize_t base, plane  # flat index of place 0 of the first value's channel, and from channel to channel


# Elements to running values; NULL where they are the same.
ctypedef void (*Load)(const void* x, void* y, Py_ssize_t n, const Rule* rule) noexcept nogil
# Running values to elements, True if a sum left its safe range; NULL where they are the same.
ctypedef bint (*Store)(const void* x, void* y, Py_ssize_t n, double count, const Rule* rule) noexcept nogil

# Sums to elements, each over a divisor of its own; factors are one over these.
ctypedef bint (*Divide)(const void* x, void* y, Py_ssize_t n, const void* divisors, const void* factors) noexcept nogil


cdef struct Order:
    int axes                          # to be counted with the first one fastest; 0 for row-major order
    Py_ssize_t size[MAX_AXES]


cdef struct Stage:
    Running running
    Load load
    Store store
    Divide divide           # NULL if only `store` divides


cdef struct Tile:
    Py_ssize_t outer_begin, outer_end, inner_begin, inner_end
    Span span[MAX_AXES]
    Py_ssize_t segment      # of a plane that is to be combined alone, or -1
    char* segments          # results of these; NULL if there are none


cdef struct Job:
    Stage stage
    Format x_format, y_format
    const Job* mend                   # takes a tile again whose results may be wrong; or NULL if none ever are,
    bint looks                        # and only if the tile holds odd values:
    double least, largest             # of floats, magnitudes beyond which sums may leave their range
    bint indexed                      # whether places are kept as well
    bint whole                        # whether the window is all of a channel, whose rows are reduced to vectors
    bint boxes, at_once, finishes     # whether the last two axes may be reduced at once, or all; any, to elements
    Py_ssize_t flat                   # planes that are taken as one long row, or 0; the places in it
    Py_ssize_t pitch[MAX_AXES + 1]    # from plane to plane, and from one element of an axis to the next
    bint divides, in_order            # a sum is stored over its divisor; taps are added one by one
    bint full                         # whether no window is without a tap
    bint uniform                      # whether all windows divide by the same,
    double divisor                    # and by what
    int axes
    Py_ssize_t valuesize              # of what loads and stores see
    Py_ssize_t plane                  # elements of one channel of one image
    Py_ssize_t pace[MAX_AXES]         # places from one element of an axis to the next
    Order order
    Py_ssize_t outer, channels, inner  # channels: the outer items of one image
    Py_ssize_t tile_outer, tile_inner
    Py_ssize_t tile[MAX_AXES]          # windows of a tile along each axis
    Tile all                           # that there is
    Py_ssize_t tasks                   # tiles of it
    Py_ssize_t segments, held           # of a plane at most, for threads to share, and bytes of the result of one
    Py_ssize_t block, work, row, marks, divisors  # values in each part of the scratch memory, bytes in the last two,
    Py_ssize_t scratch                  # and in all
    Axis axis[MAX_AXES]


cdef struct Array:
    char* data
    Format format
    bint swapped, aligned
    Py_ssize_t itemsize
    Py_ssize_t image, channel, inner  # strides in bytes
    Py_ssize_t axis[MAX_AXES]


cdef extern from "interrupts.h":
    ctypedef struct Interrupts:
        pass
    bint interrupted(Interrupts* state) nogil
    int raised_by_handler(const Interrupts* state) except -1


cdef enum Distance:
    NEAR       # some cache of a core holds the elements,
    FAR        # only one of all cores does, or
    FARTHEST   # none


cdef struct Call:
    Array x, y, indices
    Rule rule
    Distance far            # of the elements of x,
    Distance asks           # and for loops that ask for lines only where the processor does not see them itself
    Interrupts* signals     # NULL if nothing may end the call early


cdef inline bint stopped(const Call* call) noexcept nogil:
    return call.signals != NULL and interrupted(call.signals)


cdef inline Py_ssize_t parts(Py_ssize_t whole, Py_ssize_t part) noexcept nogil:
    return (whole + part - 1) // part


cdef inline Span span_of(const Axis* axis, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Span span = Span(begin, end, axis.size, 0)
    cdef Py_ssize_t window = begin, taps, first
    while window < end:
        taps = taps_inside(axis, window)
        if taps:
            first = first_tap(axis, window)
            span.low = min(span.low, first)
            span.high = max(span.high, first + (taps - 1) * axis.hop + 1)
        # Between its ends the interior needs no look.
        window = min(end, axis.end) - 1 if axis.begin <= window < min(end, axis.end) - 1 else window + 1
    if span.high <= span.low:
        span.low = span.high = 0
    return span


cdef inline Py_ssize_t count_tiles(const Job* job, const Tile* whole) noexcept nogil:
    """Tiles of a job in a whole that may be a larger tile."""
    cdef Py_ssize_t count = (parts(whole.outer_end - whole.outer_begin, job.tile_outer)
                             * parts(whole.inner_end - whole.inner_begin, job.tile_inner))
    cdef int a
    for a in range(job.axes):
        count *= parts(whole.span[a].end - whole.span[a].begin, job.tile[a])
    return count


cdef inline void locate(const Job* job, const Tile* whole, Py_ssize_t task, Tile* tile) noexcept nogil:
    """Tasks count through the tiles as elements lie in memory: inner fastest, then the last axis, outer slowest."""
    cdef Py_ssize_t count = parts(whole.inner_end - whole.inner_begin, job.tile_inner), place = task % count, begin
    cdef int a, last = job.axes - 1
    cdef Span* span = &tile.span[last]
    tile.segment, tile.segments = -1, NULL
    tile.inner_begin = whole.inner_begin + place * job.tile_inner
    tile.inner_end = min(whole.inner_end, tile.inner_begin + job.tile_inner)
    task //= count
    for a in range(job.axes - 1, -1, -1):
        count = parts(whole.span[a].end - whole.span[a].begin, job.tile[a])
        begin = whole.span[a].begin + task % count * job.tile[a]
        tile.span[a] = span_of(&job.axis[a], begin, min(whole.span[a].end, begin + job.tile[a]))
        task //= count
    if span.begin == 0 and span.end == job.axis[last].out and 8 * (span.high - span.low) > 7 * job.axis[last].size:
        # Rows lie together if a few elements that no window reads are part of them.
        span.low, span.high = 0, job.axis[last].size
    tile.outer_begin = whole.outer_begin + task * job.tile_outer
    tile.outer_end = min(whole.outer_end, tile.outer_begin + job.tile_outer)
