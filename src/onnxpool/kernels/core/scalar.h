/* One element as a double, and back. */
#ifndef ONNXPOOL_SCALAR_H
#define ONNXPOOL_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A double as a float with a sticky last bit, so that narrowing it to 16 bits later rounds the double only once. */
static inline uint32_t round_to_odd_bits(double value) {
    const float nearest = (float)value;
    const uint32_t bits = bits_of(nearest);
    return nearest == value || value != value ? bits : (bits - (fabs((double)nearest) > fabs(value))) | 1;
}

#if defined(ELEMENT_float16)
static inline double value_of(uint16_t half) {
    const int exponent = half >> 10 & 31, digits = half & 1023;
    const double value = exponent == 31 ? (digits ? NAN : INFINITY)
                         : exponent     ? ldexp(1024 + digits, exponent - 25)
                                        : ldexp(digits, -24);
    return half & 0x8000 ? -value : value;
}
static inline uint16_t element_of(double value) {
    const uint32_t bits = round_to_odd_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude >= 0x47800000)
        return (uint16_t)(sign | (magnitude > 0x7f800000 ? 0x7e00 : 0x7c00));
    if (magnitude < 0x38800000) /* adding 0.5 leaves units of 2^-24 in the low bits, rounded to even */
        return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
}
#elif defined(ELEMENT_bfloat16)
static inline double value_of(uint16_t half) { return float_of((uint32_t)half << 16); }
static inline uint16_t element_of(double value) {
    const uint32_t bits = round_to_odd_bits(value);
    return (uint16_t)(value != value ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#elif defined(ELEMENT_float32)
static inline double value_of(float x) { return x; }
static inline float element_of(double value) { return (float)value; }
#else
static inline double value_of(double x) { return x; }
static inline double element_of(double value) { return value; }
#endif
#endif
