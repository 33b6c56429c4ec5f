"""The caches of operators made by functions."""

from functools import lru_cache

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport uintptr_t

from .errors import PoolTypeError

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define onnxpool_remembers_calls 0 /* threads would have to wait for each other */
    #else
    #define onnxpool_remembers_calls 1
    #endif
    """
    const bint onnxpool_remembers_calls

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
    PyObject* PySequence_Fast_GET_ITEM(object sequence, Py_ssize_t i)
    Py_ssize_t PySequence_Fast_GET_SIZE(object sequence)

MOST_KEPT = 1024  # operators, and plans, in caches
cdef enum:
    MOST_CALLS = 64  # a power of two


def _make(cls, names, values, kinds):
    return cls(**dict(zip(names, values)))


remembered = lru_cache(maxsize=MOST_KEPT)(_make)


cdef class KnownOperator:
    """An operator, and the arguments with which it was found."""
    cdef object cls, operator
    cdef tuple names, values

    def __init__(self, cls, tuple names, tuple values, operator):
        self.cls, self.names, self.values, self.operator = cls, names, values, operator

    cdef bint equals(self, cls, tuple names, PyObject** arguments):
        """Whether these arguments are the same objects, or sequences of the same objects."""
        cdef Py_ssize_t i
        if self.cls is not cls or self.names is not names:
            return False
        for i in range(PyTuple_GET_SIZE(names)):
            value = <object>PyTuple_GET_ITEM(self.values, i)
            if value is not <object>arguments[i] and not same_items(value, <object>arguments[i]):
                return False
        return True


cdef bint is_sequence(value):
    return type(value) is tuple or type(value) is list


cdef bint same_items(value, other):
    """Whether both are tuples or lists of the same objects."""
    cdef Py_ssize_t i
    if not is_sequence(value) or not is_sequence(other):
        return False
    if PySequence_Fast_GET_SIZE(value) != PySequence_Fast_GET_SIZE(other):
        return False
    for i in range(PySequence_Fast_GET_SIZE(value)):
        if PySequence_Fast_GET_ITEM(value, i) != PySequence_Fast_GET_ITEM(other, i):
            return False
    return True


cdef list calls = [None] * MOST_CALLS  # the last ones, which most calls repeat


def forget_calls():
    """Clear the cache of the last calls."""
    calls[:] = [None] * MOST_CALLS


cdef Py_ssize_t place_of(PyObject* cls, PyObject** arguments, Py_ssize_t size):
    """The place of a call in `calls`."""
    cdef uintptr_t mixed = <uintptr_t>cls
    cdef Py_ssize_t i, j
    for i in range(size):
        if is_sequence(<object>arguments[i]):
            for j in range(PySequence_Fast_GET_SIZE(<object>arguments[i])):
                mixed = 31 * mixed + <uintptr_t>PySequence_Fast_GET_ITEM(<object>arguments[i], j)
        else:
            mixed = 31 * mixed + <uintptr_t>arguments[i]
    return (mixed >> 4 ^ mixed >> 10) % MOST_CALLS  # objects are 16 bytes apart


cdef object find(PyObject* module, PyObject** arguments, Py_ssize_t count, PyObject* keywords):
    """The operator of a class with these arguments, cached."""
    cdef tuple names = <tuple>keywords if keywords else ()
    cdef Py_ssize_t place
    if count != 1:
        raise TypeError(f"made() takes a class and keywords, got {count} arguments by position")
    cls = <object>arguments[0]
    if not onnxpool_remembers_calls:
        return look_up(cls, names, arguments + 1, 0)
    place = place_of(arguments[0], arguments + 1, PyTuple_GET_SIZE(names))
    call = calls[place]
    if call is not None and (<KnownOperator>call).equals(cls, names, arguments + 1):
        return (<KnownOperator>call).operator
    return look_up(cls, names, arguments + 1, place)


cdef object look_up(cls, tuple names, PyObject** arguments, Py_ssize_t place):
    """
    The operator of a class with these arguments, cached by their values. The call is remembered at this place.

    Equal arguments of different types can mean different things: where 2 is allowed, 2.0 may not be. The key therefore
    includes the types of all values except None, and of the items of tuples.
    """
    cdef Py_ssize_t size = PyTuple_GET_SIZE(names)
    cdef tuple values = PyTuple_New(size)
    cdef list kinds = []
    cdef Py_ssize_t i
    for i in range(size):
        value = <object>arguments[i]
        if type(value) is list:  # not hashable
            value = tuple(value)
        Py_INCREF(value)
        PyTuple_SET_ITEM(values, i, value)
        if value is not None:
            kinds.append(type(value))
            if type(value) is tuple:
                for part in <tuple>value:
                    kinds.append(type(part))
    types = tuple(kinds)
    try:
        operator = remembered(cls, names, values, types)
    except PoolTypeError:
        raise
    except TypeError:  # an argument is not hashable, such as an array
        return _make(cls, names, values, types)
    if onnxpool_remembers_calls:
        calls[place] = KnownOperator(cls, names, values, operator)
    return operator


cdef PyMethodDef definition
definition.ml_name = "made"
definition.ml_meth = <PyCFunction>find
definition.ml_flags = METH_FASTCALL | METH_KEYWORDS
definition.ml_doc = "The operator of a class with these keywords, cached."
made = PyCFunction_NewEx(&definition, NULL, NULL)  # a def function would first collect the keywords in a dict
