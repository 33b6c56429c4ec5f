"""Files that commands write: whole, or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from ..errors import PoolError


def cannot_write(path: str, reason: object) -> PoolError:
    """The error for a file that cannot be written."""
    return PoolError(f"cannot write {path or repr(path)}: {reason}", value=path)


def check_folder(path: str | None) -> None:
    """Refuse a file that cannot be written because of its directory: before the work, not after it."""
    if path and not os.path.isdir(os.path.dirname(path) or "."):
        raise cannot_write(path, "no such directory")
    if path == "":
        raise cannot_write(path, "no file has that name")
    if path and os.path.isdir(path):
        raise cannot_write(path, "Is a directory")


@contextmanager
def written(path: str) -> Iterator[IO[bytes]]:
    """Open a file for writing. It gets its name, and replaces an earlier file, only when it is complete."""
    check_folder(path)
    try:
        special = os.path.exists(path) and not os.path.isfile(path)  # a pipe or a device, which must stay
        with open(path, "wb") if special else replacing(os.path.realpath(path)) as file:
            yield file
    except OSError as error:
        raise cannot_write(path, error.strerror or error) from error


@contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """Open a temporary file beside a file, and replace that file with it unless the block fails."""
    exists = os.path.exists(path)
    if exists:
        open(path, "r+b").close()  # a replacement would not notice that a file is read-only
    part = os.path.join(os.path.dirname(path), f".onnxpool-{secrets.token_hex(8)}")
    try:
        with open(part, "xb") as file:
            yield file
        if exists:
            shutil.copymode(path, part)
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise
