"""
What the library touches outside its process, as Python's audit hooks see it: python tests/helpers/audited.py 1000 7

Prints JSON: the files, environment variables and other things that importing onnxpool touches, then the first
call of each operator, then 1,000 random calls of seed 7, many of which are refused.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PHASES = ("import", "first calls", "calls")

# What docs/guarantees.md says that an import touches. Calls touch nothing.
VARIABLES = ("ONNXPOOL_ISA", "ONNXPOOL_NUM_THREADS", "OMP_NUM_THREADS", "ONNXPOOL_WISDOM", "ONNXPOOL_MAX_OUTPUT_BYTES",
             "ONNXPOOL_MAX_WORK")
FILES = (r"/proc/self/cgroup", r"/sys/fs/cgroup/.*cpu\.(max|cfs_quota_us|cfs_period_us)")
DOCUMENTED = re.compile("|".join([*(f"variable {name}" for name in VARIABLES), *(f"open {path} r" for path in FILES)]))
# Events that stay in the interpreter.
INNER = {"array.__new__", "builtins.id", "code.__new__", "compile", "exec", "function.__new__", "marshal.load",
         "marshal.loads", "object.__delattr__", "object.__getattr__", "object.__setattr__", "sys._getframe",
         "sys._getframemodulename"}
MODULES = (".py", ".pyc", ".so", ".pyd")
KNOWN = {"onnxpool", "numpy", *sys.stdlib_module_names}  # packages that may be imported


class Audit:
    """Notes of what happens while `watched` is running."""

    def __init__(self) -> None:
        self.notes: set[str] | None = None
        self.folders = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib"))
        audit, kind = self, type(os.environ)

        class Recorded(kind):  # type: ignore[valid-type, misc]
            def __getitem__(self, key: Any) -> Any:
                audit.note(f"variable {key}")
                return super().__getitem__(key)

            def __iter__(self) -> Iterator[Any]:
                audit.note("variables")
                return iter(super().__iter__())

        os.environ.__class__ = Recorded
        sys.addaudithook(self.hook)

    def note(self, text: str) -> None:
        if self.notes is not None:
            self.notes.add(text)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.notes is not None and event not in INNER and not self.importing(event, arguments):
            self.note(" ".join([event, *map(str, arguments[:2])]))

    def importing(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Whether an event belongs to importing a module of onnxpool, NumPy or Python itself."""
        first = str(arguments[0]) if arguments else ""
        if event == "import":
            return first.partition(".")[0] in KNOWN
        if event == "os.listdir":
            return self.ours(first) or first in sys.path or first == os.getcwd()
        return event == "open" and first.endswith(MODULES) and arguments[1] in ("r", "rb") and self.ours(first)

    def ours(self, path: str) -> bool:
        """Whether a path is in a folder of onnxpool, NumPy or Python itself."""
        packages = [folder for name in ("onnxpool", "numpy") if name in sys.modules
                    for folder in getattr(sys.modules[name], "__path__", [])]
        found = [os.path.join(entry, "onnxpool") for entry in sys.path]  # before it is in sys.modules
        return path.startswith((*self.folders, *packages, *found))

    @contextmanager
    def watched(self, notes: set[str]) -> Iterator[None]:
        """Note what happens in a block."""
        self.notes = notes
        try:
            yield
        finally:
            self.notes = None


def surprises(phase: str, notes: set[str] | list[str]) -> list[str]:
    """The notes of a phase that are not documented."""
    return sorted(note for note in notes if phase != "import" or not DOCUMENTED.fullmatch(note))


def traced(calls: int, seed: int) -> dict[str, Any]:
    """The notes of a program that runs in a new process."""
    done = subprocess.run([sys.executable, __file__, str(calls), str(seed)], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise RuntimeError(f"{__file__} exited with {done.returncode}\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(calls: int, seed: int) -> None:
    """Print what each phase touches."""
    audit = Audit()
    import numpy  # noqa: F401  onnxpool is not responsible for what this import touches

    phases: dict[str, set[str]] = {phase: set() for phase in PHASES}
    with audit.watched(phases["import"]):
        import onnxpool
    import resource

    import ml_dtypes  # noqa: F401  imported by the caller, like NumPy
    from calls import FUNCTIONS, SeededChoices
    from calls_family import WEIGHTED, draw_call
    from corruption import MOST_BYTES, draw_corrupted

    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))

    counts = {"results": 0, "errors": 0}
    warnings.simplefilter("ignore")
    drawn = {"first calls": [draw_call(SeededChoices(i), [name]) for name in FUNCTIONS for i in range(20)],
             "calls": [draw_corrupted(SeededChoices(seed * 10**7 + i), WEIGHTED)[0] for i in range(calls)]}
    for phase, several in drawn.items():
        for call in several:
            with audit.watched(phases[phase]):
                try:
                    call.run(onnxpool)
                    counts["results"] += 1
                except (onnxpool.PoolError, onnxpool.PoolTypeError, MemoryError):
                    counts["errors"] += 1
    print(json.dumps({name: sorted(notes) for name, notes in phases.items()} | counts))


if __name__ == "__main__":
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path[:0] = [os.path.join(root, *folder.split("/")) for folder in ("tests/oracle", "conformance/src")]
    main(*map(int, sys.argv[1:]))
