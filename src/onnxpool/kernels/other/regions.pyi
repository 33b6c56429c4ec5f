from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...planning.regions import Regions

def bins_along(
    cut: Regions, begin: float, end: float, pooled: int, size: int, most: int, double_precision: bool,
) -> list[tuple[Any, ...]]: ...
def pool_regions(
    cut: Regions, x: NDArray[Any], y: NDArray[Any], rois: NDArray[Any], images: NDArray[np.int64],
    most: tuple[int, int], channels_last: bool, threads: int,
) -> None: ...
