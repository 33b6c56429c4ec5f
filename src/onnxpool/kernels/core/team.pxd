"""Decides which calls get a team of threads. All modules that include this share the state in team.h."""

cdef extern from "team_type.h":
    ctypedef struct Team:
        int threads

cdef Team enter_team(int threads) noexcept nogil
cdef void begin_task(Team* team) noexcept nogil
cdef void end_task(Team* team) noexcept nogil
cdef void leave_team(const Team* team) noexcept nogil
