"""The one owner of the state in team.h: it counts libgomp's pools and watches forks for every kernel module."""

cdef extern from "team.h" nogil:
    void watch_forks()
    int enter_team_here "enter_team"(int threads)
    void leave_team_here "leave_team"(int threads)


watch_forks()


cdef int enter_team(int threads) noexcept nogil:
    """The threads that a call gets: what it asks for, or 1. A team must be left again."""
    return enter_team_here(threads)


cdef void leave_team(int threads) noexcept nogil:
    leave_team_here(threads)
