from functools import _lru_cache_wrapper
from typing import Any, TypeVar

_Made = TypeVar("_Made")

MOST_KEPT: int
remembered: _lru_cache_wrapper[Any]

def forget_calls() -> None: ...
def made(cls: type[_Made], **given: Any) -> _Made: ...
