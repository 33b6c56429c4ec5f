"""``onnxpool fix``: rewrites the pooling nodes of a model so that runtimes agree about them."""

import argparse
import os
import sys

from .. import __version__
from ..onnx.disagreements import Filter
from ..onnx.fix import Fixed, NodeFix, fix_model
from . import DIFFERS, OK
from .files import cannot_write, check_folder, written
from .options import read_model, read_runtimes
from .progress import Progress
from .text import counted, json_text, print_lines


def lines(node: NodeFix) -> list[str]:
    """What became of a node, as lines of text."""
    return [
        f"{node.name}: {node.operator}, {'rewritten' if node.changes else 'unchanged'}",
        *(f"  now: {change}" for change in node.changes),
        *(f"  fixed: {row['who']} {row['text']} [{row['name']}]" for row in node.fixed),
        *(f"  not fixed: {row['who']} {row['text']} [{row['name']}]" for row in node.remaining),
        *(f"  reason: {reason}" for reason in node.reasons),
    ]


def folder(path: str) -> str:
    """The directory of a file."""
    return os.path.realpath(os.path.dirname(path) or ".")


def show(fixed: Fixed, counts: dict[str, int]) -> None:
    """Print the nodes and the summary."""
    for node in fixed.nodes:
        print_lines(*lines(node))
    if fixed.opset:
        print_lines(f"opset {fixed.opset[0]} -> {fixed.opset[1]}, in which all other nodes have the same versions")
    print_lines(", ".join([f"{counted(counts['rewritten'], 'pooling node')} rewritten",
                           *([f"{counts['unfixed']} not fixed"] if counts["unfixed"] else [])]))


def run(args: argparse.Namespace) -> int:
    """The command ``fix``."""
    wanted = Filter(runtimes=read_runtimes(args.runtime))
    model = read_model(args.model)
    check_folder(args.output)
    with Progress(sys.stderr, f"fixing {model}"):
        fixed = fix_model(model, wanted)
    if fixed.external and folder(args.output) != folder(model):
        raise cannot_write(args.output, f"{model} refers to files beside it; pass a file in the same directory")
    with written(args.output) as file:
        file.write(fixed.data)
    counts = {"rewritten": sum(bool(node.changes) for node in fixed.nodes),
              "unfixed": sum(bool(node.remaining or node.reasons) for node in fixed.nodes)}
    if args.json:
        print_lines(json_text({"model": model, "output": args.output, "onnxpool": __version__, "opset": fixed.opset,
                               "nodes": [vars(node) for node in fixed.nodes], **counts}))
    else:
        show(fixed, counts)
    return DIFFERS if counts["unfixed"] else OK
