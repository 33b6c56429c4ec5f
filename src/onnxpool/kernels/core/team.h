/* Teams of threads: which calls get one, and how forks treat it.
 *
 * libgomp keeps a pool of workers for every thread that has run a parallel region. Therefore only one region runs at a
 * time, and at most MOST_POOLS threads have a pool. A pool is released before a fork, because its workers do not exist in
 * the child, which would wait for them forever. libgomp ends the process if it cannot start a worker. Before a pool
 * grows, the same number of threads is therefore started here on trial.
 */
#ifndef ONNXPOOL_TEAM_H
#define ONNXPOOL_TEAM_H

#include <stdint.h>

#include "floats.h"
#include "shared_constants.h"
#include "team_type.h"

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_POOLS = 2 };

static int regions_running, pools_alive;
static __thread int paused; /* whether the fork in progress released the pool; the child inherits the variable */
static int orphaned;        /* whether this process was forked with a pool that could not be released */
static __thread int has_pool, pool_size;
static pthread_key_t pool_key;
static pthread_attr_t worker_attributes;

static void forget_pool(void *value) {
    (void)value;
    __atomic_fetch_sub(&pools_alive, 1, __ATOMIC_RELAXED);
}

static void before_fork(void) {
#if defined(__clang__)
    paused = 1; /* its runtime handles forks itself */
#elif __GNUC__ >= 9
    paused = !orphaned && omp_pause_resource_all(omp_pause_soft) == 0;
#else
    paused = !has_pool;
#endif
    if (paused)
        pool_size = 0;
}

static void after_fork_in_child(void) {
    regions_running = 0;
    pools_alive = has_pool;
    orphaned = !paused;
}

/* The stack size of libgomp's workers in bytes; 0 stands for the system default. */
static size_t worker_stack(void) {
    const char *names[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE"};
    for (int i = 0; i < 2; i++) {
        char *unit = 0;
        const char *text = getenv(names[i]);
        unsigned long long size = text ? strtoull(text, &unit, 10) : 0;
        if (unit && unit != text) {
            while (*unit == ' ')
                unit++;
            int shift = *unit == 'B' || *unit == 'b' ? 0 : *unit == 'M' || *unit == 'm' ? 20
                        : *unit == 'G' || *unit == 'g' ? 30 : 10;
            return size << shift >> shift == size ? (size_t)(size << shift) : 0;
        }
    }
    return 0;
}

static void watch_forks(void) {
    pthread_key_create(&pool_key, forget_pool);
    pthread_atfork(before_fork, 0, after_fork_in_child);
    pthread_attr_init(&worker_attributes);
    if (worker_stack())
        pthread_attr_setstacksize(&worker_attributes, worker_stack());
}

static void *pass(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return 0;
}

/* Whether this many threads can run at the same time. */
static int can_start(int count) {
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[ONNXPOOL_MOST_THREADS];
    int started = 0;
    pthread_mutex_lock(&gate);
    while (started < count && started < ONNXPOOL_MOST_THREADS
           && pthread_create(&threads[started], &worker_attributes, pass, &gate) == 0)
        started++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], 0);
    return started == count;
}

/* Whether this thread has or gets a pool of this many threads, including itself. */
static int get_pool(int threads) {
    int fresh = !has_pool;
    if ((fresh && __atomic_fetch_add(&pools_alive, 1, __ATOMIC_RELAXED) >= MOST_POOLS)
        || (threads > pool_size && !can_start(threads - (pool_size ? pool_size : 1)))) {
        if (fresh)
            __atomic_fetch_sub(&pools_alive, 1, __ATOMIC_RELAXED);
        return 0;
    }
    if (fresh)
        pthread_setspecific(pool_key, &has_pool);
    has_pool = 1;
    pool_size = threads;
    return 1;
}

