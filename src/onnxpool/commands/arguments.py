"""The arguments and help texts of the command line."""

import argparse
import math
from collections.abc import Sequence
from functools import partial

from ..attributes import INT64_MAX, Flag, shown
from ..base import registry
from ..hints import likely
from ..schemas import ALL_SCHEMAS
from .operators import operator_of
from .parsing import Parser, option_name

SHELLS = ("bash", "zsh", "tcsh")
ALONE = ("--version", "--print-completion")  # options instead of a command

DESCRIPTION = "The ONNX pooling operators as an exact, fast CPU library for NumPy arrays."
END = """
examples:
  onnxpool run
  onnxpool check model.onnx
  onnxpool check --help                       more examples
  onnxpool --print-completion bash            completion for a shell

exit status:
  0  all is well
  1  something was found: a difference, a warning, or a node not fully checked
  2  the command failed
"""

RUN = """
Run an ONNX model with every pooling node on onnxpool and every other node on
onnx's ReferenceEvaluator. Show the pooling nodes with their shapes and times.

Inputs that are not given are random numbers of the declared dtype and shape.
An unknown batch size becomes 1. Other unknown sizes need --shape.

Times are per call. "first" is the call during the run, which also resolves
windows and starts threads. "warm" is the median of up to 25 further calls.

Without MODEL, run the ResNet-50 that the onnx package ships, and compare the
result with its expected output. That output does not depend on the pooling
nodes: use --check to compare each of them, and the whole model, with
onnxruntime.
"""
RUN_END = """
examples:
  onnxpool run                                   the ResNet-50 of onnx
  onnxpool run model.onnx                        on random inputs
  onnxpool run model.onnx --shape x=1,3,224,224  set unknown sizes
  onnxpool run model.onnx --input x=x.npy --output y.npz
  onnxpool run model.onnx --check --rtol 1e-4    compare with onnxruntime
  onnxpool run model.onnx --json                 the same as data

exit status:
  0  the model ran, and its pooling nodes agree with onnxruntime, if compared
  1  a result differs by more than the tolerances, onnxruntime cannot run a
     pooling node, or its optimisers change the model
  2  the model cannot be run
"""

CHECK = """
Show every pooling node of an ONNX model with its windows, without running it.
Warn where onnxruntime, OpenVINO, onnx's ReferenceEvaluator or onnx's shape
inference are known to disagree with the specification or with onnxpool.

A node is not fully checked if its windows depend on unknown sizes.
"""
CHECK_END = """
examples:
  onnxpool check model.onnx
  onnxpool check model.onnx --shape x=1,3,224,224     set unknown sizes
  onnxpool check model.onnx --runtime onnxruntime=1.32
  onnxpool check model.onnx --runtime onnxruntime --runtime reference
  onnxpool check model.onnx --ignore ort-nan --values --json

exit status:
  0  every pooling node is fully checked, without a warning
  1  there are warnings, refused nodes, or nodes that are not fully checked
  2  the model cannot be read
"""

FIX = """
Rewrite the pooling nodes of an ONNX model so that runtimes agree about them,
and write the model to FILE.onnx. ceil_mode and SAME_* become pads, padding
that counts becomes a Pad, and versions that a runtime lacks are replaced.

A node is rewritten only if every window keeps its elements and its divisor, so
that maxima keep their bits, and means and norms their error bounds. Otherwise
it stays as it is, and the reason is shown. Everything else in the file stays
the same, byte for byte.
"""
FIX_END = """
examples:
  onnxpool fix model.onnx fixed.onnx
  onnxpool fix model.onnx fixed.onnx --runtime onnxruntime=1.32
  onnxpool fix model.onnx fixed.onnx --runtime onnxruntime --runtime openvino
  onnxpool fix model.onnx fixed.onnx --json

exit status:
  0  no known disagreement is left
  1  the file was written, but some disagreements remain, or some sizes are
     unknown
  2  the model cannot be read, or the file cannot be written
"""

EXPLAIN = """
Show the plan of a pool: pads, windows, divisors and route. WHAT is either the
name of an operator, followed by its attributes, or an ONNX file, whose pooling
nodes are all shown.

Arguments can come in any order. Operators can be spelt in any case, or like the
Python functions. Lists can be written as 3,3 or [3,3] or 3x3.
"""
EXPLAIN_END = """
examples:
  onnxpool explain MaxPool kernel_shape=3 strides=2 --shape 1,64,112,112
  onnxpool explain max_pool --shape 480,640,3 --kernel-shape 2 axes=0,1
  onnxpool explain AveragePool kernel_shape=3 --shape 1,3,8 --dtype float16
  onnxpool explain MaxPool kernel_shape=3 --shape 1,1,5,5 --svg windows.svg
  onnxpool explain model.onnx --shape x=1,3,224,224
  onnxpool explain model.onnx --json

exit status:
  0  the plans were shown, or the reason why sizes are unknown
  2  there is no such plan or model, or it cannot be drawn
"""
ATTRIBUTES = """
NAME=VALUE or --name VALUE: the arguments of the operator's Python class.
"""

