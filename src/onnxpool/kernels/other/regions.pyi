from typing import Any

import numpy as np
from numpy.typing import NDArray

def pool_regions(
    kind: str, x: NDArray[Any], y: NDArray[Any], rois: NDArray[Any], images: NDArray[np.int64], dtype: str,
    scale: float, offset: float, at_least_one: bool, sampling: int, grid_limit: int, channels_last: bool,
    threads: int,
) -> None: ...
