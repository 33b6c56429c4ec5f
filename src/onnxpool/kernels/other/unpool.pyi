from typing import Any

import numpy as np
from numpy.typing import NDArray

def unpool(
    x: NDArray[Any], indices: NDArray[np.int64], y: NDArray[Any], addressed: tuple[int, ...], channels_last: bool,
    threads: int,
) -> int: ...
