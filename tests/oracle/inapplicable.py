"""How relations leave out calls that they do not concern."""


class InapplicableError(Exception):
    """A drawn call that the library refuses, or of which a relation says nothing."""


def require(condition):
    """Leave out calls that a relation does not concern."""
    if not condition:
        raise InapplicableError
