"""A parser that accepts arguments in any order and case, and gives hints about misspelt words."""

import argparse
import os
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from ..errors import printable
from ..hints import likely

NUMBERS = re.compile(r"[\[(]*-?\.?\d[-\d.,x\s]*[\])]*,?", re.IGNORECASE)  # may continue a value: 3 or -1 or 3,3]
SWITCHED = ("true", "false")


def option_name(text: str) -> str:
    """The spelling of an option on the command line: --kernel-shape for Kernel_Shape."""
    return f"--{text.lstrip('-').lower().replace('_', '-')}"


class Parser(argparse.ArgumentParser):
    """
    Parser of options and operands in any order.

    argparse cannot parse operands that are spread between options, and reads -2,-1 as an option. Words are therefore
    reordered first: options, each joined with its value, then operands. NAME=VALUE is an option if there is one of that
    name.

    Attributes
    ----------
    known : dict of str to Action
        Options by name.
    operands : list of Action
        Operands.
    """

    def __init__(self, prog: str | None = None, **texts: Any) -> None:
        self.known: dict[str, argparse.Action] = {}
        self.operands: list[argparse.Action] = []
        super().__init__(prog, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **texts)

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        """Add an option or operand."""
        return self.learn(super().add_argument(*args, **kwargs))

    def learn(self, action: argparse.Action) -> argparse.Action:
        """Register an option or operand. Options in groups must be registered explicitly."""
        self.known.update(dict.fromkeys(action.option_strings, action))
        if not action.option_strings:
            self.operands.append(action)
        return action

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse words. If they are not valid, the process exits with a message."""
        args, extra = self.parse_known_args(self.ordered(words))
        if extra:
            name, equals, _ = extra[-1].partition("=")
            way = f"; pass --shape {extra[-1]} or --input {name}=FILE.npy" if equals and "--input" in self.known else ""
            self.error(f"unexpected argument {extra[-1]}{way}")
        return args

    def ordered(self, words: Sequence[str]) -> list[str]:
        """The words in an order that argparse can parse: options joined with their values, then operands."""
        options: list[str] = []
        operands: list[str] = []
        unfinished: list[str] | None = None  # a list that goes on after this word
        position = 0
        while position < len(words):
            word = words[position]
            position += 1
            if word == "--":
                operands += words[position:]
                break
            if unfinished is not None and NUMBERS.fullmatch(word) and not os.path.exists(word):
                unfinished[-1] += f" {word}"
                continue
            unfinished = None
            name, equals, _ = word.partition("=")
            dashed = is_option(word)
            if not dashed and not (equals and option_name(name) in self.known and not os.path.exists(word)):
                operands.append(word)
                unfinished = operands if equals else None
                continue
            option = self.option(name) if dashed else option_name(name)
            self.once(option, options)
            options.append(option + word[len(name):])
            action = self.known[option]
            if not equals and action.nargs != 0:
                value = action.const
                if position < len(words) and takes(action.nargs, words[position]):
                    value = words[position]
                    position += 1
                elif action.nargs != "?":
                    self.error(f"{option} has no value; pass {option} {action.metavar or action.dest.upper()}")
                options[-1] += f"={value}"
            unfinished = options if "=" in options[-1] else None
        operands.sort(key=lambda word: "=" in word and not os.path.exists(word))
        return [*options, *(["--"] if any(is_option(word) for word in operands) else []), *operands]

    def option(self, typed: str) -> str:
        """The option that was typed: its name in any case, or an unambiguous prefix."""
        if typed in self.known:
            return typed
        name = option_name(typed)
        found = [option for option in self.known if option.startswith(name)] if typed.startswith("--") else []
        if name in found:
            return name
        if len(found) != 1:
            self.error(f"{typed} may be any of {', '.join(found)}; pass one of them" if found else self.unknown(typed))
        return found[0]

    def once(self, option: str, options: Sequence[str]) -> None:
        """Refuse a repeated option, because only its last value would count."""
        action = self.known[option]
        single = action.nargs != 0 and not isinstance(action.default, list)
        if single and any(self.known.get(other.partition("=")[0]) is action for other in options):
            self.error(f"{option} is given twice; pass it once")

    def unknown(self, typed: str) -> str:
        """The message for an option that does not exist."""
        names = {option[2:].replace("-", "_"): option for option in self.known if option.startswith("--")}
        near = likely(option_name(typed)[2:].replace("-", "_"), names)
        way = f"did you mean {names[near]}?" if near else f"{self.prog} --help lists the options"
        return f"there is no option {typed}; {way}"

    def error(self, message: str) -> NoReturn:
        """Exit with the usage and a message on one line."""
        super().error(printable(message))


def is_option(word: str) -> bool:
    """Whether a word is an option, not a value or an operand."""
    return word.startswith("-") and word != "-" and NUMBERS.fullmatch(word) is None


def takes(nargs: int | str | None, word: str) -> bool:
    """Whether a word is the value of the option before it. `nargs` says whether that value is optional."""
    if nargs == "?":
        return NUMBERS.fullmatch(word) is not None or word.lower() in SWITCHED
    return not is_option(word)
