"""The windows along an axis, converted from Python to the form that loops take."""
from .job cimport Axis, padded


cdef inline int set_axis(Axis* axis, source) except -1:
    """Copy an `onnxpool.windows.Axis`. With one tap, the dilation becomes 1; with one window, the stride does."""
    cdef Py_ssize_t stride = source.stride, dilation = source.dilation
    axis.size, axis.out, axis.kernel = source.size, source.out, source.kernel
    axis.dilation = dilation if axis.kernel > 1 else 1
    axis.stride = stride if axis.out > 1 else 1
    axis.pad, axis.pad_end = source.pads
    axis.begin, axis.end, axis.counts_pads = source.begin, source.end, source.counts_pads
    axis.most, axis.singly = source.most, False
    axis.wide = (<double> axis.out * axis.stride + <double> axis.kernel * axis.dilation + axis.size + axis.pad
                 + axis.pad_end >= 2.0**62)
    axis.span = 1 + (axis.kernel - 1) * axis.dilation if not axis.wide else padded(axis, 1)
    return 0
