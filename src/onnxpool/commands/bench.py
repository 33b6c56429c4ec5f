"""``onnxpool bench``: times of warm calls of a model's pooling nodes, on onnxpool and onnxruntime."""

import argparse
import importlib.util
from contextlib import nullcontext
from typing import Any

from .. import __version__, get_num_threads, num_threads
from ..onnx import models
from ..onnx.protos import ModelError, shape_text
from . import OK
from .run import chosen, executed
from .text import attributes_text, counted, json_text, table

MISTAKES: tuple[type[Exception], ...] = (ModelError,)
HEAD = ["node", "operator", "attributes", "in", "dtype", "calls", "onnxpool us", "onnxruntime us", "times", ""]
RIGHT = [False] * 5 + [True] * 4 + [False]
RIVAL = "onnxruntime"


def times(node: models.NodeRun) -> float | None:
    """The speed-up over onnxruntime."""
    return None if node.onnxruntime_seconds is None else node.onnxruntime_seconds / node.warm_seconds


def cells(node: models.NodeRun) -> list[str]:
    """The row of a node in the table."""
    theirs, ratio = node.onnxruntime_seconds, times(node)
    return [node.name, f"{node.operator}-{node.version}", attributes_text(node.attributes) or "-",
            shape_text(node.input_shape), node.dtype, str(node.calls), f"{1e6 * node.warm_seconds:.1f}",
            "-" if theirs is None else f"{1e6 * theirs:.1f}", "-" if ratio is None else f"{ratio:.2f}", node.remark]


def row(node: models.NodeRun) -> dict[str, Any]:
    """A node as JSON."""
    return {"name": node.name, "operator": node.operator, "version": node.version, "attributes": node.attributes,
            "input_shape": node.input_shape, "dtype": node.dtype, "calls": node.calls, "seconds": node.warm_seconds,
            "onnxruntime_seconds": node.onnxruntime_seconds, "remark": node.remark}


def run(args: argparse.Namespace) -> int:
    """The command ``bench``."""
    path, inputs, _ = chosen(args)
    beside = importlib.util.find_spec(RIVAL) is not None
    with num_threads(args.threads) if args.threads else nullcontext():
        done, _ = executed(args, path, inputs, beside=beside)
        threads = get_num_threads()
    if args.json:
        print(json_text({"model": path, "onnxpool": __version__, "threads": threads,
                         "nodes": [row(node) for node in done.nodes], "idle": done.idle}))
        return OK
    if done.nodes:
        print("\n".join(table([HEAD, *map(cells, done.nodes)], RIGHT)))
    print(f"{counted(len(done.nodes), 'pooling node')}, {counted(threads, 'thread')}; median times of warm calls")
    if not beside:
        print("onnxruntime is not installed, so it was not timed")
    if done.idle:
        print(f"not reached: {', '.join(done.idle)}")
    return OK
