"""What this processor and this build can do, and the floating-point state of a thread."""
from .core.floats cimport enter_default_floats, float_state, leave_default_floats

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__) && (__GNUC__ >= 12 || (defined(__clang__) && __clang_major__ >= 18))
    #define onnxpool_supports_x86_v3() (__builtin_cpu_init(), __builtin_cpu_supports("x86-64-v3") != 0)
    #define onnxpool_supports_x86_v4() (__builtin_cpu_init(), __builtin_cpu_supports("x86-64-v4") != 0)
    #else
    #define onnxpool_supports_x86_v3() 0
    #define onnxpool_supports_x86_v4() 0
    #endif
    #ifdef _OPENMP
    #define onnxpool_openmp _OPENMP
    #else
    #define onnxpool_openmp 0
    #endif
    """
    bint onnxpool_supports_x86_v3()
    bint onnxpool_supports_x86_v4()
    int onnxpool_openmp


def supports(str isa):
    """Whether this processor runs code of an instruction set."""
    if isa == "x86_v3":
        return onnxpool_supports_x86_v3()
    if isa == "x86_v4":
        return onnxpool_supports_x86_v4()
    return isa == "baseline"


def openmp():
    """The date of the OpenMP standard (yyyymm) that the kernels are built with; 0 without."""
    return onnxpool_openmp


cdef class DefaultFloats:
    """Default rounding, no traps, no flushing of subnormals: in this thread, for as long as a `with` block runs."""
    cdef float_state saved

    def __enter__(self):
        self.saved = enter_default_floats()

    def __exit__(self, *error):
        leave_default_floats(self.saved)
