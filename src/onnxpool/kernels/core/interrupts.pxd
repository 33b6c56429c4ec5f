"""Signals during a long call; see interrupts.h."""

cdef extern from "interrupts.h":
    ctypedef struct Interrupts:
        bint raised
    bint interrupted(Interrupts* state) nogil
    bint run_together(void (*run)(void*) noexcept nogil, void* work, Interrupts* state) nogil
    int raised_by_handler(const Interrupts* state) except -1