/* If other processes are busy, a worker may have to wait several milliseconds for a core, and the calling thread waits for
 * the worker: before its own work, if the worker has not yet returned to the pool, and after it. After a wait that was
 * longer than the work, calls therefore run single-threaded for a while. The pause is longer than the last one if teams
 * have worked only briefly in between, and shorter otherwise, so that less than one call in a hundred has to wait. */
#define MILLISECOND 1000000
enum { LEAST_WAIT = MILLISECOND / 5, BRIEFLY = 500 * MILLISECOND, FIRST_PAUSE = 32 * MILLISECOND };
#define LONGEST_PAUSE (128ll * FIRST_PAUSE)
static int64_t pause_length, paused_until;
static int pauses = 1; /* whether pauses are allowed; tests that count threads switch them off */

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 * MILLISECOND + time.tv_nsec;
}

static void note_wait(int64_t worked, int64_t waited, int64_t end) {
    if (!pauses || waited <= worked + LEAST_WAIT)
        return;
    int64_t length = __atomic_load_n(&pause_length, __ATOMIC_RELAXED);
    int again = end - worked - waited - __atomic_load_n(&paused_until, __ATOMIC_RELAXED) < BRIEFLY;
    length = again ? 4 * length : length / 4;
    length = length < FIRST_PAUSE ? FIRST_PAUSE : length > LONGEST_PAUSE ? LONGEST_PAUSE : length;
    __atomic_store_n(&pause_length, length, __ATOMIC_RELAXED);
    __atomic_store_n(&paused_until, end + length, __ATOMIC_RELAXED);
}

/* LLVM's runtime starts when it is first asked, and then raises a floating-point exception. */
static int within_region(void) {
    float_state saved = enter_default_floats();
    int within = omp_in_parallel();
    leave_default_floats(saved);
    return within;
}

/* The team of a call: the requested number of threads, or 1. Every team must be left again. */
static Team enter_team(int threads) {
    Team team = {1, 0, 0, 0};
    if (threads < 2 || orphaned || within_region())
        return team;
    int starts = threads > pool_size;
    int64_t begun = now();
    if (begun < __atomic_load_n(&paused_until, __ATOMIC_RELAXED))
        return team;
    if (__atomic_fetch_add(&regions_running, 1, __ATOMIC_ACQUIRE) == 0 && get_pool(threads))
        team = (Team){threads, starts ? 0 : begun, 0, 0}; /* starting workers is not a wait for them */
    else
        __atomic_fetch_sub(&regions_running, 1, __ATOMIC_RELEASE);
    return team;
}

/* Called by each thread before and after a task, where equal tasks are distributed in advance. Elsewhere, a wait for a
 * longer task does not indicate busy cores, so they are not called. */
static void begin_task(Team *team) {
    if (team->threads > 1 && omp_get_thread_num() == 0 && !team->started)
        team->started = now();
}

static void end_task(Team *team) {
    if (team->threads > 1 && omp_get_thread_num() == 0)
        team->worked = now();
}

static void leave_team(const Team *team) {
    if (team->threads > 1) {
        int64_t end = now();
        __atomic_fetch_sub(&regions_running, 1, __ATOMIC_RELEASE);
        if (team->begun && team->worked) {
            int64_t worked = team->worked - team->started;
            note_wait(worked, end - team->begun - worked, end);
        }
    }
}

static int64_t pause_left(void) {
    int64_t left = __atomic_load_n(&paused_until, __ATOMIC_RELAXED) - now();
    return left > 0 ? left : 0;
}
#else
static int pauses;
static void watch_forks(void) {}
static void note_wait(int64_t worked, int64_t waited, int64_t end) { (void)worked, (void)waited, (void)end; }
static int64_t now(void) { return 0; }
static int64_t pause_left(void) { return 0; }
static Team enter_team(int threads) { (void)threads; return (Team){1, 0, 0, 0}; }
static void begin_task(Team *team) { (void)team; }
static void end_task(Team *team) { (void)team; }
static void leave_team(const Team *team) { (void)team; }
#endif

#endif
