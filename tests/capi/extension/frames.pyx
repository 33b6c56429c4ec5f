# cython: language_level=3, boundscheck=False, wraparound=False
"""An extension that pools without the GIL: the example of docs/c-api.md, built by test_cython_api.py."""
from cython.parallel cimport prange
from libc.stdint cimport int64_t
from libc.string cimport memset

from onnxpool.cython_api cimport (
    ONNXPOOL_FLOAT32,
    ONNXPOOL_MAX_POOL,
    ONNXPOOL_OK,
    onnxpool_geometry,
    onnxpool_handle,
    onnxpool_message,
    onnxpool_output_shape,
    onnxpool_prepare_geometry,
    onnxpool_release,
    onnxpool_run,
)


cdef int pool_each(const onnxpool_handle* handle, const float[:, :, :, ::1] frames, float[:, :, :, ::1] pooled,
                   int threads) noexcept nogil:
    """Pools the frames in parallel; returns ONNXPOOL_OK if all runs succeed."""
    cdef Py_ssize_t i
    cdef int status = ONNXPOOL_OK
    for i in prange(frames.shape[0], num_threads=threads, schedule="dynamic"):
        status |= onnxpool_run(handle, &frames[i, 0, 0, 0], &pooled[i, 0, 0, 0], NULL, 1)
    return status


def max_frames(const float[:, :, :, ::1] frames, float[:, :, :, ::1] pooled, int size, int threads=1):
    """The maximum of each size x size block of every frame (C, H, W)."""
    cdef int64_t[4] shape = [1, frames.shape[1], frames.shape[2], frames.shape[3]]
    cdef int64_t[2] kernel = [size, size]
    cdef int64_t[4] result
    cdef onnxpool_geometry geometry
    cdef onnxpool_handle* handle
    cdef int status
    memset(&geometry, 0, sizeof(geometry))
    geometry.size = sizeof(geometry)
    geometry.operation, geometry.dtype = ONNXPOOL_MAX_POOL, ONNXPOOL_FLOAT32
    geometry.ndim, geometry.shape = 4, shape
    geometry.kernel_shape = geometry.strides = kernel
    handle = onnxpool_prepare_geometry(&geometry)
    try:
        onnxpool_output_shape(handle, result)
        expected = (frames.shape[0], result[1], result[2], result[3])
        if (pooled.shape[0], pooled.shape[1], pooled.shape[2], pooled.shape[3]) != expected:
            raise ValueError(f"pooled must have shape {expected}")
        with nogil:
            status = pool_each(handle, frames, pooled, threads)
        if status != ONNXPOOL_OK:
            raise RuntimeError(onnxpool_message(status).decode())
    finally:
        onnxpool_release(handle)
