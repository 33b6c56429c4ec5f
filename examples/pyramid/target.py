"""The output: zarr arrays that appear under their name when they are complete, and a journal to resume from.

`NAME.partial` holds the unfinished arrays and the journal. The first line of the journal tells what is computed. Each
further line names finished files of a level. A run that finds a journal computes all other files anew, whatever they
hold. When nothing is left, the arrays are renamed to `NAME`.

The system keeps written files if a process is killed, but not if the machine crashes. A line therefore tells on which
boot of the machine it was written, and after a restart it counts only if the disk was waited for.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from pyramid import Ints, Pyramid, PyramidError, Region, place, split
from tqdm import tqdm

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
BOOT = BOOT_ID.read_text().strip() if BOOT_ID.exists() else ""


@dataclass
class Target:
    """The arrays of all levels, and which of their files are finished. Copies can write from other processes."""

    root: Path
    journal: Path
    unit: Ints  # the shape of what one file holds
    finished: list[np.ndarray]  # for each level, whether each file of its grid is finished
    sync: bool = False  # whether each write waits for the disk
    bar: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"bar": None}

    def files(self, region: Region) -> Region:
        """The files that hold a region, as slices of the grid of files."""
        return tuple(slice(s.start // u, -(-s.stop // u)) for s, u in zip(region, self.unit, strict=True))

    def done(self, number: int, region: Region) -> bool:
        """Whether a region of a level is finished."""
        return bool(self.finished[number][self.files(region)].all())

    def write(self, number: int, region: Region, block: np.ndarray) -> None:
        """Store a region of whole files, except finished ones, and note it in the journal."""
        files = self.files(region)
        if self.finished[number][files].any():  # by a run whose regions were others
            for part in split(region, self.unit):
                if not self.done(number, part):
                    self.write(number, part, block[place(part, region)])
            return
        array = zarr.open_array(self.root / str(number), mode="r+")
        array[region] = block
        if self.sync:
            indices = product(*(range(s.start, s.stop) for s in files))
            paths = (self.root / str(number) / array.metadata.encode_chunk_key(index) for index in indices)
            stored = [path for path in paths if path.exists()]  # chunks of zeros have no file
            synced(*stored, *{path.parent for path in stored})
        entry = {"level": number, "files": [(s.start, s.stop) for s in files], "boot": None if self.sync else BOOT}
        note(self.journal, entry, self.sync)
        self.finished[number][files] = True
        if self.bar is not None:
            self.bar.update(self.finished[number][files].size)


def synced(*paths: Path) -> None:
    """Wait until the disk holds files and the entries of folders."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def note(journal: Path, entry: dict[str, Any], sync: bool = True) -> None:
    """Append a line to the journal. Lines of several processes do not mix."""
    with journal.open("ab", buffering=0) as file:
        file.write(json.dumps(entry).encode() + b"\n")
        if sync:
            os.fsync(file.fileno())


def noted(journal: Path) -> list[dict[str, Any]]:
    """The lines of the journal. From the first line on that a crash left incomplete, they are removed."""
    entries, length = [], 0
    for line in journal.read_bytes().splitlines(keepends=True):
        try:
            entries.append(json.loads(line[:-1] if line.endswith(b"\n") else b""))
        except ValueError:
            break
        length += len(line)
    os.truncate(journal, length)
    return entries


def created(root: Path, pyramid: Pyramid, name: str) -> None:
    """Create the arrays of all levels, without elements."""
    shutil.rmtree(root, ignore_errors=True)
    group = zarr.create_group(root, attributes={"ome": pyramid.metadata(name)})
    for number, level in enumerate(pyramid.levels):
        group.create_array(str(number), shape=level.shape, dtype=pyramid.dtype, chunks=pyramid.chunks,
                           shards=pyramid.shards, dimension_names=list(pyramid.axes))
    synced(root.parent, root, *root.rglob("*"))


def resumed(root: Path, journal: Path, settings: dict[str, Any], pyramid: Pyramid, sync: bool) -> Target:
    """Continue what the journal tells of, or begin."""
    settings = json.loads(json.dumps(settings))
    begun, *entries = noted(journal) or [{}]
    if not begun:
        created(root, pyramid, settings["name"])
        note(journal, settings)
    elif changes := [f"{key} was {begun.get(key)!r} and is {settings.get(key)!r}"
                     for key in sorted({*begun, *settings}) if begun.get(key) != settings.get(key)]:
        raise PyramidError(f"{journal.parent} holds another unfinished pyramid: {'; '.join(changes)}; "
                           "finish it with what it was begun with, or remove the folder to start anew")
    for path in root.rglob("*.partial"):  # zarr renames its files once they are written
        path.unlink()
    grids = [[-(-n // u) for n, u in zip(level.shape, pyramid.unit, strict=True)] for level in pyramid.levels]
    target = Target(root, journal, pyramid.unit, [np.zeros(grid, bool) for grid in grids], sync or not BOOT)
    for entry in entries:
        if entry["boot"] in (None, BOOT):
            target.finished[entry["level"]][tuple(slice(*ends) for ends in entry["files"])] = True
    return target


@contextmanager
def opened(path: Path, pyramid: Pyramid, facts: Callable[[], dict[str, Any]], *, sync: bool = False,
           quiet: bool = False) -> Iterator[Target]:
    """Provide the arrays to write to, and give them their name once all is written.

    Parameters
    ----------
    path : Path
        Name of the finished pyramid.
    pyramid : Pyramid
        What is computed.
    facts : callable
        Returns what identifies the source and its state. An interrupted pyramid of another state is not resumed, and
        one whose source changes meanwhile is not finished.
    sync : bool, default: False
        Whether each write waits for the disk, so that a crash of the machine loses no finished file.
    quiet : bool, default: False
        Whether to show no progress bar.

    Raises
    ------
    PyramidError
        If the name is taken, or if the unfinished arrays are those of another pyramid or of another process.
    """
    partial = path.with_name(path.name + ".partial")
    root, journal = partial / "arrays", partial / "journal"
    if path.exists():
        if partial.exists() and not root.exists():  # all that an interrupted end left
            shutil.rmtree(partial)
        raise PyramidError(f"{path} exists; remove it, or choose another name")
    partial.mkdir(parents=True, exist_ok=True)
    with journal.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which ends with the process
        except BlockingIOError:
            raise PyramidError(f"another process writes {partial}") from None
        name = path.name.removesuffix(".zarr").removesuffix(".ome")

        def continued() -> Target:
            return resumed(root, journal, {"name": name, **pyramid.settings(), **facts()}, pyramid, sync)

        target = continued()
        with tqdm(total=sum(level.size for level in target.finished), unit=" files", disable=quiet,
                  initial=sum(int(level.sum()) for level in target.finished)) as target.bar:
            yield target
        missing = sum(int((~level).sum()) for level in continued().finished)  # other processes may have written
        if missing:
            raise PyramidError(f"{missing} files of {partial} are missing; run the same command again")
        if not target.sync:
            synced(*root.rglob("*"))  # for a crash must not take anything from under the final name
        root.rename(path)
        synced(path.parent)
        shutil.rmtree(partial)
