from typing import Any

from .execution import Plan

__all__ = ["Prepared"]

class Prepared:
    def __new__(cls, plan: Plan, *inputs: Any) -> Prepared: ...
    @property
    def address(self) -> int: ...
    @property
    def route(self) -> list[str]: ...
