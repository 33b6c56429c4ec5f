"""Planes: where one window is a whole channel, from elements to one value of each channel.

The vectors of one channel, in row-major order, are combined by QUAD: a chain of bands of them one after the other and
then with each other, chains in the order T, and at last the lanes, as neighbours. Planes of up to FEW vectors are T of
them. Elements that do not fill a vector come last. Channels side by side are taken by bands.pxi.
"""
from libc.stdint cimport int32_t, uint8_t, uint16_t
from libc.string cimport memcpy, memset

from .elements cimport (
    WIDTH,
    copy_vector,
    fetch_lines,
    join_vectors,
    lanes_t,
    load_lanes,
    part_lanes,
    store_lanes,
    sum_bytes,
    sum_rows,
)
from .job cimport (
    BFLOAT16,
    BFLOAT16_KEYS,
    BFLOAT16_SQUARES,
    BYTES,
    FLOAT16,
    FLOAT16_KEYS,
    FLOAT16_SQUARES,
    FLOAT32_SQUARES,
    FLOAT64_SQUARES,
    PLAIN,
    SIGNED_BYTES,
    Call,
    Distance,
    Format,
    parts,
    stopped,
)
from .reductions cimport MaxI16, SumF32, SumF64, SumI32, SumI64, SumWide, combine, neutral, running_t

cdef enum:
    FLOCK = 64  # planes from one look for signals to the next, and the most lanes of a vector
    DOUBLES = 8  # that take the room of a vector


cdef inline void join_neighbours(lanes_t* first, lanes_t* second, const running_t* like) noexcept nogil:
    """Two vectors become one, of what each two neighbouring lanes are together."""
    cdef running_t[2 * VECTOR] space
    cdef running_t* values = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), j
    if running_t is SumWide:
        store_lanes(first[0], values)
        store_lanes(second[0], values + width)
        for j in range(width):
            values[j] = combine(values[2 * j], values[2 * j + 1])
        first[0] = load_lanes(values)
    else:
        part_lanes(first, second, sizeof(running_t))
        store_lanes(second[0], values)
        take_lanes(values, first, False)


cdef inline lanes_t join_four(const running_t* x) noexcept nogil:
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t)
    cdef lanes_t first = load_lanes(x), second = load_lanes(x + width)
    cdef lanes_t third = load_lanes(x + 2 * width), fourth = load_lanes(x + 3 * width)
    join_neighbours(&first, &second, x)
    join_neighbours(&third, &fourth, x)
    join_neighbours(&first, &third, x)
    return first


cdef inline void fold_vector(const running_t* x, running_t* y) noexcept nogil:
    """y[0] of the lanes of one vector."""
    cdef running_t[VECTOR] space
    cdef running_t* lanes = space
    cdef lanes_t first = load_lanes(x), second
    cdef Py_ssize_t n = VECTOR // <Py_ssize_t> sizeof(running_t)
    while n > 1:
        n //= 2
        second = first
        join_neighbours(&first, &second, x)
    store_lanes(first, lanes)
    y[0] = lanes[0]


