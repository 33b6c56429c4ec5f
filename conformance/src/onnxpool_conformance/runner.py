"""Run a runtime on stored cases, in separate processes, so that crashes and endless loops are results too."""

import contextlib
import importlib
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from .comparison import difference
from .errors import SuiteError
from .files import READABLE, Stored
from .models import TYPES

OUTCOMES = ("passed", "wrong", "refused", "accepted", "crashed", "timeout")
STARTING = 120.0  # seconds that a backend may take to be imported
ENDING = 5.0  # seconds that a process may take to end
LONGEST = 300  # maximum characters of a runtime's message
BY_NUMBER = {number: name for name, number in TYPES.items()}
POSIX = os.name == "posix"


class Answer(NamedTuple):
    """What a runtime did: its outputs, or how it ended instead, and what it said."""

    ended: str  # "", "refused", "crashed" or "timeout"
    outputs: list[Any]
    said: str = ""


class Result(NamedTuple):
    """The outcome of a case. A case that must be refused counts as passed if it was, and as "accepted" if not."""

    name: str
    operator: str
    tier: str
    tests: str
    outcome: str
    detail: str
    seconds: float
    got: tuple[str, ...] = ()  # the outputs, if they are wrong


class Runtime(Protocol):
    """Something that computes cases."""

    name: str

    def answer(self, case: Stored) -> Answer:
        """What the runtime does with a case."""

    def close(self) -> None:
        """End the runtime's processes."""


def judged(case: Stored, answer: Answer) -> tuple[str, str]:
    """The outcome of a case, and a description of it."""
    if answer.ended in ("crashed", "timeout"):
        return answer.ended, answer.said
    if case.entry["error"]:
        return ("passed", "") if answer.ended else ("accepted", f"must be refused: {case.entry['error']}")
    if answer.ended:
        return "refused", answer.said
    expected = case.outputs()
    if len(answer.outputs) != len(expected):
        return "wrong", f"{len(answer.outputs)} outputs, expected {len(expected)}"
    for place, (found, (wanted, limit)) in enumerate(zip(answer.outputs, expected, strict=True)):
        if problem := difference(found, wanted, limit):
            return "wrong", f"output {place}: {problem}"
    return "passed", ""


def run(runtime: Runtime, cases: Iterable[Stored]) -> Iterator[Result]:
    """The result of each case."""
    for case in cases:
        start, about = time.monotonic(), case.entry
        answer = runtime.answer(case)
        outcome, detail = judged(case, answer)
        got = tuple(map(described, answer.outputs)) if outcome == "wrong" else ()
        yield Result(case.name, about["operator"], about["tier"], about["tests"], outcome, shortened(detail),
                     time.monotonic() - start, got)


def described(y: Any) -> str:
    """An array as text, or what is there instead of it."""
    if not isinstance(y, np.ndarray):
        return shortened(str(y))
    return f"{y.dtype.name}{list(y.shape)} {np.array2string(y, separator=', ', threshold=200)}"


def shortened(text: str) -> str:
    """Text as one line of printable characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


# Backends


class Backend:
    """A module with the interface of onnx.backend, in a process that is started again after a crash."""

    def __init__(self, module: str, seconds: float) -> None:
        self.module, self.seconds = module, seconds
        descriptor, path = tempfile.mkstemp(prefix="onnxpool-conformance-")
        os.close(descriptor)
        self.log = Path(path)
        try:
            self.start()
        except SuiteError:
            self.log.unlink()
            raise

    def start(self) -> None:
        """Start the process, which imports the module."""
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=serve, args=(end, self.module, str(self.log)), daemon=True)
        self.process.start()
        end.close()
        answer = self.receive(STARTING)
        if answer.ended:
            self.end()
            raise SuiteError(f"cannot use the backend {self.module}: {answer.said}")
        self.name = answer.said

    def receive(self, seconds: float) -> Answer:
        """What the process sends, or how it ended."""
        try:
            if self.pipe.poll(seconds):
                return Answer(*self.pipe.recv())
            return Answer("timeout", [], f"no result after {seconds:g} s")
        except (EOFError, OSError):
            self.process.join(ENDING)
            return Answer("crashed", [], f"{ending(self.process.exitcode or 0)}: {self.tail()}")
        except Exception as error:  # what it sent cannot be read
            return Answer("refused", [], f"a result that cannot be read: {error!r}")

    def answer(self, case: Stored) -> Answer:
        """What the backend does with a case."""
        if not self.process.is_alive():
            try:
                self.start()
            except SuiteError as error:
                return Answer("crashed", [], str(error))
        os.truncate(self.log, 0)
        inputs = case.inputs()
        with contextlib.suppress(OSError):  # the process may have ended, which receive() reports
            self.pipe.send((str(case.model), inputs))
        answer = self.receive(self.seconds)
        if answer.ended in ("crashed", "timeout"):
            self.end()
        return answer

    def tail(self) -> str:
        """The last text that the process wrote."""
        return self.log.read_bytes()[-LONGEST:].decode(errors="replace")

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def close(self) -> None:
        """End the process, and forget what it wrote."""
        self.end()
        self.log.unlink()


def serve(pipe: Connection, module: str, log: str) -> None:
    """Answer cases with a backend, until the pipe is closed."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)  # what runtimes print must not mix with reports
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    try:
        import onnx
        backend = importlib.import_module(module)
        prepare = backend.prepare
    except BaseException as error:
        pipe.send(("refused", [], f"{type(error).__name__}: {error}"))
        return
    pipe.send(("", [], str(getattr(backend, "VERSION", module))))
    while True:
        try:
            path, inputs = pipe.recv()
        except EOFError:
            return
        try:
            outputs = [np.asarray(y) for y in prepare(onnx.load(path), "CPU").run(inputs)]
            pipe.send(("", outputs, ""))
        except Exception as error:  # backends raise errors of any type
            pipe.send(("refused", [], f"{type(error).__name__}: {error}"))


