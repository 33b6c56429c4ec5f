"""Operators that pool regions of images."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import Operator, made, registered
from ..execution import Array, Plan
from ..regions import RegionPlan, Regions, check_planes
from ..windows import check_lengths, per_axis, with_spatial


class OnRegions(Operator):
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
    """The ONNX operator MaxRoiPool with its attributes: see `max_roi_pool`, whose arguments it takes."""

    __slots__ = ()

    def __init__(self, *, pooled_shape: int | Sequence[int] | None = None, spatial_scale: float | None = None,
                 opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last, pooled_shape=pooled_shape, spatial_scale=spatial_scale)
        check_lengths(self.label, self.attributes, 2)

    def _regions(self) -> Regions:
        height, width = per_axis(self.value("pooled_shape"), 2)
        return Regions("roi_max", (height, width), scale=self.value("spatial_scale"))


@registered
class RoiAlign(OnRegions):
    """The ONNX operator RoiAlign with its attributes: see `roi_align`, whose arguments it takes."""

    __slots__ = ()

    def __init__(self, *, mode: str | None = None, output_height: int | None = None, output_width: int | None = None,
                 sampling_ratio: int | None = None, spatial_scale: float | None = None,
                 coordinate_transformation_mode: str | None = None, opset: int | None = None,
                 channels_last: bool = False) -> None:
        self._set(opset, channels_last, mode=mode, output_height=output_height, output_width=output_width,
                  sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
                  coordinate_transformation_mode=coordinate_transformation_mode)

    def _regions(self) -> Regions:
        half_pixel = self.value("coordinate_transformation_mode") == "half_pixel"
        return Regions(
            f"align_{self.value('mode')}", (self.value("output_height"), self.value("output_width")),
            scale=self.value("spatial_scale"), sampling=self.value("sampling_ratio"),
            offset=0.5 if half_pixel else 0.0, at_least_one=not half_pixel)


def max_roi_pool(x: Any, rois: Any, pooled_shape: int | Sequence[int], *, spatial_scale: float | None = None,
                 opset: int | None = None, channels_last: bool = False, out: Array | None = None,
                 num_threads: int | None = None) -> Array:
    """
    Take the maximum of each bin of regions of images.

    Parameters
    ----------
    x : array_like of shape (N, C, H, W), or (N, H, W, C) if `channels_last`
        float16, float32 or float64; bfloat16 since version 22.
    rois : array_like of shape (R, 5)
        Of the dtype of `x`; each row is an image's number and the corners x1, y1, x2, y2, which belong to the region.
    pooled_shape : int or two ints
        Bins along the height and the width.
    spatial_scale : float, optional
        From the units of `rois` to elements of `x`, by default 1.
    opset : int, optional
        Of the model, by default the newest known.
    channels_last : bool, optional
        Whether `x` is (N, H, W, C) and the result (R, *pooled_shape, C).
    out : ndarray, optional
        Where the result is stored; it is returned. It may overlap `x`.
    num_threads : int, optional
        By default `get_num_threads()`.

    Returns
    -------
    ndarray of shape (R, C, *pooled_shape), or (R, *pooled_shape, C) if `channels_last`
        Of the dtype of `x`; 0 for a bin outside of its image.

    Raises
    ------
    PoolError
        For an attribute, shape, region or image number that is not allowed.
    PoolTypeError
        For a dtype or kind of argument that is not allowed.

    Notes
    -----
    ONNX MaxRoiPool, versions 1 and 22. A NaN in a bin is its maximum.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> onnxpool.max_roi_pool(x, np.array([[0, 0, 0, 3, 3]], np.float32), (2, 2)).tolist()
    [[[[6.0, 8.0], [14.0, 16.0]]]]
    """
    op = made(MaxRoiPool, pooled_shape, spatial_scale, opset, channels_last)
    y: Array = op(x, rois, out=out, num_threads=num_threads)
    return y


def roi_align(x: Any, rois: Any, batch_indices: Any, *, mode: str | None = None, output_height: int | None = None,
              output_width: int | None = None, sampling_ratio: int | None = None, spatial_scale: float | None = None,
              coordinate_transformation_mode: str | None = None, opset: int | None = None, channels_last: bool = False,
              out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Average, or take the maximum of, samples between the elements of regions of images.

    Parameters
    ----------
    x : array_like of shape (N, C, H, W), or (N, H, W, C) if `channels_last`
        float16, float32 or float64; bfloat16 since version 22.
    rois : array_like of shape (R, 4)
        Of the dtype of `x`; each row holds the corners x1, y1, x2, y2.
    batch_indices : int64 array_like of shape (R,)
        The image of each region.
    mode : {"avg", "max"}, optional
        By default the average.
    output_height, output_width : int, optional
        Bins along the height and the width, by default 1.
    sampling_ratio : int, optional
        Samples of a bin along each axis; 0, the default, takes about one for each element.
    spatial_scale : float, optional
        From the units of `rois` to elements of `x`, by default 1.
    coordinate_transformation_mode : {"half_pixel", "output_half_pixel"}, optional
        Whether elements lie half a unit off their number, by default so (since version 16; version 10 is
        "output_half_pixel").
    opset : int, optional
        Of the model, by default the newest known.
    channels_last : bool, optional
        Whether `x` is (N, H, W, C) and the result (R, output_height, output_width, C).
    out : ndarray, optional
        Where the result is stored; it is returned. It may overlap `x`.
    num_threads : int, optional
        By default `get_num_threads()`.

    Returns
    -------
    ndarray of shape (R, C, output_height, output_width), or channels last
        Of the dtype of `x`.

    Raises
    ------
    PoolError
        For an attribute, shape, region or image number that is not allowed, or more than 2^22 samples in a region.
    PoolTypeError
        For a dtype or kind of argument that is not allowed.

    Notes
    -----
    ONNX RoiAlign, versions 10, 16 and 22. The maximum is that of the weighted corners of the samples.

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
    y: Array = op(x, rois, batch_indices, out=out, num_threads=num_threads)
    return y
