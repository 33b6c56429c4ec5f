"""One function and one class for each ONNX operator: signature, docstring, one call."""

from .quantised import (
    QLinearAveragePool,
    QLinearGlobalAveragePool,
    qlinear_average_pool,
    qlinear_global_average_pool,
)
from .regions import MaxRoiPool, RoiAlign, max_roi_pool, roi_align
from .unpooling import MaxUnpool, max_unpool
from .whole import (
    GlobalAveragePool,
    GlobalLpPool,
    GlobalMaxPool,
    global_average_pool,
    global_lp_pool,
    global_max_pool,
)
from .windowed import AveragePool, LpPool, MaxPool, NhwcMaxPool, average_pool, lp_pool, max_pool, nhwc_max_pool

__all__ = [
    "AveragePool",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "LpPool",
    "MaxPool",
    "MaxRoiPool",
    "MaxUnpool",
    "NhwcMaxPool",
    "QLinearAveragePool",
    "QLinearGlobalAveragePool",
    "RoiAlign",
    "average_pool",
    "global_average_pool",
    "global_lp_pool",
    "global_max_pool",
    "lp_pool",
    "max_pool",
    "max_roi_pool",
    "max_unpool",
    "nhwc_max_pool",
    "qlinear_average_pool",
    "qlinear_global_average_pool",
    "roi_align",
]