cdef void fold_lanes(running_t* x, running_t* y, Py_ssize_t rows) noexcept nogil:
    """y[rows] from rows of x[lanes, lanes], whose others are there but nothing, and all of which is lost."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), n = width, row
    cdef lanes_t first, second
    if rows == 1:
        fold_vector(x, y)
        return
    while n >= 8:
        n //= 8
        for row in range(n):
            first, second = join_four(x + 8 * row * width), join_four(x + (8 * row + 4) * width)
            join_neighbours(&first, &second, x)
            store_lanes(first, x + row * width)
    while n > 1:
        n //= 2
        for row in range(n):
            first, second = load_lanes(x + 2 * row * width), load_lanes(x + (2 * row + 1) * width)
            join_neighbours(&first, &second, x)
            store_lanes(first, x + row * width)
    if rows == width:
        copy_vector(y, x)
    else:
        memcpy(y, x, rows * sizeof(running_t))


cdef inline void read_vector(const char* x, running_t* lanes, Format format) noexcept nogil:
    if format == PLAIN:
        copy_vector(lanes, x)
    else:
        widen(x, lanes, format)


cdef inline void read_rest(const char* x, Py_ssize_t n, bint more, running_t* lanes, Format format) noexcept nogil:
    """n elements, fewer than a vector, and what changes nothing; `more` if a vector can be read."""
    cdef running_t[VECTOR] space, nothings
    cdef running_t* others = space
    cdef char[VECTOR] copy
    cdef Py_ssize_t j
    for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
        nothings[j] = neutral(lanes[0])
    if not more:
        memset(copy, 0, VECTOR)
        memcpy(copy, x, n * size_of(lanes, format))
        x = copy
    read_vector(x, others, format)
    join_vectors(others, n * <Py_ssize_t> sizeof(running_t), nothings, lanes)


cdef inline void short_planes(const char* x, running_t* y, Py_ssize_t planes, Py_ssize_t n, Py_ssize_t behind,
                              running_t* unused, Distance far, int vectors, Format format) noexcept nogil:
    """y[planes, lanes] of planes of so many whole vectors; `behind` elements can be read behind the last one."""
    cdef running_t[VECTOR] space, rest_space
    cdef running_t* lanes = space
    cdef running_t* others = rest_space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), plane, rest = n - vectors * width
    cdef Py_ssize_t size = size_of(y, format)
    cdef Py_ssize_t readable = planes if behind >= width else max(0, planes - parts(width - behind, n))
    for plane in range(planes):
        if far and not FETCHES:
            fetch_lines(x + AHEAD, parts((vectors + 1) * width * size, 64))
        read_rest(x + vectors * width * size, rest, plane < readable, others, format)
        if vectors:
            reduce_taps(x, lanes, width * size, vectors, format)
            merge(lanes, others, width)
            copy_vector(y, lanes)
        else:
            copy_vector(y, others)
        x += n * size
        y += width


cdef inline bint some_planes(const char* x, running_t* y, Py_ssize_t planes, Py_ssize_t n, Py_ssize_t behind,
                             running_t* like, Distance far, Format format) noexcept nogil:
    """As `short_planes`, False if they are not short."""
    cdef Py_ssize_t vectors = n // (VECTOR // <Py_ssize_t> sizeof(running_t))
    if running_t is SumI32 or running_t is SumI64 or running_t is SumWide:  # which seldom come here
        return False
    # Constants let the compiler unroll a plane.
    elif vectors == 0:
        short_planes(x, y, planes, n, behind, like, far, 0, format)
    elif vectors == 1:
        short_planes(x, y, planes, n, behind, like, far, 1, format)
    elif vectors == 2:
        short_planes(x, y, planes, n, behind, like, far, 2, format)
    elif vectors == 3:
        short_planes(x, y, planes, n, behind, like, far, 3, format)
    elif vectors == 4:
        short_planes(x, y, planes, n, behind, like, far, 4, format)
    elif vectors == 5:
        short_planes(x, y, planes, n, behind, like, far, 5, format)
    elif vectors == 6:
        short_planes(x, y, planes, n, behind, like, far, 6, format)
    elif vectors == 7:
        short_planes(x, y, planes, n, behind, like, far, 7, format)
    elif vectors == FEW:
        short_planes(x, y, planes, n, behind, like, far, FEW, format)
    return vectors <= FEW


cdef inline void chain_plane(const char* x, Py_ssize_t n, bint more, running_t* y, Py_ssize_t ahead,
                             Format format) noexcept nogil:
    """A vector of at most a chain of bands of one channel; `more` if a vector can be read behind them."""
    cdef Registers all
    cdef Quad* quad = &all.first
    cdef running_t[VECTOR] space, more_space
    cdef running_t* lanes = space
    cdef running_t* others = more_space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), rest = n % (QUAD * width)
    cdef Py_ssize_t unit = unit_of(y, format), bands = n // (QUAD * width)
    exchange(&all, y, QUAD, CLEAR)
    take_bands(x, &all, y, bands, QUAD * unit, 0, ahead, QUAD, format)
    x += bands * QUAD * unit
    if rest >= width:
        take_vector(x, &quad.first, y, False, ahead, format)
        if rest >= 2 * width:
            take_vector(x + unit, &quad.second, y, True, ahead, format)
        if rest >= 3 * width:
            take_vector(x + 2 * unit, &quad.third, y, False, ahead, format)
        x += rest // width * unit
    if rest % width:
        read_rest(x, rest % width, more, others, format)
        take_lanes(others, &quad.fourth, False)
    store_lanes(quad.second, others)
    take_lanes(others, &quad.first, False)
    store_lanes(quad.third, lanes)
    take_lanes(lanes, &quad.fourth, True)
    store_lanes(quad.fourth, others)
    take_lanes(others, &quad.first, False)
    store_lanes(quad.first, y)


cdef inline void add_chain(Chain* chain, running_t* lanes, running_t* held) noexcept nogil:
    """A vector of a whole chain of one channel."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), here = chain.done
    while here & 1:
        chain.depth -= 1
        merge_before(held + chain.depth * width, lanes)
        here >>= 1
    copy_vector(held + chain.depth * width, lanes)
    chain.depth += 1
    chain.done += 1


