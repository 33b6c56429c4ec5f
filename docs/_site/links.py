"""
Links of pages that also work on a forge: those to files outside docs/ lead to the repository.

Links that have the name of a file as their text, which suits a clone, get the title of its page.

A file that a page of the site includes is written for its own folder, so its links are rewritten as well. Folders of
plain HTML are copied into the site, and links to them stay as they are.
"""

import os
import re
import shutil
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
HOME = "https://github.com/onnxpool/onnxpool"
SITE = {"CHANGELOG.md": "project/changelog.md", "CONTRIBUTING.md": "project/contributing.md",
        "docs/README.md": "index.md"}  # files that are pages of the site
PLAIN = ("explorer",)  # folders of plain HTML, if there are any
TO_PLAIN = re.compile(rf"\[([^\]]+)\]\(((?:\.\./)*(?:{'|'.join(PLAIN)})/[^)\s]*)\)")
LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)")
NAMED = re.compile(r"\[[\w/.-]+\.md\](?=\((?!https?:)([^)#\s]+\.md))")
OURS = re.compile(rf"(\]\(){HOME}/(?:blob|tree)/main/((?:docs/|CHANGELOG|CONTRIBUTING)[^)#\s]*\.md)")
BLOCK = re.compile(r"^(```python\n(?:(?!```).*\n)*?.+)\n\n```$", re.MULTILINE)  # an empty line, which ends a doctest
PAGES = re.compile(rf"{HOME}/blob/main/docs/([\w/.-]+)\.md")
INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)


def resolved(text: str, folder: Path, page: Path) -> str:
    """Text whose links are relative to a folder, for a page of the site."""

    def target(path: Path, written: str) -> str:
        place = os.path.relpath(path, ROOT)
        if place in SITE:
            path = DOCS / SITE[place]
        if path.is_relative_to(DOCS) and path.suffix == ".md":
            return Path(os.path.relpath(path, page.parent)).as_posix()
        if not path.exists():
            return written  # which the build reports
        if path.is_relative_to(DOCS):
            return Path(os.path.relpath(path, page.parent)).as_posix()
        return f"{HOME}/{'tree' if path.is_dir() else 'blob'}/main/{place}"

    text = TO_PLAIN.sub(r'<a href="\2">\1</a>', text)
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
        return resolved(file.read_text(encoding="utf-8"), file.parent, page)

    text = BLOCK.sub(r"\1\n```", source[0])
    whole = INCLUDE.sub("\0\\1\0", resolved(text, page.parent, page))
    source[0] = re.sub("\0(.*?)\0", lambda part: included(part), whole)


def copy_plain(app: Any, exception: Exception | None) -> None:
    """Copy the folders of plain HTML. On the site, their links to pages of the repository lead to those of the site."""
    for name in PLAIN:
        if exception is None and (DOCS / name).is_dir():
            copy = Path(app.outdir) / name
            shutil.copytree(DOCS / name, copy, dirs_exist_ok=True)
            for page in copy.glob("*.html"):
                page.write_text(PAGES.sub(r"../\1.html", page.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", read)
    app.connect("build-finished", copy_plain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
