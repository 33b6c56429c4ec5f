"""The ONNX pooling operators as an exact, fast CPU library: NumPy arrays in, NumPy arrays out."""

from .base import from_node
from .config import __version__, show_config
from .errors import PoolError, PoolTypeError
from .operators import (
    AveragePool,
    GlobalAveragePool,
    GlobalLpPool,
    GlobalMaxPool,
    LpPool,
    MaxPool,
    QLinearGlobalAveragePool,
    average_pool,
    global_average_pool,
    global_lp_pool,
    global_max_pool,
    lp_pool,
    max_pool,
    qlinear_global_average_pool,
)
from .schemas import supported
from .threads import get_num_threads, num_threads, set_num_threads

__all__ = [
    "AveragePool",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "LpPool",
    "MaxPool",
    "PoolError",
    "PoolTypeError",
    "QLinearGlobalAveragePool",
    "__version__",
    "average_pool",
    "from_node",
    "get_num_threads",
    "global_average_pool",
    "global_lp_pool",
    "global_max_pool",
    "lp_pool",
    "max_pool",
    "num_threads",
    "qlinear_global_average_pool",
    "set_num_threads",
    "show_config",
    "supported",
]
