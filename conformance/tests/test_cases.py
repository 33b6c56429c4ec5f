"""The table of cases: names, tiers, sentences of the specification, versions, and expected results."""

import hashlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnxpool_conformance.oracle import GeometryError
from onnxpool_conformance.pictures import show
from onnxpool_conformance.randoms import random_case, random_cases
from onnxpool_conformance.rules import RULES, TIERS
from onnxpool_conformance.table import table
from onnxpool_conformance.versions import MICROSOFT, OPERATORS

ROOT = Path(__file__).parents[2]
CASES = list(table().values())


def flattened(text):
    """Text in lower case without line breaks."""
    return " ".join(text.split()).lower()


def texts(schema):
    """All texts of a schema."""
    parts = [schema.doc, *(each.description for each in schema.attributes.values())]
    parts += [each.description for each in (*schema.inputs, *schema.outputs, *schema.type_constraints)]
    return flattened(" ".join(parts))


def test_every_operator_version_tier_and_rule_has_cases():
    """There are a few hundred cases, and every operator, version, tier and rule has a case."""
    assert 300 < len(CASES) < 1000
    assert {case.tier for case in CASES} == set(TIERS)
    assert {case.rule for case in CASES} == set(RULES) - {"wide"}
    found = {(case.operator, case.version) for case in CASES}
    assert found >= {(name, version) for name, known in OPERATORS.items() for version in known.versions}
    for name, known in OPERATORS.items():
        assert {case.x.dtype.name for case in CASES if case.operator == name and not case.error} == set(known.dtypes)


def test_sentences_are_those_of_the_specification():
    """A rule of the tier spec quotes a sentence that is in the specification of every version that its cases use."""
    defs = pytest.importorskip("onnx.defs")
    for case in CASES:
        if case.tier == "spec" and case.decided.quoted and OPERATORS[case.operator].domain != MICROSOFT:
            schema = defs.get_schema(case.operator, case.opset)
            assert flattened(case.decided.reason).rstrip(".") in texts(schema), case.name


def test_versions_are_those_of_onnx():
    """Versions, attributes and dtypes agree with onnx's schemas."""
    defs = pytest.importorskip("onnx.defs")
    names = {"float": "float32", "double": "float64"}
    for name, known in OPERATORS.items():
        if known.domain:
            continue
        versions = [each for each in defs.get_all_schemas_with_history() if each.name == name and not each.domain]
        assert known.versions == tuple(sorted(each.since_version for each in versions))
        for schema in versions:
            assert set(schema.attributes) == {each for each, since in known.attributes.items()
                                              if since <= schema.since_version}
            listed = {each.removeprefix("tensor(").rstrip(")") for each in schema.type_constraints[0].allowed_type_strs}
            assert {names.get(each, each) for each in listed} == {
                each for each, since in known.dtypes.items() if since <= schema.since_version}


def test_consensus_names_runtimes():
    """A consensus names at least two runtimes with their versions, and no other tier names any."""
    for rule in RULES.values():
        runtimes = rule.agreed.split(", ") if rule.agreed else []
        assert (len(runtimes) > 1) == (rule.tier == "consensus")
        assert all(re.search(r" \d+\.\d+\.\d+$", each) for each in runtimes)


def test_quantised_cases_of_the_specification_do_not_depend_on_ties():
    """No case of the specification has ties, because adding y's zero point before or after rounding half to even is a
    choice."""
    for case in CASES:
        if case.operator.startswith("QLinear") and case.tier == "spec" and case.inputs[4] is not None:
            assert case.inputs[4] % 2 == 0, case.name


def test_decisions_exist():
    """Every decision that a rule names is a section of the page, and every section has cases."""
    page = (ROOT / "docs" / "reference" / "decisions.md").read_text("utf-8")
    sections = set(re.findall(r"^## (D\d+)$", page, re.MULTILINE))
    assert {rule.decision for rule in RULES.values() if rule.decision} == sections


@pytest.mark.parametrize("part", range(4))
def test_every_case_can_be_shown(part):
    """The explanation of a case states its reason, and the first result of a pool follows from the formula shown."""
    for case in CASES[part::4]:
        text = "\n".join(show(case))
        assert case.decided.reason in text
        assert ("must refuse" in text) == bool(case.error)


def test_a_picture():
    """The picture shows elements, padding, and places beyond the padding."""
    text = "\n".join(show(table()["d02_averagepool_2d_pads_and_overhang_opset_10"]))
    assert """\
  position     p 0 1 2 3 p -
  window 0     o # #
  window 1         # # #
  window 2             # o o
""" in text
    assert "  [0, 0, 2, 2]: (16) / 4 = 4.0" in text


def test_random_cases_never_change():
    """A seed and a number determine the same random case on every machine."""
    digest = hashlib.sha256()
    for case in random_cases(40, 7):
        digest.update(repr((case.name, case.operator, case.opset, case.attributes, case.rule, case.outputs)).encode())
        digest.update(b"".join(np.asarray(x).tobytes() for x in case.inputs if x is not None))
    assert digest.hexdigest() == "a6fbbb68e01e027c473a47c777c6475b944700fd101e8e736e790f92dcb3a5c3"
    assert random_case(7, 39).inputs[0].tobytes() == case.inputs[0].tobytes()


def test_random_cases_have_results():
    """Every random case has a result, and all operators and kinds of cases occur."""
    cases = list(random_cases(80, 4))
    for case in cases:
        assert all(y.size for y in case.expected())
    assert {case.operator for case in cases} == set(OPERATORS)
    assert {"d1 silent", "d2", "indices", "storage order"} <= {case.rule for case in cases}


def test_the_oracle_refuses_geometries():
    """The oracle refuses each case whose expected result is a refusal of the geometry."""
    for case in CASES:
        if case.rule in ("d10 refused", "d14 refused", "places", "images", "d24 refused"):
            with pytest.raises(GeometryError):
                case.truths  # noqa: B018


def test_no_runtime_is_imported():
    """Listing and explaining cases imports no ml_dtypes, no onnx, no onnxpool and no other runtime."""
    program = ("import sys; sys.modules['ml_dtypes'] = None; from onnxpool_conformance.__main__ import main\n"
               "main(['list', '--random', '5', '--kernels']); main(['show', 'maxpool_1d'])\n"
               "assert main(['show', 'maxpool_bfloat16']) == 2\n"
               "print([n for n in ('onnx', 'onnxpool', 'onnxruntime', 'openvino', 'torch') if sys.modules.get(n)])")
    import onnxpool_conformance
    source = str(Path(inspect.getfile(onnxpool_conformance)).parents[1])
    done = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": source}, text=True, capture_output=True,
                          check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "need the package ml_dtypes" in done.stderr


def test_the_licence_is_that_of_the_repository():
    """The distribution has a copy of the repository's licence, because build backends refuse files outside their
    folder."""
    assert (ROOT / "conformance" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
