"""``onnxpool run``: runs a model with its pooling nodes on onnxpool."""

import argparse
import sys
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import __version__
from ..onnx import models
from ..onnx.comparison import ATOL, RTOL, Tolerance, Whole, agrees, largest_difference
from ..onnx.inputs import make_inputs
from ..onnx.protos import Array, InputError, ModelError, shape_text
from . import DIFFERS, OK
from .files import check_folder, written
from .options import SHAPE, read_files, read_model, read_shapes
from .progress import Progress
from .text import attributes_text, counted, json_text, print_lines, table

HEAD = ["node", "operator", "attributes", "in", "out", "dtype", "calls", "first us", "warm us"]
NUMBERS = [False] * 6 + [True] * 3


class Outcome(NamedTuple):
    """
    Result of a run, with its comparisons.

    Attributes
    ----------
    path : str
        Path of the model.
    done : Run
        Result of the run.
    made : dict of str to ndarray
        Generated inputs.
    seed : int
        Seed of the generated inputs.
    check : Tolerance, optional
        Tolerances of the comparison with onnxruntime, if requested.
    expected : tuple of float
        Tolerances of the comparison with the expected output: rtol and atol.
    far : float, optional
        Largest difference from the expected output, if there is one.
    reached : bool
        Whether the output is within the tolerances of the expected one.
    """

    path: str
    done: models.Run
    made: dict[str, Array]
    seed: int
    check: Tolerance | None
    expected: tuple[float, float]
    far: float | None
    reached: bool

    @property
    def status(self) -> int:
        """The exit status."""
        verdicts = [node.agrees for node in self.done.nodes]
        if self.done.whole is not None:
            verdicts.append(self.done.whole.agrees)
        return OK if self.reached and False not in verdicts else DIFFERS

    @property
    def pooling_seconds(self) -> float:
        """The total time of all calls, computed from times of warm calls."""
        return sum(node.calls * node.warm_seconds for node in self.done.nodes)


