"""Operators that functions made: equal arguments find them again."""

from functools import lru_cache

from .errors import PoolTypeError

MOST_KEPT = 1024  # operators, and plans, that are remembered


def _make(cls, names, arguments, kinds):
    return cls(**dict(zip(names, arguments)))


remembered = lru_cache(maxsize=MOST_KEPT)(_make)


def made(cls, **given):
    """
    The operator with these arguments, which may have been made before.

    Equal arguments of other types are not the same: 2 is allowed where 2.0 is not. So the types of all values, and of
    the parts of tuples, are part of the key.
    """
    cdef list arguments = [], kinds = []
    for value in given.values():
        if type(value) is list:  # which cannot be looked up
            value = tuple(value)
        arguments.append(value)
        kinds.append(type(value))
        if type(value) is tuple:
            for part in <tuple> value:
                kinds.append(type(part))
    names, values, types = tuple(given), tuple(arguments), tuple(kinds)
    try:
        return remembered(cls, names, values, types)
    except PoolTypeError:
        raise
    except TypeError:  # what cannot be looked up, such as an array
        return _make(cls, names, values, types)
