"""Runs the command line within this process."""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from onnxpool import __main__ as command


def ended(words: Sequence[str]) -> tuple[Any, str, str]:
    """The exit status of the command line, its output, and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status: Any = command.main([*words])
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()
