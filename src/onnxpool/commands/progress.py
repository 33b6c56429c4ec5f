"""Progress of long operations."""

import shutil
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self, TextIO

from ..errors import printable

LONGEST_PAUSE = 60.0  # seconds between two lines of a log


class Progress:
    """
    Reports the current operation and the elapsed time on a stream.

    A terminal shows one line that is updated. Other streams get a line after 2, 4, 8, ... seconds, and later every 60
    seconds. Lines are written by a thread, so that a single long step is reported too. Nothing is written if the work
    ends before the first line is due.

    Parameters
    ----------
    stream : text stream
    doing : str
        Description of the work before the first node.
    every : float, optional
        Seconds until the first line.
    """

    def __init__(self, stream: TextIO, doing: str, every: float | None = None) -> None:
        self.stream, self.doing, self.terminal = stream, doing, stream.isatty()
        self.every = every or (0.2 if self.terminal else 2.0)
        self.start = time.monotonic()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, name="onnxpool progress", daemon=True)

    def __call__(self, done: int, count: int, node: str) -> None:
        self.doing = f"{done} of {count} nodes done, now {node}"

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.ended.set()
        self.thread.join()
        if self.terminal:
            self.write("\r\x1b[K")

    def watch(self) -> None:
        """Write lines until the work ends."""
        pause = self.every
        while not self.ended.wait(pause):
            self.show()
            if not self.terminal:
                pause = min(2 * pause, LONGEST_PAUSE)

    def show(self) -> None:
        """Write a line."""
        text = printable(f"onnxpool: {time.monotonic() - self.start:.1f} s, {self.doing}")
        if self.terminal:
            self.write(f"\r{text[:shutil.get_terminal_size().columns - 1]}\x1b[K")
        else:
            self.write(f"{text}\n")

    def write(self, text: str) -> None:
        """Write to the stream, unless its reader has left."""
        with suppress(OSError, ValueError):
            print(text, end="", file=self.stream, flush=True)
