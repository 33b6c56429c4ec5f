"""Exported files: the layout, the manifest, bytes that never change, and what reading refuses."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnxpool_conformance.errors import SuiteError
from onnxpool_conformance.files import content, export, load
from onnxpool_conformance.randoms import random_cases
from onnxpool_conformance.table import table

onnx = pytest.importorskip("onnx")
NAMED = ("averagepool_float32", "averagepool_ceil", "maxpool_dilations", "maxpool_int8", "averagepool_bfloat16")
SOME = [case for place, case in enumerate(table().values()) if place % 9 == 0 or case.name in NAMED]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Some cases, exported."""
    path = tmp_path_factory.mktemp("export") / "cases"
    assert export(SOME, path) == len(SOME)
    return path


def test_bytes_never_change():
    """The files of all cases, and their entries in the manifest, are the same on every machine."""
    digest = hashlib.sha256()
    for case in table().values():
        entry, files = content(case)
        digest.update(json.dumps([entry, [*files]]).encode())
    assert digest.hexdigest() == "e09a2920103ab3f40c49d33d893cbc8a6230e9d51f9341ef77e6d3900cfe1c61"


def test_models(folder):
    """Models with results pass onnx's full check. Arrays in both formats are equal, and match the model's
    declarations."""
    for stored in load(folder):
        model = onnx.load(stored.model)
        assert model.ir_version == stored.entry["ir_version"]
        if not stored.entry["error"]:
            onnx.checker.check_model(model, full_check=True)
        for kind in ("inputs", "outputs"):
            for each in stored.entry[kind]:
                proto = onnx.load_tensor(folder / each["proto"]["path"])
                assert proto.raw_data == (folder / each["raw"]["path"]).read_bytes()
                assert list(proto.dims) == each["shape"]


def test_versions_are_the_oldest(folder):
    """The default opset is 7 where nothing needs more, and IR versions are as old as the opsets."""
    entries = {stored.name: stored.entry for stored in load(folder)}
    assert (entries["averagepool_float32"]["opset"], entries["averagepool_float32"]["ir_version"]) == (7, 3)
    assert entries["averagepool_ceil"]["opset"] == 10
    assert entries["maxpool_dilations"]["opset"] == 10
    assert entries["maxpool_int8"]["opset"] == 12
    assert entries["averagepool_bfloat16"]["opset"] == 22


def test_what_is_read_is_what_was_written(folder):
    """Reading an export gives the inputs and the expected results that were written."""
    for stored in load(folder):
        case = table()[stored.name]
        given = [x for x in case.inputs if x is not None]
        if stored.entry["filled"] is None:
            for found, wanted in zip(stored.inputs(), given, strict=True):
                assert found.tobytes() == np.asarray(wanted).tobytes()
        for (found, _), wanted in zip(stored.outputs(), case.expected(), strict=True):
            assert found.tobytes() == wanted.tobytes()


def test_a_folder_with_files_is_refused(tmp_path):
    """A folder with files is refused, and nothing in the folder is overwritten."""
    (tmp_path / "mine").write_text("x")
    with pytest.raises(SuiteError, match="not an empty directory"):
        export(SOME, tmp_path)
    with pytest.raises(SuiteError, match="not an empty directory"):
        export(SOME, tmp_path / "mine")
    with pytest.raises(SuiteError, match="there is no directory"):
        export(SOME, tmp_path / "no" / "cases")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_failing_export_leaves_nothing(tmp_path):
    """A failing export leaves no partial files, because files are written whole or not at all."""
    def failing():
        yield SOME[0]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        export(failing(), tmp_path / "cases")
    assert list(tmp_path.iterdir()) == []


def test_bad_folders_are_refused(tmp_path):
    """A folder is refused if it has no manifest, another file as manifest, or a changed file."""
    with pytest.raises(SuiteError, match=r"cannot read .*manifest\.json"):
        load(tmp_path)
    for text in ("[]", "garbage", "{}", '{"format": 1, "cases": [3]}'):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(SuiteError, match="is no manifest"):
            load(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 2}')
    with pytest.raises(SuiteError, match="has format 2"):
        load(tmp_path)
    folder = tmp_path / "cases"
    export(random_cases(1, 0), folder)
    model = next(folder.rglob("model.onnx"))
    model.write_bytes(b"no model")
    with pytest.raises(SuiteError, match="is not the file that"):
        load(folder)
    assert json.loads((folder / "manifest.json").read_text())["cases"][0]["name"] == "random_0_0"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The files of the cases that the toy runtime can compute."""
    folder = tmp_path_factory.mktemp("exported") / "cases"
    export([case for case in table().values() if case.operator in ("AveragePool", "LpPool")], folder)
    return folder


@pytest.mark.parametrize(("right", "wrong"), [("", ""), (" count--", " count"), ("size + end)", "Infinity)")])
def test_a_runner_in_another_language(tmp_path, exported, right, wrong):
    """A runner in JavaScript passes a toy runtime, but not a toy that keeps every window or counts the overhang."""
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    examples = Path(__file__).parents[1] / "examples"
    for file in examples.iterdir():
        (tmp_path / file.name).write_text(file.read_text().replace(right, wrong))
    assert len((examples / "run.mjs").read_text().splitlines()) <= 30
    done = subprocess.run(["node", tmp_path / "run.mjs", exported], text=True, capture_output=True)
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["passed"] > 90
    assert done.returncode == (counts["wrong"] > 0) == bool(right)
    assert "wrong: d0" in done.stdout or not right
