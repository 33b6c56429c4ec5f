"""A headless Chromium, driven through its DevTools protocol over a pair of pipes, without any other package."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 120  # maximum time that an answer may take


def program() -> str | None:
    """The path of an installed Chromium that can be driven through pipes, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None) if os.name == "posix" else None


class Page:
    """A page of the browser. Messages are JSON, each followed by a zero byte."""

    def __init__(self, reads: int, writes: int) -> None:
        self.reads, self.writes, self.number, self.rest = reads, writes, 0, b""
        self.session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.errors: list[str] = []
        for domain in ("Page", "Runtime"):
            self.call(f"{domain}.enable")

    def message(self, until: float) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self.rest:
            if not select.select([self.reads], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            read = os.read(self.reads, 1 << 20)
            if not read:
                raise EOFError("the browser has ended")
            self.rest += read
        text, _, self.rest = self.rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(message["params"]["exceptionDetails"])[:500])
        return message

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command."""
        self.number += 1
        command: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.writes, data):]
        until = time.monotonic() + SECONDS
        while True:
            message = self.message(until)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result

    def open(self, address: str) -> None:
        """Load a page, and wait until its scripts have run."""
        self.call("Page.navigate", url=address)
        until = time.monotonic() + SECONDS
        while self.message(until).get("method") != "Page.loadEventFired":
            pass

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def look(self, width: int, dark: bool = False, height: int = 800) -> None:
        """Set the width of the screen and the preferred colours."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 500)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, file: Path) -> None:
        """Save the whole page as PNG."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(answer["data"]))


@contextlib.contextmanager
def browser() -> Iterator[Page]:
    """A page of a new browser, which ends with the context."""
    path = program()
    if path is None:
        raise FileNotFoundError(f"none of {', '.join(NAMES)} is installed")
    to_browser, from_browser = os.pipe(), os.pipe()
    # The browser reads file descriptor 3 and writes 4.
    command = f'exec 3<&{to_browser[0]} 4>&{from_browser[1]}; exec "$@"'
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            ["bash", "-c", command, "bash", path, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking", "--remote-debugging-pipe",
             f"--user-data-dir={folder}"],
            pass_fds=(to_browser[0], from_browser[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            yield Page(from_browser[0], to_browser[1])
        finally:
            os.close(to_browser[1])  # the browser ends without its pipe
            os.close(from_browser[0])
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
