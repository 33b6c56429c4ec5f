"""Reentrant context managers, which set a value within a block, only for the block's own thread or task."""

from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Stack(Generic[T]):
    """The values set by the enclosing blocks, from the outermost to the innermost, each with its owner."""

    def __init__(self, name: str) -> None:
        self.entries: ContextVar[tuple[tuple[object, T], ...]] = ContextVar(name, default=())

    def values(self) -> list[T]:
        """All values."""
        return [value for _, value in self.entries.get()]

    def innermost(self) -> T | None:
        """The value of the innermost block, or None outside of all blocks."""
        entries = self.entries.get()
        return entries[-1][1] if entries else None

    def push(self, owner: object, value: T) -> None:
        """Add the value of a block that is entered."""
        self.entries.set((*self.entries.get(), (owner, value)))

    def pop(self, owner: object) -> T:
        """Remove and return the latest value of an owner. Blocks need not be left in the reverse order."""
        entries = self.entries.get()
        for place in reversed(range(len(entries))):
            if entries[place][0] is owner:
                self.entries.set(entries[:place] + entries[place + 1:])
                return entries[place][1]
        raise RuntimeError("onnxpool: a block is left in a context in which it was not entered; enter and leave it in "
                           "the same thread or task")


class Scope(ContextDecorator, Generic[T, R]):
    """
    Context manager and decorator: a value that holds within a block.

    It has no state of its own, so it can be entered again, even within its own block, or by several threads or tasks at
    the same time.

    Parameters
    ----------
    stack : Stack
    value
        Value within the block.
    target
        Value that a ``with`` statement assigns.
    """

    def __init__(self, stack: Stack[T], value: T, target: R) -> None:
        self._stack, self._value, self._target = stack, value, target

    def __enter__(self) -> R:
        self._stack.push(self, self._value)
        return self._target

    def __exit__(self, *error: object) -> None:
        self._stack.pop(self)
