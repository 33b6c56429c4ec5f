"""Types of the public functions: what type checkers read, and nobody imports at run time.

Functions say three times what they return: for an array, for an `out`, and for what becomes an array. Their other
options are those here.
"""

from collections.abc import Sequence
from typing import Literal, TypedDict

AutoPad = Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", ""]
Mode = Literal["avg", "max"]
Corners = Literal["half_pixel", "output_half_pixel"]
Ints = int | Sequence[int]
Sizes = int | tuple[int, ...]


class Options(TypedDict, total=False):
    """What every function takes."""

    opset: int | None
    num_threads: int | None


class LayoutOptions(Options, total=False):
    """What functions take that know both layouts."""

    channels_last: bool


class WindowOptions(Options, total=False):
    """What functions on windows take."""

    strides: Ints | None
    pads: Ints | None
    auto_pad: AutoPad | None
    ceil_mode: int | None


class NhwcMaxPoolOptions(WindowOptions, total=False):
    """What `nhwc_max_pool` takes."""

    dilations: Ints | None


class DilatedOptions(WindowOptions, LayoutOptions, total=False):
    """What functions on windows take that may be dilated, and lie along any axes."""

    dilations: Ints | None
    axes: Ints | None


class AveragePoolOptions(DilatedOptions, total=False):
    """What `average_pool` takes."""

    count_include_pad: int | None


class MaxPoolOptions(DilatedOptions, total=False):
    """What `max_pool` takes."""

    storage_order: int | None


class LpPoolOptions(DilatedOptions, total=False):
    """What `lp_pool` takes."""

    p: float | None


class GlobalOptions(LayoutOptions, total=False):
    """What functions take that reduce all of some axes."""

    axes: Ints | None
    keepdims: bool


class GlobalLpPoolOptions(GlobalOptions, total=False):
    """What `global_lp_pool` takes."""

    p: float | None


class QLinearOptions(Options, total=False):
    """What functions on quantised arrays take."""

    channels_last: int


class QLinearAveragePoolOptions(WindowOptions, QLinearOptions, total=False):
    """What `qlinear_average_pool` takes."""

    count_include_pad: int | None


class MaxUnpoolOptions(LayoutOptions, total=False):
    """What `max_unpool` takes."""

    strides: Ints | None
    pads: Ints | None


class MaxRoiPoolOptions(LayoutOptions, total=False):
    """What `max_roi_pool` takes."""

    spatial_scale: float | None


class RoiAlignOptions(MaxRoiPoolOptions, total=False):
    """What `roi_align` takes."""

    mode: Mode | None
    output_height: int | None
    output_width: int | None
    sampling_ratio: int | None
    coordinate_transformation_mode: Corners | None
