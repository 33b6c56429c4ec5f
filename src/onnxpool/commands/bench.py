"""``onnxpool bench``: times of warm calls of a model's pooling nodes, on onnxpool and onnxruntime."""

import argparse
import importlib.util
from contextlib import nullcontext
from typing import Any

from .. import __version__, get_num_threads, num_threads, wisdom
from ..onnx import models
from ..onnx.protos import shape_text
from . import OK
from .files import check_folder, written
from .run import chosen, executed
from .text import attributes_text, counted, json_text, print_lines, table

HEAD = ["node", "operator", "attributes", "in", "dtype", "calls", "onnxpool us", "tuned us", "onnxruntime us", "times",
        ""]
RIGHT = [False] * 5 + [True] * 5 + [False]
TUNED = HEAD.index("tuned us")
RIVAL = "onnxruntime"


def times(node: models.NodeRun) -> float | None:
    """The speed-up over onnxruntime."""
    ours = node.warm_seconds if node.tuned_seconds is None else node.tuned_seconds
    return None if node.onnxruntime_seconds is None else node.onnxruntime_seconds / ours


def microseconds(seconds: float | None) -> str:
    """A time for the table."""
    return "-" if seconds is None else f"{1e6 * seconds:.1f}"


def cells(node: models.NodeRun) -> list[str]:
    """The row of a node in the table."""
    ratio = times(node)
    return [node.name, f"{node.operator}-{node.version}", attributes_text(node.attributes) or "-",
            shape_text(node.input_shape), node.dtype, str(node.calls), microseconds(node.warm_seconds),
            microseconds(node.tuned_seconds), microseconds(node.onnxruntime_seconds),
            "-" if ratio is None else f"{ratio:.2f}", node.remark]


def row(node: models.NodeRun) -> dict[str, Any]:
    """A node as JSON."""
    return {"name": node.name, "operator": node.operator, "version": node.version, "attributes": node.attributes,
            "input_shape": node.input_shape, "dtype": node.dtype, "calls": node.calls, "seconds": node.warm_seconds,
            "tuned_seconds": node.tuned_seconds, "onnxruntime_seconds": node.onnxruntime_seconds, "remark": node.remark}


def write_wisdom(path: str) -> None:
    """Write the wisdom of this process to a file."""
    with written(path) as file:
        file.write(f"{json_text(wisdom())}\n".encode())


def run(args: argparse.Namespace) -> int:
    """The command ``bench``."""
    path, inputs, _ = chosen(args)
    check_folder(args.tune)
    beside = importlib.util.find_spec(RIVAL) is not None
    with num_threads(args.threads) if args.threads else nullcontext():
        done, _ = executed(args, path, inputs, beside=beside, tune=bool(args.tune))
        threads = get_num_threads()
    if args.tune:
        write_wisdom(args.tune)
    if args.json:
        print_lines(json_text({"model": path, "onnxpool": __version__, "threads": threads,
                               "nodes": [row(node) for node in done.nodes], "idle": done.idle}))
        return OK
    if done.nodes:
        rows = [HEAD, *map(cells, done.nodes)]
        shown = [place for place in range(len(HEAD)) if place != TUNED or args.tune]
        print_lines(*table([[row[place] for place in shown] for row in rows], [RIGHT[place] for place in shown]))
    print_lines(f"{counted(len(done.nodes), 'pooling node')}, {counted(threads, 'thread')}; median times of warm calls")
    if not beside:
        print_lines("onnxruntime is not installed, so it was not timed")
    if done.idle:
        print_lines(f"not reached: {', '.join(done.idle)}")
    return OK
