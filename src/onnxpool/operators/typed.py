"""What type checkers know of operators: the dtype of results, and the types of attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from ..base import Operator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ..arrays import Array, T

V = TypeVar("V")
Sizes = int | tuple[int, ...]  # an attribute for every axis, or for each, as operators keep it


class OneResult(Operator):
    """An operator that returns one array, which type checkers then know."""

    __slots__ = ()

    if TYPE_CHECKING:
        @overload
        def __call__(self, x: NDArray[T], *inputs: ArrayLike | None, out: None = None,
                     num_threads: int | None = None) -> NDArray[T]: ...

        @overload
        def __call__(self, x: ArrayLike, *inputs: ArrayLike | None, out: Any = None,
                     num_threads: int | None = None) -> Array: ...

        def __call__(self, x: ArrayLike, *inputs: ArrayLike | None, out: Any = None,
                     num_threads: int | None = None) -> Any: ...


class Named(Generic[V]):
    """An attribute of an operator that is read by its name: as given, or what it means to leave it out."""

    __slots__ = ("name",)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, operator: None, owner: type) -> Named[V]: ...

    @overload
    def __get__(self, operator: object, owner: type) -> V: ...

    def __get__(self, operator: Any, owner: type) -> Any:
        return self if operator is None else operator._value(self.name)
