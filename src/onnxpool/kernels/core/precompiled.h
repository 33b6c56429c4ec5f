/* Large headers that all units read: compiled once for each instruction set. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
