"""Bands: where one window is a whole channel, rows of vectors that are read from the first line of a plane to its last.

A band is as many places of all channels as fill whole vectors, QUAD of them at least; of many channels that lie side
by side it is one place. A chain of bands is combined one after the other, chains in the order T, and then the places of
a band by halves. Elements that do not fill a band come last. This is the order of global pools of several channels side
by side, however the rows lie in memory.
"""
from libc.string cimport memcpy

from .elements cimport REGISTERS, copy_vector
from .job cimport BFLOAT16, BFLOAT16_PAIRS, Format, parts
from .reductions cimport neutral, running_t

cdef enum:
    CHAIN = 8    # bands that are combined one after the other, or twice as many
    LANES = 32   # places of a band from which on the error of a longer chain stays within what README says
    BAND = 4096  # bytes of a band of several places at most, as in tiling.py
    NEAR_PLANE = 1 << 20  # bytes that stay near while they are read in pieces


cdef struct Band:
    Py_ssize_t inner, places  # channels, and places of a band
    Py_ssize_t units, last    # vectors, and at which value the last begins: it may overlap the one before
    Py_ssize_t chain          # bands that are combined one after the other
    Py_ssize_t whole          # elements that are taken at once: of a band, or of one channel a chain
    Py_ssize_t hop            # bytes from band to band
    Py_ssize_t ahead          # and to what is fetched; 0 if nothing is
    Py_ssize_t length         # of a segment, in what is taken at once; 0 if there are none
    Py_ssize_t segment        # and which of them is asked for, or -1
    char* segments            # their results
    bint columns              # whether a few vectors of all bands are taken before the next,
    Finish* finish            # whose results become elements if this is not NULL


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
    band.chain = 2 * CHAIN if band.places >= LANES else CHAIN
    band.whole = band.places * inner * (band.chain if channels == 1 else 1)
    band.length, band.segment, band.segments = 0, -1, NULL
    band.columns, band.finish = False, NULL
    return band


