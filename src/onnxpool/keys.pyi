from collections.abc import Callable
from functools import _lru_cache_wrapper
from typing import Any, TypeVar

_Made = TypeVar("_Made")
_Function = TypeVar("_Function", bound=Callable[..., Any])

MOST_KEPT: int
remembered: _lru_cache_wrapper[Any]

def forget_calls() -> None: ...
def calls_operator(cls: type[Any], *inputs: str) -> Callable[[_Function], _Function]: ...
def made(cls: type[_Made], **given: Any) -> _Made: ...
