"""onnxpool's kernels on raw pointers and without the GIL. See docs/c-api.md.

This file defines an ABI that is only ever extended: no name, signature, value or field changes or disappears.
"""
from libc.stdint cimport int32_t, int64_t

cdef enum:
    ONNXPOOL_ABI_VERSION = 1

# Operators
cdef enum:
    ONNXPOOL_AVERAGE_POOL = 1
    ONNXPOOL_MAX_POOL = 2
    ONNXPOOL_LP_POOL = 3
    ONNXPOOL_GLOBAL_AVERAGE_POOL = 4
    ONNXPOOL_GLOBAL_MAX_POOL = 5
    ONNXPOOL_GLOBAL_LP_POOL = 6
    ONNXPOOL_QLINEAR_AVERAGE_POOL = 7
    ONNXPOOL_QLINEAR_GLOBAL_AVERAGE_POOL = 8
    ONNXPOOL_NHWC_MAX_POOL = 9

# Dtypes, by their numbers in ONNX
cdef enum:
    ONNXPOOL_FLOAT32 = 1
    ONNXPOOL_UINT8 = 2
    ONNXPOOL_INT8 = 3
    ONNXPOOL_FLOAT16 = 10
    ONNXPOOL_FLOAT64 = 11
    ONNXPOOL_BFLOAT16 = 16

# auto_pad
cdef enum:
    ONNXPOOL_NOTSET = 0
    ONNXPOOL_SAME_UPPER = 1
    ONNXPOOL_SAME_LOWER = 2
    ONNXPOOL_VALID = 3

# The status of a run
cdef enum:
    ONNXPOOL_OK = 0
    ONNXPOOL_NULL_POINTER = 1  # a handle or array is missing
    ONNXPOOL_BAD_INDICES = 2   # indices are missing, or given although the handle computes none
    ONNXPOOL_BAD_THREADS = 3   # the number of threads is negative
    ONNXPOOL_NO_MEMORY = 4     # there is no scratch memory


# Fields that are 0 or NULL count as not given.
cdef struct onnxpool_geometry:
    int64_t size               # sizeof(onnxpool_geometry), which identifies the fields that the caller knows
    int32_t operation          # an operator
    int32_t dtype
    int32_t opset              # 0 for the newest
    int32_t ndim               # number of axes of X: N, C and the spatial axes
    int32_t channels_last
    int32_t return_indices
    int32_t storage_order
    int32_t ceil_mode
    int32_t count_include_pad
    int32_t auto_pad
    double p
    const int64_t* shape         # shape of X: ndim values
    const int64_t* kernel_shape  # ndim - 2 values
    const int64_t* strides       # ndim - 2 values
    const int64_t* pads          # 2 (ndim - 2) values
    const int64_t* dilations     # ndim - 2 values
    const int64_t* x_strides     # in bytes, ndim values; NULL for C order
    const int64_t* y_strides
    const int64_t* indices_strides
    float x_scale
    float y_scale
    int32_t x_zero_point
    int32_t y_zero_point


# A prepared pool: immutable, reference-counted, usable without the GIL from any number of threads at once.
cdef struct onnxpool_handle

cdef int onnxpool_abi_version() noexcept nogil

# These functions need the GIL. If they return NULL, a Python exception is set. A new handle has one reference.
# `inputs` is a sequence of the inputs after X for a quantised operator, and None for others.
cdef onnxpool_handle* onnxpool_prepare(object plan, object inputs) except NULL
cdef onnxpool_handle* onnxpool_prepare_geometry(const onnxpool_geometry* geometry) except NULL

# Add or drop a reference. Dropping the last one briefly takes the GIL.
cdef void onnxpool_retain(onnxpool_handle* handle) noexcept nogil
cdef void onnxpool_release(onnxpool_handle* handle) noexcept nogil

# Return the number of axes of the result, and store its shape (at most 64 values) unless `shape` is NULL.
cdef int onnxpool_output_shape(const onnxpool_handle* handle, int64_t* shape) noexcept nogil

# Pool x into y, and store indices if there are any. 0 threads means the default at the time the handle was made.
cdef int onnxpool_run(const onnxpool_handle* handle, const void* x, void* y, int64_t* indices,
                      int threads) noexcept nogil

# Describe the status of a run.
cdef const char* onnxpool_message(int status) noexcept nogil
