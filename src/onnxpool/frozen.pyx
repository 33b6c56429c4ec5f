"""Immutable objects: the base of operators, plans and parts.

It is compiled because calling `object.__setattr__` from Python takes 0.2 us, which adds up to 3 us for a plan.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer

from types import WrapperDescriptorType

from .errors import printable
from .vectorcall cimport VectorCall, take_vectors

cdef extern from "Python.h":
    int PyObject_GenericSetAttr(object owner, object name, object value) except -1


@cython.auto_pickle(False)
cdef class Called:
    """
    Stores the `VectorCall` through which an object is called.

    A base that implements `__call__` in C gives its subclasses a capsule `_vectorcall`, which holds such a function.
    """
    cdef VectorCall vectorcall

    def __cinit__(self):
        if type(self)._vectorcall is not None:
            self.vectorcall = <VectorCall> PyCapsule_GetPointer(type(self)._vectorcall, "onnxpool.vectorcall")


class Frozen(Called):
    """
    Object whose attributes cannot be set or deleted once its constructor has stored them with `_freeze`.

    A frozen dataclass would do the same, but importing `dataclasses` takes longer than importing all operators.
    """

    __slots__ = ()
    _vectorcall = None

    def __init_subclass__(cls, **given):
        super().__init_subclass__(**given)
        if cls._vectorcall is not None and type(cls.__call__) is WrapperDescriptorType:  # not a Python method
            take_vectors(cls, <char*> &model.vectorcall - <char*> <PyObject*> model)

    def _freeze(self, **values):
        """Store attributes: for constructors and caches only."""
        for name, value in values.items():
            PyObject_GenericSetAttr(self, name, value)

    def __setattr__(self, name, value):
        raise AttributeError(f"{self!r} is immutable: cannot set {printable(name)}; create a new one")

    def __delattr__(self, name):
        raise AttributeError(f"{self!r} is immutable: cannot delete {printable(name)}")


cdef Called model = Frozen()
