"""How relations skip calls to which they do not apply."""


class InapplicableError(Exception):
    """The library refuses a drawn call, or a relation does not apply to it."""


def require(condition):
    """Skip calls to which a relation does not apply."""
    if not condition:
        raise InapplicableError
