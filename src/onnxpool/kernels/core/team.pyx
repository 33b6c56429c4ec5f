"""Owns the state in team.h, which counts libgomp's pools and watches forks for all kernel modules."""
from libc.stdint cimport int64_t

cdef extern from "team.h" nogil:
    void watch_forks()
    Team enter_team_here "enter_team"(int threads)
    void begin_task_here "begin_task"(Team* team)
    void end_task_here "end_task"(Team* team)
    void leave_team_here "leave_team"(const Team* team)
    int64_t now()
    void note_wait(int64_t worked, int64_t waited, int64_t end)
    int64_t pause_left()
    int pauses


watch_forks()


cdef Team enter_team(int threads) noexcept nogil:
    """The team of a call: the requested number of threads, or 1. Every team must be left again."""
    return enter_team_here(threads)


cdef void begin_task(Team* team) noexcept nogil:
    """Called by each thread before a task, where tasks are equal."""
    begin_task_here(team)


cdef void end_task(Team* team) noexcept nogil:
    """Called by each thread after a task, where tasks are equal."""
    end_task_here(team)


cdef void leave_team(const Team* team) noexcept nogil:
    leave_team_here(team)


def note(double worked, double waited):
    """Record a call that worked and then waited for the given numbers of seconds, as if it had just ended."""
    note_wait(<int64_t> (worked * 1e9), <int64_t> (waited * 1e9), now())


def paused():
    """The seconds for which calls will still run single-threaded, because a call had to wait for a worker."""
    return pause_left() / 1e9


def allow_pauses(bint allowed):
    """Set whether calls may run single-threaded for a while. Tests that count threads forbid it."""
    global pauses
    pauses = allowed
