"""
Rewrite links that also work on a code host: on the site, links to files outside docs/ lead to the repository.

A link whose text is a file name, as in a clone, gets the title of the file's page.

The links of a file that a page includes are relative to the file's own folder, so they are rewritten as well. Folders
of plain HTML are copied into the site, and links to them stay as they are.
"""

import os
import re
import shutil
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
HOME = "https://github.com/onnxpool/onnxpool"
SITE = {"CHANGELOG.md": "project/changelog.md", "CONTRIBUTING.md": "project/contributing.md",
        "docs/README.md": "index.md"}  # files that are pages of the site
PLAIN = ("explorer",)  # folders of plain HTML, if there are any
LATER = ("benchmarks",)  # folders that are added to the site after it is built
TO_PLAIN = re.compile(rf"\[([^\]]+)\]\(((?:\.\./)*(?:{'|'.join(PLAIN)})/[^)\s]*)\)")
TO_SPEED = re.compile(r"\[([^\]]+)\]\(((?:\.\./)*)benchmarks/results/asv\)")  # data, of which the site has pages
LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)")
NAMED = re.compile(r"\[[\w/.-]+\.md\](?=\((?!https?:)([^)#\s]+\.md))")
OURS = re.compile(rf"(\]\(){HOME}/(?:blob|tree)/main/((?:docs/|CHANGELOG|CONTRIBUTING)[^)#\s]*\.md)")
BLOCK = re.compile(r"^(```python\n(?:(?!```).*\n)*?.+)\n\n```$", re.MULTILINE)  # an empty line, which ends a doctest
PAGES = re.compile(rf"{HOME}/blob/main/docs/([\w/.-]+)\.md")
INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)
LINKED = re.compile(r'<(?:a|img|object)\b[^>]*?\b(?:href|src|data)="([^"]*)"')


def resolved(text: str, folder: Path, page: Path) -> str:
    """Text whose links are relative to a folder, for a page of the site."""

    def target(path: Path, written: str) -> str:
        place = os.path.relpath(path, ROOT)
        if place in SITE:
            path = DOCS / SITE[place]
        if path.is_relative_to(DOCS) and path.suffix == ".md":
            return Path(os.path.relpath(path, page.parent)).as_posix()
        if not path.exists():
            return written  # the build reports it
        if path.is_relative_to(DOCS):
            return Path(os.path.relpath(path, page.parent)).as_posix()
        return f"{HOME}/{'tree' if path.is_dir() else 'blob'}/main/{place}"

    text = TO_PLAIN.sub(r'<a href="\2">\1</a>', text)
    speed = f"{os.path.relpath(DOCS, page.parent)}/benchmarks/index.html"
    text = TO_SPEED.sub(rf'<a href="{speed}">\1</a>', text)
    text = LINK.sub(lambda link: link[1] + target(Path(os.path.normpath(folder / link[2])), link[2]), text)
    text = OURS.sub(lambda link: link[1] + target(ROOT / link[2], link[2]), text)
    return NAMED.sub(lambda link: title_of(page.parent / link[1]) or link[0], text)


def title_of(page: Path) -> str:
    """The title of a page up to a colon, in brackets, if there is such a page."""
    heading = re.search(r"^# ([^:\n]+)", page.read_text(encoding="utf-8"), re.MULTILINE) if page.exists() else None
    return f"[{heading[1]}]" if heading else ""


def read(app: Any, name: str, source: list[str]) -> None:
    """Resolve the links of a page, and of the files that it includes."""
    page = DOCS / f"{name}.md"
    if not page.exists():
        return

    def included(directive: re.Match[str]) -> str:
        file = Path(os.path.normpath(page.parent / directive[1]))
        app.env.note_dependency(str(file))
        text = resolved(file.read_text(encoding="utf-8"), file.parent, page)
        return f"#{text}" if source[0].startswith("# ") else text  # under the title of the page, if it has one

    text = BLOCK.sub(r"\1\n```", source[0])
    whole = INCLUDE.sub("\0\\1\0", resolved(text, page.parent, page))
    source[0] = re.sub("\0(.*?)\0", lambda part: included(part), whole)


def copy_plain(app: Any, exception: Exception | None) -> None:
    """Copy the folders of plain HTML. On the site, their links to pages of the repository lead to pages of the site."""
    for name in PLAIN:
        if exception is None and (DOCS / name).is_dir():
            copy = Path(app.outdir) / name
            shutil.copytree(DOCS / name, copy, dirs_exist_ok=True)
            for page in copy.glob("*.html"):
                page.write_text(PAGES.sub(r"../\1.html", page.read_text(encoding="utf-8")), encoding="utf-8")


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page."""
    return frozenset(map(unescape, re.findall(r'\b(?:id|name)="([^"]+)"', page.read_text(encoding="utf-8"))))


def broken(site: Path) -> Iterator[tuple[str, str]]:
    """Pages of a built site, with links to files or anchors that are not there."""
    for page in sorted(site.rglob("*.html")):
        if page.relative_to(site).parts[0] in ("_static", *LATER):
            continue
        for link in LINKED.findall(page.read_text(encoding="utf-8")):
            address = urlsplit(unescape(link))
            target = Path(os.path.normpath(page.parent / unquote(address.path))) if address.path else page
            folder = os.path.relpath(target, site).partition(os.sep)[0]
            if address.scheme or address.netloc or folder in LATER:
                continue
            # What follows the # in the address of plain HTML is the state of the page.
            anchor = unquote(address.fragment) if target.suffix == ".html" and folder not in PLAIN else ""
            if not target.exists() or (anchor and anchor not in anchors(target)):
                yield page.relative_to(site).as_posix(), link


def check_links(app: Any, exception: Exception | None) -> None:
    """Warn about links within the site that lead nowhere, including links of generated pages and plain HTML."""
    from sphinx.util import logging

    if exception is None and app.builder.name == "html":
        anchors.cache_clear()
        for page, link in broken(Path(app.outdir)):
            logging.getLogger(__name__).warning("%s: the link %s leads nowhere", page, link)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", read)
    app.connect("build-finished", copy_plain)
    app.connect("build-finished", check_links, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
