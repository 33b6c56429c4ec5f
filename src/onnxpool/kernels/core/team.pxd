"""Which calls get a team of threads, for all modules that include this: the state in team.h is one for the process."""

cdef int enter_team(int threads) noexcept nogil
cdef void leave_team(int threads) noexcept nogil
