"""Commands shown on pages use files, options, groups and markers that exist."""

import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from onnxpool.commands import arguments

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "docs", "examples", "src", ".github")
PAGES = sorted([*(page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"),  # it describes the past
                *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")
                if "generated" not in page.parts),
                *(ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROGRAMS = ("asv", "onnxpool", "pip", "pytest", "python", "python3", "sphinx-build")
PROMPT = re.compile(r"^(?:\$ )?(?:\w+=\S+ |taskset -c \d+ |\.venv/bin/)*")


def commands_of(page):
    """The commands in code blocks and in code within lines, each as a list of words."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for language, block in blocks if language in ("", "sh") for line in block.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    for line in lines:
        for part in line.split(" && "):
            command = PROMPT.sub("", part.strip())
            if command.split(" ")[0] in PROGRAMS:
                yield shlex.split(command, comments=True)


COMMANDS = [(page.relative_to(ROOT).as_posix(), words) for page in PAGES for words in commands_of(page)]
IDS = [f"{page}: {' '.join(words)}" for page, words in COMMANDS]


def script_of(given):
    """The file that a Python command runs, or None if it runs something else."""
    if given[0] == "-m" and given[1].startswith("benchmarks"):
        module = Path(given[1].replace(".", "/"))
        return module / "__main__.py" if (ROOT / module).is_dir() else module.with_suffix(".py")
    return given[0] if given[0].endswith(".py") else None


def test_pages_have_commands():
    """The pattern finds commands of each program, in many pages."""
    assert {words[0] for _, words in COMMANDS} == set(PROGRAMS)
    assert len({page for page, _ in COMMANDS}) >= 10
    assert len(COMMANDS) >= 60


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=IDS)
def test_commands_name_what_there_is(page, words):
    """Scripts exist and know their options, and so do groups, extras, markers and the arguments of onnxpool."""
    program, *given = words
    options = [word.partition("=")[0] for word in given if word.startswith("--")]
    if program == "onnxpool":
        top, commands = arguments.parser()
        if len(given) == 1:  # a sentence mentions the program
            assert given[0] in (*commands, *top.known)
        elif given and "COMMAND" not in given:
            assert arguments.read(given)
    elif program.startswith("python"):
        script = script_of(given)
        if script is not None:
            path = next(folder / script for folder in (ROOT, (ROOT / page).parent) if (folder / script).is_file())
            assert [option for option in options if f'"{option}"' not in path.read_text(encoding="utf-8")] == []
    elif program == "pytest":
        markers = [marker.partition(":")[0] for marker in PROJECT["tool"]["pytest"]["ini_options"]["markers"]]
        assert [mark for option, mark in pairwise(given) if option == "-m" and mark not in markers] == []
    groups = [name for option, name in pairwise(given) if option == "--group"]
    assert set(groups) <= set(PROJECT["dependency-groups"])
    extras = re.findall(r"(?:^|\s)(?:onnxpool|\.)\[(\w+)\]", " ".join(given))
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])
