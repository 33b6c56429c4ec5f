/* WIDTH: the bytes of a register. PICKS: how many lanes of two registers may be picked for a register of results before
 * other loops are faster. */
#ifndef ONNXPOOL_WIDTH_H
#define ONNXPOOL_WIDTH_H

#if defined(__AVX512BW__)
enum { WIDTH = 64, PICKS = 12 };
#elif defined(__AVX2__)
enum { WIDTH = 32, PICKS = 6 };
#elif defined(__AARCH64EL__)
enum { WIDTH = 16, PICKS = 12 };
#else
enum { WIDTH = 16, PICKS = 0 };
#endif

#endif
