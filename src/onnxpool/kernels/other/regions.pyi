from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...planning.regions import Regions

def pool_regions(
    cut: Regions, x: NDArray[Any], y: NDArray[Any], rois: NDArray[Any], images: NDArray[np.int64], grid_limit: int,
    channels_last: bool, threads: int,
) -> None: ...
