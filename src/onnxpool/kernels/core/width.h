/* The bytes of a register of the instruction set. */
#ifndef ONNXPOOL_WIDTH_H
#define ONNXPOOL_WIDTH_H

#if defined(__AVX512BW__)
enum { WIDTH = 64 };
#elif defined(__AVX2__)
enum { WIDTH = 32 };
#else
enum { WIDTH = 16 };
#endif

#endif
