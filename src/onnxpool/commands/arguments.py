"""The arguments of the command line, and its help."""

import argparse
import math
from collections.abc import Sequence
from functools import partial

from .. import __version__
from ..attributes import Flag
from ..base import registry
from ..hints import likely
from ..schemas import SCHEMAS
from .operators import operator_of
from .parsing import Parser, option_name

SHELLS = ("bash", "zsh", "tcsh")

DESCRIPTION = "The ONNX pooling operators as an exact, fast CPU library for NumPy arrays."
END = """
examples:
  onnxpool run
  onnxpool check model.onnx
  onnxpool check --help                       more examples
  onnxpool --print-completion bash            completion for a shell

exit status:
  0  all is well
  1  something was found: a difference, a warning, a node not fully checked
  2  the command cannot do its work
"""

RUN = """
Run an ONNX model with every pooling node on onnxpool and every other node on
onnx's ReferenceEvaluator. Show the pooling nodes with their shapes and times.

Inputs that are not given are made: random numbers of the declared dtype and
shape. An open batch axis is 1, other open sizes need --shape.

Times are those of one call. "first" is the call that the run makes: it also
resolves windows and starts threads. "warm" is the median of up to 25 more.

Without MODEL, run the ResNet-50 that the onnx package ships, and compare with
its expected output. That output does not depend on the model's pooling nodes:
give --check to compare each of them, and the whole model, with onnxruntime.
"""
RUN_END = """
examples:
  onnxpool run                                   the ResNet-50 of onnx
  onnxpool run model.onnx                        on random inputs
  onnxpool run model.onnx --shape x=1,3,224,224  close sizes that are open
  onnxpool run model.onnx --input x=x.npy --output y.npz
  onnxpool run model.onnx --check --rtol 1e-4    compare with onnxruntime
  onnxpool run model.onnx --json                 the same as data

exit status:
  0  the model ran; what was compared agrees
  1  results differ by more than the tolerances, or onnxruntime cannot run what
     --check compares
  2  the model cannot be run
"""

CHECK = """
Show every pooling node of an ONNX model with its windows, without running it.
Warn where onnxruntime, OpenVINO, onnx's ReferenceEvaluator or onnx's shape
inference are known to disagree with the specification or with onnxpool.

A node is not fully checked if sizes that decide its windows are not known.
"""
CHECK_END = """
examples:
  onnxpool check model.onnx
  onnxpool check model.onnx --shape x=1,3,224,224     close sizes that are open
  onnxpool check model.onnx --runtime onnxruntime=1.32
  onnxpool check model.onnx --runtime onnxruntime --runtime reference
  onnxpool check model.onnx --ignore ort-nan --values --json

exit status:
  0  every pooling node is fully checked, without a warning
  1  there are warnings, refused nodes, or nodes that are not fully checked
  2  the model cannot be read
"""

EXPLAIN = """
Show the plan of a pool: pads, windows, divisors and route. WHAT is the name of
an operator, with its attributes, or an ONNX file, of which every pooling node
is shown.

Arguments come in any order. Operators may be written in any case and as the
functions of Python are, lists as 3,3 or [3,3] or 3x3.
"""
EXPLAIN_END = """
examples:
  onnxpool explain MaxPool kernel_shape=3 strides=2 --shape 1,64,112,112
  onnxpool explain max_pool --shape 480,640,3 --kernel-shape 2 axes=0,1
  onnxpool explain AveragePool kernel_shape=3 --shape 1,3,8 --dtype float16
  onnxpool explain model.onnx --shape x=1,3,224,224
  onnxpool explain model.onnx --json

exit status:
  0  the plans are shown, and the reason where sizes are not known
  2  there is no such plan or model
"""
ATTRIBUTES = """
NAME=VALUE or --name VALUE: what the Python class of the operator takes.
"""

BENCH = """
Time every pooling node of an ONNX model, warm: the median of up to 25 calls,
which take at most 0.2 s or one call. onnxruntime runs the same nodes, each in a
session of its own with as many threads, if it is installed.

Inputs are given or made as by `onnxpool run`. Without MODEL, take the ResNet-50
that the onnx package ships.
"""
BENCH_END = """
examples:
  onnxpool bench                                 the ResNet-50 of onnx
  onnxpool bench model.onnx --shape x=1,3,224,224
  onnxpool bench model.onnx --threads 1 --json

exit status:
  0  the nodes were timed
  2  the model cannot be run
"""

