from typing import Any

from numpy.typing import NDArray

def from_dlpack(obj: Any) -> NDArray[Any]: ...
