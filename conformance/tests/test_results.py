"""The stored results of runtimes: the page is made from them, and old releases with known bugs fail."""

import sys
from pathlib import Path

import pytest
from onnxpool_conformance.rules import TIERS
from onnxpool_conformance.table import table

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tools.run_conformance import FOLDERS, PAGE, page, runtimes, stored  # noqa: E402

pytest.importorskip("ml_dtypes")  # without it, there are fewer cases
STORED = {each.runtime.id: each for each in stored()}
CONTROLS = {
    ("onnxruntime-1.27", "onnxruntime"): (
        "d02_averagepool_1d_overhang_opset_11", "d02_averagepool_2d_pads_and_overhang_opset_11"),
    ("tract-0.23.5", "tract"): (
        *(f"d02_averagepool_1d_overhang_opset_{opset}" for opset in (10, 11, 19, 22)),
        "averagepool_dilations", "averagepool_dilations_pads", "averagepool_dilations_counted"),
}


def test_the_page_is_up_to_date():
    """The page matches the stored results, which cover all cases."""
    assert PAGE.read_text("utf-8") == page([*STORED.values()])


def test_every_adapter_has_results():
    """Every adapter and every runtime has results, and each adapter belongs to a runtime."""
    adapters = {path.stem for path in (ROOT / "conformance/src/onnxpool_conformance/adapters").glob("*.py")}
    assert {runtime.adapter for runtime in runtimes()} == adapters - {"__init__", "in_node"}
    assert {runtime.id for runtime in runtimes()} == set(STORED)


def test_no_false_alarms():
    """The table of disagreements explains each failure of onnxruntime and OpenVINO in many random cases."""
    for name in ("onnxruntime", "openvino"):
        assert STORED[name].random["cases"] >= 10_000
        assert STORED[name].random["unexplained"] == []


@pytest.mark.parametrize(("old", "new"), CONTROLS, ids=lambda name: name)
def test_old_releases_fail(old, new):
    """The suite finds the known bugs of a release, and finds none of them in the release that fixed them."""
    for name in CONTROLS[old, new]:
        assert STORED[old].outcome(table()[name]) == "wrong", name
        assert STORED[new].outcome(table()[name]) == "passed", name


def test_onnxpool_has_no_failures():
    """onnxpool passes all tiers."""
    assert not STORED["onnxpool"].failures
    assert {case.tier for case in STORED["onnxpool"].cases} == set(TIERS)


def test_kept_details_have_no_folders():
    """Stored details contain no names of temporary folders, which would differ from run to run."""
    assert FOLDERS.sub("", "failed: /tmp/x_1/model.c:6: no /, but https://a.b/c") == (
        "failed: model.c:6: no /, but https://a.b/c")
    assert not [detail for each in STORED.values() for _, detail in each.failures.values() if FOLDERS.search(detail)]
