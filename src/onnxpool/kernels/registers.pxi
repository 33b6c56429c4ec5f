"""Registers: vectors of running values that stay there from loop to loop, where arrays would go through memory.

As many as there is room for are taken together (REGISTERS: QUAD * QUAD with AVX-512, else QUAD), or QUAD, or what a
format gives at a time, one or a pair.
"""
from .elements cimport (
    copy_vector,
    fetch,
    lanes_t,
    larger_doubles,
    larger_floats,
    load_lanes,
    load_once,
    store_lanes,
)
from .job cimport BFLOAT16_EVEN, BFLOAT16_ODD, BFLOAT16_PAIRS, Format
from .reductions cimport MaxF32, MaxF64, neutral, nothing, running_t

cdef enum:
    QUAD = 4


cdef struct Quad:
    lanes_t first, second, third, fourth


cdef struct Registers:
    Quad first, second, third, fourth  # all but the first only where REGISTERS is more than QUAD


cdef enum Exchange:
    CLEAR    # registers hold what changes nothing,
    VOID     # what a window without a tap does,
    READ     # what is in memory,
    PRECEDE  # or what is in memory, followed by what they held
    WRITE    # memory holds what registers do


cdef inline void read_lanes(const char* x, lanes_t* lanes, const running_t* like, Format format) noexcept nogil:
    cdef running_t[VECTOR] space
    cdef running_t* values = space
    read_vector(x, values, format)
    lanes[0] = load_lanes(values)


cdef inline void read_pair(const char* x, lanes_t* even, lanes_t* odd, const running_t* like,
                           Format format) noexcept nogil:
    """A pair, which as running values are two vectors."""
    cdef char[VECTOR] space
    cdef char* raw = space
    if format == BFLOAT16_PAIRS:
        load_once(x, raw)
        read_lanes(raw, even, like, BFLOAT16_EVEN)
        read_lanes(raw, odd, like, BFLOAT16_ODD)
    else:
        read_lanes(x, even, like, format)
        read_lanes(x + VECTOR, odd, like, format)


cdef inline void read_apart(const char* x, Py_ssize_t pitch, Quad* quad, const running_t* like, bint paired,
                            int vectors, Format format) noexcept nogil:
    """So many vectors, or pairs of them, `pitch` bytes apart."""
    if paired:
        read_pair(x, &quad.first, &quad.second, like, format)
        if vectors == QUAD:
            read_pair(x + pitch, &quad.third, &quad.fourth, like, format)
        return
    read_lanes(x, &quad.first, like, format)
    if vectors == QUAD:
        read_lanes(x + pitch, &quad.second, like, format)
        read_lanes(x + 2 * pitch, &quad.third, like, format)
        read_lanes(x + 3 * pitch, &quad.fourth, like, format)


cdef inline void take_lanes(running_t* values, lanes_t* lanes, bint before) noexcept nogil:
    """Values before or after those in a register."""
    cdef running_t[VECTOR] space
    cdef running_t* others = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t)
    cdef lanes_t given = load_lanes(values)
    if running_t is MaxF32:
        lanes[0] = larger_floats(given, lanes[0]) if before else larger_floats(lanes[0], given)
    elif running_t is MaxF64:
        lanes[0] = larger_doubles(given, lanes[0]) if before else larger_doubles(lanes[0], given)
    elif before:
        store_lanes(lanes[0], others)
        merge(values, others, width)
        lanes[0] = load_lanes(values)
    else:
        store_lanes(lanes[0], others)
        merge(others, values, width)
        lanes[0] = load_lanes(others)


cdef inline void exchange_vector(lanes_t* lanes, running_t* memory, Exchange what) noexcept nogil:
    cdef running_t[VECTOR] space
    cdef running_t* values = space
    cdef Py_ssize_t j
    if what == CLEAR or what == VOID:
        for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
            values[j] = neutral(memory[0]) if what == CLEAR else nothing(memory[0])
        lanes[0] = load_lanes(values)
    elif what == READ:
        lanes[0] = load_lanes(memory)
    elif what == PRECEDE:
        copy_vector(values, memory)
        take_lanes(values, lanes, True)
    else:
        store_lanes(lanes[0], memory)


cdef inline void exchange_quad(Quad* quad, running_t* memory, Exchange what) noexcept nogil:
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t)
    exchange_vector(&quad.first, memory, what)
    exchange_vector(&quad.second, memory + width, what)
    exchange_vector(&quad.third, memory + 2 * width, what)
    exchange_vector(&quad.fourth, memory + 3 * width, what)


