/* The floating-point state of a thread: how results are rounded, and the exceptions that operations raised. */
#ifndef ONNXPOOL_FLOATS_H
#define ONNXPOOL_FLOATS_H

#include <stddef.h>
#include <stdint.h>
#if defined(__SSE2__)
#include <immintrin.h>
#elif !defined(__aarch64__) && !defined(__wasm__)
#include <fenv.h>
#endif

/* `enter_default_floats` sets default rounding without flush-to-zero, and clears all exceptions. The caller's state is
 * restored afterwards. Processors record exceptions at no cost, so loops need not look at their results. */
#if defined(__SSE2__)
enum { INVALID = 1, OVERFLOWED = 8, UNDERFLOWED = 16, EXCEPTIONS = 63 };
typedef unsigned int float_state;
static inline float_state enter_default_floats(void) {
    float_state saved = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return saved;
}
static inline void leave_default_floats(float_state saved) { _mm_setcsr(saved); }
static inline int exceptions_raised(void) { return (int)_mm_getcsr() & EXCEPTIONS; }
static inline void clear_exceptions(void) { _mm_setcsr(_mm_getcsr() & ~(unsigned int)EXCEPTIONS); }
#elif defined(__aarch64__)
enum { INVALID = 1, OVERFLOWED = 4, UNDERFLOWED = 8, EXCEPTIONS = 31 };
typedef struct { uint64_t control, status; } float_state;
static inline void set_floats(float_state state) {
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(state.control), "r"(state.status) : "memory");
}
static inline float_state get_floats(void) {
    float_state state;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(state.control), "=r"(state.status) : : "memory");
    return state;
}
static inline float_state enter_default_floats(void) {
    float_state saved = get_floats();
    set_floats((float_state){0, 0});
    return saved;
}
static inline void leave_default_floats(float_state saved) { set_floats(saved); }
static inline int exceptions_raised(void) { return (int)get_floats().status & EXCEPTIONS; }
static inline void clear_exceptions(void) { set_floats((float_state){get_floats().control, 0}); }
#elif defined(__wasm__)
/* WebAssembly has one state and records no exceptions. Any may have been raised, so suspect results are always computed
 * again. */
enum { INVALID = 1, OVERFLOWED = 2, UNDERFLOWED = 4 };
typedef char float_state;
static inline float_state enter_default_floats(void) { return 0; }
static inline void leave_default_floats(float_state saved) { (void)saved; }
static inline int exceptions_raised(void) { return INVALID | OVERFLOWED | UNDERFLOWED; }
static inline void clear_exceptions(void) {}
#else
#if !defined(FE_OVERFLOW) || !defined(FE_UNDERFLOW) || !defined(FE_INVALID)
#error "onnxpool needs a processor that records floating-point exceptions"
#endif
enum { INVALID = FE_INVALID, OVERFLOWED = FE_OVERFLOW, UNDERFLOWED = FE_UNDERFLOW };
typedef fenv_t float_state;
static inline float_state enter_default_floats(void) {
    float_state saved;
    fegetenv(&saved);
    fesetenv(FE_DFL_ENV);
    return saved;
}
static inline void leave_default_floats(float_state saved) { fesetenv(&saved); }
static inline int exceptions_raised(void) { return fetestexcept(FE_ALL_EXCEPT); }
static inline void clear_exceptions(void) { feclearexcept(FE_ALL_EXCEPT); }
#endif

/* Adds this thread's exceptions to the exceptions of all threads. */
static inline void gather_exceptions(int *all, int raised) {
    if (raised)
        __atomic_fetch_or(all, raised, __ATOMIC_RELAXED);
}
static inline void count_again(ptrdiff_t *count) { __atomic_fetch_add(count, 1, __ATOMIC_RELAXED); }

#endif
