"""The sentences of pages, docstrings, comments and messages, for tests/docs/test_prose.py."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

MOST_WORDS = 25

NAME = r"(?:``[^`]+``|`[^`]*`)"  # a name or a piece of code counts as one word, a list of them too
NAMES = re.compile(rf"{NAME}(?:(?:,| and| or|, and|, or)\s+{NAME})*")
LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|_)")
END = re.compile(r"(?<=[^.][.!?])[)\"*]*\s+")  # an ellipsis ends no sentence
WORD = re.compile(r"[^\W_]")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf)\.")


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph."""
    text = ABBREVIATION.sub("abbreviation", NAMES.sub("Name", LINK.sub(r"\1", text)))
    return [" ".join(sentence.split()) for sentence in END.split(text)]


def length(sentence: str) -> int:
    """How many words a sentence has; signs and lone punctuation are none."""
    return sum(WORD.search(word) is not None for word in sentence.split())


def blocks(text: str) -> Iterator[str]:
    """Paragraphs, items of lists, and cells of tables; code, examples and rulers are left out."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2 *$", "", text, flags=re.DOTALL | re.MULTILINE)
    block: list[str] = []
    example = False
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        example = bool(bare) and (example or bare.startswith(">>>"))
        starts = re.match(r"([*+-]|\d+\.|#+|\.\.)\s", bare) is not None
        columns = re.search(r"\S {2,}\S", bare) is not None
        if starts or columns or example or not re.search(r"\w", bare) or bare.startswith(("|", "<")):
            yield " ".join(block)
            block = []
        if bare.startswith("|"):
            yield from re.split(r"(?<!\\)\|", bare)
        elif bare and not example and not bare.startswith(("<", "..")) and re.search(r"\w", bare):
            block.append(re.sub(r"^([*+-]|\d+\.|#+)\s+", "", bare))
            if columns:
                yield " ".join(block)
                block = []


def indented_blocks(text: str) -> Iterator[str]:
    """Blocks of a docstring: a change of indentation begins one, as a description does below its parameter."""
    part: list[str] = []
    last = None
    for line in [*text.splitlines(), ""]:
        depth = len(line) - len(line.lstrip())
        if line.strip() and last is not None and depth != last and not re.match(r"\s*[*+-] ", part[-1] if part else ""):
            yield from blocks("\n".join(part))
            part = []
        last = depth if line.strip() else last
        part.append(line)
    yield from blocks("\n".join(part))


PIECES = re.compile(
    r"""(?P<doc>"{3}.*?"{3})|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|(?P<comment>\#[^\n]*)""", re.DOTALL)
C_PIECES = re.compile(r"""(?P<doc>/\*.*?\*/)|"(?:[^"\\\n]|\\.)*"|(?P<comment>//[^\n]*)""", re.DOTALL)

EMBEDDED = re.compile(r"cdef extern from [^\n]*:\s*\Z")  # C in a module of Cython follows


def prose_of_code(source: str, pieces: "re.Pattern[str]" = PIECES) -> Iterator[str]:
    """Blocks of the docstrings and comments of Python, Cython, meson or C; comments below each other are one."""
    comment: list[str] = []
    last = (-2, 0)
    for found in pieces.finditer(source):
        begin = source.rfind("\n", 0, found.start()) + 1
        alone = not source[begin:found.start()].strip()
        if found["doc"] and alone and not EMBEDDED.search(source[:found.start()]):
            text = re.sub(r"^ *\*+/? ?", "", found["doc"].strip('"/*'), flags=re.MULTILINE)
            yield from indented_blocks(inspect.cleandoc(text))
        elif found["comment"]:
            row, column = source.count("\n", 0, begin), found.start() - begin
            if not (alone and last == (row - 1, column)):
                yield from blocks("\n".join(comment))
                comment = []
            comment.append(re.sub(r"^(#|//)+:? ?", "", found["comment"]))
            last = row, column
    yield from blocks("\n".join(comment))


def messages(source: str) -> Iterator[str]:
    """Texts of Python code that are no docstrings, with each placeholder as one word."""
    tree = ast.parse(source)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "it" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented | inside:
            yield from indented_blocks(node.value)


def prose(path: Path, with_messages: bool = True) -> Iterator[str]:
    """Blocks of prose of a file; messages are texts of Python code, which can be anything but prose too."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from blocks(text)
    elif path.suffix in {".h", ".c"}:
        yield from prose_of_code(text, C_PIECES)
    else:
        yield from prose_of_code(text)
    if path.suffix == ".py" and with_messages:
        yield from messages(text)


def long_sentences(path: Path, with_messages: bool = True) -> list[str]:
    """Sentences of more than 25 words."""
    every = (sentence for block in prose(path, with_messages) for sentence in sentences(block))
    return [sentence for sentence in every if length(sentence) > MOST_WORDS]
