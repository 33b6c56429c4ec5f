"""Ends the command if onnxpool cannot be imported, for example because of an environment variable."""

import os
import re
import sys

from .errors import printable

PROGRAM = re.compile(r"(-\w*m)?onnxpool(\.__main__|\.exe)?")  # as a script, or as a module that -m names
STATUS = 2  # exit status of failed commands


def is_command() -> bool:
    """Whether this process is the command. Its module is not imported yet, so only the arguments show what runs."""
    program = sys.orig_argv[-len(sys.argv):][:1]  # both lists contain the words after the program
    return any(PROGRAM.fullmatch(os.path.basename(word)) for word in program)


def end_command(error: ImportError) -> None:
    """Print the error as one line and exit, if this process is the command."""
    if is_command():
        print(printable(f"onnxpool: {error}"), file=sys.stderr)
        sys.exit(STATUS)