def prepare(args: argparse.Namespace) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Check the options of ``run``, and return the model, inputs and expected outputs."""
    if not args.check and (args.rtol, args.atol) != (None, None) and args.model is not None:
        raise ModelError("--rtol and --atol need --check, as nothing else is compared")
    check_folder(args.output)
    return chosen(args)


def write_arrays(path: str, arrays: Mapping[str, Any]) -> None:
    """Store arrays in a .npz file under any names. numpy.savez reserves some, such as "file"."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise ModelError(f"cannot write output {name!r} to {path}: it is not an array of numbers")
    with written(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as opened:
                np.lib.format.write_array(opened, array, allow_pickle=False)


def chosen(args: argparse.Namespace) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The path, inputs and expected outputs of the given or default model."""
    if args.model is None:
        if args.input or args.shape:
            raise ModelError(f"--{'input' if args.input else 'shape'} needs a MODEL: the default model brings its own "
                             f"input")
        path, inputs, expected = models.example()
        return str(path), inputs, expected
    return read_model(args.model), {name: models.read_array(file) for name, file in read_files(args.input).items()}, {}


def executed(args: argparse.Namespace, path: str, inputs: dict[str, Any], *, check: Tolerance | None = None,
             beside: bool = False, tune: bool = False) -> tuple[models.Run, dict[str, Array]]:
    """Run a model, and return the run and the generated inputs."""
    shapes = read_shapes(args.shape)
    with Progress(sys.stderr, f"reading {path}") as progress:
        try:
            model = models.Model(path)
            made = make_inputs(model.inputs, inputs, shapes, args.seed)
            return model.run({**inputs, **made}, check=check, beside=beside, tune=tune,
                             progress=progress), made
        except InputError as error:
            raise ModelError(f"{error}; pass --input NAME=FILE.npy or {SHAPE}") from error


def run(args: argparse.Namespace) -> int:
    """The command ``run``."""
    path, inputs, expected = prepare(args)
    rtol = RTOL if args.rtol is None else args.rtol
    check = Tolerance(rtol, args.atol) if args.check else None
    done, made = executed(args, path, inputs, check=check)
    if args.output:
        write_arrays(args.output, done.outputs)
    atol = ATOL if args.atol is None else args.atol
    outcome = Outcome(
        path, done, made, args.seed, check, (rtol, atol),
        max((largest_difference(done.outputs[name], want) for name, want in expected.items()), default=None),
        all(agrees(done.outputs[name], want, rtol, atol) for name, want in expected.items()))
    if args.json:
        print_lines(json_text(report(outcome)))
    else:
        show(outcome, stored=args.output)
    return outcome.status


def described(value: Any) -> dict[str, Any]:
    """An input or output as JSON."""
    return {"dtype": str(value.dtype), "shape": value.shape} if hasattr(value, "dtype") else {"length": len(value)}


def report(outcome: Outcome) -> dict[str, Any]:
    """A run as JSON."""
    done, check = outcome.done, outcome.check
    result = {
        "model": outcome.path,
        "onnxpool": __version__,
        "seconds": done.seconds,
        "pooling_seconds": outcome.pooling_seconds,
        "nodes": [vars(node) for node in done.nodes],
        "idle": done.idle,
        "seed": outcome.seed,
        "made_inputs": {name: described(x) for name, x in outcome.made.items()},
        "outputs": {name: described(y) for name, y in done.outputs.items()},
    }
    if outcome.far is not None:
        rtol, atol = outcome.expected
        result["expected"] = {"difference": outcome.far, "agrees": outcome.reached, "rtol": rtol, "atol": atol}
    if check is not None and done.whole is not None:
        result["check"] = {"agrees": all(node.agrees for node in done.nodes), **check._asdict(),
                           "whole": done.whole._asdict()}
    return result


def cells(node: models.NodeRun, check: bool) -> list[str]:
    """The row of a node in the table."""
    row = [
        node.name,
        f"{node.operator}-{node.version}",
        attributes_text(node.attributes) or "-",
        shape_text(node.input_shape),
        shape_text(node.output_shape),
        node.dtype,
        str(node.calls),
        f"{1e6 * node.first_seconds:.1f}",
        f"{1e6 * node.warm_seconds:.1f}",
    ]
    if check:
        row.append("cannot run" if node.difference is None else f"{node.difference:.3g}")
    return [*row, node.remark]


def whole_text(whole: Whole) -> str:
    """The comparison of the whole model as text."""
    if whole.difference is None:
        return whole.remark
    if whole.agrees:
        return f"onnxruntime agrees on the whole model (largest difference {whole.difference:.3g})"
    return f"the whole model on onnxruntime differs by {whole.difference:.3g}, {whole.remark}"


def show(outcome: Outcome, *, stored: str | None) -> None:
    """Print the table and the summary."""
    done, check = outcome.done, outcome.check
    if done.nodes:
        differs = [] if check is None else ["onnxruntime differs by"]
        rows = [[*HEAD, *differs, ""], *(cells(node, check is not None) for node in done.nodes)]
        print_lines(*table(rows, [*NUMBERS, *(True for _ in differs), False]))
    print_lines(f"{counted(sum(node.calls for node in done.nodes), 'pooling call')}: "
                f"{1e6 * outcome.pooling_seconds:.1f} us when warm; the run took {done.seconds:.3f} s, with other "
                f"nodes on onnx's ReferenceEvaluator")
    if done.idle:
        print_lines(f"not reached: {', '.join(done.idle)}")
    for name, x in outcome.made.items():
        print_lines(f"input {name!r} was generated: {x.dtype.name} {shape_text(x.shape)}, seed {outcome.seed}")
    if check is not None:
        same = sum(node.agrees is True for node in done.nodes)
        atol = "1e-06 of the largest input" if check.atol is None else f"{check.atol:g}"
        print_lines(f"onnxruntime agrees on {same} of {counted(len(done.nodes), 'pooling node')} "
                    f"(rtol {check.rtol:g}, atol {atol})")
    if done.whole is not None:
        print_lines(whole_text(done.whole))
    if outcome.far is not None:
        print_lines(f"largest difference from the expected output: {outcome.far:.3g} "
                    f"({'within' if outcome.reached else 'NOT within'} "
                    f"rtol {outcome.expected[0]:g}, atol {outcome.expected[1]:g})")
    for name, y in done.outputs.items() if stored else ():
        if y.dtype.isbuiltin == 2:  # from a package other than NumPy
            print_lines(f"output {name!r} is {y.dtype.name}, and {stored} stores only its bits: "
                        f"read it with .view(ml_dtypes.{y.dtype.name})")
