"""Rows of an array of images with any strides, byte order and format.

They are read as contiguous values [place, channel], and written from such values.
"""
from libc.stdint cimport uint16_t
from libc.string cimport memcpy


cdef extern from "half.h" nogil:
    void widen_float16_row(const uint16_t* x, float* y, Py_ssize_t n) noexcept
    void narrow_float16_row(const float* x, uint16_t* y, Py_ssize_t n) noexcept
    void widen_bfloat16_row(const uint16_t* x, float* y, Py_ssize_t n) noexcept
    void narrow_bfloat16_row(const float* x, uint16_t* y, Py_ssize_t n) noexcept
    void copy_elements(const char* source, const Py_ssize_t* strides, char* target, const Py_ssize_t* target_strides,
                       const Py_ssize_t* shape, Py_ssize_t size, bint swapped) noexcept

cdef extern from "transpose.h" nogil:
    void transpose(const char* source, Py_ssize_t stride, char* target, Py_ssize_t target_stride, Py_ssize_t rows,
                   Py_ssize_t columns, Py_ssize_t size) noexcept


cdef enum Format:  # by the binary digits of floats that are widened on the way in and narrowed on the way out
    PLAIN = 0
    BFLOAT16 = 8
    FLOAT16 = 11


cdef struct Images:
    char* data
    Format format
    bint swapped, aligned
    Py_ssize_t size                        # bytes of an element
    Py_ssize_t image, row, place, channel  # strides in bytes


cdef inline bint is_dense(const Images* x, Py_ssize_t length, Py_ssize_t channels) noexcept nogil:
    return (x.aligned and not x.swapped and (channels == 1 or x.channel == x.size)
            and (length == 1 or x.place == channels * x.size))


cdef inline bint is_planar(const Images* x) noexcept nogil:
    """Whether the places of a row are contiguous, and its channels strided."""
    return x.place == x.size and not x.swapped


cdef inline const char* read_row(const Images* x, const char* source, Py_ssize_t length, Py_ssize_t channels,
                                 char* elements, char* values) noexcept nogil:
    """The address of the values: in the array if they are contiguous, else in `elements`, or converted in `values`."""
    cdef Py_ssize_t[2] shape = [length, channels], strides = [x.place, x.channel], dense = [channels * x.size, x.size]
    if not is_dense(x, length, channels):
        if is_planar(x):
            transpose(source, x.channel, elements, dense[0], channels, length, x.size)
        else:
            copy_elements(source, strides, elements, dense, shape, x.size, x.swapped)
        source = elements
    if x.format == FLOAT16:
        widen_float16_row(<const uint16_t*> source, <float*> values, length * channels)
        return values
    if x.format == BFLOAT16:
        widen_bfloat16_row(<const uint16_t*> source, <float*> values, length * channels)
        return values
    return source


cdef inline void write_row(const Images* y, const char* values, char* target, Py_ssize_t length, Py_ssize_t channels,
                           char* elements) noexcept nogil:
    cdef Py_ssize_t[2] shape = [length, channels], strides = [y.place, y.channel], dense = [channels * y.size, y.size]
    cdef bint direct = is_dense(y, length, channels)
    cdef char* narrow = target if direct else elements
    if y.format == FLOAT16:
        narrow_float16_row(<const float*> values, <uint16_t*> narrow, length * channels)
    elif y.format == BFLOAT16:
        narrow_bfloat16_row(<const float*> values, <uint16_t*> narrow, length * channels)
    elif direct:
        memcpy(target, values, length * channels * y.size)
    else:
        narrow = <char*> values
    if not direct:
        if is_planar(y):
            transpose(narrow, dense[0], target, y.channel, length, channels, y.size)
        else:
            copy_elements(narrow, dense, target, strides, shape, y.size, y.swapped)
