/* Signals during a long call: between two tasks, every INTERVAL, the calling thread lets Python run its handlers.
 *
 * A handler that raises, as that of Ctrl-C does, ends the call: the tasks that are left are skipped. Python runs handlers
 * in its main thread only. On Linux no other thread ever waits here for the GIL; elsewhere a thread cannot be told apart.
 */
#ifndef ONNXPOOL_INTERRUPTS_H
#define ONNXPOOL_INTERRUPTS_H

#include <Python.h>
#include <stdint.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

typedef struct {
    int64_t due; /* nanoseconds; 0 before the first task */
    int raised;
} Interrupts;

enum { INTERVAL = 50000000 };

static inline int64_t clock_now(void) {
    struct timespec now;
#ifdef CLOCK_MONOTONIC_COARSE
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

static inline int may_handle_signals(void) {
#ifdef __linux__
    return syscall(SYS_gettid) == getpid();
#else
    return 1;
#endif
}

/* Whether no further task is to be run. */
static inline int interrupted(Interrupts *state) {
    if (__atomic_load_n(&state->raised, __ATOMIC_RELAXED))
        return 1;
#ifdef _OPENMP
    if (omp_get_thread_num())
        return 0;
#endif
    int64_t now = clock_now();
    if (now < state->due)
        return 0;
    if (state->due) {
        if (!may_handle_signals()) {
            state->due = INT64_MAX;
            return 0;
        }
        PyGILState_STATE gil = PyGILState_Ensure();
        if (PyErr_CheckSignals())
            __atomic_store_n(&state->raised, 1, __ATOMIC_RELAXED);
        PyGILState_Release(gil);
        now = clock_now();
    }
    state->due = now + INTERVAL;
    return state->raised;
}

/* With the GIL: -1, and the exception that a handler raised is set, or 0. */
static inline int raised_by_handler(const Interrupts *state) { return -state->raised; }

#endif
