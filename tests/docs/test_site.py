"""The parts of the documentation site: pages made from the table of versions, pictures, figures and the gallery."""

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from site_modules import module

import onnxpool
from onnxpool import schemas

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
GALLERY = sorted((ROOT / "examples" / "gallery").glob("*.py"))


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The generated pages, by their names."""
    pytest.importorskip("onnx")
    made = module("pages")
    (made.DOCS / "generated" / "pictures").mkdir(parents=True, exist_ok=True)
    found: dict[str, str] = made.pages()
    return found


@pytest.mark.parametrize("name", schemas.ALL_SCHEMAS)
def test_the_page_of_an_operator_has_a_section_for_each_version(pages: dict[str, str], name: str) -> None:
    """Each version has a section with its attributes, defaults and dtypes, and the newest version comes first."""
    head, *sections = re.split(r"^## Version ", pages[f"operators/{name}.md"], flags=re.MULTILINE)
    assert "## Formula" in head
    versions = schemas.ALL_SCHEMAS[name].versions
    assert [int(section.split("\n")[0]) for section in sections] == [version.since for version in reversed(versions)]
    for section, version in zip(reversed(sections), versions, strict=True):
        rows = dict(re.findall(r"^\| `(\w+)` \|(.*)\|$", section, re.MULTILINE))
        assert list(rows) == list(version.attributes)
        for attribute, kind in version.attributes.items():
            default = rows[attribute].split(" | ")[2].strip("`")
            if kind.required:
                assert default == "required"
            elif default != "none":
                assert ast.literal_eval(default) == kind.implied
        assert f"Dtypes: {', '.join(version.dtypes)}." in section


@pytest.mark.parametrize("name", schemas.ALL_SCHEMAS)
def test_the_page_of_an_operator_has_a_picture_of_two_axes(pages: dict[str, str], name: str) -> None:
    """The call that the page shows draws the page's picture, which has at least one row and one column of cells."""
    found = re.search(r"!\[.*\]\(\.\./pictures/(\w+)\.svg\)\n\nDrawn by `(.*)`\.", pages[f"operators/{name}.md"])
    assert found is not None
    assert found[1] == name
    drawn = eval(found[2], {"np": np, "onnxpool": onnxpool})
    file = module("pages").DOCS / "generated" / "pictures" / f"{name}.svg"
    assert file.read_text(encoding="utf-8") == f"{drawn}\n"
    cells = re.findall(r'data-cell="(-?\d+),(-?\d+)"', drawn)
    assert all(len(set(numbers)) > 1 for numbers in zip(*cells, strict=True))


def test_the_page_of_an_operator_says_what_changed(pages: dict[str, str]) -> None:
    """New attributes, dtypes and outputs are named, and a version that only changed the text says so."""
    page = pages["operators/MaxPool.md"]
    news = dict(re.findall(r"^## Version (\d+)\n\n.*\n\n(New since.*|Calls and.*)$", page, re.MULTILINE))
    assert news == {
        "22": "New since version 12: the dtype bfloat16.", "12": "New since version 11: the dtypes int8, uint8.",
        "11": "Calls and results are as in version 10: ONNX changed only the text.",
        "10": "New since version 8: the attribute `ceil_mode`; the attribute `dilations`.",
        "8": "New since version 1: the attribute `storage_order`; the output Indices."}
    assert "`p` is int, `2` (before: float, `2.0`)" in pages["operators/LpPool.md"]


def test_the_page_about_runtimes_has_every_row(pages: dict[str, str]) -> None:
    """Each row of the table of disagreements is a row of the page, with its words."""
    from onnxpool.onnx.disagreements import TABLE

    page = pages["disagreements.md"]
    listed = dict(re.findall(r"^\| `([\w-]+)` \| ([^|]*) \|", page, re.MULTILINE))
    assert listed == {row.name: row.text for row in TABLE}


def test_the_page_about_the_command_line_has_every_option(pages: dict[str, str]) -> None:
    """Each command has its section, with its options."""
    from onnxpool.commands import arguments

    sections = dict(re.findall(r"^## onnxpool (\w+)\n(.*?)(?=^## |\Z)", pages["command-line.md"],
                               re.MULTILINE | re.DOTALL))
    _, commands = arguments.parser()
    assert list(sections) == list(commands)
    for name, command in commands.items():
        missing = [option for option in command.known if f"`{option}`" not in sections[name]]
        assert missing in ([], ["-h", "--help"])


