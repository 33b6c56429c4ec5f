"""Rows of an array of images with any strides, byte order and dtype.

Rows are read as contiguous values [place, channel], and written from such values.
"""
from libc.stdint cimport uint16_t
from libc.string cimport memcpy

from ..core.boxes cimport copy_each

cdef extern from "half.h" nogil:
    void widen_row(int digits, const uint16_t* x, float* y, Py_ssize_t n) noexcept
    void narrow_row(int digits, const float* x, uint16_t* y, Py_ssize_t n) noexcept

cdef extern from "transpose.h" nogil:
    void transpose(const char* source, Py_ssize_t stride, char* target, Py_ssize_t target_stride, Py_ssize_t rows,
                   Py_ssize_t columns, Py_ssize_t size) noexcept


cdef struct Images:
    char* data
    int half                               # for 16-bit floats, which rows hold as floats: their binary digits; else 0
    bint swapped, aligned
    Py_ssize_t size                        # bytes of an element
    Py_ssize_t image, row, place, channel  # strides in bytes


cdef inline bint is_dense(const Images* x, Py_ssize_t length, Py_ssize_t channels) noexcept nogil:
    return (x.aligned and not x.swapped and (channels == 1 or x.channel == x.size)
            and (length == 1 or x.place == channels * x.size))


cdef inline void move(const char* source, Py_ssize_t place, Py_ssize_t channel, char* target, Py_ssize_t to_place,
                      Py_ssize_t to_channel, Py_ssize_t length, Py_ssize_t channels, const Images* x) noexcept nogil:
    """Copy a row between strides of places and channels. Where it is possible, transposing is faster."""
    cdef Py_ssize_t i
    cdef bint planar = place == x.size
    if (planar or to_place == x.size) and not x.swapped:
        transpose(source, channel if planar else place, target, to_place if planar else to_channel,
                  channels if planar else length, length if planar else channels, x.size)
    else:
        for i in range(length):
            if channel == to_channel == x.size and not x.swapped:
                memcpy(target + i * to_place, source + i * place, channels * x.size)
            else:
                copy_each(source + i * place, channel, target + i * to_place, to_channel, channels, x.size, x.swapped)


cdef inline const char* read_row(const Images* x, const char* source, Py_ssize_t length, Py_ssize_t channels,
                                 char* elements, char* values) noexcept nogil:
    """The address of a row's values: in the array if they are contiguous, in `values` if they are converted, and
    otherwise in `elements`."""
    if not is_dense(x, length, channels):
        move(source, x.place, x.channel, elements, channels * x.size, x.size, length, channels, x)
        source = elements
    if x.half:
        widen_row(x.half, <const uint16_t*> source, <float*> values, length * channels)
        return values
    return source


cdef inline void write_row(const Images* y, const char* values, char* target, Py_ssize_t length, Py_ssize_t channels,
                           char* elements) noexcept nogil:
    cdef bint direct = is_dense(y, length, channels)
    cdef char* narrow = target if direct else elements
    if y.half:
        narrow_row(y.half, <const float*> values, <uint16_t*> narrow, length * channels)
    elif direct:
        memcpy(target, values, length * channels * y.size)
    else:
        narrow = <char*> values
    if not direct:
        move(narrow, channels * y.size, y.size, target, y.place, y.channel, length, channels, y)
