"""The compiled kernels, of the best instruction set that is built and that this processor runs.

`ONNXPOOL_ISA` names another one; the results have the same bits.
"""

import importlib
import importlib.util
import os
from types import ModuleType
from typing import TYPE_CHECKING

from . import cpu

ISAS = ("x86_v4", "x86_v3", "baseline")  # best first


def available() -> list[str]:
    """Instruction sets that are built and that this processor runs, best first."""
    return [isa for isa in ISAS if cpu.supports(isa) and importlib.util.find_spec(f"{__name__}.pool_{isa}")]


def choose() -> str:
    """The instruction set that `ONNXPOOL_ISA` names, or else the best available one."""
    asked = os.environ.get("ONNXPOOL_ISA")
    if asked is None:
        return available()[0]
    if asked not in available():
        raise ImportError(f"ONNXPOOL_ISA={asked!r} is not available here; choose one of {', '.join(available())}")
    return asked


def load(isa: str) -> ModuleType:
    """The kernels of one instruction set; the processor must have been asked before."""
    return importlib.import_module(f"{__name__}.pool_{isa}")


isa = choose()
if TYPE_CHECKING:
    from .pool import RUN_POOL as RUN_POOL
    from .pool import PlainCall as PlainCall
    from .pool import PlainPool as PlainPool
    from .pool import Pool as Pool
    from .pool import pool_regions as pool_regions
    from .pool import unpool as unpool
else:
    _kernels = load(isa)
    Pool, PlainPool, PlainCall, RUN_POOL = _kernels.Pool, _kernels.PlainPool, _kernels.PlainCall, _kernels.RUN_POOL
    unpool, pool_regions = _kernels.unpool, _kernels.pool_regions
