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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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


class FinishedError(PyramidError):
    """A pyramid that needs nothing more, because an earlier run completed it."""


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
        indices = product(*(range(s.start, s.stop) for s in files))
        paths = [self.root / str(number) / array.metadata.encode_chunk_key(index) for index in indices]
        for path in paths:  # zarr would read a shard that an interrupted run left, even one that it cannot decode
            path.unlink(missing_ok=True)
        array[region] = block
        if self.sync:
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


def noted(journal: Path, grids: Sequence[Ints]) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The first line of the journal, and what the others say to be finished.

    From the first line on that a crash left incomplete, they are removed.
    """
    first, *others = journal.read_bytes().splitlines(keepends=True)
    begun = read(first)
    if "onnxpool" not in begun:
        raise PyramidError(f"{journal} does not tell what is unfinished, because its first line is not whole; remove "
                           f"{journal.parent} to start anew, if all in it may go")
    finished, length = [np.zeros(grid, bool) for grid in grids], len(first)
    for line in others:
        entry = read(line)
        try:
            if entry["boot"] in (None, BOOT):
                finished[entry["level"]][tuple(slice(*ends) for ends in entry["files"])] = True
        except (KeyError, TypeError, IndexError):
            break
        length += len(line)
    os.truncate(journal, length)
    return begun, finished


def read(line: bytes) -> dict[str, Any]:
    """The entry of a line, or an empty one if the line is not whole."""
    try:
        entry = json.loads(line if line.endswith(b"\n") else b"")
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def created(root: Path, pyramid: Pyramid, name: str) -> None:
    """Create the arrays of all levels, without elements."""
    shutil.rmtree(root, ignore_errors=True)
    group = zarr.create_group(root, attributes={"ome": pyramid.metadata(name)})
    for number, level in enumerate(pyramid.levels):
        group.create_array(str(number), shape=level.shape, dtype=pyramid.dtype, chunks=pyramid.chunks,
                           shards=pyramid.shards, dimension_names=list(pyramid.axes))
    synced(root.parent, root, *root.rglob("*"))


def changed(begun: dict[str, Any], settings: dict[str, Any], partial: Path) -> str:
    """What differs between two first lines of a journal, and what to do about it."""
    changes = {key: f"{key} was {begun.get(key)!r} and is {settings.get(key)!r}"
               for key in sorted({*begun, *settings}) if begun.get(key) != settings.get(key)}
    if not changes:
        return ""
    if all(key.startswith("source ") for key in changes):
        return f"the source changed since {partial} was begun: {'; '.join(changes.values())}; remove it to start anew"
    return (f"{partial} holds another unfinished pyramid: {'; '.join(changes.values())}; finish it with what it was "
            "begun with, or remove the folder to start anew")


def resumed(partial: Path, settings: dict[str, Any], pyramid: Pyramid, sync: bool) -> Target:
    """Continue what the journal tells of, or begin.

    The first line of the journal claims the folder, so it is written before the arrays are created.
    """
    root, journal = partial / "arrays", partial / "journal"
    if not journal.stat().st_size:
        note(journal, settings)
        synced(partial)
    grids = [tuple(-(-n // u) for n, u in zip(level.shape, pyramid.unit, strict=True)) for level in pyramid.levels]
    begun, finished = noted(journal, grids)
    if error := changed(begun, settings, partial):
        raise PyramidError(error)
    if not root.exists() or not any(level.any() for level in finished):
        os.truncate(journal, journal.read_bytes().index(b"\n") + 1)
        _, finished = noted(journal, grids)
        created(root, pyramid, settings["name"])
    for path in root.rglob("*.partial"):  # zarr renames its files once they are written
        path.unlink()
    return Target(root, journal, pyramid.unit, finished, sync or not BOOT)


def taken(path: Path) -> PyramidError:
    """The error for a name that exists."""
    return PyramidError(f"{path} exists; choose another name, or remove it to make it anew")


def claimed(path: Path, partial: Path) -> None:
    """Raise an error if one of the names is taken by something else than an unfinished pyramid."""
    if path.name in ("", ".."):
        raise PyramidError(f"{path} is no name for a new folder")
    if os.path.lexists(path) and not partial.is_dir():
        raise taken(path)
    if partial.is_symlink() or (os.path.lexists(partial) and not partial.is_dir()):
        raise PyramidError(f"{partial}, where this program would work, is no folder; remove it, or choose another name")
    names = {entry.name for entry in partial.iterdir()} if partial.is_dir() else set()
    journal = partial / "journal"
    begun = journal.is_file() and (names == {"journal"} or journal.stat().st_size > 0)
    if names and (names - {"journal", "arrays"} or not begun):
        raise PyramidError(f"{partial} holds {', '.join(sorted(names))}, which this program did not create; move it "
                           "away, or choose another name")


def concluded(path: Path, partial: Path, settings: dict[str, Any]) -> PyramidError:
    """The error for a name that exists, once what an end left that was interrupted after the rename is removed."""
    journal = partial / "journal"
    begun: dict[str, Any] = {}
    if not (partial / "arrays").exists():
        begun = read(b"".join(journal.read_bytes().splitlines(keepends=True)[:1])) if journal.exists() else {}
        if "onnxpool" in begun or (journal.exists() and not journal.stat().st_size):
            journal.unlink()
        if not any(partial.iterdir()):
            partial.rmdir()
    if begun and not changed(begun, settings, partial):
        return FinishedError(f"{path} is complete")
    return taken(path)


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
    partial = path.parent / f"{path.name}.partial"
    claimed(path, partial)
    name = path.name.removesuffix(".zarr").removesuffix(".ome")

    def settings() -> dict[str, Any]:
        values: dict[str, Any] = json.loads(json.dumps({"name": name, **pyramid.settings(), **facts()}))
        return values

    partial.mkdir(parents=True, exist_ok=True)
    with (partial / "journal").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which ends with the process
        except BlockingIOError:
            raise PyramidError(f"another process writes {partial}") from None
        claimed(path, partial)  # again, since another process may have ended meanwhile
        if os.path.lexists(path):
            raise concluded(path, partial, settings())
        target = resumed(partial, settings(), pyramid, sync)
        with tqdm(total=sum(level.size for level in target.finished), unit=" files", disable=quiet,
                  initial=sum(int(level.sum()) for level in target.finished)) as target.bar:
            yield target
        begun, finished = noted(target.journal, [level.shape for level in target.finished])  # by other processes, too
        if error := changed(begun, settings(), partial):
            raise PyramidError(error)
        missing = sum(int((~level).sum()) for level in finished)
        if missing:
            raise PyramidError(f"{missing} files of {partial} are missing; run the same command again")
        if not target.sync:
            synced(*target.root.rglob("*"))  # for a crash must not take anything from under the final name
        target.root.rename(path)
        synced(path.parent)
        target.journal.unlink()
        with suppress(OSError):  # another process may look into the folder, and will remove it
            partial.rmdir()
