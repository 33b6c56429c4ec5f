from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..planning.planner import Reducer
from ..planning.quantisation import Rule
from ..planning.request import Request
from ..planning.setup import Setup
from ..windows import Axis

_Class = TypeVar("_Class", bound="type[PlainCall]")

RUN_POOL: object  # a capsule: see operands.pxd

def use(capsule: object) -> None: ...
def unit_names() -> list[str]: ...
def limit_calls() -> None: ...
def watch_scratch(n: int) -> int: ...
def tiles_computed_again() -> int: ...
def windows_of(source: Axis, begin: int, end: int) -> NDArray[np.int64]: ...
def round_quotients(
    parts: list[NDArray[np.int64]], bits: int, factors: list[NDArray[np.int64]], y: NDArray[Any],
) -> None: ...
def scratch_of(unit: str, axes: Sequence[Axis], windows: Sequence[int], lanes: int, all_lanes: int,
               joined: int) -> int: ...

def pool_of_request(
    reducer: Reducer, request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool,
    step: int = -1, form: int = -1, share: float = 1.0,
) -> Pool: ...

class Pool:
    @property
    def setup(self) -> Setup: ...
    @property
    def tasks(self) -> int: ...
    def run(
        self, x: NDArray[Any], y: NDArray[Any], threads: int,
        rule: Rule | None = None, indices: NDArray[Any] | None = None,
    ) -> bool: ...

class PlainPool:
    def __new__(
        cls, pool: Pool, x_shape: tuple[int, ...], y_shape: tuple[int, ...], dtype: np.dtype[Any], quantised: bool,
        indexed: bool, serial: bool,
    ) -> PlainPool: ...

class Pools(dict[Any, Pool]):
    @property
    def plain(self) -> PlainPool | None: ...
    def settle(self, plain: PlainPool) -> None: ...

def locate_pools(cls: _Class) -> _Class: ...

class PlainCall:
    def __call__(self, x: Any, *inputs: Any, out: Any = None, num_threads: int | None = None) -> Any: ...
    def _renew(self) -> None: ...

class RecentCall: ...  # operators declare what they return
