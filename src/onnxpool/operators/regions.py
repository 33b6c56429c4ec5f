"""What operators do that pool regions of images: the public classes in `__init__.py` inherit from those here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..windows import check_lengths, per_axis, with_spatial
from .typed import OneResult

if TYPE_CHECKING:
    import numpy as np

    from ..execution import Plan
    from ..planning.regions import Regions


class OnRegions(OneResult):
    """An operator that pools regions of images."""

    __slots__ = ()

    def _regions(self) -> Regions:
        """How regions are cut, and what of them is taken."""
        raise NotImplementedError(f"{self.label} has no regions")

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result for one region."""
        from ..planning.regions import check_planes

        check_planes(self.label, shape, self.channels_last)
        return with_spatial((1, *shape[1:]), self._regions().pooled, self.channels_last)

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        from ..planning.regions import RegionPlan

        return RegionPlan(self, shape, dtype, regions=self._regions(), output_shape=self._output_shape(shape))


class MaximumOfBins(OnRegions):
    """An operator that takes the maximum of each bin of a region."""

    __slots__ = ()

    def _check(self) -> None:
        check_lengths(self.label, self.attributes, 2)

    def _regions(self) -> Regions:
        from ..planning.regions import Regions

        height, width = per_axis(self.label, self.attributes, "pooled_shape", 2)
        return Regions("roi_max", (height, width), scale=self._value("spatial_scale"))


class SamplesOfBins(OnRegions):
    """An operator that takes means or maxima of samples, which lie between the elements of a region."""

    __slots__ = ()

    def _regions(self) -> Regions:
        from ..planning.regions import Regions

        half_pixel = self._value("coordinate_transformation_mode") == "half_pixel"
        return Regions(
            f"align_{self._value('mode')}", (self._value("output_height"), self._value("output_width")),
            scale=self._value("spatial_scale"), sampling=self._value("sampling_ratio"),
            offset=0.5 if half_pixel else 0.0, at_least_one=not half_pixel)
