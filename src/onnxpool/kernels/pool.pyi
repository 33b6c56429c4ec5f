from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..quantisation import Rule
from ..tiling import Tiling
from ..windows import Axis

RUN_POOL: object  # a capsule: see operands.pxd

class Pool:
    def __init__(
        self, reduction: str, dtype: str, p: float, safe: tuple[float, float], images: int, channels: int,
        axes: Sequence[Axis], tilings: Sequence[Tiling], channels_last: bool, interleaved: bool,
        column_major: bool = False,
    ) -> None: ...
    @property
    def tasks(self) -> int: ...
    def run(
        self, x: NDArray[Any], y: NDArray[Any], threads: int,
        quantisation: Rule | None = None, indices: NDArray[Any] | None = None,
    ) -> None: ...

class PlainPool:
    def __init__(
        self, pool: Pool, x_shape: tuple[int, ...], y_shape: tuple[int, ...], x_problem: tuple[int, ...],
        y_problem: tuple[int, ...], dtype: np.dtype[Any], quantised: bool, serial: bool,
    ) -> None: ...

class PlainCall:
    def __call__(self, x: Any, *inputs: Any, out: Any = None, num_threads: int | None = None) -> Any: ...

def unpool(
    x: NDArray[Any], indices: NDArray[np.int64], y: NDArray[Any], addressed: tuple[int, ...], channels_last: bool,
    threads: int,
) -> int: ...

def pool_regions(
    kind: str, x: NDArray[Any], y: NDArray[Any], rois: NDArray[Any], images: NDArray[np.int64], dtype: str,
    scale: float, offset: float, at_least_one: bool, sampling: int, grid_limit: int, channels_last: bool,
    threads: int,
) -> None: ...
