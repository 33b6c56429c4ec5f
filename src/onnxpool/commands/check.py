"""``onnxpool check``: the windows of a model's pooling nodes, and where runtimes are known to disagree on them."""

import argparse
import json

from .. import __version__
from ..onnx.checks import NodeCheck, check_model
from ..onnx.protos import InputError, ModelError, shape_text
from . import DIFFERS, OK
from .text import attributes_text, counted, plain


def read_shapes(options: list[str]) -> dict[str, tuple[int, ...]]:
    """The shapes that --shape gives."""
    shapes = {}
    for item in options:
        name, _, sizes = item.rpartition("=")
        if not name or not all(size.isdecimal() for size in sizes.split(",")):
            raise ModelError(f"--shape {item}: give --shape NAME=1,3,224,224")
        if name in shapes:
            raise ModelError(f"--shape {item}: {name!r} is given twice")
        shapes[name] = tuple(map(int, sizes.split(",")))
    return shapes


def lines(node: NodeCheck) -> list[str]:
    """A node in words."""
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
    ]


def run(args: argparse.Namespace) -> int:
    """The command ``check``."""
    try:
        nodes = check_model(args.model, read_shapes(args.shape), values=args.values)
    except InputError as error:
        raise ModelError(f"{error}; give --shape NAME=SIZE,SIZE,...") from error
    warnings, refused = sum(len(node.warnings) for node in nodes), sum(bool(node.error) for node in nodes)
    if args.json:
        print(json.dumps(plain({"model": args.model, "onnxpool": __version__, "nodes": [vars(n) for n in nodes]}),
                         allow_nan=False))
    else:
        for node in nodes:
            print("\n".join(lines(node)))
        text = f"{counted(len(nodes), 'pooling node')}, {counted(warnings, 'warning')}"
        print(text + (f", {refused} refused" if refused else ""))
        vague = sum(not node.geometry and not node.error for node in nodes)
        if vague:
            print(f"{vague} without windows, because the model leaves sizes open: give --shape NAME=SIZE,SIZE,...")
    return DIFFERS if warnings or refused else OK
