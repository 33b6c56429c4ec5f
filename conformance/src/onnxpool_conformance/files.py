"""Cases as files: onnx's layout of node tests, raw arrays, and a manifest. Reading them needs only NumPy."""

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__
from .cases import Array, Case
from .comparison import Tolerance, tolerance
from .errors import SuiteError
from .models import given, little, made, model, package, results, tensor
from .oracle import DTYPES
from .versions import OPERATORS

FORMAT = 1  # version of the manifest's format
MANIFEST = "manifest.json"
READABLE = {**DTYPES, "int64": np.dtype(np.int64)}


@dataclass(frozen=True)
class Stored:
    """A stored case: its entry in the manifest, and the manifest's folder."""

    folder: Path
    entry: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the case."""
        return str(self.entry["name"])

    @property
    def model(self) -> Path:
        """The file of the model."""
        return self.folder / str(self.entry["model"]["path"])

    @property
    def data(self) -> Path:
        """The folder of the inputs."""
        return self.model.parent / "test_data_set_0"

    @property
    def readable(self) -> bool:
        """Whether the case's dtypes are known here. bfloat16 needs ml_dtypes."""
        return all(each["dtype"] in READABLE for each in (*self.entry["inputs"], *self.entry["outputs"]))

    def inputs(self) -> list[Array]:
        """The inputs of the model."""
        return [self.array(each) for each in self.entry["inputs"]]

    def outputs(self) -> list[tuple[Array, Tolerance]]:
        """The expected outputs."""
        return [(self.array(each), Tolerance(**each["tolerance"])) for each in self.entry["outputs"]]

    def array(self, described: dict[str, Any]) -> Array:
        """An array of the manifest."""
        data = checked(self.folder, described["raw"])
        dtype, shape = READABLE[described["dtype"]], tuple(described["shape"])
        if len(data) != dtype.itemsize * math.prod(shape):
            raise SuiteError(f"{self.name}: {described['raw']['path']} does not have the shape {list(shape)}")
        array = np.frombuffer(bytearray(data), dtype).reshape(shape)
        return array if np.little_endian else array.byteswap()


def checked(folder: Path, file: dict[str, str]) -> bytes:
    """The content of a file of the manifest."""
    data = (folder / file["path"]).read_bytes()
    if hashlib.sha256(data).hexdigest() != file["sha256"]:
        raise SuiteError(f"{folder / file['path']} is not the file that {MANIFEST} describes; export the cases again")
    return data


def load(folder: Path) -> list[Stored]:
    """The cases that were exported to a folder, except cases of dtypes that need a package."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise SuiteError(f"{folder / MANIFEST} has format {manifest['format']}, but this version reads {FORMAT}")
        stored = [case for entry in manifest["cases"] if (case := Stored(folder, entry)).readable]
        for case in stored:
            checked(folder, case.entry["model"])
            case.inputs()
            case.outputs()
    except OSError as error:
        raise SuiteError(f"cannot read {error.filename}: {error.strerror}; pass a directory that export has "
                         "written") from error
    except SuiteError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise SuiteError(f"{folder / MANIFEST} is no manifest of this suite: {problem}") from error
    return stored


def content(case: Case) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The entry of a case in the manifest, and its files."""
    place = f"{'errors' if case.error else 'results'}/test_{case.name}"
    files: dict[str, bytes] = {}

    def add(path: str, data: bytes) -> dict[str, str]:
        files[f"{place}/{path}"] = data
        return {"path": f"{place}/{path}", "sha256": hashlib.sha256(data).hexdigest()}

    def arrays(kind: str, named: Iterable[tuple[str, Array]]) -> list[dict[str, Any]]:
        described = []
        for number, (name, array) in enumerate(named):
            path = f"test_data_set_0/{kind}_{number}"
            described.append({
                "name": name, "dtype": array.dtype.name, "shape": list(array.shape),
                "proto": add(f"{path}.pb", tensor(name, array).SerializeToString(deterministic=True)),
                "raw": add(f"{path}.bin", little(array))})
        return described

    proto, rule, known = model(case), case.decided, OPERATORS[case.operator]
    outputs = arrays("output", ((name, y) for (name, _), y in zip(results(case), case.expected(), strict=False)))
    for output, truth in zip(outputs, case.truths if outputs else (), strict=True):
        output["tolerance"] = tolerance(truth)._asdict()
    entry = {
        "name": case.name, "tests": rule.tests, "tier": rule.tier, "reason": rule.reason, "agreed": rule.agreed,
        "decision": rule.decision, "error": case.error, "operator": case.operator, "domain": known.domain,
        "version": case.version, "opset": proto.opset_import[0].version, "ir_version": proto.ir_version,
        "attributes": {name: str(value) if value == math.inf else value for name, value in case.attributes.items()},
        "filled": case.x.flat[0].item() if made(case) else None,
        "model": add("model.onnx", proto.SerializeToString(deterministic=True)),
        "inputs": arrays("input", given(case)), "outputs": outputs}
    return entry, files


def check_empty(folder: Path) -> None:
    """Refuse a folder that is not empty, so that nothing is overwritten."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SuiteError(f"{folder} is not an empty directory; pass another one, or empty it")
    if not folder.absolute().parent.is_dir():
        raise SuiteError(f"there is no directory {folder.absolute().parent} in which to make {folder.name}")


def export(cases: Iterable[Case], folder: Path) -> int:
    """Write cases and their manifest to a new or empty folder, or nothing at all. Return the number of cases."""
    package()
    check_empty(folder)
    if "bfloat16" not in DTYPES:
        raise SuiteError("an export needs the package ml_dtypes, for bfloat16; install it")
    folder = folder.absolute()
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        entries = list(written(cases, part))
        manifest = {"format": FORMAT, "suite": __version__, "cases": entries}
        (part / MANIFEST).write_bytes(f"{json.dumps(manifest, indent=1, allow_nan=False)}\n".encode())
        part.chmod(0o777 & ~umask())
        if folder.exists():
            folder.rmdir()
        part.rename(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return len(entries)


def written(cases: Iterable[Case], folder: Path) -> Iterator[dict[str, Any]]:
    """Write the files of cases, and return their entries."""
    for case in cases:
        entry, files = content(case)
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield entry


def umask() -> int:
    """The permissions that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
