"""``onnxpool run``: a whole model with its pooling nodes on onnxpool."""

import argparse
import json
import os
import shutil
import sys
import time
from typing import Any, TextIO

from .. import __version__
from ..onnx import models
from ..onnx.protos import InputError, ModelError, shape_text
from . import DIFFERS, OK
from .text import attributes_text, plain


class ProgressLine:
    """Progress on a stream: one line rewritten on a terminal, else a line for every two seconds of work."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.terminal = stream, stream.isatty()
        self.start = self.shown = time.monotonic()
        self.every = 0.1 if self.terminal else 2.0

    def __call__(self, done: int, count: int, node: str) -> None:
        now = time.monotonic()
        if now - self.shown < self.every:
            return
        self.shown = now
        text = f"onnxpool: {done} of {count} nodes, {now - self.start:.1f} s, now {node}"
        if self.terminal:
            text = f"\r{text[:shutil.get_terminal_size().columns - 1]}\x1b[K"
        print(text, end="" if self.terminal else "\n", file=self.stream, flush=True)

    def close(self) -> None:
        """Clears the line."""
        if self.terminal:
            print("\r\x1b[K", end="", file=self.stream, flush=True)


def prepare(args: argparse.Namespace) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The model's path, its inputs, and the outputs expected of it (none but for the default model)."""
    if args.output and not os.path.isdir(os.path.dirname(args.output) or "."):
        raise ModelError(f"cannot write {args.output}: no such directory")
    if args.model is None:
        if args.input:
            raise ModelError("--input needs a MODEL: the default model brings its own input")
        path, inputs, expected = models.example()
        return str(path), inputs, expected
    inputs = {}
    for item in args.input:
        name, _, file = item.partition("=")
        if not name or not file:
            raise ModelError(f"--input {item}: give --input NAME=FILE.npy")
        if name in inputs:
            raise ModelError(f"--input {item}: {name!r} is given twice")
        inputs[name] = models.read_array(file)
    return args.model, inputs, {}


def run(args: argparse.Namespace) -> int:
    """The command ``run``."""
    progress = ProgressLine(sys.stderr)
    try:
        path, inputs, expected = prepare(args)
        done = models.Model(path).run(inputs, check=args.check, progress=progress)
    except InputError as error:
        raise ModelError(f"{error}; give --input NAME=FILE.npy") from error
    finally:
        progress.close()
    if args.output:
        models.write_arrays(args.output, done.outputs)
    far = max((models.largest_difference(done.outputs[name], want) for name, want in expected.items()), default=None)
    agrees = all(models.agrees(done.outputs[name], want) for name, want in expected.items())
    if args.json:
        print(json.dumps(report(path, done, far, agrees), allow_nan=False))
    else:
        show(done, check=args.check)
        if far is not None:
            print(f"largest difference to the expected output: {far:.3g} "
                  f"({'within' if agrees else 'NOT within'} rtol {models.RTOL:g}, atol {models.ATOL:g})")
    return OK if agrees else DIFFERS


def report(path: str, done: models.Run, far: float | None, agrees: bool) -> dict[str, Any]:
    """A run as JSON."""
    result = {
        "model": path,
        "onnxpool": __version__,
        "seconds": done.seconds,
        "pooling_seconds": sum(node.seconds for node in done.nodes),
        "nodes": [vars(node) for node in done.nodes],
        "idle": done.idle,
        "outputs": {name: {"dtype": str(y.dtype), "shape": y.shape} if hasattr(y, "dtype") else {"length": len(y)}
                    for name, y in done.outputs.items()},
    }
    if far is not None:
        result["expected"] = {"difference": far, "agrees": agrees}
    whole: dict[str, Any] = plain(result)
    return whole


def cells(node: models.NodeRun, seconds: float, check: bool) -> list[str]:
    """A node's row of the table."""
    row = [
        node.name,
        f"{node.operator}-{node.version}",
        attributes_text(node.attributes) or "-",
        shape_text(node.input_shape),
        shape_text(node.output_shape),
        node.dtype,
        str(node.calls),
        f"{1e6 * node.seconds:.1f}",
        f"{100 * node.seconds / seconds:.2f} %",
    ]
    if check:
        row.append("cannot run" if node.difference is None else f"{node.difference:.3g}")
    return [*row, node.remark]


def show(done: models.Run, *, check: bool) -> None:
    """Prints the table and the summary."""
    if done.nodes:
        head = ["node", "operator", "attributes", "in", "out", "dtype", "calls", "us", "share"]
        head += ["onnxruntime differs by"] if check else []
        rows = [[*head, ""], *(cells(node, done.seconds, check) for node in done.nodes)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            # Texts to the left, numbers to the right; the last column is a remark of any length.
            left = [text.ljust(width) for text, width in zip(row[:6], widths, strict=False)]
            right = [text.rjust(width) for text, width in zip(row[6:-1], widths[6:], strict=False)]
            print("  ".join([*left, *right, row[-1]]).rstrip())
    pooling = sum(node.seconds for node in done.nodes)
    calls = sum(node.calls for node in done.nodes)
    print(f"{calls} pooling {'call' if calls == 1 else 'calls'}: {1e6 * pooling:.1f} us "
          f"of {done.seconds:.3f} s ({100 * pooling / done.seconds:.2f} %)")
    if done.idle:
        print(f"not reached: {', '.join(done.idle)}")
