/* One element as a double, and back. */
#ifndef ONNXPOOL_SCALAR_H
#define ONNXPOOL_SCALAR_H

#include "vec.h"

#if defined(ELEMENT_float16) || defined(ELEMENT_bfloat16)
#if defined(ELEMENT_float16)
#define WIDENED widen_float16_to_double
#define NARROWED narrow_double_to_float16
#else
#define WIDENED widen_bfloat16_to_double
#define NARROWED narrow_double_to_bfloat16
#endif
static inline double value_of(uint16_t half) {
    const uint16_t part[WIDTH / sizeof(double)] = {half};
    return WIDENED(part)[0];
}
static inline uint16_t element_of(double value) { return NARROWED((double_v){value})[0]; }
#elif defined(ELEMENT_float32)
static inline double value_of(float x) { return x; }
static inline float element_of(double value) { return (float)value; }
#else
static inline double value_of(double x) { return x; }
static inline double element_of(double value) { return value; }
#endif
#endif