cdef inline Py_ssize_t held_of(const Band* band, running_t* like) noexcept nogil:
    """The values of a result that is held."""
    return (1 if band.inner == 1 else band.units) * (VECTOR // <Py_ssize_t> sizeof(running_t))


cdef inline void fold_vectors(const char* x, char* y, const Band* band, Py_ssize_t bands, running_t* segment,
                              Py_ssize_t segments, running_t* held, Py_ssize_t shift, Finish* finish, Py_ssize_t ahead,
                              int vectors, Format format) noexcept nogil:
    """So many vectors of bands of one place, behind segments that are there. The last, or the last pair, lies `shift`
    channels from its place."""
    cdef Registers all
    cdef Py_ssize_t depth = 0, done, n, size = size_of(held, format)
    for done in range(segments):
        exchange(&all, segment + done * held_of(band, held), vectors, READ)
        hold(&all, held, &depth, done, False, vectors)
    done = 0  # a segment is more chains than are left
    while True:
        n = min(bands, CHAIN)
        bands -= n
        exchange(&all, held, vectors, CLEAR)
        take_bands(x, &all, held, n, band.hop, shift * size, ahead, vectors, format)
        hold(&all, held, &depth, done, bands == 0, vectors)
        if bands == 0:
            break
        x += n * band.hop
        done += 1
    put_all(&all, y, held, shift * (size if finish else <Py_ssize_t> sizeof(running_t)), finish, vectors, format)


cdef inline void fold_parts(const char* x, char* y, const Band* band, Py_ssize_t bands, Py_ssize_t segments,
                            running_t* held, Finish* finish, Py_ssize_t ahead, Format format) noexcept nogil:
    """As many vectors as registers hold at a time, none of them across lines of the cache if that can be. The last ones
    overlap those before where they are not full."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), done = 0, rest
    cdef Py_ssize_t size = size_of(held, format), unit = vectors_of(format) * width
    cdef Py_ssize_t stored = size if finish else <Py_ssize_t> sizeof(running_t)
    cdef Py_ssize_t lead = (-<Py_ssize_t> x & (unit * size - 1)) // size
    cdef Py_ssize_t lack = 0 if band.segments else unit - 1  # results of segments lie side by side
    cdef running_t* segment = <running_t*> band.segments
    if band.hop % (unit * size) or band.inner < QUAD * QUAD * width or bands * band.inner * size > NEAR_PLANE:
        lead = 0
    while done < band.inner:
        if done < lead or band.inner + lack < QUAD * width:
            done = min(done, band.inner - unit)
            fold_vectors(x + done * size, y + done * stored, band, bands, segment + done, segments, held, 0, finish,
                         ahead, vectors_of(format), format)
            done = min(lead, done + unit) if done < lead else done + unit
            continue
        rest = band.inner - done
        if REGISTERS == QUAD or rest + lack < REGISTERS * width:
            done = min(done, max(0, band.inner - QUAD * width))
            fold_vectors(x + done * size, y + done * stored, band, bands, segment + done, segments, held,
                         min(0, band.inner - QUAD * width), finish, ahead, QUAD, format)
            done += QUAD * width
        else:
            fold_vectors(x + done * size, y + done * stored, band, bands, segment + done, segments, held,
                         min(0, rest - REGISTERS * width), finish, ahead, REGISTERS, format)
            done += REGISTERS * width


cdef inline void fold_bands(const char* x, char* y, const Band* band, Py_ssize_t bands, Py_ssize_t segments,
                            running_t* held, Finish* finish, Format format) noexcept nogil:
    """y[inner] of bands of one place, behind segments that are there."""
    # A constant 0 leaves out what asks for lines.
    if band.ahead:
        fold_parts(x, y, band, bands, segments, held, finish, band.ahead, format)
    else:
        fold_parts(x, y, band, bands, segments, held, finish, 0, format)


cdef inline void finish_elements(const char* x, char* y, const Band* band, Py_ssize_t bands, running_t* held,
                                 Format format) noexcept nogil:
    """As `fold_bands`, to elements."""
    cdef Finish finish = band.finish[0]  # which the compiler sees to be there
    if format == BFLOAT16:
        fold_bands(x, y, band, bands, 0, held, &finish, BFLOAT16_PAIRS)
    else:
        fold_bands(x, y, band, bands, 0, held, &finish, format)
    band.finish.seen = finish.seen


cdef inline void chain_vectors(const char* x, running_t* y, const Band* band, Py_ssize_t bands, Py_ssize_t shift,
                               int vectors, Format format) noexcept nogil:
    cdef Registers all
    exchange(&all, y, vectors, READ)
    take_bands(x, &all, y, bands, band.hop, shift, band.ahead, vectors, format)
    exchange(&all, y, vectors, WRITE)


cdef inline void chain_units(const char* x, const Band* band, Py_ssize_t bands, running_t* y,
                             Format format) noexcept nogil:
    """Bands of any number of vectors, after those whose result is in y."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), unit = 0, vectors
    cdef Py_ssize_t shift = (band.last - (band.units - 1) * width) * size_of(y, format)
    while unit < band.units:
        vectors = band.units - unit
        if vectors >= REGISTERS:
            chain_vectors(x, y, band, bands, shift if vectors == REGISTERS else 0, REGISTERS, format)
            vectors = REGISTERS
        elif vectors >= QUAD:
            chain_vectors(x, y, band, bands, shift if vectors == QUAD else 0, QUAD, format)
            vectors = QUAD
        else:
            chain_vectors(x + (shift if vectors == 1 else 0), y, band, bands, 0, 1, format)
            vectors = 1
        x += vectors * unit_of(y, format)
        y += vectors * width
        unit += vectors


cdef inline running_t* chain_at_hand(Chain* chain, const Band* band, running_t* held) noexcept nogil:
    """Where the result of the bands since the last whole chain is; of none if there are none."""
    cdef Py_ssize_t row = band.units * (VECTOR // <Py_ssize_t> sizeof(running_t)), j
    if chain.done % band.chain == 0:
        for j in range(row):
            held[chain.depth * row + j] = neutral(held[0])
        chain.depth += 1
    return held + (chain.depth - 1) * row


cdef inline void merge_top(Chain* chain, const Band* band, running_t* held) noexcept nogil:
    """The last two results become one."""
    cdef Py_ssize_t row = held_of(band, held)
    chain.depth -= 1
    merge(held + (chain.depth - 1) * row, held + chain.depth * row, row)


cdef inline void add_bands(Chain* chain, const char* x, const Band* band, Py_ssize_t bands, running_t* held,
                           Format format) noexcept nogil:
    cdef Py_ssize_t size = size_of(held, format), n, here
    cdef running_t* top
    while bands > 0:
        n = min(bands, band.chain - chain.done % band.chain)
        top = chain_at_hand(chain, band, held)
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
    cdef Py_ssize_t unit = unit_of(held, format)
    cdef running_t* top
    if n:
        top = chain_at_hand(chain, band, held)
        for vector in range(n // width):
            read_vector(x + vector * unit, others, format)
            merge(top + vector * width, others, width)
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
        copy_vector(y + band.last, held + before)
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
