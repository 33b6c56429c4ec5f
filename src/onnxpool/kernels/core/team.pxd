"""Which calls get a team of threads, for all modules that include this: the state in team.h is one for the process."""

cdef extern from "team.h":
    ctypedef struct Team:
        int threads

cdef Team enter_team(int threads) noexcept nogil
cdef void end_task(Team* team) noexcept nogil
cdef void leave_team(const Team* team) noexcept nogil
