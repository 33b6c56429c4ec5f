"""Hints in errors about wrong arguments: which arguments the function takes."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from .errors import PoolTypeError

F = TypeVar("F", bound=Callable[..., Any])

# Names of ONNX attributes in PyTorch, Keras and other libraries.
ELSEWHERE = {"kernel_size": "kernel_shape", "pool_size": "kernel_shape", "ksize": "kernel_shape",
             "stride": "strides", "padding": "pads", "pad": "pads", "dilation": "dilations", "axis": "axes",
             "norm_type": "p", "output_size": "output_shape", "boxes": "rois", "threads": "num_threads"}


def likely(unknown: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant instead of an unknown one."""
    from difflib import get_close_matches  # only errors need it

    known = list(names)
    return next((name for name in (ELSEWHERE.get(unknown), *get_close_matches(unknown, known, 1)) if name in known),
                None)


def hinted(function: F, name: str | None = None) -> F:
    """Wrap a function so that calls with wrong arguments raise a PoolTypeError with a hint."""
    label = name or function.__name__

    @wraps(function)
    def call(*arguments: Any, **given: Any) -> Any:
        try:
            return function(*arguments, **given)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # raised inside the function
                raise
            raise refused(function, label, len(arguments), given, error) from None

    return cast(F, call)


def unfit(function: Callable[..., Any], arguments: Sequence[Any], given: dict[str, Any]) -> PoolTypeError:
    """The error for a call with arguments that do not fit. The function's body must never run."""
    try:
        function(*arguments, **given)
    except TypeError as error:
        return refused(function, function.__name__, len(arguments), given, error)
    except NotImplementedError:  # raised by the body, because only C can pass an argument twice
        return PoolTypeError(f"{function.__name__}: an argument is given twice; pass it once", function.__name__)
    raise AssertionError(f"onnxpool: {function.__name__} has a body")


def refused(function: Callable[..., Any], label: str, count: int, given: dict[str, Any],
            error: TypeError) -> PoolTypeError:
    """The error for a call whose arguments do not fit a function."""
    import inspect  # slow to import, and only errors need it

    parameters = inspect.signature(function).parameters
    names = [name for name in parameters if name != "self"]
    placed = [name for name in names if parameters[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    unknown = next((name for name in given if name not in names), None)
    if unknown is not None:
        like = likely(unknown, names)
        way = f"pass {like}" if like else f"it takes {', '.join(names)}"
        return PoolTypeError(f"{label}: there is no argument {unknown}; {way}", label, unknown, value=given[unknown])
    count -= len(parameters) - len(names)  # without self
    if count > len(placed):
        others = " ".join(f"{name}=" for name in names if name not in placed)
        return PoolTypeError(f"{label}: takes {len(placed)} arguments by position, got {count}; name the others: "
                             f"{others}", label, value=count)
    return PoolTypeError(f"{label}: {str(error).partition('() ')[2]}; it takes {', '.join(names)}", label)
