"""Keys under which cached operators are found again."""


def key_of(tuple arguments):
    """The arguments, lists as tuples, and the types of all and of their parts: 2 and 2.0 are equal but not the same."""
    cdef list given = [], kinds = []
    for value in arguments:
        if type(value) is list:  # which is not hashable
            value = tuple(value)
        given.append(value)
        kinds.append(type(value))
        if type(value) is tuple:
            for part in <tuple> value:
                kinds.append(type(part))
    return tuple(given), tuple(kinds)
