"""The command line: ``onnxpool run``, ``check``, ``fix``, ``explain``, ``bench``, ``config`` and ``supported``."""

import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .commands import CANNOT, INTERRUPTED, UNREAD
from .commands.arguments import read
from .commands.text import print_lines
from .errors import Refusal


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments. By default, the arguments of the process.

    Returns
    -------
    int
        Exit status.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the program began
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names in a model can contain any character
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            try:
                return run(argv)
            finally:  # including after --help
                sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has left
        silence()
        return UNREAD
    except OSError as error:
        silence()
        return refuse(f"cannot write the output: {error.strerror or error}")
    except MemoryError:
        return refuse("there is not enough memory")
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # a bug: the traceback belongs in a report
        print_lines(*"".join(traceback.format_exception(error)).splitlines(), file=sys.stderr)
        return refuse(f"internal error: {type(error).__name__}: {error}; please report it with the lines above")


def run(argv: Sequence[str] | None) -> int:
    """Run a command. An error that the user can correct is printed as one line."""
    args = read(sys.argv[1:] if argv is None else argv)
    try:
        command = importlib.import_module(f".commands.{args.command}", __package__)
    except ImportError as error:
        return refuse(f"{args.command} needs the onnx package ({error}): pip install 'onnxpool[onnx]'")
    try:
        status: int = command.run(args)
        return status
    except Refusal as error:
        return refuse(str(error))


def refuse(reason: str) -> int:
    """Print on one line why the command failed."""
    with suppress(OSError, ValueError):  # the reader has left
        print_lines(f"onnxpool: {reason}", file=sys.stderr)
    return CANNOT


def show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning of a package on one line."""
    print_lines(f"onnxpool: {category.__name__}: {message}", file=sys.stderr)


def silence() -> None:
    """Discard standard output, so that Python does not fail again when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