def test_the_api_page_has_every_public_name(pages: dict[str, str]) -> None:
    """The page lists all public names of the package."""
    listed = re.findall(r"^   onnxpool\.(\w+)$", pages["api.rst"], re.MULTILINE)
    assert sorted(listed) == sorted(name for name in onnxpool.__all__ if name != "__version__")


@pytest.mark.parametrize(("written", "expected"), [
    ("[a](arrays.md#axes)", "[a](../arrays.md#axes)"),
    ("[a](../examples/gallery/README.rst)", "[a](HOME/blob/main/examples/gallery/README.rst)"),
    ("[a](../benchmarks/results)", "[a](HOME/tree/main/benchmarks/results)"),
    ("[a](HOME/blob/main/docs/onnx.md)", "[a](../onnx.md)"),
    ("[a](../CHANGELOG.md)", "[a](changelog.md)"),
    ("[a](README.md)", "[a](../index.md)"),
    ("[a](images/windows.svg)", "[a](../images/windows.svg)"),
    ("[a](https://example.org/b.md) [b](#c)", "[a](https://example.org/b.md) [b](#c)"),
    ("[a](missing.txt)", "[a](missing.txt)"),
    ("[c-api.md](c-api.md#limits)", "[Without the GIL](../c-api.md#limits)"),
    ("[SECURITY.md](../SECURITY.md)", "[SECURITY.md](HOME/blob/main/SECURITY.md)"),
    ("[a](explorer/index.html)", '<a href="explorer/index.html">a</a>'),
    ("[a](../benchmarks/results/asv)", '<a href="../benchmarks/index.html">a</a>'),
])
def test_links_of_pages_are_those_of_the_site(written: str, expected: str) -> None:
    """Links to files lead to pages of the site if there are any, and otherwise to the repository. Other links stay."""
    links = module("links")
    page = links.DOCS / "project" / "contributing.md"
    assert links.resolved(written.replace("HOME", links.HOME), links.DOCS, page) == expected.replace("HOME", links.HOME)


def test_words_for_the_search_are_those_of_pages() -> None:
    """Each page for which the search has words exists, and no word is listed twice."""
    pages = [path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    for page, words in module("keywords").KEYWORDS.items():
        assert page in pages or page.removeprefix("generated/operators/") in schemas.ALL_SCHEMAS
        assert sorted(set(words.split())) == sorted(words.split()), page


def test_the_pictures_of_concepts_are_drawn_anew() -> None:
    """The committed pictures are what the library draws."""
    command = [sys.executable, str(ROOT / "tools" / "draw_concepts.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "concepts").glob("*.md")]
    shown = {path for page in pages
             for path in re.findall(r"images/concepts/(\w+)\.svg", page.read_text(encoding="utf-8"))}
    assert shown == {path.stem for path in (ROOT / "docs" / "images" / "concepts").glob("*.svg")}


def test_the_figures_show_the_committed_data() -> None:
    """Each figure was drawn from the data that is committed, and a page shows it."""
    command = [sys.executable, str(ROOT / "tools" / "draw_figures.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    pages = (ROOT / "docs" / "performance.md").read_text("utf-8") + (ROOT / "README.md").read_text("utf-8")
    assert set(re.findall(r"images/figures/(\w+)\.svg", pages)) == {
        path.stem for path in (ROOT / "docs" / "images" / "figures").glob("*.svg")}


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_draws_a_picture(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script runs without a warning, and its picture is not empty."""
    import matplotlib.image
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    try:
        runpy.run_path(str(script))
        (number,) = plt.get_fignums()
        figure = plt.figure(number)
        figure.savefig(tmp_path / "picture.png", dpi=40)
        assert [ax.get_title() for ax in figure.axes if not ax.has_data()] == []
    finally:
        plt.close("all")
    pixels = matplotlib.image.imread(tmp_path / "picture.png")[..., :3]
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20


def test_the_gallery_is_in_order() -> None:
    """The site's list of examples contains every script."""
    text = (ROOT / "docs" / "_site" / "gallery.py").read_text(encoding="utf-8")
    assert sorted(re.findall(r'"(\w+)"', text.partition("ORDER = (")[2].partition(")")[0])) == [
        path.stem for path in GALLERY]
