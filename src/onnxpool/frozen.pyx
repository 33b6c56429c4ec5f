"""Immutable objects: the base of operators, plans and parts.

Compiled because calling `object.__setattr__` from Python takes 0.2 us, which is 3 us for a plan.
"""

from .errors import printable

cdef extern from "Python.h":
    int PyObject_GenericSetAttr(object owner, object name, object value) except -1


class Frozen:
    """
    Object whose attributes cannot be set or deleted once its constructor has stored them with `_freeze`.

    A frozen dataclass would do the same, but importing `dataclasses` takes longer than importing all operators.
    """

    __slots__ = ()

    def _freeze(self, **values):
        """Store attributes: for constructors and caches only."""
        for name, value in values.items():
            PyObject_GenericSetAttr(self, name, value)

    def __setattr__(self, name, value):
        raise AttributeError(f"{self!r} is immutable: cannot set {printable(name)}; make a new one")

    def __delattr__(self, name):
        raise AttributeError(f"{self!r} is immutable: cannot delete {printable(name)}")
