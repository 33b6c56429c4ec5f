/* Signals during a long call: between tasks, once per INTERVAL, the calling thread lets Python run its signal handlers.
 *
 * If a handler raises, as the one for Ctrl-C does, the remaining tasks are skipped. Python runs handlers only in its
 * main thread. On Linux, no other thread waits for the GIL here; elsewhere, the main thread cannot be told from others.
 *
 * A handler may fork. The child has only the calling thread, which would wait forever for the other threads at the end
 * of a parallel region. It leaves the region by a jump instead, and the call starts again, single-threaded.
 */
#ifndef ONNXPOOL_INTERRUPTS_H
#define ONNXPOOL_INTERRUPTS_H

#include <Python.h>
#include <setjmp.h>
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifndef _WIN32
#include <time.h>
#include <unistd.h>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#endif

#ifdef _WIN32 /* Windows has no fork */
#define getpid() 0
typedef jmp_buf Escape;
#define set_escape(escape) setjmp(escape)
#define take_escape(escape) longjmp(escape, 1)
#else
typedef sigjmp_buf Escape;
#define set_escape(escape) sigsetjmp(escape, 0) /* the signal mask stays as the handler left it */
#define take_escape(escape) siglongjmp(escape, 1)
#endif

typedef struct {
    int64_t due; /* nanoseconds; 0 before the first task */
    int raised;
    Escape *escape; /* the way out of a running parallel region; otherwise NULL */
} Interrupts;

enum { INTERVAL = 50000000 };

#ifdef _WIN32
/* Ticks of up to 16 ms are fine enough. <windows.h> declares this, but its macros have names that are used here. */
__declspec(dllimport) unsigned long long __stdcall GetTickCount64(void);
static inline int64_t clock_now(void) { return (int64_t)GetTickCount64() * 1000000; }
#else
static inline int64_t clock_now(void) {
    struct timespec now;
#ifdef CLOCK_MONOTONIC_COARSE
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}
#endif

static inline int may_handle_signals(void) {
#ifdef __linux__
    return syscall(SYS_gettid) == getpid();
#else
    return 1;
#endif
}

/* Whether the remaining tasks are to be skipped. */
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
        int process = (int)getpid();
        PyGILState_STATE gil = PyGILState_Ensure();
        if (PyErr_CheckSignals())
            __atomic_store_n(&state->raised, 1, __ATOMIC_RELAXED);
        PyGILState_Release(gil);
        if (state->escape && (int)getpid() != process)
            take_escape(*state->escape);
        now = clock_now();
    }
    state->due = now + INTERVAL;
    return state->raised;
}

/* Runs parallel regions. Returns 0 if a forked child left them, where the work must start again on this thread. */
static inline int run_together(void (*run)(void *), void *work, Interrupts *state) {
    Escape escape;
    if (!state) { /* no handler runs */
        run(work);
        return 1;
    }
    state->escape = &escape;
    if (set_escape(escape)) {
        state->escape = 0;
        return 0;
    }
    run(work);
    state->escape = 0;
    return 1;
}

/* Must hold the GIL. Returns -1 if a handler raised an exception, which is then set, and otherwise 0. */
static inline int raised_by_handler(const Interrupts *state) { return -state->raised; }

#endif
