"""Bands: where one window is a whole channel, rows of vectors that are read from the first line of a plane to its last.

A band is as many places of all channels as fill whole vectors, QUAD of them at least; of many channels that lie side
by side it is one place. A chain of bands is combined one after the other, chains in the order T, and then the places of
a band by halves. Elements that do not fill a band come last. This is the order of global pools of several channels side
by side, however the rows lie in memory.
"""
from libc.string cimport memcpy

from .elements cimport fetch
from .job cimport PLAIN, Format, parts
from .reductions cimport combine, neutral, running_t

cdef enum:
    QUAD = 4     # vectors that a loop holds in registers, or as many times as many where there are registers for them
    LANES = 32   # places of a band from which on the error of a longer chain stays within what README says
    BAND = 4096  # bytes of a band of several places at most, as in tiling.py


cdef struct Band:
    Py_ssize_t inner, places  # channels, and places of a band
    Py_ssize_t units, last    # vectors, and at which value the last begins: it may overlap the one before
    Py_ssize_t chain          # bands that are combined one after the other
    Py_ssize_t whole          # elements that are taken at once: of a band, or of one channel a chain
    Py_ssize_t hop            # bytes from band to band
    Py_ssize_t ahead          # and to what is fetched
    Py_ssize_t length         # of a segment, in what is taken at once; 0 if there are none
    Py_ssize_t segment        # and which of them is asked for, or -1
    char* segments            # their results


cdef struct Chain:
    Py_ssize_t done, depth    # bands so far, or chains of one channel, and how many results are held


cdef inline Band band_of(Py_ssize_t channels, Py_ssize_t inner, running_t* like) noexcept nogil:
    """The band of all channels or, if it is of one place, a part of them."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t)
    cdef Band band
    band.inner, band.places = inner, 1
    while band.places * channels % width or band.places * channels < QUAD * width:
        band.places *= 2
    if band.places * channels * <Py_ssize_t> sizeof(running_t) > BAND:
        band.places = 1
    band.units = parts(band.places * inner, width)
    band.last = band.places * inner - width
    band.chain = 16 if band.places >= LANES else 8
    band.whole = band.places * inner * (band.chain if channels == 1 else 1)
    band.length = 0
    return band


cdef inline void take_vector(const char* x, running_t* lanes, bint odd, Py_ssize_t ahead,
                             Format format) noexcept nogil:
    """A vector more. Lines are fetched one by one, as many at once would hold up the loads; of narrow vectors, at every
    other of them."""
    cdef running_t[VECTOR] space
    cdef running_t* others = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), j
    cdef Py_ssize_t unit = VECTOR if format == PLAIN else width * itemsize_of(format)
    if odd or unit == VECTOR:
        fetch(x + unit - 1 + ahead)  # the line where it ends: that where it begins may be another's
    if format == PLAIN:
        for j in range(width):
            lanes[j] = combine(lanes[j], (<const running_t*> x)[j])
    else:
        widen(x, others, format)
        merge(lanes, others, width)


cdef inline void take_quad(const char* x, running_t* first, running_t* second, running_t* third, running_t* fourth,
                           Py_ssize_t last, Py_ssize_t ahead, Format format) noexcept nogil:
    """QUAD vectors more, of which the last lies apart."""
    cdef Py_ssize_t unit = VECTOR if format == PLAIN else VECTOR // <Py_ssize_t> sizeof(running_t) * itemsize_of(format)
    take_vector(x, first, False, ahead, format)
    take_vector(x + unit, second, True, ahead, format)
    take_vector(x + 2 * unit, third, False, ahead, format)
    take_vector(x + last, fourth, True, ahead, format)


cdef inline void copy_quad(running_t* y, running_t* first, running_t* second, running_t* third, running_t* fourth,
                           bint back) noexcept nogil:
    """To registers or back."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t)
    if back:
        memcpy(y, first, VECTOR)
        memcpy(y + width, second, VECTOR)
        memcpy(y + 2 * width, third, VECTOR)
        memcpy(y + 3 * width, fourth, VECTOR)
    else:
        memcpy(first, y, VECTOR)
        memcpy(second, y + width, VECTOR)
        memcpy(third, y + 2 * width, VECTOR)
        memcpy(fourth, y + 3 * width, VECTOR)


