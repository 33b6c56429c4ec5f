from typing import Any

from .execution import Plan

class Prepared:
    def __init__(self, plan: Plan, *inputs: Any) -> None: ...
    @property
    def address(self) -> int: ...
    @property
    def route(self) -> list[str]: ...
