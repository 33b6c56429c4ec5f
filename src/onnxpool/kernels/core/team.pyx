"""Owns the state in team.h, which counts libgomp's pools and watches forks for all kernel modules."""
from libc.stdint cimport int64_t

cdef extern from "team.h" nogil:
    void watch_forks()
    Team enter_team_here "enter_team"(int threads)
    void begin_task_here "begin_task"(Team* team)
    void end_task_here "end_task"(Team* team)
    void leave_team_here "leave_team"(const Team* team)
    ctypedef struct Limit "Ceiling":
        int64_t until
    int below(const Limit* ceiling, int threads, int64_t time)
    void note_wait(Limit* ceiling, int threads, int64_t worked, int64_t waited, int64_t end)
    Limit* own_ceiling()
    int64_t now()
    int pauses


watch_forks()


cdef Team enter_team(int threads) noexcept nogil:
    """The team of a call: as many threads as requested, fewer under a ceiling, or 1. Every team must be left again."""
    return enter_team_here(threads)


cdef void begin_task(Team* team) noexcept nogil:
    """Each thread calls this before a task, if tasks are equal."""
    begin_task_here(team)


cdef void end_task(Team* team) noexcept nogil:
    """Each thread calls this after a task, if tasks are equal."""
    end_task_here(team)


cdef void leave_team(const Team* team) noexcept nogil:
    leave_team_here(team)


cdef int64_t nanoseconds(double seconds):
    return <int64_t> (seconds * 1e9 + 0.5)


cdef class Ceiling:
    """For tests: the rule that limits a pool's teams, with times in seconds that callers make up."""
    cdef Limit limit

    def __copy__(self):
        cdef Ceiling copied = Ceiling()
        copied.limit = self.limit
        return copied

    def threads(self, int wanted, double time):
        """The number of threads of a call that begins at `time` and asks for `wanted` threads."""
        return below(&self.limit, wanted, nanoseconds(time))

    def note(self, int threads, double worked, double waited, double end):
        """Note that a team of this many threads worked and then waited for these seconds, until `end`."""
        note_wait(&self.limit, threads, nanoseconds(worked), nanoseconds(waited), nanoseconds(end))

    @property
    def until(self):
        """When the last pause ends."""
        return self.limit.until / 1e9


def note(double worked, double waited, int threads=2):
    """Note a call of this thread that worked and then waited for these seconds, as if it had just ended."""
    cdef Limit* ceiling = own_ceiling()
    if ceiling != NULL and pauses:
        note_wait(ceiling, threads, nanoseconds(worked), nanoseconds(waited), now())


def paused():
    """The seconds until this thread's teams may have more threads again, because a call had to wait for a worker."""
    cdef Limit* ceiling = own_ceiling()
    return 0.0 if ceiling == NULL else max(0, ceiling.until - now()) / 1e9


def allow_pauses(bint allowed):
    """Set whether waits may limit teams for a while. Tests that count threads forbid it."""
    global pauses
    pauses = allowed
