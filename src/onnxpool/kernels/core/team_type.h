/* The team of a call, for all modules; team.pyx alone has the functions and the state in team.h. */
#ifndef ONNXPOOL_TEAM_TYPE_H
#define ONNXPOOL_TEAM_TYPE_H

#include <stdint.h>

typedef struct {
    int threads; /* number of threads, including the calling one */
    /* Start of the call, and start and end of the calling thread's tasks, in nanoseconds; 0 if they do not count. */
    int64_t begun, started, worked;
} Team;

#endif
