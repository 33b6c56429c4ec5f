/* Which calls get a team of threads, and what a fork leaves of it.
 *
 * libgomp keeps a pool of workers for each thread that ever ran a region. So one region runs at a time, at most
 * MOST_POOLS threads have a pool, and a pool is given up before a fork: its workers do not exist in the child, which
 * would wait for them for ever.
 */
#ifndef ONNXPOOL_TEAM_H
#define ONNXPOOL_TEAM_H

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>

enum { MOST_POOLS = 2 };

static int regions_running, pools_alive, pause_failed;
static __thread int has_pool;
static pthread_key_t pool_key;

static void forget_pool(void *value) {
    (void)value;
    __atomic_fetch_sub(&pools_alive, 1, __ATOMIC_RELAXED);
}

static void before_fork(void) {
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 9
    pause_failed = omp_pause_resource_all(omp_pause_soft);
#endif
}

static void after_fork_in_child(void) {
    regions_running = 0;
    pools_alive = has_pool;
}

static void watch_forks(void) {
    pthread_key_create(&pool_key, forget_pool);
    pthread_atfork(before_fork, 0, after_fork_in_child);
}

/* The threads that a call gets: what it asks for, or 1. A team must be left again. */
static int enter_team(int threads) {
    if (threads < 2 || pause_failed || omp_in_parallel())
        return 1;
    if (__atomic_fetch_add(&regions_running, 1, __ATOMIC_ACQUIRE) == 0) {
        if (has_pool)
            return threads;
        if (__atomic_fetch_add(&pools_alive, 1, __ATOMIC_RELAXED) < MOST_POOLS) {
            has_pool = 1;
            pthread_setspecific(pool_key, &has_pool);
            return threads;
        }
        __atomic_fetch_sub(&pools_alive, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_sub(&regions_running, 1, __ATOMIC_RELEASE);
    return 1;
}

static void leave_team(int threads) {
    if (threads > 1)
        __atomic_fetch_sub(&regions_running, 1, __ATOMIC_RELEASE);
}
#else
static void watch_forks(void) {}
static int enter_team(int threads) { (void)threads; return 1; }
static void leave_team(int threads) { (void)threads; }
#endif

#endif
