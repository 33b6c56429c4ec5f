/* The dtype of a unit, which is compiled for one ELEMENT_... Other headers use these names and rarely the macro itself.
 *
 *   elem_t                            an element in memory
 *   OF_INTEGERS, OF_HALVES,           its kind: an integer, or a float of 16,
 *   OF_FLOATS, OF_DOUBLES               32 or 64 bits
 *   OF_64_BITS                        whether a lane has 64 bits
 *   MAXIMA(a)                         a(number, register, bits) for the registers that `larger` compares
 *   larger, LEAST                     the larger of two such registers, and the smallest number in them
 *
 * Integers have
 *   widen, narrow                     to registers of int32, or of int64 if OF_64_BITS, and back
 *   widen_to_words                    to registers of int16, in which 16 of them can be added; 8 bits only
 *   read_pairs, even_of, odd_of       two neighbours as one number, and either one as int32; 8 and 16 bits only
 *
 * Floats have
 *   widen, narrow                     to registers of float, or of double if OF_DOUBLES, and back, rounded to nearest even
 *   widen_to_double, narrow_double    to registers of double and back, rounded to nearest even
 *   widen_bits, narrow_bits           like widen and narrow, but without rounding, and NaNs keep their bits
 *   value_of, element_of              convert one element to double and back
 *
 * 16-bit floats, read in pairs of neighbours, also have
 *   even_of, odd_of                   one element of each pair, widened like `widen_bits`
 *   UPPER_HALVES                      defined if the elements are the upper halves of floats
 */
#ifndef ONNXPOOL_DTYPE_H
#define ONNXPOOL_DTYPE_H

#include "vec.h"

#if defined(ELEMENT_int8)
#define OF_INTEGERS
typedef int8_t elem_t;
typedef half_int16_v pairs_v;
#define MAXIMA(a) a(int8_t, int8_v, 8)
#define LEAST INT8_MIN
#define larger max_int8
#define widen widen_int8
#define narrow narrow_to_bytes
#define widen_to_words widen_int8_to_words
INLINE int32_v even_of(pairs_v pairs) { return signed_words_to_int32((pairs_v)(pairs << 8) >> 8); }
INLINE int32_v odd_of(pairs_v pairs) { return signed_words_to_int32(pairs >> 8); }

#elif defined(ELEMENT_uint8)
#define OF_INTEGERS
typedef uint8_t elem_t;
typedef half_words_v pairs_v;
#define MAXIMA(a) a(uint8_t, uint8_v, 8)
#define LEAST 0
#define larger max_uint8
#define widen widen_uint8
#define narrow narrow_to_bytes
#define widen_to_words widen_uint8_to_words
INLINE int32_v even_of(pairs_v pairs) { return (int32_v)words_to_uint32(pairs & 0xff); }
INLINE int32_v odd_of(pairs_v pairs) { return (int32_v)words_to_uint32(pairs >> 8); }

#elif defined(ELEMENT_int16)
#define OF_INTEGERS
typedef int16_t elem_t;
typedef int32_v pairs_v;
#define MAXIMA(a) a(int16_t, int16_v, 16)
#define LEAST INT16_MIN
#define larger max_int16
#define widen widen_int16
#define narrow(v) uint32_to_words((uint32_v)(v))
INLINE int32_v even_of(pairs_v pairs) { return (pairs << 16) >> 16; }
INLINE int32_v odd_of(pairs_v pairs) { return pairs >> 16; }

#elif defined(ELEMENT_int32)
#define OF_INTEGERS
typedef int32_t elem_t;
#define MAXIMA(a) a(int32_t, int32_v, 32)
#define LEAST INT32_MIN
#define larger max_int32
#define widen(x) READ(int32_v, x)
#define narrow(v) (v)

#elif defined(ELEMENT_int64)
#define OF_INTEGERS
#define OF_64_BITS
typedef int64_t elem_t;
#define MAXIMA(a) a(int64_t, int64_v, 64)
#define LEAST INT64_MIN
#define larger max_int64
#define widen(x) READ(int64_v, x)
#define narrow(v) (v)

