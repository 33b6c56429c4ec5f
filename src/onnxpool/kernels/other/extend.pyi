from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

class Extender:
    def __init__(self, shape: tuple[int, ...], places: Sequence[Sequence[slice | NDArray[Any]]]) -> None: ...
    def extend(self, x: NDArray[Any]) -> NDArray[Any]: ...
