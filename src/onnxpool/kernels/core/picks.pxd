"""Picks lanes from two registers; see picks.h."""
from libc.stdint cimport uint8_t

from .element cimport vec_t

cdef extern from "picks.h" nogil:
    ctypedef struct picks_t:
        pass
    void picks_of(picks_t* picks, const uint8_t* lanes) noexcept
    void picks_of_windows(picks_t* picks, Py_ssize_t lanes, Py_ssize_t stride, Py_ssize_t taps) noexcept
    vec_t vec_pick(vec_t first, vec_t second, const picks_t* picks) noexcept
    vec_t vec_replace(vec_t first, vec_t second, const picks_t* picks) noexcept

cdef extern from "width.h" nogil:
    enum:
        PICKS
