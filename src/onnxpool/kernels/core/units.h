/* The loops of one instruction set: functions of each unit, found by name. */
#ifndef ONNXPOOL_UNITS_H
#define ONNXPOOL_UNITS_H

#include "job.h"

typedef struct {
    const char *name; /* solver, reduction and element, such as direct_max_float32; NULL after the last one */
    void (*run)(void);
    Scratch scratch;
} Unit;

#endif
