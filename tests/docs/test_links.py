"""Links of the README and the pages: to headings of the repository, and to other sites."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from site_modules import module

ROOT = Path(__file__).parents[2]
HOME = "https://github.com/onnxpool/onnxpool"
SITE_HOME = "https://onnxpool.github.io/onnxpool/"
PAGES = sorted(page for page in [*ROOT.glob("*.md"), *(page for folder in ("benchmarks", "docs", "examples", "src")
               for page in (ROOT / folder).rglob("*.md"))] if "generated" not in page.parts)
SOURCES = sorted([*(ROOT / "docs").glob("**/*.js"), *(ROOT / "docs").glob("explorer/*.html"),
                  *(ROOT / "docs" / "_site").glob("*.py"), *(ROOT / "examples" / "gallery").glob("*.py"),
                  *(ROOT / "src").rglob("*.py"), ROOT / "tools" / "api_texts.toml", ROOT / "pyproject.toml"])

# Sites that pages link to. Add those that a new link needs; links.yml follows all links.
HOSTS = {
    "anaconda.org", "asv.readthedocs.io", "github.com", "keepachangelog.com", "ngff.openmicroscopy.org", "onnx.ai",
    "onnxpool.github.io", "raw.githubusercontent.com", "scientific-python.org", "www.contributor-covenant.org",
    "www.w3.org",
}
ADDRESS = re.compile(r"https?://[^\s<>\"'`\])]+")
OWN = re.compile(rf"{HOME}(?:/(?:issues|security/advisories/new|(?:blob|tree)/main/[\w./-]+(?:#[\w-]+)?))?")


def addresses(text: str) -> Iterator[str]:
    """The addresses of other sites in a text, without the full stop or comma that follows."""
    for found in ADDRESS.findall(text.replace("{name}", "NAME")):
        if "{" not in found and "$" not in found:
            yield found.rstrip(".,;:")


@pytest.mark.parametrize("file", [*PAGES, *SOURCES], ids=lambda file: file.relative_to(ROOT).as_posix())
def test_addresses_are_well_formed(file: Path) -> None:
    """Each names a known host, securely, and a path that it may have."""
    for address in addresses(file.read_text(encoding="utf-8")):
        parts = urlsplit(address)
        assert parts.hostname in HOSTS, address
        assert parts.scheme == "https" or parts.hostname == "www.w3.org", address  # names of XML, which are no links
        assert re.fullmatch(r"[\w.~/+%@-]*", parts.path), address
        assert "//" not in parts.path, address
        assert not address.startswith(HOME) or OWN.fullmatch(address), address


def test_every_host_is_used() -> None:
    """The list has no host that nothing links to."""
    used = {urlsplit(address).hostname for file in [*PAGES, *SOURCES]
            for address in addresses(file.read_text(encoding="utf-8"))}
    assert used == HOSTS


def test_the_site_has_the_links_of_the_readme() -> None:
    """Those to other sites, so that links.yml, which follows the links of the site, follows these as well."""
    def outside(page: Path) -> set[str]:
        raw = HOME.replace("github.com", "raw.githubusercontent.com")
        return {address for address in addresses(page.read_text(encoding="utf-8"))
                if not address.startswith((HOME, raw, SITE_HOME))}

    site = [page for page in PAGES if page.is_relative_to(ROOT / "docs") and page != ROOT / "docs" / "README.md"]
    assert outside(ROOT / "README.md") - set().union(*map(outside, site)) == set()


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
    """Each link to a part of a page names one of its headings: also from the README, which is not in the site."""
    assert [(target.name, anchor) for target, anchor in anchored(page) if anchor not in headings(target)] == []


def test_there_are_anchors_to_check() -> None:
    """Relative ones, and absolute ones."""
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
    """The build warns about links to files and anchors that are missing, of whichever page."""
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
