"""The cases of decisions: onnxpool passes them, onnx's tools read them, and the page says which runtimes pass."""

import re

import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner
from onnxpool_conformance.files import export
from onnxpool_conformance.table import table as every_case
from peers import PACKAGES
from tolerance import judge

from onnxpool import from_node
from onnxpool.onnx import backend, protos
from onnxpool.onnx.cases import ORT, REFERENCE
from tools.write_decisions_table import CASES, PAGE, RUNTIMES, TABLE, rows_of, table

TEXT = PAGE.read_text("utf-8")
CELLS = {cells[0].strip("`"): dict(zip(RUNTIMES, cells[1:], strict=True)) for cells in (
    [cell.strip() for cell in line.strip("|\n").split("|")] for line in TABLE.search(TEXT)[0].splitlines()[2:])}
each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an export of the cases, as the page shows it."""
    path = tmp_path_factory.mktemp("pages") / "decisions"
    export(CASES, path)
    return path


def arrays(folder, kind):
    """The inputs or outputs of a case, as any runner reads them."""
    paths = sorted((folder / "test_data_set_0").glob(f"{kind}_*.pb"))
    return [numpy_helper.to_array(onnx.load_tensor(path)) for path in paths]


def test_decisions_without_results():
    """The page names the decisions that have only errors, and the decisions that also have errors."""
    errors = {case.decided.decision for case in every_case().values() if case.error} - {""}
    without = errors - {case.decided.decision for case in CASES}
    named = re.search(r"^All cases of \[(D\d+)\]\(\S+\), and some of (.*), must be refused", TEXT, re.MULTILINE)
    assert {named[1]} == without
    assert set(re.findall(r"D\d+", named[2])) == errors - without


@each_case
def test_onnxpool_passes(case, folder):
    """The backend and the node return what the oracle does, for the inputs in the files."""
    place = folder / "results" / f"test_{case.name}"
    model = onnx.load(place / "model.onnx")
    results = backend.prepare(model).run(arrays(place, "input"))
    again = from_node(model.graph.node[-1], protos.opsets_of(model))(*case.inputs)
    again = again if isinstance(again, tuple) else (again,)
    for truth, expected, *found in zip(case.truths, arrays(place, "output"), results, again, strict=True):
        for y in (*found, expected):
            assert judge(truth, y).problem is None


def test_a_runner_of_onnx_finds_and_passes_them(folder):
    """onnx's loader finds all cases, and its runner's comparison accepts the results of the backend."""
    cases = load_model_tests(str(folder), "results")
    assert sorted(case.name for case in cases) == sorted(f"test_{case.name}" for case in CASES)
    for case in cases:
        place = folder / "results" / case.name
        results = backend.run_model(onnx.load(place / "model.onnx"), arrays(place, "input"))
        Runner.assert_similar_outputs(arrays(place, "output"), results, case.rtol, case.atol)


def test_the_table_on_the_page(needs_named_version):
    """The table says which runtimes pass, as running them again shows, and why other runtimes do not."""
    for name in RUNTIMES:
        needs_named_version(PACKAGES[name])
    assert TABLE.search(TEXT)[0].splitlines() == list(table())
    fails = {case for case, cells in CELLS.items() if "fails" in cells.values()}
    assert all(case.startswith("d14") for case in fails - {"d12_maxpool_1d"})


def test_the_table_names_all_rows(needs_named_version):
    """Where a runtime does not pass, the table names all rows about the runtime, or says "fails" if there are none."""
    for name in RUNTIMES:
        needs_named_version(PACKAGES[name])
    for case in CASES:
        for runtime, cell in CELLS[case.name].items():
            if cell not in ("passes", ""):
                assert re.findall(r"`([\w-]+)`", cell) == rows_of(case, runtime)
                assert (cell == "fails") == (rows_of(case, runtime) == [])


class Evaluated:
    """onnx's ReferenceEvaluator with the interface of a session."""

    def __init__(self, path):
        model = onnx.load(path)
        self.get_inputs = lambda: model.graph.input
        self.run = onnx.reference.ReferenceEvaluator(model).run


@pytest.mark.filterwarnings("ignore")  # of the reference, about empty arrays
@pytest.mark.parametrize("runtime", [ORT, REFERENCE])
def test_the_program_on_the_page(runtime, folder, needs_named_version, monkeypatch, capsys):
    """The program prints the cases that do not pass according to the table, for onnxruntime and for another session."""
    needs_named_version(PACKAGES[runtime])
    program = re.search(r"```python\n(from pathlib.*?)```", TEXT, re.DOTALL)[1]
    if runtime == REFERENCE:
        program = program.replace("onnxruntime.InferenceSession(folder", "evaluator(folder")
    monkeypatch.chdir(folder.parent)
    exec(program, {"evaluator": Evaluated})
    printed = capsys.readouterr().out.split()
    assert printed == sorted(f"test_{name}" for name, cells in CELLS.items()
                             if name != "all" and cells[runtime] != "passes")