#elif defined(ELEMENT_float16)
#define OF_HALVES
typedef uint16_t elem_t;
#define widen widen_float16
#define narrow narrow_to_float16
#define widen_to_double widen_float16_to_double
#define narrow_double narrow_double_to_float16
/* The processor makes NaNs quiet, so the bit that marks them as quiet is restored. */
INLINE float_v widen_bits(const elem_t *x) {
    float_v v = widen(x);
    const int32_v nan = v != v;
    if (__builtin_expect(any_lane(&nan), 0)) {
        const uint32_v half = words_to_uint32(READ(half_words_v, x));
        v = (float_v)((uint32_v)v & ~((uint32_v)nan & ~(half << 13) & 0x400000));
    }
    return v;
}
INLINE half_words_v narrow_bits(float_v v) {
    half_words_v half = narrow(v);
    const int32_v nan = v != v;
    if (__builtin_expect(any_lane(&nan), 0))
        half &= ~uint32_to_words((uint32_v)nan & ~((uint32_v)v >> 13) & 0x200);
    return half;
}
INLINE float_v even_of(uint32_v pairs) {
    const half_words_v half = uint32_to_words(pairs & 0xffff);
    return widen_bits((const elem_t *)&half);
}
INLINE float_v odd_of(uint32_v pairs) { return even_of(pairs >> 16); }

#elif defined(ELEMENT_bfloat16)
#define OF_HALVES
#define UPPER_HALVES
typedef uint16_t elem_t;
#define widen widen_bfloat16
#define narrow narrow_to_bfloat16
#define widen_to_double widen_bfloat16_to_double
#define narrow_double narrow_double_to_bfloat16
#define widen_bits widen
INLINE half_words_v narrow_bits(float_v v) { return uint32_to_words((uint32_v)v >> 16); }
INLINE float_v even_of(uint32_v pairs) { return (float_v)(pairs << 16); }
INLINE float_v odd_of(uint32_v pairs) { return (float_v)(pairs & 0xffff0000); }

#elif defined(ELEMENT_float32)
#define OF_FLOATS
typedef float elem_t;
#define MAXIMA(a) a(float, float_v, 32)
#define larger max_float
INLINE float_v widen(const elem_t *x) { return READ(float_v, x); }
INLINE double_v widen_to_double(const elem_t *x) { return widen_float(READ(half_float_v, x)); }
INLINE half_float_v narrow_double(double_v v) { return double_to_float(v); }

#elif defined(ELEMENT_float64)
#define OF_DOUBLES
#define OF_64_BITS
typedef double elem_t;
#define MAXIMA(a) a(double, double_v, 64)
#define larger max_double
INLINE double_v widen(const elem_t *x) { return READ(double_v, x); }
#define widen_to_double widen
INLINE double_v narrow_double(double_v v) { return v; }
#endif

#if defined(OF_HALVES) /* maxima compare integers that have the order of the floats */
typedef uint32_v pairs_v;
#define MAXIMA(a) a(int16_t, int16_v, 16)
#define LEAST INT16_MIN
#define larger max_int16
#elif defined(OF_FLOATS) || defined(OF_DOUBLES)
#define LEAST -__builtin_inf()
#define narrow(v) (v)
#define widen_bits widen
#define narrow_bits(v) (v)
#endif

#if defined(ELEMENT_int8) || defined(ELEMENT_uint8)
INLINE pairs_v read_pairs(const elem_t *x) { return (pairs_v)FIRST_LOW(READ(half_words_v, x)); }
#elif defined(ELEMENT_int16) || defined(OF_HALVES)
INLINE pairs_v read_pairs(const elem_t *x) { return (pairs_v)FIRST_LOW(READ(uint32_v, x)); }
#endif

#if !defined(OF_INTEGERS)
INLINE double value_of(elem_t x) {
    const elem_t part[WIDTH / sizeof(double)] = {x};
    return widen_to_double(part)[0];
}
INLINE elem_t element_of(double value) { return narrow_double((double_v){value})[0]; }
#endif
#endif