CONFIG = """
Show what is installed: version, instruction set in use and those available,
OpenMP, and the number of threads.
"""
CONFIG_END = """
examples:
  onnxpool config
  onnxpool config --json
"""

SUPPORTED = """
Show every operator that onnxpool has, with its versions and their dtypes.
"""
SUPPORTED_END = """
examples:
  onnxpool supported
  onnxpool supported MaxPool AveragePool
  onnxpool supported --json                      with attributes and defaults

exit status:
  0  the operators are shown
  2  there is no such operator
"""


def tolerance(text: str) -> float:
    """A non-negative number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"give a number of at least 0, such as 1e-3, not {text!r}")
    return value


def integer(text: str, minimum: int) -> int:
    """An integer of at least `minimum`."""
    try:
        value = int(text)
    except ValueError:
        value = minimum - 1
    if value < minimum:
        raise argparse.ArgumentTypeError(f"give an integer of at least {minimum}, not {text!r}")
    return value


def add_model(command: Parser) -> None:
    """The arguments of commands that run a model."""
    command.add_argument("model", nargs="?", metavar="MODEL", help="an ONNX file")
    command.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="the array of an input")
    command.add_argument("--shape", action="append", default=[], metavar="NAME=SIZE,SIZE,...",
                         help="the shape of an input that is made")
    command.add_argument("--seed", type=partial(integer, minimum=0), default=0, metavar="N",
                         help="of the inputs that are made (default: 0)")


def add_bench(bench: Parser) -> None:
    """The arguments of ``bench``."""
    add_model(bench)
    bench.add_argument("--threads", type=partial(integer, minimum=1), metavar="N",
                       help="of both (default: those that onnxpool uses)")


METAVARS = {"ints": "N,N,...", "int": "N", "float": "NUMBER", "string": "NAME", "flag": "0|1", "axes": "N,N,...",
            "opset": "N"}
OF_CALLS = {"axes": "the axes to pool (default: the spatial ones)", "channels_last": "X is (N, *spatial, C)",
            "keepdims": "whether pooled axes stay", "opset": "the opset (default: the newest)",
            "return_indices": "Indices too"}  # ONNX defines its attributes


def settings() -> dict[str, str]:
    """The arguments of the operator classes, and the kind of each: that of the attribute, "flag", or ""."""
    found: dict[str, str] = {}
    for operator, cls in registry.items():
        kinds = SCHEMAS[operator].versions[-1].attributes
        for name, default in (cls.__init__.__kwdefaults__ or {}).items():
            kind = kinds.get(name)
            found[name] = "flag" if isinstance(default, bool) or isinstance(kind, Flag) else kind.type if kind else ""
    return found


def setting(name: str, text: str) -> tuple[str, str]:
    """An attribute with its value as text."""
    return name, text


def add_explain(explain: Parser) -> None:
    """The arguments of ``explain``."""
    explain.usage = f"{explain.prog} [options] WHAT [NAME=VALUE ...]"
    explain.add_argument("what", metavar="WHAT", help="an operator such as MaxPool, or an ONNX file")
    explain.add_argument("attributes", nargs="*", default=[], metavar="NAME=VALUE",
                         help="the attributes of the operator")
    explain.add_argument("--shape", action="append", default=[], metavar="[NAME=]SIZE,SIZE,...",
                         help="the shape of X, or of an input of the model that leaves sizes open")
    explain.add_argument("--dtype", help="of X (default: float32)")
    group = explain.add_argument_group("attributes", ATTRIBUTES.strip())
    for name, kind in sorted(settings().items()):
        explain.learn(group.add_argument(
            option_name(name), dest="settings", action="append", default=[], type=partial(setting, name),
            nargs="?" if kind == "flag" else None, const="1" if kind == "flag" else None,
            metavar=METAVARS.get(name) or METAVARS[kind], help=OF_CALLS.get(name)))


def add_run(run: Parser) -> None:
    """The arguments of ``run``."""
    add_model(run)
    run.add_argument("--output", metavar="FILE.npz", help="where the outputs are stored, by name")
    run.add_argument("--check", action="store_true",
                     help="compare every pooling node, and the whole model, with onnxruntime")
    run.add_argument("--rtol", type=tolerance, metavar="X",
                     help="allowed difference, relative to the expected result (default: 1e-3)")
    run.add_argument("--atol", type=tolerance, metavar="X",
                     help="allowed difference besides (default: 1e-6 of the largest input of the node; "
                          "0 for quantised results; 1e-7 for the expected output)")


def add_check(check: Parser) -> None:
    """The arguments of ``check``."""
    check.add_argument("model", metavar="MODEL", help="an ONNX file")
    check.add_argument("--shape", action="append", default=[], metavar="NAME=SIZE,SIZE,...",
                       help="the shape of an input that leaves sizes open")
    check.add_argument("--runtime", action="append", default=[], metavar="NAME[=VERSION]",
                       help="warn of this runtime only: onnxruntime, openvino, reference or inference (onnx's "
                            "ReferenceEvaluator and shape inference); can be given several times")
    check.add_argument("--ignore", action="append", default=[], metavar="WARNING",
                       help="leave out a warning, by the name in brackets; can be given several times")
    check.add_argument("--values", action="store_true",
                       help="warn too where only unusual values, such as NaN, tell runtimes apart")
    check.add_argument("--partial", action="store_true",
                       help="do not let nodes that are not fully checked decide the exit status")


def add_supported(supported: Parser) -> None:
    """The arguments of ``supported``."""
    supported.add_argument("operators", nargs="*", metavar="OPERATOR", help="such as MaxPool (default: all)")


def parser() -> tuple[Parser, dict[str, Parser]]:
    """The command line, and each of its commands."""
    top = Parser("onnxpool", description=DESCRIPTION, epilog=END.strip())
    top.add_argument("--version", action="version", version=f"onnxpool {__version__}")
    top.add_argument("--print-completion", choices=SHELLS, metavar="SHELL",
                     help=f"print what completes the command line in {', '.join(SHELLS)}; needs shtab")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    made = {}
    for name, text, description, end, add in (
        ("run", "run an ONNX model", RUN, RUN_END, add_run),
        ("check", "check the pooling nodes of an ONNX model without running it", CHECK, CHECK_END, add_check),
        ("explain", "show the plan of a pool, or of the pooling nodes of an ONNX model", EXPLAIN, EXPLAIN_END,
         add_explain),
        ("bench", "time the pooling nodes of an ONNX model, beside onnxruntime", BENCH, BENCH_END, add_bench),
        ("config", "show what is installed", CONFIG, CONFIG_END, None),
        ("supported", "show operators, versions and dtypes", SUPPORTED, SUPPORTED_END, add_supported),
    ):
        made[name] = command = commands.add_parser(name, help=text, description=description.strip(),
                                                   epilog=end.strip())
        if add is not None:
            add(command)
        command.add_argument("--json", action="store_true", help="print JSON instead of text")
        command.set_defaults(command=name)
    return top, made


def read(words: Sequence[str]) -> argparse.Namespace:
    """The arguments given by these words: a command, which options may precede, and what belongs to it."""
    top, commands = parser()
    first = next(iter(words), "")
    place = next((i for i, word in enumerate(words) if word.lower() in commands), None)
    if place is not None and (place == 0 or first.startswith("-")) and first not in top.known:
        return commands[words[place].lower()].read([*words[:place], *words[place + 1:]])
    if first and not first.startswith("-"):
        names = {name.strip("-"): name for name in (*commands, *top.known)}
        near = names.get(likely(first.lower(), names) or "") or (operator_of(first) and f"explain {first}")
        top.error(f"there is no command {first}; "
                  + (f"did you mean onnxpool {near}?" if near else f"give one of {', '.join(commands)}"))
    args = top.read(words)
    if args.print_completion is None:
        top.error(f"give a command: one of {', '.join(commands)}")
    args.command = "completion"
    return args