cdef inline void exchange(Registers* all, running_t* memory, int vectors, Exchange what) noexcept nogil:
    """So many vectors."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t)
    if vectors < QUAD:
        exchange_vector(&all.first.first, memory, what)
        if vectors == 2:
            exchange_vector(&all.first.second, memory + width, what)
        return
    exchange_quad(&all.first, memory, what)
    if vectors > QUAD:
        exchange_quad(&all.second, memory + QUAD * width, what)
        exchange_quad(&all.third, memory + 2 * QUAD * width, what)
        exchange_quad(&all.fourth, memory + 3 * QUAD * width, what)


cdef inline void take_vector(const char* x, lanes_t* lanes, const running_t* like, bint odd, Py_ssize_t ahead,
                             Format format) noexcept nogil:
    """A vector more. Lines are fetched one by one, as many at once would hold up the loads; of narrow vectors, at every
    other of them."""
    cdef running_t[VECTOR] space
    cdef running_t* values = space
    cdef Py_ssize_t unit = unit_of(like, format)
    if ahead and (odd or unit == VECTOR):
        fetch(x + unit - 1 + ahead)  # the line where it ends: that where it begins may be another's
    read_vector(x, values, format)
    take_lanes(values, lanes, False)


cdef inline void take_pair(const char* x, lanes_t* even, lanes_t* odd, const running_t* like,
                           Py_ssize_t ahead) noexcept nogil:
    """Two vectors of bfloat16, one of those of even place and one of the others."""
    cdef char[VECTOR] space
    cdef char* raw = space
    if ahead:
        fetch(x + VECTOR - 1 + ahead)
    load_once(x, raw)
    take_vector(raw, even, like, False, 0, BFLOAT16_EVEN)
    take_vector(raw, odd, like, False, 0, BFLOAT16_ODD)


cdef inline void take_quad(const char* x, Quad* quad, const running_t* like, Py_ssize_t shift, Py_ssize_t ahead,
                           Format format) noexcept nogil:
    cdef Py_ssize_t unit = unit_of(like, format)
    if format == BFLOAT16_PAIRS:
        take_pair(x, &quad.first, &quad.second, like, ahead)
        take_pair(x + 2 * unit + shift, &quad.third, &quad.fourth, like, ahead)
    else:
        take_vector(x, &quad.first, like, False, ahead, format)
        take_vector(x + unit, &quad.second, like, True, ahead, format)
        take_vector(x + 2 * unit, &quad.third, like, False, ahead, format)
        take_vector(x + 3 * unit + shift, &quad.fourth, like, True, ahead, format)


cdef inline void take_bands(const char* x, Registers* all, const running_t* like, Py_ssize_t bands, Py_ssize_t hop,
                            Py_ssize_t shift, Py_ssize_t ahead, int vectors, Format format) noexcept nogil:
    """So many vectors of each band: the more of a row is read before the next, the better."""
    cdef Py_ssize_t quad = QUAD * unit_of(like, format), n
    for n in range(bands):
        if vectors == 2:
            take_pair(x, &all.first.first, &all.first.second, like, ahead)
        elif vectors == 1:
            take_vector(x, &all.first.first, like, True, ahead, format)
        else:
            take_quad(x, &all.first, like, shift if vectors == QUAD else 0, ahead, format)
        if vectors > QUAD:
            take_quad(x + quad, &all.second, like, 0, ahead, format)
            take_quad(x + 2 * quad, &all.third, like, 0, ahead, format)
            take_quad(x + 3 * quad, &all.fourth, like, shift, ahead, format)
        x += hop


cdef inline void hold(Registers* all, running_t* held, Py_ssize_t* depth, Py_ssize_t done, bint last,
                      int vectors) noexcept nogil:
    """Another result, behind so many others: two of equally many bands become one, as a carry runs through a binary
    counter. The last one becomes one with all."""
    cdef Py_ssize_t row = vectors * (VECTOR // <Py_ssize_t> sizeof(running_t))
    while depth[0] and (last or done & 1):
        depth[0] -= 1
        exchange(all, held + depth[0] * row, vectors, PRECEDE)
        done >>= 1
    if not last:
        exchange(all, held + depth[0] * row, vectors, WRITE)
        depth[0] += 1


cdef struct Finish:
    double divisor, factor    # what results are divided by, and one over it
    Extremes seen             # of these elements


cdef inline void put_vectors(const lanes_t* lanes, const lanes_t* odd, char* y, const running_t* like, Finish* finish,
                             Format format) noexcept nogil:
    """A vector of results, or a pair, as elements or, if `finish` is NULL, as they are."""
    cdef running_t[VECTOR] space, odd_space
    cdef running_t* values = space
    cdef running_t* odd_values = odd_space
    cdef running_t divisor, factor
    store_lanes(lanes[0], values)
    store_lanes(odd[0], odd_values)
    if finish == NULL:
        copy_vector(y, values)
    else:
        divisor, factor = divisor_like(like, finish.divisor), divisor_like(like, finish.factor)
        put_lanes(values, odd_values, y, &divisor, &factor, 0, format, True, &finish.seen)


cdef inline void put_quad(const Quad* quad, char* y, const running_t* like, Py_ssize_t shift, Finish* finish,
                          Format format) noexcept nogil:
    """The last vector, or pair, lies `shift` bytes from its place."""
    cdef Py_ssize_t unit = VECTOR if finish == NULL else unit_of(like, format)
    if format == BFLOAT16_PAIRS:
        put_vectors(&quad.first, &quad.second, y, like, finish, format)
        put_vectors(&quad.third, &quad.fourth, y + 2 * unit + shift, like, finish, format)
    else:
        put_vectors(&quad.first, &quad.first, y, like, finish, format)
        put_vectors(&quad.second, &quad.second, y + unit, like, finish, format)
        put_vectors(&quad.third, &quad.third, y + 2 * unit, like, finish, format)
        put_vectors(&quad.fourth, &quad.fourth, y + 3 * unit + shift, like, finish, format)


cdef inline void put_all(const Registers* all, char* y, const running_t* like, Py_ssize_t shift, Finish* finish,
                         int vectors, Format format) noexcept nogil:
    cdef Py_ssize_t quad = QUAD * (VECTOR if finish == NULL else unit_of(like, format))
    if vectors < QUAD:
        put_vectors(&all.first.first, &all.first.second if vectors == 2 else &all.first.first, y, like, finish, format)
        return
    put_quad(&all.first, y, like, shift if vectors == QUAD else 0, finish, format)
    if vectors > QUAD:
        put_quad(&all.second, y + quad, like, 0, finish, format)
        put_quad(&all.third, y + 2 * quad, like, 0, finish, format)
        put_quad(&all.fourth, y + 3 * quad, like, shift, finish, format)
