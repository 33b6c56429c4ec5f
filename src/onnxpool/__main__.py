"""The command line: ``onnxpool run`` runs an ONNX model, ``onnxpool check`` looks at its pooling nodes."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from . import __version__
from .commands import CANNOT, INTERRUPTED

DESCRIPTION = "The ONNX pooling operators as an exact, fast CPU library for NumPy arrays."
RUN = """
Run an ONNX model with every pooling node on onnxpool and every other node on onnx's reference evaluator, and
show the pooling nodes with their shapes and times. Without MODEL, run the ResNet-50 that the onnx package ships
and compare with its expected output. That model's weights are constants and its output is uniform whatever its
pooling nodes return: give --check to compare each of them with onnxruntime.
"""
CHECK = """
Show every pooling node of an ONNX model with its windows, without running it, and warn where onnxruntime, OpenVINO,
onnx's ReferenceEvaluator or onnx's shape inference are known to disagree with the specification or with onnxpool.
"""
RUN_EXIT = "exit status: 0, or 1 if the expected output is not reached, or 2 if the model cannot be run"
CHECK_EXIT = "exit status: 0, or 1 if there are warnings or refused nodes, or 2 if the model cannot be read"


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    top = argparse.ArgumentParser("onnxpool", description=DESCRIPTION)
    top.add_argument("--version", action="version", version=f"onnxpool {__version__}")
    commands = top.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run an ONNX model", description=RUN, epilog=RUN_EXIT)
    run.add_argument("model", nargs="?", metavar="MODEL", help="an ONNX file")
    run.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="the array of an input")
    run.add_argument("--output", metavar="FILE.npz", help="where the outputs are stored, by name")
    run.add_argument("--check", action="store_true", help="compare every pooling node with onnxruntime")
    run.add_argument("--json", action="store_true", help="print JSON instead of a table")
    check = commands.add_parser("check", help="check an ONNX model", description=CHECK, epilog=CHECK_EXIT)
    check.add_argument("model", metavar="MODEL", help="an ONNX file")
    check.add_argument("--shape", action="append", default=[], metavar="NAME=SIZE,SIZE,...",
                       help="the shape of an input that leaves sizes open")
    check.add_argument("--values", action="store_true",
                       help="warn too where only unusual values, such as NaN, tell runtimes apart")
    check.add_argument("--json", action="store_true", help="print JSON instead of text")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, by default those of the process.

    Returns
    -------
    int
        The exit status.
    """
    args = parser().parse_args(argv)
    try:
        from .onnx.protos import ModelError
        command = importlib.import_module(f".commands.{args.command}", __package__)
    except ImportError as error:
        print(f"onnxpool: {args.command} needs the onnx package ({error}): pip install 'onnxpool[onnx]'",
              file=sys.stderr)
        return CANNOT
    try:
        status: int = command.run(args)
        return status
    except ModelError as error:
        print(f"onnxpool: {error}", file=sys.stderr)
        return CANNOT
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
