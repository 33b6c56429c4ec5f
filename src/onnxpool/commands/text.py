"""Parsing and printing of values."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from ..errors import LOGGED, printable

LEADING = re.compile(r"^(\W*?):(?=:)")  # GitHub Actions obeys ::...:: where the first visible text of a line begins
SEPARATOR = re.compile(r"\s*,\s*|\s+")
CROSSED = re.compile(r"-?\d+(x-?\d+)+", re.IGNORECASE)


def plain(value: Any) -> Any:
    """A value that JSON can represent: infinity and NaN become text, and other objects the name of their type."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (str, int, float)) else attribute_text(value)


def json_text(value: Any) -> str:
    """A value as JSON on one line, with hostile characters in JSON escapes."""
    text = json.dumps(plain(value), allow_nan=False).replace("\x7f", r"\u007f")
    return LOGGED.sub(r"#\\u0023", text)


def attribute_text(value: Any) -> str:
    """An attribute's value as 3,3."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(attribute_text, value))
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value) if isinstance(value, (str, int, float)) else f"({type(value).__name__})"


def attributes_text(attributes: Mapping[str, Any]) -> str:
    """Attributes as kernel_shape=3,3 strides=2,2."""
    return " ".join(f"{name}={attribute_text(value)}" for name, value in attributes.items())


def counted(count: int, noun: str) -> str:
    """A count with its noun, such as 1 warning or 2 warnings."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def items(text: str) -> list[str] | None:
    """The items of a list such as 3,3 or [3, 3] or (3, 3) or 3x3 or 3 3. None if the text is not a list."""
    body = text.strip()
    if not body:
        return None
    enclosed = body[:1] + body[-1:] in ("[]", "()")
    if enclosed:
        body = body[1:-1].strip()
    found = body.lower().split("x") if CROSSED.fullmatch(body) else SEPARATOR.split(body)
    if found[-1] == "":  # after a trailing comma, or in an empty list
        found.pop()
    return found if enclosed or found != [body] else None


def sizes(text: str) -> tuple[int, ...]:
    """The sizes of a shape such as 1,3,224,224."""
    listed = items(text)
    found = [text.strip()] if listed is None else listed
    if not all(size.isdecimal() for size in found):
        raise ValueError(text)
    return tuple(map(int, found))


def print_lines(*lines: str, file: TextIO | None = None) -> None:
    """Print lines, which may contain hostile names. All output of commands is escaped here."""
    for line in lines:
        print(LEADING.sub(r"\1\\x3a", printable(line)), file=file)


def table(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Lines of a table with aligned columns. Columns for which `right` is true are aligned on the right."""
    rows = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.rjust(width) if number else text.ljust(width)
                      for text, width, number in zip(row, widths, right, strict=True)).rstrip() for row in rows]
