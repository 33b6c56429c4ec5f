"""Immutable objects: the base of operators, plans and parts."""

from typing import Any


class Frozen:
    """
    Object whose attributes cannot be set or deleted once its constructor has stored them with `_freeze`.

    A frozen dataclass would do the same, but importing `dataclasses` takes longer than importing all operators.
    """

    __slots__ = ()

    def _freeze(self, **values: Any) -> None:
        """Store attributes: for constructors and caches only."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self!r} is immutable: cannot set {name}; make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self!r} is immutable: cannot delete {name}")