cdef inline void chain_quad(const char* x, Py_ssize_t last, Py_ssize_t hop, Py_ssize_t bands, running_t* y,
                            Py_ssize_t ahead, Format format) noexcept nogil:
    """QUAD vectors of bands, after those whose result is in y; the last begins `last` bytes behind the first."""
    cdef running_t[VECTOR] a, b, c, d
    cdef Py_ssize_t n
    copy_quad(y, a, b, c, d, False)
    for n in range(bands):
        take_quad(x, a, b, c, d, last, ahead, format)
        x += hop
    copy_quad(y, a, b, c, d, True)


cdef inline void chain_quads(const char* x, Py_ssize_t hop, Py_ssize_t bands, running_t* y, Py_ssize_t ahead,
                             Format format) noexcept nogil:
    """As `chain_quad`, of QUAD times as many vectors: the more of a row is read before the next, the better."""
    cdef running_t[VECTOR] a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3
    cdef Py_ssize_t quad = QUAD * (VECTOR // <Py_ssize_t> sizeof(running_t)), n
    cdef Py_ssize_t bytes = QUAD * VECTOR if format == PLAIN else quad * itemsize_of(format), last = 3 * bytes // QUAD
    copy_quad(y, a0, a1, a2, a3, False)
    copy_quad(y + quad, b0, b1, b2, b3, False)
    copy_quad(y + 2 * quad, c0, c1, c2, c3, False)
    copy_quad(y + 3 * quad, d0, d1, d2, d3, False)
    for n in range(bands):
        take_quad(x, a0, a1, a2, a3, last, ahead, format)
        take_quad(x + bytes, b0, b1, b2, b3, last, ahead, format)
        take_quad(x + 2 * bytes, c0, c1, c2, c3, last, ahead, format)
        take_quad(x + 3 * bytes, d0, d1, d2, d3, last, ahead, format)
        x += hop
    copy_quad(y, a0, a1, a2, a3, True)
    copy_quad(y + quad, b0, b1, b2, b3, True)
    copy_quad(y + 2 * quad, c0, c1, c2, c3, True)
    copy_quad(y + 3 * quad, d0, d1, d2, d3, True)


cdef inline void chain_unit(const char* x, Py_ssize_t hop, Py_ssize_t bands, running_t* y, Py_ssize_t ahead,
                            Format format) noexcept nogil:
    cdef running_t[VECTOR] space
    cdef running_t* lanes = space
    cdef Py_ssize_t n
    memcpy(lanes, y, VECTOR)
    for n in range(bands):
        take_vector(x + n * hop, lanes, True, ahead, format)
    memcpy(y, lanes, VECTOR)


cdef inline void chain_units(const char* x, const Band* band, Py_ssize_t bands, running_t* y,
                             Format format) noexcept nogil:
    """Bands of any number of vectors, after those whose result is in y."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), hop = band.hop, ahead = band.ahead, unit = 0
    cdef Py_ssize_t size = <Py_ssize_t> sizeof(running_t) if format == PLAIN else itemsize_of(format)
    cdef Py_ssize_t last = band.last * size, bytes = width * size
    cdef Py_ssize_t whole = band.units if last == (band.units - 1) * bytes else band.units - 1
    while unit + QUAD * QUAD <= whole:
        chain_quads(x + unit * bytes, hop, bands, y + unit * width, ahead, format)
        unit += QUAD * QUAD
    while unit + QUAD <= whole:
        chain_quad(x + unit * bytes, 3 * bytes, hop, bands, y + unit * width, ahead, format)
        unit += QUAD
    while unit < whole:
        chain_unit(x + unit * bytes, hop, bands, y + unit * width, ahead, format)
        unit += 1
    if whole < band.units:
        chain_unit(x + last, hop, bands, y + whole * width, ahead, format)


cdef inline running_t* chain_at_hand(Chain* chain, const Band* band, running_t* held) noexcept nogil:
    """Where the result of the bands since the last whole chain is; of none if there are none."""
    cdef Py_ssize_t row = band.units * (VECTOR // <Py_ssize_t> sizeof(running_t)), j
    if chain.done % band.chain == 0:
        for j in range(row):
            held[chain.depth * row + j] = neutral(held[0])
        chain.depth += 1
    return held + (chain.depth - 1) * row


cdef inline Py_ssize_t held_of(const Band* band, running_t* like) noexcept nogil:
    """The values of a result that is held."""
    return (1 if band.inner == 1 else band.units) * (VECTOR // <Py_ssize_t> sizeof(running_t))


cdef inline void merge_top(Chain* chain, const Band* band, running_t* held) noexcept nogil:
    """The last two results become one."""
    cdef Py_ssize_t row = held_of(band, held)
    chain.depth -= 1
    merge(held + (chain.depth - 1) * row, held + chain.depth * row, row)


cdef inline void add_bands(Chain* chain, const char* x, const Band* band, Py_ssize_t bands, running_t* held,
                           Format format) noexcept nogil:
    cdef Py_ssize_t size = <Py_ssize_t> sizeof(running_t) if format == PLAIN else itemsize_of(format), n, here
    cdef running_t* top
    while bands > 0:
        n = min(bands, band.chain - chain.done % band.chain)
        top = chain_at_hand(chain, band, held)
        if band.units == QUAD:  # of which the last may overlap the one before
            chain_quad(x, band.last * size, band.hop, n, top, band.ahead, format)
        else:
            chain_units(x, band, n, top, format)
        x += n * band.hop
        bands -= n
        chain.done += n
        if chain.done % band.chain == 0:
            # Two results of equally many chains become one, as a carry runs through a binary counter.
            here = chain.done // band.chain - 1
            while here & 1:
                merge_top(chain, band, held)
                here >>= 1


cdef inline void add_rest(Chain* chain, const char* x, const Band* band, Py_ssize_t n, bint more, running_t* held,
                          Format format) noexcept nogil:
    """The last n elements, fewer than a band; `more` if a vector can be read behind them."""
    cdef running_t[VECTOR] space
    cdef running_t* others = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), vector
    cdef Py_ssize_t unit = width * (<Py_ssize_t> sizeof(running_t) if format == PLAIN else itemsize_of(format))
    cdef running_t* top
    if n:
        top = chain_at_hand(chain, band, held)
        for vector in range(n // width):
            chain_unit(x + vector * unit, 0, 1, top + vector * width, band.ahead, format)
        if n % width:
            read_rest(x + n // width * unit, n % width, more, others, format)
            merge(top + n // width * width, others, width)


cdef inline void finish_bands(Chain* chain, const Band* band, running_t* y, running_t* held) noexcept nogil:
    """y[inner] from the results held."""
    cdef Py_ssize_t n = band.places * band.inner, before = (band.units - 1) * (VECTOR // <Py_ssize_t> sizeof(running_t))
    while chain.depth > 1:
        merge_top(chain, band, held)
    if band.places == 1:
        memcpy(y, held, before * sizeof(running_t))
        memcpy(y + band.last, held + before, VECTOR)
        return
    while n > band.inner:
        n //= 2
        merge(held, held + n, n)
    memcpy(y, held, n * sizeof(running_t))


cdef inline void resume(Chain* chain, const Band* band, Py_ssize_t segments, running_t* held) noexcept nogil:
    """The state behind so many segments, each of a power of two of chains: T of their results is that of the chains.

    Their length is counted as `done` is.
    """
    cdef Py_ssize_t row = held_of(band, held), segment, here
    for segment in range(segments):
        memcpy(held + chain.depth * row, band.segments + segment * row * <Py_ssize_t> sizeof(running_t),
               row * sizeof(running_t))
        chain.depth += 1
        here = segment
        while here & 1:
            merge_top(chain, band, held)
            here >>= 1
    chain.done = segments * band.length
