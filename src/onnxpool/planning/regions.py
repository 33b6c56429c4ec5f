"""The plan of MaxRoiPool and RoiAlign, which pool regions of images. A second input gives the regions."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import budget, kernels, threads
from ..arrays import Array, allocate, as_array, check_out, delivered
from ..errors import PoolError, PoolTypeError
from ..execution import Plan
from ..windows import check_sizes
from .layout import memory_order

if TYPE_CHECKING:
    from ..explain import Explanation
    from ..kernels.other.regions import bins_along, pool_regions
    from ..pictures_of_regions import Region
else:
    bins_along, pool_regions = (getattr(kernels.compiled("other.regions"), name)
                                for name in ("bins_along", "pool_regions"))

MOST_REACH = 2.0**31  # maximum magnitude of a corner or side in elements, so that 32 bits hold it after rounding
TAPS = 4  # elements that a sample reads
COUNTED = 2**14  # bins along an axis that are counted at a time
MOST_SAMPLES = 2**22  # maximum samples of a region, because the data determines their number if sampling_ratio is 0


class Regions(NamedTuple):
    """How regions are divided into bins, and how a bin is reduced."""

    kind: str
    pooled: tuple[int, int]
    scale: float
    sampling: int = 0
    offset: float = 0.0
    at_least_one: bool = True


class RegionPlan(Plan):
    """The plan of an operator that pools regions."""

    __slots__ = ("output_shape", "regions")

    regions: Regions

    def _geometry(self) -> list[str]:
        kind, (height, width), scale, sampling, offset, _ = self.regions
        taken = "the largest" if kind.endswith("max") else "the mean"
        what = f"{sampling} x {sampling} samples" if sampling else "its samples" if self._align else "its elements"
        less = f", less {offset:g}" if offset else ""
        dense = ", about one for each element" if self._align and not sampling else ""
        return [f"for each region, corners times {scale:g}{less}: {height} x {width} bins, "
                f"each {taken} of {what}{dense}"]

    def explain(self, *inputs: Any) -> "Explanation":
        """As `Plan.explain` describes. Without inputs, the picture shows the first image as one region."""
        from ..explain import MOST_SHOWN, Explanation, explain
        from ..pictures_of_regions import RegionPicture, region_facts, region_lines

        regions = self._divided(*self._checked_regions(self._further(inputs))) if inputs else []
        lines = self._geometry()
        for number, region in enumerate(regions[:MOST_SHOWN]):
            lines += region_lines(number, region, self._spatial_axes, MOST_SHOWN)
        if len(regions) > MOST_SHOWN:
            lines.append(f"{len(regions) - MOST_SHOWN} more region{'s' * (len(regions) > MOST_SHOWN + 1)}")
        made = explain(self.label, (self.dtype.name, self.result_dtype.name), self.shape,
                       self.result_shape(*inputs) if inputs else self.output_shape, lines)
        facts = made.to_dict()
        if inputs:
            facts["regions"] = [region_facts(region, self._spatial_axes) for region in regions]
        shown = regions or self._whole_image()
        picture = RegionPicture(made.picture.lines[:1], shown[0], len(regions), self._spatial_axes) if shown else None
        return Explanation(made, facts, made.geometry, picture)

    @property
    def _spatial_axes(self) -> tuple[int, int]:
        return (1, 2) if self.channels_last else (2, 3)

    def _whole_image(self) -> "list[Region]":
        """The first image as one region, unless there is no image or it exceeds a limit."""
        height, width = (self.shape[axis] for axis in self._spatial_axes)
        scale = self.regions.scale
        last = 0 if self._align else 1  # corners of MaxRoiPool are in the region
        with np.errstate(over="ignore"):
            corners = np.array([[0, 0, (width - last) / scale, (height - last) / scale]],
                               np.float64 if self.dtype == np.float64 else np.float32)
        if self.shape[0] == 0 or not np.isfinite(corners).all():
            return []
        try:
            return self._divided(corners, np.zeros(1, np.int64))
        except PoolError:
            return []

    def _divided(self, corners: Array, images: Array) -> "list[Region]":
        """Regions with their bins, as the loops find them."""
        from ..pictures_of_regions import Bin, Region, Sample

        down, across = self._spatial_axes
        sizes = self.shape[down], self.shape[across]

        def along(k: int, corners: list[float]) -> tuple[Bin, ...]:
            """The bins of a region along an axis."""
            bins = bins_along(self.regions, corners[1 - k], corners[3 - k], self.regions.pooled[k], sizes[k], most[k],
                              wide)
            return tuple([Bin(begin, end, *(tuple([Sample(*one) for one in samples]) for samples in rest))
                          for begin, end, *rest in bins])

        wide = corners.dtype == np.float64
        with kernels.cpu.DefaultFloats():
            self._check_reach(corners)
            most = self._samples(corners)[1] if self._align else (1, 1)
            return [Region(image, tuple(four), sizes, (along(0, four), along(1, four)))
                    for image, four in zip(images.tolist(), corners.tolist(), strict=True)]

    def _checked_regions(self, inputs: tuple[Any, ...]) -> tuple[Array, Array]:
        """The corners of all regions, and the numbers of their images."""
        rois = self._rois(inputs[0])
        images = self._images(inputs[1], len(rois)) if self._align else self._image_column(rois[:, 0])
        return np.require(rois[:, -4:], requirements=["C", "A"]), images

    def result_shape(self, *inputs: Any) -> tuple[int, ...]:
        """The shape of the result, which has a row for each region."""
        return len(self._rois(self._further(inputs)[0])), *self.output_shape[1:]

    def __call__(self, x: Any, *inputs: Any, out: Any = None, num_threads: int | None = None) -> Any:
        """As `Plan` says; the inputs are X, rois and, for RoiAlign, batch_indices."""
        label = self.label
        align = self._align
        inputs = self._further(inputs)
        x = self._checked(x)
        corners, images = self._checked_regions(inputs)
        shape = (len(corners), *self.output_shape[1:])
        with kernels.cpu.DefaultFloats():
            self._check_reach(corners)
            samples, most = self._samples(corners) if align else (None, (1, 1))
            self._check_limits(shape, corners, samples)
        if out is not None:
            check_out(label, out, shape, self.dtype)
        last = self.channels_last
        overlapping = out is not None and np.may_share_memory(x, out)
        y = allocate(label, shape, self.dtype, memory_order(x, 3 if last else 1)) if out is None or overlapping else out
        if y.size:
            team = threads.team(num_threads, y.nbytes * 4)
            pool_regions(self.regions, x, y, corners, images, most, last, team)
        return delivered(y, out)

    @property
    def _align(self) -> bool:
        return self.regions.kind != "roi_max"

    def _further(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs after X, once their number is checked."""
        if len(inputs) != 1 + self._align:
            raise PoolError(f"{self.label}: takes X, rois{' and batch_indices' if self._align else ''}, got "
                            f"{1 + len(inputs)} inputs; pass all of them", self.label, value=1 + len(inputs))
        return inputs

    def _rois(self, given: Any) -> Array:
        """The regions, as a copy that cannot change after it has been checked."""
        label, columns = self.label, 4 if self._align else 5
        rois = as_array(label, given, "rois")
        if rois.dtype.newbyteorder("=") != self.dtype:
            raise PoolTypeError(f"{label}: rois has dtype {rois.dtype}, but X has {self.dtype}; pass both the same",
                                label, "rois", value=rois.dtype.name)
        if rois.ndim != 2 or rois.shape[1] != columns:
            raise PoolError(f"{label}: rois has shape {rois.shape}, but must be (number of regions, {columns}); "
                            f"pass one row for each region", label, "rois", value=rois.shape)
        copy = np.array(rois, np.float64 if self.dtype == np.float64 else np.float32, order="C")
        if not np.isfinite(copy).all():
            row, column = (int(i) for i in np.argwhere(~np.isfinite(copy))[0])
            raise PoolError(f"{label}: rois[{row}, {column}]={copy[row, column]} must be finite; drop that region",
                            label, "rois", value=float(copy[row, column]))
        return copy

    def _check_images(self, images: Array, name: str) -> Array:
        bad = np.flatnonzero((images < 0) | (images >= self.shape[0]) | (images != np.floor(images)))
        if len(bad):
            way = f"whole numbers in [0, {self.shape[0]})" if self.shape[0] else "no regions"
            raise PoolError(f"{self.label}: {name.format(int(bad[0]))}={images[bad[0]]} is not an image of X, "
                            f"which has {self.shape[0]}; pass {way}", self.label, name.partition("[")[0],
                            value=images[bad[0]].item())
        return images.astype(np.int64)

    def _image_column(self, column: Array) -> Array:
        return self._check_images(column, "rois[{}, 0]")

    def _images(self, given: Any, count: int) -> Array:
        label = self.label
        images = as_array(label, given, "batch_indices")
        if images.dtype.newbyteorder("=") != np.int64:
            raise PoolTypeError(f"{label}: batch_indices has dtype {images.dtype}, but must be int64; cast it", label,
                                "batch_indices", value=images.dtype.name)
        if images.shape != (count,):
            raise PoolError(f"{label}: batch_indices has shape {images.shape}, but there are {count} regions; "
                            f"pass one index for each", label, "batch_indices", value=images.shape)
        return self._check_images(np.array(images, np.int64), "batch_indices[{}]")

    def _check_reach(self, corners: Array) -> None:
        """Refuse regions whose scaled corners or sides exceed the type in which they are computed."""
        real, scale, most = corners.dtype, self.regions.scale, math.inf if self._align else MOST_REACH
        if 4 * float(np.abs(corners).max(initial=0)) * scale < MOST_REACH:  # cheap, and nearly always enough
            return
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = corners * real.type(scale)
            reaches = np.abs(scaled), np.abs(scaled[:, 2:] - scaled[:, :2])
        if not all(reach.max(initial=0) < most for reach in reaches):
            row = int(np.flatnonzero(~(np.hstack(reaches) < most).all(axis=1))[0])
            shown = ", ".join(f"{corner:g}" for corner in corners[row])
            limit = real if self._align else "the limit of 2^31"
            raise PoolError(f"{self.label}: rois[{row}] with corners {shown} and spatial_scale={scale:g} has a corner "
                            f"or side beyond {limit}; clip it to the image or drop it", self.label, "rois",
                            value=tuple(corners[row].tolist()))

    def _check_limits(self, shape: tuple[int, ...], corners: Array, samples: Array | None) -> None:
        """Refuse regions whose results would exceed the limits in force. `samples` has the number of each region."""
        limits = budget.in_force()
        if limits is budget.NO_LIMITS:
            return
        results = math.prod(shape)
        need = budget.Need(results * self.dtype.itemsize, results)  # at least
        budget.check(self.label, "a result", shape, need, limits)
        if limits.max_work < math.inf:
            channels = self.shape[3 if self.channels_last else 1]
            taps = self._elements(corners) if samples is None else TAPS * int(samples.sum())
            budget.check(self.label, "a result", shape, need._replace(work=channels * taps + results), limits)

    def _elements(self, corners: Array) -> int:
        """How many elements of a channel all bins of MaxRoiPool have together, as its loops find them."""
        each = max(1, COUNTED // max(self.regions.pooled))
        return sum(int(np.prod([self._along(corners[begin:begin + each], axis) for axis in range(2)], axis=0).sum())
                   for begin in range(0, len(corners), each))

    def _along(self, corners: Array, axis: int) -> Array:
        """How many elements along an axis each region's bins have together."""
        real, pooled, size = corners.dtype.type, self.regions.pooled[axis], self.shape[axis + 2 - self.channels_last]
        scaled = corners[:, [1 - axis, 3 - axis]] * real(self.regions.scale)
        whole = np.trunc(scaled)
        ends = whole + np.where(np.abs(scaled - whole) >= 0.5, np.sign(scaled), 0)
        start, stop = ends.astype(np.int64).T[..., None]
        length = np.maximum(stop - start + 1, 1).astype(real) / real(pooled)
        edges = np.arange(pooled + 1).astype(real) * length
        low, high = np.floor(edges[:, :-1]).astype(np.int64), np.ceil(edges[:, 1:]).astype(np.int64)
        inside: Array = np.clip(high + start, 0, size) - np.clip(low + start, 0, size)
        return np.asarray(inside.sum(axis=1))

    def _samples(self, corners: Array) -> tuple[Array, tuple[int, int]]:
        """The number of samples of each region. Also, over all regions with samples, the maximum number of a bin's
        samples along each axis. Refuses regions that have too many samples."""
        pooled = np.array(self.regions.pooled, np.float64)
        with np.errstate(over="ignore"):
            sizes = (corners[:, [3, 2]].astype(np.float64) - corners[:, [1, 0]]) * self.regions.scale
        if self.regions.at_least_one:
            sizes = np.maximum(sizes, 1)
        if self.regions.sampling:
            grid = np.full_like(sizes, self.regions.sampling)
        else:
            grid = np.maximum(np.ceil(sizes / pooled * (1 + 1e-6)), 0)
        samples = grid.prod(axis=1) * math.prod(self.regions.pooled)
        bad = np.flatnonzero(~(samples <= MOST_SAMPLES))
        if len(bad):
            way = "lower sampling_ratio" if self.regions.sampling else "pass a smaller region, or sampling_ratio=1"
            if math.prod(self.regions.pooled) > MOST_SAMPLES:
                way = "lower output_height or output_width"
            raise PoolError(f"{self.label}: rois[{int(bad[0])}] takes {samples[bad[0]]:.4g} samples, more "
                            f"than the limit of {MOST_SAMPLES}; {way}",
                            self.label, "rois", value=float(samples[bad[0]]))
        down, across = (int(min(most + 1, MOST_SAMPLES)) for most in grid[samples > 0].max(axis=0, initial=1))
        return samples, (down, across)


def check_planes(label: str, shape: tuple[int, ...], channels_last: bool) -> None:
    """Refuse arrays that are not batches of images."""
    if len(shape) != 4:
        raise PoolError(f"{label}: X has {len(shape)} axes, shape {shape}, but takes 4; "
                        f"pass {'(N, H, W, C)' if channels_last else '(N, C, H, W)'}", label, "X", value=shape)
    first = 1 if channels_last else 2
    check_sizes(label, shape[first:first + 2], (first, first + 1))
