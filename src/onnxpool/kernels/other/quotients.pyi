from typing import Any

import numpy as np
from numpy.typing import NDArray

def round_quotients(
    parts: list[NDArray[np.int64]], bits: int, factors: list[NDArray[np.int64]], y: NDArray[Any],
) -> None: ...
