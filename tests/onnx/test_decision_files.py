"""The decisions as node tests: the files, their expected outputs, and the runtimes that pass them."""

import re

import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner
from peers import PACKAGES
from support import ROOT
from tolerance import judge
from truths import truths

from onnxpool import from_node
from onnxpool.onnx import backend, protos
from onnxpool.onnx.disagreements import ORT, REFERENCE
from tools.export_node_tests import FOLDER, PAGE, RUNTIMES, TABLE, TESTS, answers, content, rows_of, table

TEXT = PAGE.read_text("utf-8")
CELLS = {cells[0].strip("`"): dict(zip(RUNTIMES, cells[1:], strict=True)) for cells in (
    [cell.strip() for cell in line.strip("|\n").split("|")] for line in TABLE.search(TEXT)[0].splitlines()[2:])}
every_test = pytest.mark.parametrize("test", TESTS, ids=[test.folder for test in TESTS])


def arrays(folder, kind):
    """The inputs or outputs of a test, as any runner reads them."""
    paths = sorted((FOLDER / folder / "test_data_set_0").glob(f"{kind}_*.pb"))
    return [numpy_helper.to_array(onnx.load_tensor(path)) for path in paths]


def test_the_files_are_those_of_the_tool():
    """Running the tool again changes no file, and leaves none behind. The page tells their size."""
    files = {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in FOLDER.rglob("*") if path.is_file()}
    assert files == {f"{test.folder}/{name}": data for test in TESTS for name, data in content(test).items()}
    assert f"they are {sum(map(len, files.values())) / 1000:.0f} kB." in TEXT


def test_every_decision_has_a_test():
    """Those without one are named on the page, with the reason."""
    without = set(re.findall(r"^There is no test of \[(D\d+)\]", TEXT, re.MULTILINE))
    assert {test.decision for test in TESTS} | without == set(answers())
    assert without == {"D22"}


@every_test
def test_a_model(test):
    """A model passes onnx's full check, leaves the sizes of its outputs open, and names the decision."""
    model = onnx.load(FOLDER / test.folder / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.doc_string.startswith(f"{test.decision} of docs/decisions.md: ")
    for value, array in zip(model.graph.input, arrays(test.folder, "input"), strict=True):
        assert protos.tensor_of(value.type) == (array.dtype, array.shape)
    for value, array in zip(model.graph.output, arrays(test.folder, "output"), strict=True):
        assert protos.tensor_of(value.type) == (array.dtype, ("?",) * array.ndim)


@every_test
def test_onnxpool_passes(test):
    """The backend and the node return what the oracle does, for the inputs in the files."""
    model = onnx.load(FOLDER / test.folder / "model.onnx")
    inputs, outputs = (arrays(test.folder, kind) for kind in ("input", "output"))
    results = backend.prepare(model).run(inputs)
    again = from_node(model.graph.node[-1], protos.opsets_of(model))(*test.call.inputs)
    again = again if isinstance(again, tuple) else (again,)
    for truth, expected, *found in zip(truths(test.call), outputs, results, again, strict=True):
        for y in (*found, expected):
            assert judge(truth, y).problem is None


def test_a_runner_of_onnx_finds_and_passes_them():
    """onnx's loader finds all tests, and its runner's comparison accepts the results of the backend."""
    cases = load_model_tests(str(FOLDER.parent), FOLDER.name)
    assert sorted(case.name for case in cases) == sorted(test.folder for test in TESTS)
    for case in cases:
        results = backend.run_model(onnx.load(f"{case.model_dir}/model.onnx"), arrays(case.name, "input"))
        Runner.assert_similar_outputs(arrays(case.name, "output"), results, case.rtol, case.atol)


def test_the_table_on_the_page(needs_named_version):
    """The table says which runtimes pass, as running them again shows, and why others do not."""
    for name in RUNTIMES:
        needs_named_version(PACKAGES[name])
    assert TABLE.search(TEXT)[0].splitlines() == list(table())
    fails = {test for test, cells in CELLS.items() if "fails" in cells.values()}
    assert all(test.startswith("d14") for test in fails - {"d12_maxpool_1d"})


def test_the_table_names_all_rows(needs_named_version):
    """Where a runtime does not pass, the table has the names of all rows about it, or "fails" if there is none."""
    for name in RUNTIMES:
        needs_named_version(PACKAGES[name])
    for test in TESTS:
        for runtime, cell in CELLS[test.folder.removeprefix("test_")].items():
            if cell not in ("passes", ""):
                assert re.findall(r"`([\w-]+)`", cell) == rows_of(test, runtime)
                assert (cell == "fails") == (rows_of(test, runtime) == [])


class Evaluated:
    """onnx's ReferenceEvaluator with the interface of a session."""

    def __init__(self, path):
        model = onnx.load(path)
        self.get_inputs = lambda: model.graph.input
        self.run = onnx.reference.ReferenceEvaluator(model).run


@pytest.mark.filterwarnings("ignore")  # of the reference, about empty arrays
@pytest.mark.parametrize("runtime", [ORT, REFERENCE])
def test_the_program_on_the_page(runtime, needs_named_version, monkeypatch, capsys):
    """It prints the tests that do not pass according to the table, for onnxruntime and with another session."""
    needs_named_version(PACKAGES[runtime])
    program = re.search(r"```python\n(from pathlib.*?)```", TEXT, re.DOTALL)[1]
    if runtime == REFERENCE:
        program = program.replace("onnxruntime.InferenceSession(folder", "evaluator(folder")
    monkeypatch.chdir(ROOT)
    exec(program, {"evaluator": Evaluated})
    printed = capsys.readouterr().out.split()
    assert printed == sorted(f"test_{name}" for name, cells in CELLS.items()
                             if name != "all" and cells[runtime] != "passes")
