"""Functions: arrays keep their dtype, lists give any dtype, and `out` and `return_indices` decide the return type."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import onnxpool

x: NDArray[np.float32] = np.zeros((1, 3, 8, 8), np.float32)
q: NDArray[np.uint8] = np.zeros((1, 3, 8, 8), np.uint8)
indices: NDArray[np.int64] = np.zeros((1, 3, 8, 8), np.int64)
rois: NDArray[np.float32] = np.zeros((2, 5), np.float32)

assert_type(onnxpool.average_pool(x, 3), NDArray[np.float32])
assert_type(onnxpool.average_pool(x, (3, 3), strides=[2, 2], pads=1, auto_pad=None, opset=19), NDArray[np.float32])
assert_type(onnxpool.average_pool([[[1.0, 2.0]]], 2), NDArray[Any])
assert_type(onnxpool.average_pool([[[1.0, 2.0]]], 2, out=np.zeros((1, 1, 1))), NDArray[np.float64])
assert_type(onnxpool.average_pool(x, 3, out=x, num_threads=1), NDArray[np.float32])

assert_type(onnxpool.max_pool(x, 2, strides=2), NDArray[np.float32])
assert_type(onnxpool.max_pool(x, 2, return_indices=False), NDArray[np.float32])
assert_type(onnxpool.max_pool(x, 2, return_indices=True), tuple[NDArray[np.float32], NDArray[np.int64]])
assert_type(onnxpool.max_pool([[[1]]], 1, return_indices=True), tuple[NDArray[Any], NDArray[np.int64]])
y, i = onnxpool.max_pool(x, 2, return_indices=True, out=(None, indices), ceil_mode=True)
assert_type(y, NDArray[np.float32])
assert_type(i, NDArray[np.int64])


def either(flag: bool) -> None:
    """A type that is not known until the call is a union."""
    assert_type(onnxpool.max_pool(x, 2, return_indices=flag), NDArray[Any] | tuple[NDArray[Any], NDArray[np.int64]])


def into(buffer: NDArray[np.float32] | None) -> NDArray[np.float32]:
    """A buffer may be None."""
    return onnxpool.lp_pool(x, 2, p=2, out=buffer)


assert_type(onnxpool.nhwc_max_pool(q, 2, dilations=(1, 1)), NDArray[np.uint8])
assert_type(onnxpool.global_average_pool(x, channels_last=True), NDArray[np.float32])
assert_type(onnxpool.global_max_pool(q), NDArray[np.uint8])
assert_type(onnxpool.global_lp_pool(x, p=1.5, opset=1), NDArray[np.float32])
assert_type(onnxpool.qlinear_average_pool(q, 0.5, None, np.float32(0.5), 3, 2, count_include_pad=1), NDArray[np.uint8])
assert_type(onnxpool.qlinear_global_average_pool(q, 0.5, 0, 0.5, np.uint8(3), channels_last=1), NDArray[np.uint8])
assert_type(onnxpool.max_unpool(x, indices, 2, np.array([1, 3, 9, 9]), strides=2), NDArray[np.float32])
assert_type(onnxpool.max_roi_pool(x, rois, (2, 2), spatial_scale=0.5), NDArray[np.float32])
assert_type(onnxpool.roi_align(x, rois[:, 1:], np.array([0, 0]), mode="max", sampling_ratio=2), NDArray[np.float32])

# Mistakes that a type checker refuses. An unneeded ignore is an error.
onnxpool.average_pool(x, 2, auto_pad="same_upper")  # type: ignore[call-overload]
onnxpool.average_pool(x, 2, storage_order=1)  # type: ignore[call-overload]
onnxpool.average_pool(x)  # type: ignore[call-overload]
onnxpool.average_pool(x, 2.5)  # type: ignore[call-overload]
onnxpool.roi_align(x, rois, [0], mode="mean")  # type: ignore[call-overload]
