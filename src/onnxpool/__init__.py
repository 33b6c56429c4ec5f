"""The ONNX pooling operators as an exact, fast CPU library: NumPy arrays in, NumPy arrays out."""

from typing import TYPE_CHECKING, Any

try:  # refuse unsupported processors and settings
    from . import kernels as kernels
    from .budget import limits, set_limits
except ImportError as error:
    from .startup import end_command

    end_command(error)
    raise
from .base import Operator, clear_caches, importing
from .errors import PoolError, PoolTypeError
from .execution import Plan
from .operators import *  # noqa: F403
from .operators import __all__ as _operators
from .schemas import supported
from .threads import get_num_threads, num_threads, set_num_threads

if TYPE_CHECKING:
    from .about import config, show_config
    from .dlpack import from_dlpack
    from .onnx.nodes import from_node
    from .parts import Part, Partial, Share
    from .tuning import load_wisdom, wisdom
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
    "limits",
    "load_wisdom",
    "num_threads",
    "set_limits",
    "set_num_threads",
    "show_config",
    "supported",
    "wisdom",
]

# Names that no call of an operator needs. Their modules are imported when the name is first read.
_LATER = {"Part": "parts", "Partial": "parts", "Share": "parts", "__version__": "version", "config": "about",
          "from_dlpack": "dlpack", "from_node": "onnx.nodes", "load_wisdom": "tuning",
          "show_config": "about", "wisdom": "tuning"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    with importing:
        value = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return value


def _load_wisdom() -> None:
    """Load the wisdom that the environment names."""
    import os

    path = os.environ.get("ONNXPOOL_WISDOM", "")
    if path.strip():
        from .tuning import load_file

        load_file(path)


def __dir__() -> list[str]:
    return __all__


_load_wisdom()
