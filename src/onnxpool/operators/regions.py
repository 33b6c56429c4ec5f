"""Operators that pool regions of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array, T
from ..base import Ints, made, registered
from ..docstrings import documented
from ..execution import Plan
from ..planning.regions import RegionPlan, Regions, check_planes
from ..windows import check_lengths, per_axis, with_spatial
from .typed import Named, OneResult

if TYPE_CHECKING:
    from ..options import Corners, MaxRoiPoolOptions, Mode, RoiAlignOptions, Sizes


class OnRegions(OneResult):
    """An operator that pools regions of images."""

    __slots__ = ()

    def _regions(self) -> Regions:
        """How regions are cut, and what of them is taken."""
        raise NotImplementedError(f"{self.label} has no regions")

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result for one region."""
        check_planes(self.label, shape, self.channels_last)
        return with_spatial((1, *shape[1:]), self._regions().pooled, self.channels_last)

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        return RegionPlan(self, shape, dtype, regions=self._regions(), output_shape=self._output_shape(shape))


@registered
class MaxRoiPool(OnRegions):
    """
    The ONNX operator MaxRoiPool with its attributes.

    Examples
    --------
    >>> import onnxpool
    >>> op = onnxpool.MaxRoiPool(pooled_shape=(7, 7))
    >>> op.spatial_scale
    1.0
    """

    __slots__ = ()

    pooled_shape: Named[Sizes] = Named()
    spatial_scale: Named[float] = Named()

    def __init__(self, *, pooled_shape: Ints | None = None, spatial_scale: float | None = None,
                 opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last, pooled_shape=pooled_shape, spatial_scale=spatial_scale)
        check_lengths(self.label, self.attributes, 2)

    def _regions(self) -> Regions:
        height, width = per_axis(self.label, self.attributes, "pooled_shape", 2)
        return Regions("roi_max", (height, width), scale=self._value("spatial_scale"))


@registered
class RoiAlign(OnRegions):
    """
    The ONNX operator RoiAlign with its attributes.

    Examples
    --------
    >>> import onnxpool
    >>> op = onnxpool.RoiAlign(output_height=7, output_width=7, opset=10)
    >>> op.coordinate_transformation_mode
    'output_half_pixel'
    """

    __slots__ = ()

    mode: Named[str] = Named()
    output_height: Named[int] = Named()
    output_width: Named[int] = Named()
    sampling_ratio: Named[int] = Named()
    spatial_scale: Named[float] = Named()
    coordinate_transformation_mode: Named[str] = Named()

    def __init__(self, *, mode: Mode | None = None, output_height: int | None = None, output_width: int | None = None,
                 sampling_ratio: int | None = None, spatial_scale: float | None = None,
                 coordinate_transformation_mode: Corners | None = None, opset: int | None = None,
                 channels_last: bool = False) -> None:
        self._set(opset, channels_last, mode=mode, output_height=output_height, output_width=output_width,
                  sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
                  coordinate_transformation_mode=coordinate_transformation_mode)

    def _regions(self) -> Regions:
        half_pixel = self._value("coordinate_transformation_mode") == "half_pixel"
        return Regions(
            f"align_{self._value('mode')}", (self._value("output_height"), self._value("output_width")),
            scale=self._value("spatial_scale"), sampling=self._value("sampling_ratio"),
            offset=0.5 if half_pixel else 0.0, at_least_one=not half_pixel)


@overload
def max_roi_pool(x: NDArray[T], rois: ArrayLike, pooled_shape: Ints, *, out: None = None,
                 **options: Unpack[MaxRoiPoolOptions]) -> NDArray[T]: ...


@overload
def max_roi_pool(x: ArrayLike, rois: ArrayLike, pooled_shape: Ints, *, out: NDArray[T],
                 **options: Unpack[MaxRoiPoolOptions]) -> NDArray[T]: ...


@overload
def max_roi_pool(x: ArrayLike, rois: ArrayLike, pooled_shape: Ints, *, out: None = None,
                 **options: Unpack[MaxRoiPoolOptions]) -> Array: ...


@documented(MaxRoiPool, "bins", (), ("roi_align", "max_pool"))
def max_roi_pool(x: ArrayLike, rois: ArrayLike, pooled_shape: Ints, *, spatial_scale: float | None = None,
                 opset: int | None = None, channels_last: bool = False, out: Array | None = None,
                 num_threads: int | None = None) -> Array:
    """
    Take the maximum of each bin of regions of images.

    Notes
    -----
    Corners are multiplied by `spatial_scale` and rounded; both corners belong to their region. A bin outside of its
    image gives 0. A NaN in a bin is its maximum. A region with a corner or side of 2^31 or more is an error.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> onnxpool.max_roi_pool(x, np.array([[0, 0, 0, 3, 3]], np.float32), (2, 2)).tolist()
    [[[[6.0, 8.0], [14.0, 16.0]]]]
    """
    op = made(MaxRoiPool, pooled_shape, spatial_scale, opset, channels_last)
    return op(x, rois, out=out, num_threads=num_threads)


@overload
def roi_align(x: NDArray[T], rois: ArrayLike, batch_indices: ArrayLike, *, out: None = None,
              **options: Unpack[RoiAlignOptions]) -> NDArray[T]: ...


@overload
def roi_align(x: ArrayLike, rois: ArrayLike, batch_indices: ArrayLike, *, out: NDArray[T],
              **options: Unpack[RoiAlignOptions]) -> NDArray[T]: ...


@overload
def roi_align(x: ArrayLike, rois: ArrayLike, batch_indices: ArrayLike, *, out: None = None,
              **options: Unpack[RoiAlignOptions]) -> Array: ...


@documented(RoiAlign, "bins", (), ("max_roi_pool", "average_pool"))
def roi_align(x: ArrayLike, rois: ArrayLike, batch_indices: ArrayLike, *, mode: Mode | None = None,
              output_height: int | None = None, output_width: int | None = None, sampling_ratio: int | None = None,
              spatial_scale: float | None = None, coordinate_transformation_mode: Corners | None = None,
              opset: int | None = None, channels_last: bool = False, out: Array | None = None,
              num_threads: int | None = None) -> Array:
    """
    Average, or take the maximum of, samples between the elements of regions of images.

    Notes
    -----
    A sample is the mean of the four elements around it, weighted by how near they are. With ``mode="max"`` the
    result is the largest of these weighted elements. A region takes at most 2^22 samples. Its corners and sides must be
    finite in the arithmetic of coordinates, which is float64 for float64, and float32 for other dtypes.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> rois, images = np.array([[0, 0, 3, 3]], np.float32), np.array([0])
    >>> onnxpool.roi_align(x, rois, images, output_height=2, output_width=2, opset=10).tolist()
    [[[[4.75, 6.25], [10.75, 12.25]]]]
    """
    op = made(RoiAlign, mode, output_height, output_width, sampling_ratio, spatial_scale,
              coordinate_transformation_mode, opset, channels_last)
    return op(x, rois, batch_indices, out=out, num_threads=num_threads)
