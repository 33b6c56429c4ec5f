"""The cache of operators made by functions."""

from functools import lru_cache

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM

from .errors import PoolTypeError

cdef extern from "Python.h":
    ctypedef PyObject* (*PyCFunction)(PyObject*, PyObject*)
    ctypedef struct PyMethodDef:
        const char* ml_name
        PyCFunction ml_meth
        int ml_flags
        const char* ml_doc
    const int METH_FASTCALL
    const int METH_KEYWORDS
    object PyCFunction_NewEx(PyMethodDef* method, PyObject* owner, PyObject* module)

MOST_KEPT = 1024  # operators, and plans, in caches


def _make(cls, names, values, kinds):
    return cls(**dict(zip(names, values)))


remembered = lru_cache(maxsize=MOST_KEPT)(_make)


cdef object find(PyObject* module, PyObject** arguments, Py_ssize_t count, PyObject* keywords):
    """
    The operator of a class with these arguments, cached.

    Equal arguments of different types can mean different things: where 2 is allowed, 2.0 may not be. The key therefore
    includes the types of all values except None, and of the items of tuples.
    """
    cdef object names = <object>keywords if keywords else ()
    cdef Py_ssize_t size = PyTuple_GET_SIZE(names)
    cdef tuple values = PyTuple_New(size)
    cdef list kinds = []
    cdef Py_ssize_t i
    if count != 1:
        raise TypeError(f"made() takes a class and keywords, got {count} arguments by position")
    for i in range(size):
        value = <object>arguments[1 + i]
        if type(value) is list:  # not hashable
            value = tuple(value)
        Py_INCREF(value)
        PyTuple_SET_ITEM(values, i, value)
        if value is not None:
            kinds.append(type(value))
            if type(value) is tuple:
                for part in <tuple>value:
                    kinds.append(type(part))
    cls, types = <object>arguments[0], tuple(kinds)
    try:
        return remembered(cls, names, values, types)
    except PoolTypeError:
        raise
    except TypeError:  # an argument is not hashable, such as an array
        return _make(cls, names, values, types)


cdef PyMethodDef definition
definition.ml_name = "made"
definition.ml_meth = <PyCFunction>find
definition.ml_flags = METH_FASTCALL | METH_KEYWORDS
definition.ml_doc = "The operator of a class with these keywords, cached."
made = PyCFunction_NewEx(&definition, NULL, NULL)  # a def function would first collect the keywords in a dict
