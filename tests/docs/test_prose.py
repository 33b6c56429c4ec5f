"""Sentences are short: pages, docstrings, comments and messages have at most 25 words in a sentence."""

from pathlib import Path

import pytest
from prose import MOST_WORDS, length, long_sentences, prose_of_code, sentences

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "src", "tools", "benchmarks", "examples", ".github")
SUFFIXES = {".md", ".py", ".pyi", ".pyx", ".pxd", ".pxi", ".h", ".c", ".build", ".yml"}
FILES = sorted(
    path for path in [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    if path.suffix in SUFFIXES and path.name != "RESULTS.md"  # which benchmarks/race/report.py writes
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_sentences_are_short(path: Path) -> None:
    """No sentence has more words than a reader takes in at once."""
    assert long_sentences(path, with_messages="examples" not in path.parts) == []  # they hold a model as text


LONG = " ".join(["word"] * (MOST_WORDS + 1))


def two_lines(margin: str) -> str:
    """A sentence that is too long only if its two lines are read together."""
    return LONG.replace(" ", "\n" + margin, 1)


@pytest.mark.parametrize(("name", "text"), [
    ("page.md", f"A short one. {LONG}."),
    ("page.md", f"* An item.\n* {two_lines('  ')}"),
    ("page.md", f"| a cell | {LONG} |"),
    ("module.py", f'def f():\n    """\n    {LONG}.\n    """'),
    ("module.py", f'def f():\n    """\n    Short.\n\n    x : int\n        {two_lines("        ")}\n    """'),
    ("module.py", f"# {two_lines('# ')}\nx = 1"),
    ("module.py", f"x = 1  # {two_lines('       # ')}"),
    ("module.py", f'raise ValueError(f"{{x}} {LONG}")'),
    ("loops.h", f"/* {two_lines(' * ')} */"),
    ("loops.h", f"int x;  // {LONG}"),
])
def test_a_long_sentence_is_found(name: str, text: str, tmp_path: Path) -> None:
    """The check sees each kind of text."""
    (tmp_path / name).write_text(text)
    assert len(long_sentences(tmp_path / name)) == 1


@pytest.mark.parametrize(("name", "text"), [
    ("page.md", f"```\n{LONG}\n```"),
    ("page.md", "One of " + ", ".join(["`name`"] * 40) + " and `name`."),
    ("module.py", f'"""\nAn example::\n\n    >>> f()\n    {LONG}\n"""'),
])
def test_code_and_names_are_left_out(name: str, text: str, tmp_path: Path) -> None:
    """Examples and lists of names are as long as they must be."""
    (tmp_path / name).write_text(text)
    assert long_sentences(tmp_path / name) == []


def test_sentences_are_told_apart() -> None:
    """A full stop ends a sentence, one within a number or an abbreviation does not."""
    assert sentences("It takes 1.5 s, e.g. on Zen 3. `out` may be None.") == [
        "It takes 1.5 s, abbreviation on Zen 3.", "Name may be None."]
    assert length("A - b, `c`: 3 = d.") == 5
    assert list(filter(None, prose_of_code("x = '# no'  # yes"))) == ["yes"]
