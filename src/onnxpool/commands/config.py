"""``onnxpool config``: the installation."""

import argparse

from ..about import config, show_config
from . import OK
from .text import json_text, print_lines


def run(args: argparse.Namespace) -> int:
    """The command ``config``."""
    if args.json:
        print_lines(json_text(dict(config())))
    else:
        show_config()
    return OK
