"""Make the version in meson.build that of a nightly build: `python tools/nightly_version.py` turns 0.1.0 into
0.1.0.dev20261127, which precedes the release. With `--file`, it changes another file.
"""

import argparse
import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r"^(  version: '\d+\.\d+\.\d+)(')", re.MULTILINE)


def nightly(text: str, day: datetime.date) -> str:
    """The text of meson.build with the version of that day's build."""
    changed, count = VERSION.subn(rf"\1.dev{day:%Y%m%d}\2", text)
    if count != 1:
        sys.exit("meson.build has no version of a release")
    return changed


def main() -> None:
    """Change the file in place, and print the line with the version."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--file", type=Path, default=ROOT / "meson.build")
    file = options.parse_args().file
    text = nightly(file.read_text(encoding="utf-8"), datetime.datetime.now(datetime.UTC).date())
    file.write_text(text, encoding="utf-8")
    print(re.search(r"version: '[^']+'", text)[0])  # type: ignore[index]  # nightly() has found it


if __name__ == "__main__":
    main()
