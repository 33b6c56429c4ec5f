"""
Build the wheel of a commit for asv: python benchmarks/build.py SOURCE FOLDER.

If the commit has an option for it, only the loops that can run are compiled, for this processor's best instruction
set.
"""

import subprocess
import sys
from pathlib import Path


def command(source: Path, folder: Path) -> list[str]:
    """The arguments with which pip builds the wheel."""
    options = source / "meson.options"
    native = options.is_file() and "instruction_sets" in options.read_text(encoding="utf-8")
    return [sys.executable, "-m", "pip", "wheel", "--no-deps", f"--wheel-dir={folder}",
            *["-Csetup-args=-Dinstruction_sets=native"] * native, str(source.resolve())]


if __name__ == "__main__":
    sys.exit(subprocess.run(command(*map(Path, sys.argv[1:]))).returncode)
