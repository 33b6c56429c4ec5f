"""The compiled kernels, for the best instruction set that is built and that this processor supports.

`ONNXPOOL_ISA` selects another one. Results have the same bits with all of them.
"""

import importlib
import os
from typing import Any

from . import cpu
from . import pool as pools
from .pool import RUN_POOL as RUN_POOL
from .pool import PlainCall as PlainCall
from .pool import Pool as Pool
from .pool import Pools as Pools
from .pool import RecentCall as RecentCall
from .pool import Shapes as Shapes
from .pool import Template as Template
from .pool import locate_pools as locate_pools
from .pool import plain_pool as plain_pool
from .pool import pool_of_request as pool_of_request
from .pool import renew_shapes as renew_shapes
from .pool import round_quotients as round_quotients
from .pool import windows_of as windows_of

available = cpu.instruction_sets


def choose() -> str:
    """The instruction set named by `ONNXPOOL_ISA`, by default the best available one."""
    asked = os.environ.get("ONNXPOOL_ISA", "").strip()
    if not asked:
        return available()[0]
    if asked not in available():
        raise ImportError(f"ONNXPOOL_ISA={asked!r} is not available here; choose one of {', '.join(available())}")
    return asked


isa = choose()


def compiled(name: str) -> Any:
    """The version of a module for the instruction set in use."""
    return importlib.import_module(f"{__name__}.{name}_{isa}")


REGISTER: int = compiled("units").REGISTER  # bytes
PICKS: int = compiled("units").PICKS  # the most lanes that may be picked from two registers for one
# Capsules with the tables of units.
units: tuple[object, object] = compiled("units").UNITS, importlib.import_module(f"{__name__}.units_common").UNITS
for table in units:
    pools.use(table)


def routes() -> list[dict[str, str]]:
    """
    List the solvers that reduce windows. Plans have their names as routes. Solvers of a family are adjacent, and costs
    decide between the first fitting solver of each family.

    Returns
    -------
    list of dict
        ``name``, ``loops`` (the file of its loops in `loops/`) and ``when`` it fits, in words.

    Examples
    --------
    >>> import onnxpool.kernels
    >>> onnxpool.kernels.routes()[0]
    {'name': 'whole', 'loops': 'whole', 'when': 'one window that covers a whole channel'}
    """
    from ..planning.solvers import table

    return table()
