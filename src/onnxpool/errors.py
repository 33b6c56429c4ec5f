"""The exceptions that onnxpool raises, and how messages show text of unknown origin."""

import re
from collections.abc import Hashable
from typing import Any, NamedTuple

LOGGED = re.compile(r"##(?=\w*\[)")  # GitHub Actions and Azure Pipelines obey ##[...] and ##vso[...] anywhere in a line


def printable(text: str) -> str:
    """
    Text that may be hostile, such as a name in a model, as messages and terminals can show it.

    Control characters, line breaks, invisible and bidirectional characters, and lone surrogates become escapes, as in
    `repr`. So does the second character of ``##[``, which build servers take for the beginning of a command.
    """
    if not text.isprintable():
        text = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return LOGGED.sub(r"#\\x23", text)


class Refusal(Exception):  # noqa: N818
    """Base of errors, with the subject of the error as fields. The message is a single line."""

    operator: str | None
    attribute: str | None
    axis: int | None
    value: Any

    def __init__(self, message: str = "", operator: str | None = None, attribute: str | None = None, *,
                 axis: int | None = None, value: Any = None) -> None:
        super().__init__(printable(message))
        self.operator = operator.partition("-")[0] if operator else None  # without the version of a label
        self.attribute = attribute
        self.axis = axis
        self.value = value


class PoolError(Refusal, ValueError):
    """
    Error for an attribute, shape or value that the operator's version does not allow, or that has no result.

    The message names the operator with its version, the attribute, the axis, the value and the limit, and suggests a
    correction.

    Parameters
    ----------
    message : str
        Message.
    operator : str, optional
        Name of the operator, or its label with the version.
    attribute : str, optional
        Name of the attribute, input or argument.
    axis : int, optional
        Axis of the array.
    value : object, optional
        Value that was refused.

    Attributes
    ----------
    operator : str or None
        ONNX name of the operator, such as ``"AveragePool"``. None if the error does not concern an operator.
    attribute : str or None
        Attribute, input or argument that was refused, such as ``"strides"``, ``"X"`` or ``"out"``.
    axis : int or None
        Axis of the array. None if the error does not concern an axis, or was found before an array was seen.
    value : object
        Value that was refused: one number of a sequence, a shape, or the name of a dtype. None if nothing was given.

    See Also
    --------
    PoolTypeError : Error for a dtype or a kind of argument.

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
    Error for a dtype or a kind of argument that the operator's version does not allow.

    It has the attributes of `PoolError`.

    Parameters
    ----------
    message : str
        Message.
    operator : str, optional
        Name of the operator, or its label with the version.
    attribute : str, optional
        Name of the attribute, input or argument.
    axis : int, optional
        Axis of the array.
    value : object, optional
        Value that was refused.

    See Also
    --------
    PoolError : Error for an attribute, a shape or a value. It describes the attributes of both errors.

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
    """The attribute or argument being checked. As a string, it is the beginning of an error message."""

    operator: str | None  # name or label
    attribute: str
    position: Hashable = None  # position of a value in a sequence, or its key in a mapping

    def __str__(self) -> str:
        text = f"{self.operator or 'onnxpool'}: {self.attribute}"
        return text if self.position is None else f"{text}[{self.position!r}]"

    @property
    def names(self) -> tuple[str | None, str]:
        """The arguments of an error that follow its message."""
        return self.operator, self.attribute
