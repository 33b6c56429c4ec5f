"""
Write the manual page of the command line from its parser: `docs/onnxpool.1.in`, which the build completes and installs.

After a change in `src/onnxpool/commands/arguments.py`, install onnxpool, run python tools/generate_man.py, and commit
the file that it writes. With --check, it writes nothing, and exits with 1 if the committed file is stale.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from onnxpool.commands import arguments
from onnxpool.commands.parsing import Parser

PAGE = Path(__file__).parents[1] / "docs" / "onnxpool.1.in"
HEAD = f'''.\\" python tools/{Path(__file__).name} wrote this file
.TH ONNXPOOL 1 "" "onnxpool @version@" "User Commands"'''
HOME = "https://github.com/onnxpool/onnxpool"
LISTED = re.compile(r"  (\S+) {2,}(.*)")  # an entry in a list at the end of a help text
VARIABLES = {
    "ONNXPOOL_NUM_THREADS": "The default number of threads of a call. Without it, OMP_NUM_THREADS is used.",
    "ONNXPOOL_MAX_OUTPUT_BYTES": "The maximum size of the results of a call in bytes. No limit by default.",
    "ONNXPOOL_MAX_WORK": "The maximum work of a call: elements of all windows, and results. No limit by default.",
    "ONNXPOOL_ISA": "The instruction set to use, such as baseline.",
    "ONNXPOOL_WISDOM": "A JSON file with what tuned plans have learned, such as bench --tune writes.",
}


def plain(text: str) -> str:
    """Text in which nothing has a meaning to roff."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("`", "")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def bold(text: str) -> str:
    """Text to type as it is."""
    return rf"\fB{plain(text)}\fR"


def italic(text: str) -> str:
    """Text to replace with a value."""
    return rf"\fI{plain(text)}\fR"


def paragraphs(text: str | None) -> Iterator[str]:
    """Paragraphs, which empty lines separate."""
    for paragraph in (text or "").strip().split("\n\n"):
        yield from (".PP", plain(paragraph))


def named(action: argparse.Action) -> str:
    """The name of the value of an option or operand."""
    return italic(str(action.metavar or action.dest.upper()))


def value(action: argparse.Action) -> str:
    """The value of an option or operand, in brackets if it can be omitted."""
    forms = {"0": "", "?": "[{}]", "*": "[{} ...]"}
    return forms.get(str(action.nargs), "{}").format(named(action))


def shown(action: argparse.Action) -> str:
    """An option with its value, or the name of an operand."""
    names = ", ".join(map(bold, action.option_strings))
    return f"{names} {value(action)}".strip() if names else named(action)


def listed(actions: Iterable[argparse.Action]) -> Iterator[str]:
    """Options and operands with their texts, then the names of those that speak for themselves."""
    silent = []
    for action in actions:
        if action.help:
            yield from (".TP", shown(action), plain(action.help))
        else:
            silent.append(shown(action))
    if silent:
        yield from (".PP", ",\n".join(silent))


def ending(text: str | None) -> Iterator[str]:
    """The end of a help text: sections with a heading, which hold a list or lines to type."""
    for section in (text or "").strip().split("\n\n"):
        heading, *lines = section.splitlines()
        yield from (".PP", bold(heading.capitalize()))
        if heading != "exit status:":
            yield from (".EX", *(plain(line) for line in lines), ".EE")
            continue
        for line in lines:
            entry = LISTED.fullmatch(line)
            yield from (".TP", bold(entry[1]), plain(entry[2])) if entry else (plain(line.strip()),)


def command_lines(name: str, command: Parser) -> Iterator[str]:
    """The part about a command."""
    yield f".SS {name}"
    yield " ".join((bold(command.prog), f"[{italic('options')}]", *map(value, command.operands)))
    yield from paragraphs(command.description)
    for group in command._action_groups:
        actions = [action for action in group._group_actions if "--help" not in action.option_strings]
        if actions:
            if group.description:
                yield from paragraphs(group.description)
            yield from listed(actions)
    yield from ending(command.epilog)


def page() -> str:
    """The whole page."""
    top, commands = arguments.parser()
    lines = [HEAD, ".SH NAME", "onnxpool \\- run, check and time ONNX pooling operators", ".SH SYNOPSIS",
             f"{bold('onnxpool')} {italic('COMMAND')} [{italic('argument')} ...]"]
    for option in arguments.ALONE:
        lines += [".br", f"{bold('onnxpool')} {shown(top.known[option])}"]
    lines += [".SH DESCRIPTION", *list(paragraphs(top.description))[1:], ".SH OPTIONS",
              *listed(action for action in top._actions if action.option_strings), ".SH COMMANDS",
              "Arguments can come in any order."]
    for name, command in commands.items():
        lines += command_lines(name, command)
    lines += [".SH ENVIRONMENT"]
    for name, text in VARIABLES.items():
        lines += [".TP", bold(name), plain(text)]
    lines += [".SH EXAMPLES AND EXIT STATUS", *list(ending(top.epilog))[1:], ".SH SEE ALSO", plain(HOME)]
    return "\n".join(line for line in lines if line) + "\n"


def main() -> int:
    """Write the page, or check it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="exit with 1 if the committed file is stale")
    check = options.parse_args().check
    made = page()
    if check and PAGE.read_text(encoding="utf-8") != made:
        print(f"{PAGE.name} is stale: run python tools/{Path(__file__).name}", file=sys.stderr)
        return 1
    if not check:
        PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
