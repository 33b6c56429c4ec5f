"""The command onnxpool-conformance."""

import argparse
import fnmatch
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import __version__, reports
from .cases import Case
from .errors import SuiteError
from .files import check_empty, export, load
from .oracle import DTYPES
from .pictures import show
from .randoms import NAME, random_case, random_cases
from .rules import TIERS
from .runner import Backend, Command, Result, run
from .table import kernels, table
from .versions import OPERATORS


def selected(arguments: argparse.Namespace) -> list[Case]:
    """The cases that the options select."""
    cases = [*table().values(), *random_cases(arguments.random, arguments.seed),
             *random_cases(arguments.wide, arguments.seed, wide=True), *(kernels() if arguments.kernels else ())]
    return [case for case in cases if chosen(arguments, case.name, case.tier, case.operator)]


def chosen(arguments: argparse.Namespace, name: str, tier: str, operator: str) -> bool:
    """Whether the options select a case."""
    patterns = arguments.cases or ["*"]
    return (any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns) and tier in (arguments.tiers or TIERS)
            and operator in (arguments.operators or OPERATORS))


def find(name: str) -> Case:
    """A case by its name."""
    if name in table():
        return table()[name]
    if found := NAME.fullmatch(name):
        return random_case(int(found[2]), int(found[3]), wide=found[1] == "wide")
    for case in kernels():
        if case.name == name:
            return case
    more = "" if "bfloat16" in DTYPES else ", except cases of bfloat16, which need the package ml_dtypes"
    raise SuiteError(f"there is no case {name!r}; onnxpool-conformance list has the names of all{more}")


def list_cases(arguments: argparse.Namespace) -> int:
    """Print a line for each case."""
    cases = selected(arguments)
    if arguments.json:
        print(json.dumps([{"name": case.name, "tier": case.tier, "operator": case.operator, "version": case.version,
                           "tests": case.decided.tests, "error": case.error} for case in cases], indent=1))
    else:
        width = max((len(case.name) for case in cases), default=0)
        print("\n".join(f"{case.name:{width}}  {case.tier:9}  {case.decided.tests}" for case in cases))
    return 0


def show_case(arguments: argparse.Namespace) -> int:
    """Explain a case."""
    print("\n".join(show(find(arguments.case))))
    return 0


def export_cases(arguments: argparse.Namespace) -> int:
    """Write cases as files."""
    count = export(nonempty(selected(arguments)), Path(arguments.folder))
    print(f"{count} cases in {arguments.folder}")
    return 0


def nonempty(cases: list[Case]) -> list[Case]:
    """The cases, unless there are none."""
    if not cases:
        raise SuiteError("no case fits the options --cases, --tiers and --operators")
    return cases


def run_cases(arguments: argparse.Namespace) -> int:
    """Run cases, and report the results."""
    wanted = [(write, getattr(arguments, name)) for name, write in reports.FORMATS.items() if getattr(arguments, name)]
    for _, path in wanted:
        if path != "-" and not os.path.isdir(os.path.dirname(path) or "."):
            raise SuiteError(f"cannot write {path}: there is no such directory")
    if arguments.reports:
        check_empty(Path(arguments.reports))
    with tempfile.TemporaryDirectory(prefix="onnxpool-conformance-") as temporary:
        if arguments.folder:
            stored = [case for case in load(Path(arguments.folder))
                      if chosen(arguments, case.name, case.entry["tier"], case.entry["operator"])]
            if not stored:
                raise SuiteError(f"no case of {arguments.folder} fits the options --cases, --tiers and --operators")
        known = set(table()) | ({case.name for case in stored} if arguments.folder else set())
        expected = reports.expected_failures(Path(arguments.expected_failures), known) if \
            arguments.expected_failures else {}
        runtime = Backend(arguments.backend, arguments.timeout) if arguments.backend else \
            Command(arguments.command_line, arguments.timeout)
        try:
            if not arguments.folder:
                folder = Path(temporary) / "cases"
                export(nonempty(selected(arguments)), folder)
                stored = load(folder)
            results = list(watched(run(runtime, stored), len(stored)))
        finally:
            runtime.close()
        done = reports.Run(runtime.name, results, tuple(arguments.fail_on), expected)
        if arguments.reports:
            reports.write_reports(Path(arguments.reports), done, stored)
    for write, path in wanted:
        reports.write(path, write(done))
    if not any(path == "-" for _, path in wanted):
        print(reports.text(done))
    return 0 if done.ok else 1


