"""``onnxpool check``: the windows of a model's pooling nodes, and known disagreements between runtimes about them."""

import argparse
import sys

from .. import __version__
from ..onnx.checks import ModelCheck, NodeCheck, check_model
from ..onnx.disagreements import Filter
from ..onnx.protos import InputError, ModelError, shape_text
from . import DIFFERS, OK
from .options import SHAPE, read_ignored, read_model, read_runtimes, read_shapes
from .progress import Progress
from .text import attributes_text, counted, json_text, print_lines


def lines(node: NodeCheck) -> list[str]:
    """The description of a node, as lines of text."""
    version = "" if node.version is None else f"-{node.version}"
    shapes = " -> ".join("(...)" if shape is None else shape_text(shape)
                         for shape in (node.input_shape, node.output_shape))
    attributes = attributes_text(node.attributes)
    return [
        f"{node.name}: {node.operator}{version}, {node.dtype or 'any dtype'} {shapes}",
        *([f"  {attributes}"] if attributes else []),
        *(f"  {line}" for line in node.geometry),
        *([f"  refused: {node.error}"] if node.error else []),
        *(f"  warning: {warning['who']} {warning['text']} [{warning['name']}]" for warning in node.warnings),
        *([f"  not fully checked: {node.unchecked}"] if node.unchecked else []),
    ]


def show(checked: ModelCheck, counts: dict[str, int]) -> None:
    """Print the nodes and the summary."""
    for node in checked.nodes:
        print_lines(*lines(node))
    print_lines(", ".join([counted(len(checked.nodes), "pooling node"), counted(counts["warnings"], "warning"),
                           *([f"{counts['refused']} refused"] if counts["refused"] else []),
                           *([f"{counts['unchecked']} not fully checked"] if counts["unchecked"] else [])]))
    if counts["unchecked"]:
        for name in checked.open_inputs:
            print_lines(f"input {name!r} has unknown sizes: pass --shape {name}=SIZE,SIZE,...")


def run(args: argparse.Namespace) -> int:
    """The command ``check``."""
    wanted = Filter(args.values, read_runtimes(args.runtime), read_ignored(args.ignore))
    shapes, model = read_shapes(args.shape), read_model(args.model)
    with Progress(sys.stderr, f"checking {model}"):
        try:
            checked = check_model(model, shapes, wanted)
        except InputError as error:
            raise ModelError(f"{error}; pass {SHAPE}") from error
    nodes = checked.nodes
    counts = {"warnings": sum(len(node.warnings) for node in nodes), "refused": sum(bool(n.error) for n in nodes),
              "unchecked": sum(bool(node.unchecked) for node in nodes)}
    if args.json:
        print_lines(json_text({"model": model, "onnxpool": __version__, "nodes": [vars(node) for node in nodes],
                               "open_inputs": checked.open_inputs, **counts}))
    else:
        show(checked, counts)
    found = counts["warnings"] or counts["refused"] or (counts["unchecked"] and not args.partial)
    return DIFFERS if found else OK
