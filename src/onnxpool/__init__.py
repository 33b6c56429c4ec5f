"""The ONNX pooling operators as an exact, fast CPU library: NumPy arrays in, NumPy arrays out."""

from .about import config, show_config
from .base import Operator, clear_caches, from_node
from .dlpack import from_dlpack
from .errors import PoolError, PoolTypeError
from .execution import Plan
from .operators import *  # noqa: F403
from .operators import __all__ as _operators
from .parts import Part, Partial, Share
from .schemas import supported
from .threads import get_num_threads, num_threads, set_num_threads
from .version import __version__

__all__ = [
    *_operators,
    "Operator",
    "Part",
    "Partial",
    "Plan",
    "PoolError",
    "PoolTypeError",
    "Share",
    "__version__",
    "clear_caches",
    "config",
    "from_dlpack",
    "from_node",
    "get_num_threads",
    "num_threads",
    "set_num_threads",
    "show_config",
    "supported",
]


def __dir__() -> list[str]:
    return __all__
