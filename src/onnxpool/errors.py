"""What onnxpool raises."""

from typing import Any, NamedTuple


class Refusal(Exception):  # noqa: N818
    """What an error is about, beside its text."""

    operator: str | None
    attribute: str | None
    axis: int | None
    value: Any

    def __init__(self, message: str = "", operator: str | None = None, attribute: str | None = None, *,
                 axis: int | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.operator = operator.partition("-")[0] if operator else None  # of a label such as AveragePool-19
        self.attribute = attribute
        self.axis = axis
        self.value = value


class PoolError(Refusal, ValueError):
    """
    An attribute, shape or value that the operator's version does not allow, or that has no result.

    The text names the operator with its version, the attribute, the axis, the value, the limit and the way out.

    Parameters
    ----------
    message : str
        The text.
    operator : str, optional
        The operator, or its label.
    attribute : str, optional
        The attribute, input or argument.
    axis : int, optional
        The axis of the array.
    value : object, optional
        What was refused.

    Attributes
    ----------
    operator : str or None
        The ONNX name of the operator, such as ``"AveragePool"``. None if the error is about no operator.
    attribute : str or None
        The attribute, input or argument that was refused, such as ``"strides"``, ``"X"`` or ``"out"``.
    axis : int or None
        The axis of the array. None if the error is about no axis, or was found before an array was seen.
    value : object
        What was refused: one number of a sequence, a shape, a dtype's name. None if nothing was given.

    See Also
    --------
    PoolTypeError : The error for a dtype or a kind of argument.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> try:
    ...     onnxpool.max_pool(np.zeros((1, 1, 8, 4), np.float32), (1, 9))
    ... except onnxpool.PoolError as error:
    ...     print(error.operator, error.attribute, error.axis, error.value)
    MaxPool kernel_shape 3 9
    """


class PoolTypeError(Refusal, TypeError):
    """
    A dtype, or a kind of argument, that the operator's version does not allow.

    It has the attributes of `PoolError`.

    Parameters
    ----------
    message : str
        The text.
    operator : str, optional
        The operator, or its label.
    attribute : str, optional
        The attribute, input or argument.
    axis : int, optional
        The axis of the array.
    value : object, optional
        What was refused.

    See Also
    --------
    PoolError : The error for an attribute, a shape or a value; it lists the attributes of both.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> try:
    ...     onnxpool.global_max_pool(np.zeros((1, 1, 8), np.int32))
    ... except onnxpool.PoolTypeError as error:
    ...     print(error.operator, error.attribute, error.value)
    GlobalMaxPool X int32
    """


class Place(NamedTuple):
    """An attribute or argument that is checked: what the text of its error begins with."""

    operator: str | None  # or its label
    attribute: str
    position: int | None = None  # of one of its values

    def __str__(self) -> str:
        text = f"{self.operator or 'onnxpool'}: {self.attribute}"
        return text if self.position is None else f"{text}[{self.position}]"

    @property
    def names(self) -> tuple[str | None, str]:
        """What an error takes after its text."""
        return self.operator, self.attribute
