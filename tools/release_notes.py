"""Print the changes of a version, and refuse a tag that does not match: `python tools/release_notes.py v0.1.0`.

The version is stated in meson.build, CITATION.cff and a heading of CHANGELOG.md. For a release, all three must agree
with the tag, and the heading must have a date.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def found(pattern: str, file: str, what: str) -> str:
    """The match of a pattern's group in a file of the repository. If there is none, the error calls it `what`."""
    match = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if match is None:
        sys.exit(f"{file} has no {what}")
    return match[1]


def notes(tag: str) -> str:
    """
    The section of CHANGELOG.md on the version that a tag names.

    Parameters
    ----------
    tag : str
        "v" and the version.
    """
    version = tag.removeprefix("v")
    told = {
        "meson.build": found(r"^  version: '([^']+)'", "meson.build", "version"),
        "CITATION.cff": found(r"^version: (\S+)$", "CITATION.cff", "version"),
    }
    for file, other in told.items():
        if tag != f"v{other}":
            sys.exit(f"the tag is {tag}, {file} has version {other}")
    section = rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)\n\n(.*?)\n*(?=^## |\Z)"
    return found(section, "CHANGELOG.md", f"heading with a date for {version}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/release_notes.py TAG")
    print(notes(sys.argv[1]))
