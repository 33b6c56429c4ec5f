/* The team of a call, for all modules; team.pyx alone has the functions and the state in team.h. */
#ifndef ONNXPOOL_TEAM_TYPE_H
#define ONNXPOOL_TEAM_TYPE_H

#include <stdint.h>

typedef struct {
    int threads;           /* number of threads, including the calling one */
    int64_t begun, worked; /* start of the call, and end of the calling thread's last task, in nanoseconds */
} Team;

#endif