# Commands


class Command:
    """A command line, which reads a model and its inputs from files, and writes its outputs to a directory."""

    def __init__(self, command: str, seconds: float) -> None:
        self.name = command
        try:
            words = shlex.split(command, posix=POSIX)  # otherwise, backslashes separate folders
            self.words = words if POSIX else [word.strip('"') for word in words]
        except ValueError as error:
            raise SuiteError(f"the command {command!r} cannot be split into words: {error}") from error
        for name in ("{model}", "{outputs}"):
            if not any(name in word for word in self.words):
                raise SuiteError(f"the command {command!r} does not have {name}; it may have {{model}}, {{inputs}} and "
                                 "{outputs}, which stand for a file and two directories")
        if shutil.which(self.words[0]) is None:
            raise SuiteError(f"there is no program {self.words[0]!r}; pass a path, or a name that is on the PATH")
        self.seconds = seconds

    def answer(self, case: Stored) -> Answer:
        """What the command does with a case."""
        case.inputs()  # checks the files
        with tempfile.TemporaryDirectory(prefix="onnxpool-conformance-") as outputs:
            places = {"{model}": str(case.model), "{inputs}": str(case.data), "{outputs}": outputs}
            words = [re.sub("|".join(map(re.escape, places)), lambda found: places[found[0]], word)
                     for word in self.words]
            try:
                process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, start_new_session=True)
            except OSError as error:
                raise SuiteError(f"cannot start {words[0]}: {error.strerror}") from error
            said: deque[bytes] = deque(maxlen=4)
            reader = threading.Thread(target=keep, args=(process.stdout, said), daemon=True)
            reader.start()
            try:
                code = process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                return Answer("timeout", [], f"no result after {self.seconds:g} s")
            finally:
                kill_group(process)
                reader.join(1)
            text = b"".join(said)[-LONGEST:].decode(errors="replace")
            if code < 0 or code >= 128:  # 128 + n is how shells report signal n
                return Answer("crashed", [], f"{ending(128 - code if POSIX and code > 0 else code)}: {text}")
            if code:
                return Answer("refused", [], f"status {code}: {text}")
            if case.entry["error"]:
                return Answer("", [])
            return Answer("", [read(Path(outputs), place) for place in range(len(case.entry["outputs"]))])

    def close(self) -> None:
        """There is nothing to end."""


def keep(stream: Any, said: deque[bytes]) -> None:
    """Keep the end of a stream, however long it is."""
    with stream:
        while block := stream.read1(4096):
            said.append(block)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a command and the processes that it has started."""
    if POSIX:
        with contextlib.suppress(OSError):  # all may have ended
            os.killpg(process.pid, signal.SIGKILL)
    else:
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(process.pid)], capture_output=True, check=False)
    process.wait()


def ending(code: int) -> str:
    """How a process ended."""
    if code >= 0:
        return f"ended with status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def read(folder: Path, place: int) -> Any:
    """An output that a command has written. If it cannot be read, a text that says why."""
    for suffix, reader in ((".npy", read_numpy), (".pb", read_proto)):
        path = folder / f"output_{place}{suffix}"
        if path.exists():
            try:
                return reader(path)
            except ImportError as error:
                raise SuiteError(f"reading {path.name} needs the package onnx; install it, or let the command write "
                                 f"output_{place}.npy") from error
            except Exception as error:  # the file may contain anything
                return f"{path.name} cannot be read: {type(error).__name__}: {error}"
    return f"the command wrote neither output_{place}.npy nor output_{place}.pb"


def read_numpy(path: Path) -> Any:
    """An array in NumPy's format, which writes bfloat16 as two bytes without a type."""
    array = np.load(path, allow_pickle=False)
    return array.view(READABLE["bfloat16"]) if array.dtype == np.dtype("V2") else array


def read_proto(path: Path) -> Any:
    """An array as a TensorProto."""
    import onnx
    from onnx import numpy_helper
    proto = onnx.TensorProto()
    proto.ParseFromString(path.read_bytes())
    array = numpy_helper.to_array(proto)
    named = BY_NUMBER.get(proto.data_type, array.dtype.name)
    return array if array.dtype.name == named else array.view(READABLE[named])
