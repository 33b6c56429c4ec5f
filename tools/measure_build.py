"""Measure a clean build: wall time by step, CPU time, the memory of the largest process, and module sizes.

Run it in a clone of the repository, with a Python that has pip: `python tools/measure_build.py`. It builds a wheel in a
temporary folder and leaves nothing behind, unless `--keep` names a folder for the wheel. The exit status is 1 if a
budget is exceeded or the build fails.
"""

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MOST_MEMORY = 0.8e9  # bytes of the largest process
MOST_KERNELS = 8.8e6  # bytes of all modules in kernels/


class Measured(NamedTuple):
    """The resources used by a build, and the bytes of each compiled module in the wheel."""

    wall: float  # seconds
    cpu: float  # seconds, over all processes
    memory: float  # bytes of the largest process
    stages: dict[str, float]  # seconds
    modules: dict[str, int]

    @property
    def kernels(self) -> int:
        """The bytes of all modules in kernels/."""
        return sum(size for name, size in self.modules.items() if "/kernels/" in name)


def modules_of(wheel: Path) -> dict[str, int]:
    """The compiled modules in a wheel, with their sizes."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.file_size for entry in archive.infolist() if entry.filename.endswith(".so")}


def build(folder: Path, instruction_sets: str) -> None:
    """
    Build a wheel from the sources.

    Parameters
    ----------
    folder : Path
        Folder for the wheel and all intermediate files.
    instruction_sets : str
        As the option of meson.options.
    """
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-cache-dir", "-w", str(folder),
               f"--config-settings=build-dir={folder / 'build'}",
               f"--config-settings=setup-args=-Dinstruction_sets={instruction_sets}"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if run.returncode:
        sys.exit(f"{run.stdout}\nthe build failed")


def stages(objects: Path, begin: float, end: float) -> dict[str, float]:
    """
    The time that each kind of build step takes.

    Parameters
    ----------
    objects : Path
        The build folder, which was empty at the beginning.
    begin, end : float
        Seconds since the epoch.

    Returns
    -------
    dict
        Seconds until the build is configured, then the sum over the steps of each kind, which run in parallel, and the
        seconds after the last step.
    """
    configured = (objects / "build.ninja").stat().st_mtime
    seconds = {"build tools, configure": configured - begin, "Cython": 0.0, "C": 0.0, "link": 0.0}
    steps = {}  # each has a line for each of its outputs
    for line in (objects / ".ninja_log").read_text().splitlines()[1:]:
        first, after, _, output, command = line.split("\t")
        steps[command] = int(first), int(after), Path(output).suffix
    for first, after, suffix in steps.values():
        kind = {".o": "C", ".gch": "C", ".so": "link"}.get(suffix, "Cython")  # or a small generated file
        seconds[kind] += (after - first) / 1000
    last = max((after for _, after, _ in steps.values()), default=0)
    return seconds | {"install": end - configured - last / 1000}


def measure(instruction_sets: str, keep: Path | None) -> Measured:
    """Build once, and return the measurements, which include pip and the tools that pip installs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begin, before = time.time(), time.monotonic()
        build(folder, instruction_sets)
        wall = time.monotonic() - before
        spent = stages(folder / "build", begin, begin + wall)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)  # all processes that have ended, and their children
        unit = 1 if sys.platform == "darwin" else 1024
        wheel = next(folder.glob("*.whl"))
        modules = modules_of(wheel)
        if keep:
            shutil.copy(wheel, keep)
    return Measured(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * unit, spent, modules)


def table(measured: Measured) -> str:
    """All figures, one per line."""
    rows = [("wall time", f"{measured.wall:.0f} s"), ("CPU time", f"{measured.cpu:.0f} s")]
    rows += [(f"  {stage}", f"{seconds:.1f} s") for stage, seconds in measured.stages.items()]
    rows += [("largest process", f"{measured.memory / 1e9:.2f} GB")]
    rows += [(name, f"{size / 1e6:.2f} MB") for name, size in sorted(measured.modules.items())]
    rows += [("all of kernels/", f"{measured.kernels / 1e6:.2f} MB"),
             ("all modules", f"{sum(measured.modules.values()) / 1e6:.2f} MB")]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {figure:>8}" for name, figure in rows)


def exceeded(measured: Measured) -> list[str]:
    """A message for each budget that is exceeded."""
    messages = []
    if measured.memory > MOST_MEMORY:
        messages.append(f"the largest process took {measured.memory / 1e9:.2f} GB, budget {MOST_MEMORY / 1e9} GB")
    if measured.kernels > MOST_KERNELS:
        messages.append(f"kernels/ has {measured.kernels / 1e6:.2f} MB of modules, budget {MOST_KERNELS / 1e6:g} MB")
    return messages


def main() -> None:
    """Read the command line, measure, print, and check the budgets."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--instruction-sets", default="all", help="as -Dinstruction_sets; all unless given")
    parser.add_argument("--keep", type=Path, help="a folder that gets the wheel")
    given = parser.parse_args()
    measured = measure(given.instruction_sets, given.keep)
    print(table(measured))
    messages = exceeded(measured)
    if messages:
        sys.exit("\n".join(messages))


if __name__ == "__main__":
    main()