BENCH = """
Time warm calls of every pooling node of an ONNX model. Each time is the median
of at least one and up to 25 calls within 0.2 s. If onnxruntime is installed, it
runs the same nodes, each in a session of its own with the same number of
threads.

Inputs are given or generated as in `onnxpool run`. Without MODEL, time the
ResNet-50 that the onnx package ships.
"""
BENCH_END = """
examples:
  onnxpool bench                                 the ResNet-50 of onnx
  onnxpool bench model.onnx --shape x=1,3,224,224
  onnxpool bench model.onnx --threads 1 --json
  onnxpool bench model.onnx --tune wisdom.json

exit status:
  0  the nodes were timed
  2  the model cannot be run
"""

CONFIG = """
Show the installation: version, instruction sets, OpenMP version and number of
threads.
"""
CONFIG_END = """
examples:
  onnxpool config
  onnxpool config --json
"""

SUPPORTED = """
Show all operators, with their versions and dtypes.
"""
SUPPORTED_END = """
examples:
  onnxpool supported
  onnxpool supported MaxPool AveragePool
  onnxpool supported --json                      with attributes and defaults

exit status:
  0  the operators were shown
  2  there is no such operator
"""


def tolerance(text: str) -> float:
    """A non-negative number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"pass a number of at least 0, such as 1e-3, not {shown(text)}")
    return value


def integer(text: str, minimum: int, maximum: float = math.inf) -> int:
    """An integer in [minimum, maximum]."""
    try:
        value = int(text)
    except ValueError:
        value = minimum - 1
    if not minimum <= value <= maximum:
        limit = f"at most {maximum}" if value > maximum else f"at least {minimum}"
        raise argparse.ArgumentTypeError(f"pass an integer of {limit}, not {shown(text)}")
    return value


def add_model(command: Parser) -> None:
    """The arguments of commands that run a model."""
    command.add_argument("model", nargs="?", metavar="MODEL", help="an ONNX file")
    command.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="the array of an input")
    command.add_argument("--shape", action="append", default=[], metavar="NAME=SIZE,SIZE,...",
                         help="the shape of a generated input")
    command.add_argument("--seed", type=partial(integer, minimum=0), default=0, metavar="N",
                         help="seed of the generated inputs (default: 0)")


def add_bench(bench: Parser) -> None:
    """The arguments of ``bench``."""
    add_model(bench)
    bench.add_argument("--threads", type=partial(integer, minimum=1, maximum=INT64_MAX), metavar="N",
                       help="number of threads for both (default: onnxpool's)")
    bench.add_argument("--tune", metavar="FILE",
                       help="tune the plan of each node, time it again, and write the wisdom to FILE, as JSON")


RESULT_DTYPE = "result_dtype"  # here, the argument `dtype` of means; the option --dtype is the dtype of X
METAVARS = {"ints": "N,N,...", "int": "N", "float": "NUMBER", "string": "NAME", "flag": "0|1", "axes": "N,N,...",
            "opset": "N", RESULT_DTYPE: "DTYPE"}
OF_CALLS = {"axes": "the axes to pool (default: the spatial axes)", "channels_last": "X is (N, *spatial, C)",
            "keepdims": "whether the result keeps pooled axes", "opset": "the opset (default: the newest)",
            "return_indices": "return Indices too",
            RESULT_DTYPE: "the dtype of means along named axes"}  # arguments that are not ONNX attributes


def settings() -> dict[str, str]:
    """The arguments of all operator classes with their kinds: the type of the attribute, "flag", or ""."""
    found: dict[str, str] = {}
    for operator, cls in registry.items():
        kinds = ALL_SCHEMAS[operator].versions[-1].attributes
        for name, default in cls._optional.items():
            kind = kinds.get(name)
            flag = isinstance(default, bool) or isinstance(kind, Flag)
            found[RESULT_DTYPE if name == "dtype" else name] = "flag" if flag else kind.type if kind else ""
    return found


def setting(name: str, text: str) -> tuple[str, str]:
    """An attribute with its unparsed value."""
    return name, text


def add_explain(explain: Parser) -> None:
    """The arguments of ``explain``."""
    explain.usage = f"{explain.prog} [options] WHAT [NAME=VALUE ...]"
    explain.add_argument("what", metavar="WHAT", help="an operator such as MaxPool, or an ONNX file")
    explain.add_argument("attributes", nargs="*", default=[], metavar="NAME=VALUE",
                         help="the attributes of the operator")
    explain.add_argument("--shape", action="append", default=[], metavar="[NAME=]SIZE,SIZE,...",
                         help="the shape of X, or of an input of the model with unknown sizes")
    explain.add_argument("--dtype", help="dtype of X (default: float32)")
    explain.add_argument("--svg", metavar="FILE", help="also draw the windows of one pool, as SVG")
    explain.add_argument("--png", metavar="FILE", help="the same as PNG, which needs matplotlib")
    group = explain.add_argument_group("attributes", ATTRIBUTES.strip())
    for name, kind in sorted(settings().items()):
        explain.learn(group.add_argument(
            option_name(name), dest="settings", action="append", default=[], type=partial(setting, name),
            nargs="?" if kind == "flag" else None, const="1" if kind == "flag" else None,
            metavar=METAVARS.get(name) or METAVARS[kind], help=OF_CALLS.get(name)))


def add_run(run: Parser) -> None:
    """The arguments of ``run``."""
    add_model(run)
    run.add_argument("--output", metavar="FILE.npz", help="file in which to store the outputs by name")
    run.add_argument("--check", action="store_true",
                     help="compare every pooling node, and the whole model, with onnxruntime")
    run.add_argument("--rtol", type=tolerance, metavar="X",
                     help="allowed difference, relative to the expected result (default: 1e-3)")
    run.add_argument("--atol", type=tolerance, metavar="X",
                     help="additional absolute difference (default: 1e-6 of the largest input of the node; "
                          "0 for quantised results; 1e-7 for the expected output)")


def add_check(check: Parser) -> None:
    """The arguments of ``check``."""
    check.add_argument("model", metavar="MODEL", help="an ONNX file")
    check.add_argument("--shape", action="append", default=[], metavar="NAME=SIZE,SIZE,...",
                       help="the shape of an input with unknown sizes")
    check.add_argument("--runtime", action="append", default=[], metavar="NAME[=VERSION]",
                       help="warn only about this runtime: onnxruntime, openvino, reference or inference (onnx's "
                            "ReferenceEvaluator and shape inference); can be repeated")
    check.add_argument("--ignore", action="append", default=[], metavar="WARNING",
                       help="omit a warning, by its name in brackets; can be repeated")
    check.add_argument("--values", action="store_true",
                       help="also warn where runtimes differ only for unusual values, such as NaN")
    check.add_argument("--partial", action="store_true",
                       help="ignore nodes that are not fully checked in the exit status")


def add_fix(fix: Parser) -> None:
    """The arguments of ``fix``."""
    fix.add_argument("model", metavar="MODEL", help="an ONNX file")
    fix.add_argument("output", metavar="FILE.onnx", help="the file to write")
    fix.add_argument("--runtime", action="append", default=[], metavar="NAME[=VERSION]",
                     help="rewrite only what this runtime needs: onnxruntime, openvino, reference or inference; can be "
                          "repeated (default: all runtimes, without ceil_mode and auto_pad)")


def add_supported(supported: Parser) -> None:
    """The arguments of ``supported``."""
    supported.add_argument("operators", nargs="*", metavar="OPERATOR", help="such as MaxPool (default: all)")


def parser() -> tuple[Parser, dict[str, Parser]]:
    """The command line, and each of its commands."""
    top = Parser("onnxpool", description=DESCRIPTION, epilog=END.strip())
    top.add_argument("--version", action="store_true", help="print the version")
    top.add_argument("--json", action="store_true",
                     help="with --version: print JSON that describes the installation, for bug reports")
    top.add_argument("--print-completion", choices=SHELLS, metavar="SHELL",
                     help=f"print a completion script for {', '.join(SHELLS)}; needs shtab")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    made = {}
    for name, text, description, end, add in (
        ("run", "run an ONNX model", RUN, RUN_END, add_run),
        ("check", "check the pooling nodes of an ONNX model without running it", CHECK, CHECK_END, add_check),
        ("fix", "rewrite the pooling nodes of an ONNX model so that runtimes agree", FIX, FIX_END, add_fix),
        ("explain", "show the plan of a pool, or of the pooling nodes of an ONNX model", EXPLAIN, EXPLAIN_END,
         add_explain),
        ("bench", "time the pooling nodes of an ONNX model, compared with onnxruntime", BENCH, BENCH_END, add_bench),
        ("config", "show the installation", CONFIG, CONFIG_END, None),
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
    """Parse the words of a command line: a command, possibly after options, and its arguments."""
    top, commands = parser()
    first = next(iter(words), "")
    place = next((i for i, word in enumerate(words) if word.lower() in commands), None)
    alone = set(ALONE).intersection(words[:place])
    if len(alone) > 1:
        top.error(f"{' and '.join(ALONE)} are given together; pass one of them")
    if alone:
        place, words = None, words[:place]
    if place is not None and (place == 0 or first.startswith("-")):
        return commands[words[place].lower()].read([*words[:place], *words[place + 1:]])
    if first and not first.startswith("-"):
        names = {name.strip("-"): name for name in (*commands, *top.known)}
        near = names.get(likely(first.lower(), names) or "") or (operator_of(first) and f"explain {first}")
        top.error(f"there is no command {first}; "
                  + (f"did you mean onnxpool {near}?" if near else f"pass one of {', '.join(commands)}"))
    args = top.read(words)
    if not args.version and args.print_completion is None:
        top.error(f"pass a command: one of {', '.join(commands)}")
    args.command = "version" if args.version else "completion"
    return args
