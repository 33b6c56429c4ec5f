/* The floating-point state of a thread. */
#ifndef ONNXPOOL_FLOATS_H
#define ONNXPOOL_FLOATS_H

#include <stdint.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* Default rounding without flush-to-zero while a worker computes. The caller's state is restored afterwards. */
#if defined(__SSE2__)
typedef unsigned int float_state;
static inline float_state enter_default_floats(void) {
    float_state saved = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return saved;
}
static inline void leave_default_floats(float_state saved) { _mm_setcsr(saved); }
#elif defined(__aarch64__)
typedef uint64_t float_state;
static inline float_state enter_default_floats(void) {
    float_state saved, clear = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"(clear));
    return saved;
}
static inline void leave_default_floats(float_state saved) { __asm__ volatile("msr fpcr, %0" : : "r"(saved)); }
#else
typedef int float_state;
static inline float_state enter_default_floats(void) { return 0; }
static inline void leave_default_floats(float_state saved) { (void)saved; }
#endif

#endif
