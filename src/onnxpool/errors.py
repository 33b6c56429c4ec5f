"""What onnxpool raises."""


class PoolError(ValueError):
    """An attribute, shape or value that the operator's version does not allow, or that has no result."""


class PoolTypeError(TypeError):
    """A dtype, or a kind of argument, that the operator's version does not allow."""
