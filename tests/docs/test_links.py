"""Links of the README and the pages to headings of the repository, and links of the site. Sphinx checks the others."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from site_modules import module

ROOT = Path(__file__).parents[2]
HOME = "https://github.com/onnxpool/onnxpool"
PAGES = sorted(page for page in [*ROOT.glob("*.md"), *(page for folder in ("benchmarks", "docs", "examples", "src")
               for page in (ROOT / folder).rglob("*.md"))] if "generated" not in page.parts)


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as forges and MyST make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: list[str] = []
    for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        slug = re.sub(r"[^\w -]", "", plain).strip().replace(" ", "-")
        found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return set(found)


def anchored(page: Path) -> Iterator[tuple[Path, str]]:
    """The links of a page to headings of pages of the repository."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = re.sub(rf"^{HOME}/(?:blob|tree)/main/", f"{ROOT}/", link).partition("#")
        target = page.parent / path if path else page
        if anchor and not urlsplit(path).scheme and target.suffix == ".md":
            yield target, anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_anchors_are_headings(page: Path) -> None:
    """Each link to a part of a page names one of that page's headings, also in the README, which is not in the site."""
    assert [(target.name, anchor) for target, anchor in anchored(page) if anchor not in headings(target)] == []


def test_there_are_anchors_to_check() -> None:
    """The pages have relative links and absolute links with anchors, so that the checks are not empty."""
    assert sum(len(list(anchored(page))) for page in PAGES) > 40


SITE = {
    "index.html": '<h1 id="top"></h1><a href="pages/one.html#here">1</a> <a href="https://example.org/x">2</a>',
    "pages/one.html": '<p id="here"><a href="../index.html#top">3</a> <img src="../picture.svg"> <a href="#here">4</a>',
    "picture.svg": "<svg/>",
    "explorer/index.html": '<a href="#operator=MaxPool">5</a>',
}


@pytest.mark.parametrize(("change", "link"), [
    ({}, None), ({"picture.svg": None}, "../picture.svg"), ({"pages/one.html": None}, "pages/one.html#here"),
    ({"index.html": '<a href="pages/one.html#there">'}, "pages/one.html#there"),
    ({"generated/api.html": '<a class="x" href="../index.html#nowhere">'}, "../index.html#nowhere"),
    ({"generated/api.html": '<a href="../benchmarks/index.html">'}, None),
    ({"generated/api.html": '<a href="#a%20b"><i id="a b">'}, None),
    ({"explorer/index.html": '<a href="b.html">'}, "b.html"),
    ({"generated/api.html": '<a href="../explorer/index.html#sizes=3">'}, None)])
def test_a_built_site_has_no_broken_links(tmp_path: Path, change: dict[str, str | None], link: str | None) -> None:
    """A build of the site warns about missing files and anchors in the links of any page."""
    for name, text in {**SITE, **change}.items():
        if text is not None:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
    links = module("links")
    links.anchors.cache_clear()
    found = list(links.broken(tmp_path))
    if link is None:
        assert found == []
    else:
        assert link in [each for _, each in found]
