"""The manual page is up to date, valid, and says all that the help texts say."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import onnxpool
from onnxpool.commands import arguments

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "generate_man.py"
PAGE = ROOT / "docs" / "onnxpool.1.in"


@pytest.fixture(scope="module")
def generator():
    """The tool as a module."""
    spec = importlib.util.spec_from_file_location(TOOL.stem, TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def render(text):
    """The page as a reader sees it, without line breaks and hyphenation."""
    program = next(([name, *options] for name, *options in (("mandoc", "-Tascii"), ("groff", "-man", "-Tascii", "-ww"))
                    if shutil.which(name)), None)
    if program is None:
        pytest.skip("neither mandoc nor groff is installed")
    done = subprocess.run(program, input=text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    bare = re.sub(r".\x08|\x1b\[[\d;]*m", "", done.stdout)
    return squeezed(bare)


def squeezed(text):
    """Text without spaces, quotes and hyphens, which the programs choose."""
    return re.sub(r"""[\s`'"-]""", "", text)


def test_the_committed_page_is_that_of_the_parser():
    """After a change of arguments or help texts, the page was generated again."""
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_page_is_found(generator, tmp_path, monkeypatch, capsys):
    """--check notices a difference of one letter; without it, the tool writes the page."""
    monkeypatch.setattr(generator, "PAGE", tmp_path / "page")
    monkeypatch.setattr(sys, "argv", ["generate_man.py"])
    assert generator.main() == 0
    assert (tmp_path / "page").read_text() == PAGE.read_text()

    (tmp_path / "page").write_text(PAGE.read_text().replace("threads", "thread", 1))
    monkeypatch.setattr(sys, "argv", ["generate_man.py", "--check"])
    assert generator.main() == 1
    assert "run python tools/generate_man.py" in capsys.readouterr().err


def test_readers_see_all_help():
    """Every option, operand, text, example and exit status of every command is on the rendered page."""
    seen = render(PAGE.read_text())
    top, commands = arguments.parser()
    for parser in (top, *commands.values()):
        texts = [parser.description, *(group.description for group in parser._action_groups)]
        if parser is not top:
            texts += [parser.prog, *parser.epilog.split("\n\n")[0].splitlines()[1:]]
        for action in (*parser.known.values(), *parser.operands):
            hidden = parser is not top and action.dest == "help"
            texts += [] if hidden else [*action.option_strings, action.help, action.metavar]
        missing = [text for text in texts if text and squeezed(text) not in seen]
        assert missing == []


@pytest.mark.parametrize("text", [".TH is no request here", "'tis", r"a\fBb", r"\n(yr", "--x -1", "a\n.b\n'c"])
def test_nothing_in_a_text_is_a_request(generator, text):
    """Texts with characters that have a meaning to roff are shown as they are."""
    assert squeezed(text) in render(f'.TH X 1 "2026-01-01"\n.SH NAME\n{generator.plain(text)}\n')


def test_the_installed_page_has_the_version():
    """The build puts the version into the page, whose only placeholder it is."""
    assert re.findall(r"@\w+@", PAGE.read_text()) == ["@version@"]
    installed = Path(sys.prefix) / "share" / "man" / "man1" / "onnxpool.1"
    if not installed.is_file():
        pytest.skip("no manual page is installed under this prefix")
    assert f'"onnxpool {onnxpool.__version__}"' in installed.read_text()
