"""Functions that call operators. Operators are cached by their attributes."""

from functools import lru_cache, update_wrapper
from types import MethodType

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport uint64_t, uintptr_t

from .errors import PoolTypeError
from .hints import unfit
from .vectorcall cimport PyObject_Vectorcall, PyVectorcall_Call, PyVectorcall_NARGS, VectorCall, take_vectors

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define onnxpool_remembers_calls 0 /* threads would wait for each other at the cache */
    #else
    #define onnxpool_remembers_calls 1
    #endif
    """
    const bint onnxpool_remembers_calls

cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object sequence)
    PyObject* PySequence_Fast_GET_ITEM(object sequence, Py_ssize_t i)
    Py_ssize_t PySequence_Fast_GET_SIZE(object sequence)

MOST_KEPT = 1024  # maximum number of operators in their cache, and of plans in theirs
cdef enum:
    MOST_CALLS = 64  # a power of two
    MOST_PARAMETERS = 24


def _make(cls, names, values, kinds):
    return cls(**dict(zip(names, values)))


remembered = lru_cache(maxsize=MOST_KEPT)(_make)


cdef class KnownOperator:
    """An operator, and the arguments of the call that found it."""
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


cdef list calls = [None] * MOST_CALLS  # the latest calls, which most calls repeat


def forget_calls():
    """Clear the cache of the latest calls."""
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


cdef object find(cls, tuple names, PyObject** arguments):
    """The cached operator of a class with these arguments."""
    cdef Py_ssize_t place
    if not onnxpool_remembers_calls:
        return look_up(cls, names, arguments, -1)
    place = place_of(<PyObject*>cls, arguments, PyTuple_GET_SIZE(names))
    call = calls[place]
    if call is not None and (<KnownOperator>call).equals(cls, names, arguments):
        return (<KnownOperator>call).operator
    return look_up(cls, names, arguments, place)


cdef object look_up(cls, tuple names, PyObject** arguments, Py_ssize_t place):
    """
    The operator of a class with these arguments, cached by their values. The call is stored in `calls` at this place,
    unless the place is negative.

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
    if place >= 0:
        calls[place] = KnownOperator(cls, names, values, operator)
    return operator


def made(cls, **given):
    """The cached operator of a class with these keywords."""
    cdef list values = list(given.values())
    return look_up(cls, tuple(given), PySequence_Fast_ITEMS(values), -1)


cdef class Function:
    """
    A function that makes an operator from its arguments and calls it. It looks like the Python function that it wraps,
    which is never called: a call in Python would take as long as pooling a small array.
    """
    cdef VectorCall vectorcall
    cdef object cls, function
    cdef tuple parameters, defaults  # a default may be `required`
    cdef tuple names                 # names of the attributes
    cdef int[MOST_PARAMETERS] attributes, inputs  # places of attributes and inputs among the parameters
    cdef Py_ssize_t placed           # parameters that can be given by position
    cdef Py_ssize_t count, taken     # inputs, and parameters without `out` and `num_threads`
    cdef dict __dict__
    cdef object __weakref__

    def __init__(self, function, cls, tuple inputs):
        code, named = function.__code__, function.__kwdefaults__
        self.vectorcall, self.function, self.cls, self.placed = call_function, function, cls, code.co_argcount
        self.parameters = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        if len(self.parameters) > MOST_PARAMETERS or self.parameters[-2:] != ("out", "num_threads"):
            raise TypeError(f"onnxpool: {function.__name__} has other parameters than functions of operators")
        self.taken, self.count = len(self.parameters) - 2, 0
        names, defaults = [], dict(zip(self.parameters[:self.placed][::-1], (function.__defaults__ or ())[::-1]))
        defaults.update(named)
        for place, name in enumerate(self.parameters[:self.taken]):
            if name in inputs:
                self.inputs[self.count] = place
                self.count += 1
            else:
                self.attributes[len(names)] = place
                names.append(name)
        self.names = tuple(names)
        self.defaults = tuple([defaults.get(name, required) for name in self.parameters])
        update_wrapper(self, function)
        setattr(self, "__call__", self)  # unittest.mock looks for its signature

    def __call__(self, *given, **named):
        return PyVectorcall_Call(self, given, named)

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)

    @property
    def __signature__(self):
        from inspect import signature  # imported here because it is slow

        return signature(self.function)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<function {self.__qualname__} at {<uintptr_t><PyObject*>self:#x}>"

    cdef Py_ssize_t place_of(self, name):
        """The place of a parameter, or -1."""
        cdef Py_ssize_t i, count = PyTuple_GET_SIZE(self.parameters)
        for i in range(count):
            if PyTuple_GET_ITEM(self.parameters, i) == <PyObject*>name:
                return i
        for i in range(count):
            if self.parameters[i] == name:
                return i
        return -1

    cdef bint bind(self, PyObject** given, Py_ssize_t count, tuple keywords, PyObject** values):
        """Find the value of each parameter. Return whether these arguments fit."""
        cdef Py_ssize_t i = 0, k
        cdef uint64_t named = 0  # a bit for each parameter
        for i in range(PyTuple_GET_SIZE(self.parameters)):
            values[i] = given[i] if i < count else PyTuple_GET_ITEM(self.defaults, i)
        for k in range(PyTuple_GET_SIZE(keywords)):
            i = self.place_of(<object>PyTuple_GET_ITEM(keywords, k))
            if i < count or named >> i & 1:  # the keyword is unknown, or passed twice
                return False
            named |= <uint64_t>1 << i
            values[i] = given[count + k]
        for i in range(count, self.taken):
            if values[i] == <PyObject*>required:
                return False
        return True


cdef object required = object()  # stands for the value of a parameter without a default


cdef object call_function(object function, PyObject** given, size_t flags, PyObject* keywords):
    """Call a function with positional arguments, followed by arguments with these keywords."""
    cdef Function own = <Function>function
    cdef (PyObject*)[MOST_PARAMETERS] values, attributes, inputs
    cdef Py_ssize_t i, count = PyVectorcall_NARGS(flags)
    cdef tuple names = <tuple>keywords if keywords else ()
    if count > own.placed or not own.bind(given, count, names, values):
        raise unfit(own.function, [<object>given[i] for i in range(count)],
                    {name: <object>given[count + i] for i, name in enumerate(names)})
    for i in range(PyTuple_GET_SIZE(own.names)):
        attributes[i] = values[own.attributes[i]]
    for i in range(own.count):
        inputs[i] = values[own.inputs[i]]
    operator = find(own.cls, own.names, attributes)
    if values[own.taken] == <PyObject*>None and values[own.taken + 1] == <PyObject*>None:
        return PyObject_Vectorcall(operator, inputs, own.count, NULL)
    inputs[own.count], inputs[own.count + 1] = values[own.taken], values[own.taken + 1]
    return PyObject_Vectorcall(operator, inputs, own.count, <PyObject*>OF_CALLS)


cdef tuple OF_CALLS = ("out", "num_threads")


def calls_operator(cls, *inputs):
    """Decorate a function whose parameters are these inputs, an operator class's attributes, and parameters of
    calls."""
    return lambda function: Function(function, cls, inputs)


cdef Function model = calls_operator(None)(lambda *, out=None, num_threads=None: None)
take_vectors(Function, <char*>&model.vectorcall - <char*><PyObject*>model)
