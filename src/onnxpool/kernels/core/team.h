/* Teams of threads: which calls get a team, and what happens to teams at a fork.
 *
 * libgomp keeps a pool of workers for every thread that has run a parallel region. Therefore only one region runs at a
 * time, and at most MOST_POOLS threads own a pool. A pool is released before a fork, because its workers do not exist
 * in the child, which would wait for them forever. libgomp ends the process if it cannot start a worker. Before a pool
 * grows, the same number of threads is therefore started here on trial.
 *
 * Each pool has a ceiling, which falls when a worker is late. Only the owner of the pool reads and writes it.
 */
#ifndef ONNXPOOL_TEAM_H
#define ONNXPOOL_TEAM_H

#include <stdint.h>

#include "floats.h"
#include "shared_constants.h"
#include "team_type.h"

#define MILLISECOND 1000000
#define LONGEST_PAUSE (128ll * FIRST_PAUSE)
enum {
    LEAST_WAIT = MILLISECOND / 5,
    BRIEFLY = 1000 * MILLISECOND,
    FIRST_PAUSE = 32 * MILLISECOND,
    RISE = 32 * MILLISECOND
};

/* The maximum size of a team. Times are in nanoseconds. */
typedef struct {
    int threads;    /* 0 stands for any number, as before the first wait */
    int64_t until;  /* end of the pause, at which the ceiling begins to rise */
    int64_t length; /* length of the pause */
} Ceiling;

/* If other processes are busy, a worker may have to wait several milliseconds for a core. The calling thread waits for
 * the worker after its own work, and also before it if the worker has not yet returned to the pool. After a wait that
 * was longer than the work, teams therefore have at most half as many threads for a while. Then the ceiling doubles,
 * and doubles again after each RISE, until the next wait. If a wait comes during a pause or soon after it, the next
 * pause is longer, and otherwise shorter. If calls are 5 ms apart, fewer than one in a hundred therefore have to wait,
 * no matter when workers are late. */
static int below(const Ceiling *ceiling, int threads, int64_t time) {
    int most = ceiling->threads ? ceiling->threads : threads;
    for (int64_t rise = ceiling->until; rise <= time && most < threads; rise += RISE)
        most *= 2;
    return most < threads ? most : threads;
}

static void note_wait(Ceiling *ceiling, int threads, int64_t worked, int64_t waited, int64_t end) {
    if (waited <= worked + LEAST_WAIT)
        return;
    int soon = end - worked - waited - ceiling->until < BRIEFLY;
    int64_t length = soon ? 4 * ceiling->length : ceiling->length / 4;
    ceiling->length = length < FIRST_PAUSE ? FIRST_PAUSE : length > LONGEST_PAUSE ? LONGEST_PAUSE : length;
    ceiling->until = end + ceiling->length;
    ceiling->threads = threads / 2;
}

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    int owned, size; /* size counts the owner; 0 before there are workers */
    Ceiling ceiling; /* stays when the owner changes */
} Pool;

enum { MOST_POOLS = 2 };

static Pool pools[MOST_POOLS];
static int regions_running;
static __thread Pool *own;
static __thread int paused; /* whether the fork in progress released the pool; the child inherits the variable */
static int orphaned;        /* whether this process was forked with a pool that could not be released */
static int pauses = 1;      /* whether ceilings may fall; tests that count threads switch this off */
static pthread_key_t pool_key;
static pthread_attr_t worker_attributes;

static void give_up(void *pool) {
    own = 0;
    ((Pool *)pool)->size = 0;
    __atomic_store_n(&((Pool *)pool)->owned, 0, __ATOMIC_RELEASE);
}

/* Whether this thread owns a pool, which may not have any workers yet. */
static int claim_pool(void) {
    for (int i = 0; i < MOST_POOLS && !own; i++) {
        int owned = __atomic_load_n(&pools[i].owned, __ATOMIC_RELAXED);
        if (!owned && __atomic_compare_exchange_n(&pools[i].owned, &owned, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            own = &pools[i];
            pthread_setspecific(pool_key, own);
        }
    }
    return own != 0;
}

static void before_fork(void) {
#if defined(__clang__)
    paused = 1; /* its runtime handles forks itself */
#elif __GNUC__ >= 9
    paused = !orphaned && omp_pause_resource_all(omp_pause_soft) == 0;
#else
    paused = !own || !own->size;
#endif
    if (paused && own)
        own->size = 0;
}

static void after_fork_in_child(void) {
    regions_running = 0;
    for (int i = 0; i < MOST_POOLS; i++)
        if (&pools[i] != own)
            pools[i].owned = pools[i].size = 0;
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
    pthread_key_create(&pool_key, give_up);
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

/* Whether this thread's pool has or gets this many threads, including itself. */
static int fill_pool(int threads) {
    if (threads > own->size && !can_start(threads - (own->size ? own->size : 1))) {
        if (!own->size) { /* others may fare better */
            pthread_setspecific(pool_key, 0);
            give_up(own);
        }
        return 0;
    }
    own->size = threads;
    return 1;
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 * MILLISECOND + time.tv_nsec;
}

/* The first use of LLVM's runtime starts the runtime, which raises a floating-point exception. */
static int within_region(void) {
    float_state saved = enter_default_floats();
    int within = omp_in_parallel();
    leave_default_floats(saved);
    return within;
}

/* The team of a call: the requested number of threads, fewer under a ceiling, or 1. Pass each to leave_team. */
static Team enter_team(int threads) {
    Team team = {1, 0, 0, 0};
    if (threads < 2 || orphaned || within_region() || !claim_pool())
        return team;
    int64_t begun = now();
    threads = below(&own->ceiling, threads, begun);
    if (threads < 2)
        return team;
    int starts = threads > own->size;
    if (__atomic_fetch_add(&regions_running, 1, __ATOMIC_ACQUIRE) == 0 && fill_pool(threads))
        team = (Team){threads, starts ? 0 : begun, 0, 0}; /* 0: the time to start workers is not a wait */
    else
        __atomic_fetch_sub(&regions_running, 1, __ATOMIC_RELEASE);
    return team;
}

/* Each thread calls these before and after a task if equal tasks are distributed in advance. With unequal tasks, they
 * are not called, because a wait for a longer task does not mean that cores are busy. */
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
        if (pauses && team->begun && team->worked) {
            int64_t worked = team->worked - team->started;
            note_wait(&own->ceiling, team->threads, worked, end - team->begun - worked, end);
        }
    }
}

static Ceiling *own_ceiling(void) { return claim_pool() ? &own->ceiling : 0; }
#else
static int pauses;
static void watch_forks(void) {}
static int64_t now(void) { return 0; }
static Ceiling *own_ceiling(void) { return 0; }
static Team enter_team(int threads) { (void)threads; return (Team){1, 0, 0, 0}; }
static void begin_task(Team *team) { (void)team; }
static void end_task(Team *team) { (void)team; }
static void leave_team(const Team *team) { (void)team; }
#endif

#endif
