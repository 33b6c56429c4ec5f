"""The built site in Chromium: on phones and desktops, light and dark, nothing is cut, pale or without a name."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Page, browser, program
from looks import faults

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
OTHERS = (  # pages that the theme adds; readers use only the search
    "genindex", "_static/", "search")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built anew."""
    pytest.importorskip("onnx")
    for name in ("myst_parser", "pydata_sphinx_theme", "sphinx_design", "sphinx_gallery", "matplotlib"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(ROOT / "docs"), str(folder)]
    subprocess.run(build, check=True, timeout=900)
    return folder


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A page in Chromium."""
    if program() is None:
        pytest.skip("Chromium is not installed")
    with browser() as opened:
        yield opened


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_is_easy_to_read(site: Path, page: Page, width: int, dark: bool) -> None:
    """Each page of the site is easy to read. Of pages about single API names, the first few stand for all."""
    pages = [path for path in sorted(site.rglob("*.html"))
             if not path.relative_to(site).as_posix().startswith((*OTHERS, "generated/api/"))]
    pages += sorted((site / "generated" / "api").glob("*.html"))[:5]
    assert len(pages) > 70
    page.look(width, dark)
    found = {}
    for path in pages:
        page.open(path.as_uri())
        assert page.run("innerWidth") == width
        if some := faults(page):
            found[path.relative_to(site).as_posix()] = some
    assert found == {}
    assert page.errors == []


def test_methods_have_docstrings(site: Path) -> None:
    """The page of a class has its methods with their parameters, also those that it inherits."""
    for name, methods in (("Plan", ("explain", "tile", "combine", "__call__")), ("MaxPool", ("plan", "output_shape")),
                          ("explain.Explanation", ("svg", "plot", "to_dict"))):
        page = (site / "generated" / "api" / f"onnxpool.{name}.html").read_text(encoding="utf-8")
        assert all(f'id="onnxpool.{name}.{method}"' in page for method in methods), name
        assert "__init__" not in page
