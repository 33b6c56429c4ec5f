from functools import _lru_cache_wrapper
from typing import Any, TypeVar

Made = TypeVar("Made")

MOST_KEPT: int
remembered: _lru_cache_wrapper[Any]

def made(cls: type[Made], **given: Any) -> Made: ...
