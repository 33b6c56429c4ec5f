"""``onnxpool --print-completion``: completion scripts for shells."""

import argparse

from .. import PoolError
from ..schemas import SCHEMAS
from . import OK
from .arguments import parser

FILES = ("MODEL", "WHAT", "FILE")  # metavars of arguments that name files


def run(args: argparse.Namespace) -> int:
    """The option ``--print-completion``."""
    try:
        import shtab
    except ImportError as error:
        raise PoolError(f"--print-completion needs the shtab package ({error}): pip install 'onnxpool[completion]'",
                        attribute="print_completion", value=args.print_completion) from None
    top, commands = parser()
    for command in commands.values():
        for action in (*command.operands, *command.known.values()):
            if any(word in str(action.metavar) for word in FILES):
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab reads it
            elif action.dest == "operators":
                action.choices = list(SCHEMAS)
    print(shtab.complete(top, shell=args.print_completion))
    return OK