cdef inline void add_chains(Chain* chain, const char* x, const Band* band, Py_ssize_t n, running_t* held,
                            Format format) noexcept nogil:
    cdef running_t[VECTOR] space
    cdef running_t* lanes = space
    cdef Py_ssize_t size = size_of(held, format), done
    for done in range(n):
        chain_plane(x, band.whole, True, lanes, band.ahead, format)
        add_chain(chain, lanes, held)
        x += band.whole * size


cdef inline void finish_chains(Chain* chain, const char* x, const Band* band, Py_ssize_t n, bint more, running_t* lanes,
                               running_t* held, Format format) noexcept nogil:
    """The vector of a plane, after n more elements than whole chains."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t)
    if n:
        chain_plane(x, n, more, lanes, band.ahead, format)
    else:
        chain.depth -= 1
        copy_vector(lanes, held + chain.depth * width)
    while chain.depth:
        chain.depth -= 1
        merge_before(held + chain.depth * width, lanes)


cdef inline void long_planes(const char* x, running_t* y, Py_ssize_t planes, Py_ssize_t n, Py_ssize_t behind,
                             const Band* band, running_t* held, Format format) noexcept nogil:
    """As `short_planes` for any number of vectors."""
    cdef running_t[VECTOR] space
    cdef running_t* lanes = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), plane, chains = n // band.whole
    cdef Py_ssize_t size = size_of(y, format)
    cdef Chain chain
    for plane in range(planes):
        chain.done = chain.depth = 0
        add_chains(&chain, x, band, chains, held, format)
        finish_chains(&chain, x + chains * band.whole * size, band, n % band.whole,
                      (planes - plane - 1) * n + behind >= width, lanes, held, format)
        copy_vector(y + plane * width, lanes)
        x += n * size


cdef inline void add_wholes(Chain* chain, const char* x, const Band* band, Py_ssize_t n, running_t* held,
                            Format format) noexcept nogil:
    """n times what is taken at once."""
    if band.inner == 1:
        add_chains(chain, x, band, n, held, format)
    else:
        add_bands(chain, x, band, n, held, format)


cdef inline void finish_plane(Chain* chain, const char* x, const Band* band, Py_ssize_t n, bint more, running_t* y,
                              running_t* held, Format format) noexcept nogil:
    """y[inner] after the last n elements of a plane; `more` if a vector can be read behind them."""
    cdef double[DOUBLES] space
    cdef running_t* lanes = <running_t*> space
    if band.inner == 1:
        finish_chains(chain, x, band, n, more, lanes, held, format)
        fold_vector(lanes, y)
    else:
        add_rest(chain, x, band, n, more, held, format)
        finish_bands(chain, band, y, held)


cdef inline void fold_plane(const char* x, running_t* y, Py_ssize_t n, const Band* band, running_t* held,
                            Format format) noexcept nogil:
    """y[inner] of one plane of n elements, behind segments that are there; or one of these."""
    cdef Py_ssize_t wholes = n // band.whole, begin = 0, row = held_of(band, held) * <Py_ssize_t> sizeof(running_t)
    cdef Py_ssize_t step = band.hop * (band.chain if band.inner == 1 else 1)
    cdef bint alone = band.length and band.segment >= 0
    cdef Chain chain = Chain(0, 0)
    if alone:
        begin = band.segment * band.length
        if begin + band.length > wholes:
            return
        wholes = begin + band.length
    elif band.length:
        begin = wholes // band.length * band.length
    if running_t is not SumI64 and running_t is not SumWide:  # which are never taken as they lie
        if band.columns:
            if running_t is MaxI16 or running_t is SumF32 or running_t is SumF64:
                if band.finish and not is_square(format):
                    finish_elements(x, <char*> y, band, wholes, held, format)
                    return
            fold_bands(x + begin * step, band.segments + band.segment * row if alone else <char*> y, band,
                       wholes - begin, 0 if alone or not begin else begin // band.length, held, NULL, format)
            return
    if begin and not alone:
        resume(&chain, band, begin // band.length, held)
    add_wholes(&chain, x + begin * step, band, wholes - begin, held, format)
    if alone:
        memcpy(band.segments + band.segment * row, held, row)
    else:
        finish_plane(&chain, x + wholes * step, band, n % band.whole, False, y, held, format)


cdef inline void fold_planes(const char* x, running_t* y, Py_ssize_t planes, Py_ssize_t n, const Band* band,
                             running_t* held, Distance far, const Call* call, Format format) noexcept nogil:
    """y[planes] of one channel or y[inner] of one plane, from planes of n elements, near by if not `far`."""
    cdef double[FLOCK * DOUBLES] space
    cdef running_t* lanes = <running_t*> space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), size = size_of(y, format)
    cdef Py_ssize_t done = 0, end, part, behind
    if band.inner > 1 or band.length:
        fold_plane(x, y, n, band, held, format)
        return
    while done < planes and not stopped(call):
        end = min(planes, done + FLOCK)
        while done < end:
            part = min(end - done, width)
            behind = (planes - done - part) * n
            if not some_planes(x, lanes, part, n, behind, held, far, format):
                long_planes(x, lanes, part, n, behind, band, held, format)
            fold_lanes(lanes, y + done, part)
            x += part * n * size
            done += part


cdef inline void sum_columns(const uint8_t* x, SumI32* y, Py_ssize_t rows, const Band* band, SumI32* held,
                             bint signed) noexcept nogil:
    """y[inner] of so many places of bytes."""
    cdef Py_ssize_t whole = band.inner - band.inner % WIDTH
    sum_rows(x, band.hop, rows, <int32_t*> y, whole, <uint16_t*> held, signed)
    if whole < band.inner:
        whole = band.inner - WIDTH  # the last register overlaps the one before
        sum_rows(x + whole, band.hop, rows, <int32_t*> y + whole, WIDTH, <uint16_t*> held, signed)


cdef void sum_plane(const uint8_t* x, SumI32* y, Py_ssize_t n, const Band* band, SumI32* held,
                    bint signed) noexcept nogil:
    """As `fold_plane` of bytes of one channel, or of bands of one place."""
    cdef SumI32* segments = <SumI32*> band.segments
    cdef Py_ssize_t inner = band.inner, length = band.length * band.whole, begin = 0, end = n, segment, j
    if band.segment >= 0:
        begin, end = band.segment * length, (band.segment + 1) * length
        y = segments + band.segment * inner
        if end > n:
            return
    elif length:
        begin = n // length * length
    if inner == 1:
        y[0].value = <int32_t> sum_bytes(x + begin, end - begin, signed)
    else:
        sum_columns(x + begin // inner * band.hop, y, (end - begin) // inner, band, held, signed)
    if band.segment < 0 and length:
        for segment in range(n // length):
            for j in range(inner):
                y[j].value += segments[segment * inner + j].value


cdef void planes_of(const char* x, running_t* y, Py_ssize_t planes, Py_ssize_t n, const Band* band,
                    running_t* held, Distance far, const Call* call, Format format) noexcept nogil:
    cdef Py_ssize_t plane
    if running_t is SumI32:
        if ((format == BYTES or format == SIGNED_BYTES)
                and (band.inner == 1 or (band.places == 1 and band.inner >= WIDTH))):
            for plane in range(planes):
                sum_plane(<const uint8_t*> x + plane * n, <SumI32*> y + plane, n, band, <SumI32*> held,
                          format == SIGNED_BYTES)
            return
        if format == BYTES:
            fold_planes(x, y, planes, n, band, held, far, call, BYTES)
            return
        elif format == SIGNED_BYTES:
            fold_planes(x, y, planes, n, band, held, far, call, SIGNED_BYTES)
            return
    elif running_t is MaxI16:
        if format == FLOAT16_KEYS:
            fold_planes(x, y, planes, n, band, held, far, call, FLOAT16_KEYS)
            return
        elif format == BFLOAT16_KEYS:
            fold_planes(x, y, planes, n, band, held, far, call, BFLOAT16_KEYS)
            return
    elif running_t is SumF32:
        if format == FLOAT16:
            fold_planes(x, y, planes, n, band, held, far, call, FLOAT16)
            return
        elif format == BFLOAT16:
            fold_planes(x, y, planes, n, band, held, far, call, BFLOAT16)
            return
    elif running_t is SumF64:
        if format == FLOAT32_SQUARES:
            fold_planes(x, y, planes, n, band, held, far, call, FLOAT32_SQUARES)
            return
        elif format == FLOAT64_SQUARES:
            fold_planes(x, y, planes, n, band, held, far, call, FLOAT64_SQUARES)
            return
        elif format == FLOAT16_SQUARES:
            fold_planes(x, y, planes, n, band, held, far, call, FLOAT16_SQUARES)
            return
        elif format == BFLOAT16_SQUARES:
            fold_planes(x, y, planes, n, band, held, far, call, BFLOAT16_SQUARES)
            return
    fold_planes(x, y, planes, n, band, held, far, call, PLAIN)