def watched(results: Iterator[Result], count: int) -> Iterator[Result]:
    """The results. A terminal shows how many there are while they arrive."""
    terminal = sys.stderr.isatty()
    shown = 0.0
    for done, result in enumerate(results, 1):
        if terminal and (time.monotonic() - shown > 0.1 or done == count):
            shown = time.monotonic()
            sys.stderr.write(f"\r\x1b[K{done} of {count}: {result.name[:50]}")
            sys.stderr.flush()
        yield result
    if terminal:
        sys.stderr.write("\r\x1b[K")


def count(text: str) -> int:
    """A number that is not negative."""
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"must be a whole number below 10**9, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """A positive number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"must be a positive number of seconds below 10**6, got {text!r}")
    return value


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    selection = argparse.ArgumentParser(add_help=False)
    group = selection.add_argument_group("selection")
    group.add_argument("--cases", nargs="+", metavar="PATTERN", help="names of cases, which may have * and ?")
    group.add_argument("--tiers", nargs="+", choices=TIERS, metavar="TIER", help=", ".join(TIERS))
    group.add_argument("--operators", nargs="+", choices=[*OPERATORS], metavar="OPERATOR", help=", ".join(OPERATORS))
    group.add_argument("--random", type=count, default=0, metavar="N", help="add N random cases to the table")
    group.add_argument("--wide", type=count, default=0, metavar="N", help=(
        "add N random cases with any windows, about which runtimes may disagree, and with NaN and infinities"))
    group.add_argument("--kernels", action="store_true", help="add a case for each version, dtype and rank")
    group.add_argument("--seed", type=count, default=0, help="seed of the random cases (default: 0)")

    top = argparse.ArgumentParser(prog="onnxpool-conformance", description="A conformance suite for ONNX pooling.")
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    listing = commands.add_parser("list", parents=[selection], help="list the cases")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(run=list_cases)
    one = commands.add_parser("show", help="explain a case, with a picture of its windows")
    one.add_argument("case", metavar="CASE", help="its name, such as random_7_0 for the first random case of seed 7")
    one.set_defaults(run=show_case)
    exporting = commands.add_parser("export", parents=[selection], help="write cases as models, arrays and a manifest")
    exporting.add_argument("folder", metavar="DIR", help="a directory that is empty, or does not exist yet")
    exporting.set_defaults(run=export_cases)
    running = commands.add_parser("run", parents=[selection], help="run a runtime on the cases", description=(
        "Exits with 0 if the runtime passes, with 1 if it does not, and with 2 if it cannot be run."))
    runtime = running.add_mutually_exclusive_group(required=True)
    runtime.add_argument("--backend", metavar="MODULE", help="a module with the interface of onnx.backend")
    runtime.add_argument("--command", dest="command_line", metavar="COMMAND",
                         help="a command with {model} (a file), {inputs} and {outputs} (directories), which reads "
                              "input_0.pb or input_0.bin and writes output_0.npy or output_0.pb, and so on")
    running.add_argument("--from", dest="folder", metavar="DIR", help="cases that export has written")
    running.add_argument("--timeout", type=seconds, default=30.0, metavar="SECONDS", help="for a case (default: 30)")
    running.add_argument("--fail-on", nargs="*", choices=TIERS, default=["spec", "consensus"], metavar="TIER",
                         help="tiers whose failures make the run fail (default: spec consensus)")
    running.add_argument("--expected-failures", metavar="FILE",
                         help="names of cases, one per line, with a reason after #; if one passes, the run fails")
    for name in reports.FORMATS:
        running.add_argument(f"--{name}", nargs="?", const="-", metavar="FILE",
                             help=f"write the results as {name} to a file, or to the standard output")
    running.add_argument("--reports", metavar="DIR", help=(
        "write a file for each kind of failure, for maintainers: a model as text, inputs, expected and actual results"))
    running.set_defaults(run=run_cases)
    return top


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    arguments = parser().parse_args(words)
    try:
        return int(arguments.run(arguments))
    except SuiteError as error:
        print(f"onnxpool-conformance: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
