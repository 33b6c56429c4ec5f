"""
Write the decisions as node tests, in the layout of onnx's own, and the table of runtimes that pass them.

    python tools/export_node_tests.py [--folder FOLDER]

Each folder test_NAME has model.onnx and test_data_set_0 with the inputs and outputs as TensorProtos. The outputs are
those of the oracle in tests/oracle, which shares no code with the library. The table in docs/decisions.md has a row for
each test: each installed runtime runs it, and if it differs, the row has the names of the rows of the table of
disagreements that say so. Install the versions of tests/onnx/versions.txt.
"""

import argparse
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "oracle"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from calls import INDICES, Call
from peers import PEERS, Example, agrees, model_of, release
from truths import truths

from onnxpool.onnx.disagreements import INFERENCE, OPENVINO, ORT, REFERENCE, Filter, disagreements

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "onnx" / "decisions"
PAGE = ROOT / "docs" / "decisions.md"
RUNTIMES = (ORT, OPENVINO, REFERENCE, INFERENCE)
TABLE = re.compile(r"^\| test \|.*\n(?:\|.*\n)+", re.MULTILINE)
ANSWERS = re.compile(r"^\| \[(D\d+)\]\(#d\d+\) \| (.*) \| (.*) \|$", re.MULTILINE)
SHARED = 21  # the newest opset for which onnxruntime has kernels of GlobalLpPool and RoiAlign; it has QLinear* at any
MOST_STORED = 1000  # elements of an input; larger ones, whose elements are all equal, are made by the model


class NodeTest(NamedTuple):
    """A node with its inputs, for one of the decisions."""

    decision: str
    name: str
    call: Call

    @property
    def folder(self) -> str:
        """The name of its folder, in the order of the decisions."""
        return f"test_d{int(self.decision[1:]):02}_{self.name}"

    @property
    def example(self) -> Example:
        """The test in the form that peers run."""
        call = self.call
        return Example(call.operator.split()[0], call.opset or 1, call.inputs, call.attributes,
                       1 + (call.operator == INDICES))


def ramp(*sizes: int, dtype: str = "float32") -> Any:
    """1, 2, 3, ... as one image of one channel."""
    return np.arange(1, 1 + np.prod(sizes)).reshape(1, 1, *sizes).astype(dtype)


def row(*values: float) -> Any:
    """One spatial axis of these values."""
    return np.array([[values]], np.float32)


def node(decision: str, name: str, operator: str, x: Any, *further: Any, opset: int | None = 22,
         **attributes: Any) -> NodeTest:
    """A test of one node; those of com.microsoft have no opset."""
    label = operator.split()[0].lower() + (f"_{name}" if name else "")
    return NodeTest(decision, label, Call(operator, opset, attributes, x, "given", "C", False, further))


def pools(decision: str, name: str, x: Any, **attributes: Any) -> list[NodeTest]:
    """The same windows as a mean, a maximum and a norm."""
    return [node(decision, name, operator, x, **attributes) for operator in ("AveragePool", "MaxPool", "LpPool")]


def quantised(decision: str, name: str, operator: str, x: Any, zero_point: int = 0, **attributes: Any) -> NodeTest:
    """A quantised mean with scales of 1."""
    one, zeros = np.array(1, np.float32), [np.array(value, x.dtype) for value in (0, zero_point)]
    return node(decision, name, operator, x, one, zeros[0], one, zeros[1], opset=None, **attributes)


CORNER = np.zeros((1, 1, 2, 2, 2), np.float32)
CORNER[..., 0, 0, 1] = 1
IMAGE = np.array([[[[0, 1], [2, 8]]]], np.float32)
REGION, FIRST = np.array([[0, 0, 1, 1]], np.float32), np.array([0])
DROPPED = {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1}
OVERHANG = {"kernel_shape": [4], "strides": [4], "ceil_mode": 1, "count_include_pad": 1}
COUNTED = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1, "count_include_pad": 1}
EMPTY = {"kernel_shape": [2], "strides": [2], "pads": [2, 3]}
AROUND = {"kernel_shape": [2], "dilations": [3], "pads": [1, 1]}  # one tap before two elements, and one behind them
LARGER = {"kernel_shape": [6], "strides": [2], "ceil_mode": 1}
SAMPLE = {"sampling_ratio": 1, "coordinate_transformation_mode": "output_half_pixel"}

TESTS = (
    *pools("D1", "2d", ramp(2, 2), **DROPPED),
    node("D1", "2d_opset_10", "AveragePool", ramp(2, 2), opset=10, **DROPPED),
    node("D1", "2d_opset_19", "AveragePool", ramp(2, 2), opset=19, **DROPPED),
    node("D1", "2d_opset_12", "MaxPool", ramp(2, 2), opset=12, **DROPPED),
    node("D1", "2d_opset_18", "LpPool", ramp(2, 2), opset=18, **DROPPED),
    node("D2", "1d_overhang", "AveragePool", ramp(5), **OVERHANG),
    node("D2", "1d_overhang_opset_11", "AveragePool", ramp(5), opset=11, **OVERHANG),
    node("D2", "2d_pads_and_overhang", "AveragePool", ramp(4, 4), **COUNTED),
    node("D2", "2d_pads_and_overhang_opset_11", "AveragePool", ramp(4, 4), opset=11, **COUNTED),
    *(node("D2", f"1d_{same.lower()}", "AveragePool", ramp(10), kernel_shape=[3], strides=[2], auto_pad=same,
           count_include_pad=1) for same in ("SAME_UPPER", "SAME_LOWER")),
    node("D3", "1d", "AveragePool", ramp(5), **EMPTY),
    node("D3", "1d_count_include_pad", "AveragePool", ramp(5), **EMPTY, count_include_pad=1),
    node("D3", "1d_dilated", "AveragePool", ramp(2), **AROUND),
    node("D4", "1d", "MaxPool", ramp(5), **EMPTY),
    node("D4", "1d_indices", INDICES, ramp(5), **EMPTY),
    node("D4", "1d_int8", "MaxPool", ramp(5, dtype="int8"), **EMPTY),
    node("D4", "1d_dilated", "MaxPool", ramp(2), **AROUND),
    node("D4", "1d_dilated_indices", INDICES, ramp(2), **AROUND),
    node("D5", "1d", "LpPool", ramp(5), **EMPTY),
    node("D5", "1d_dilated", "LpPool", ramp(2), **AROUND),
    node("D6", "1d", "MaxPool", row(1, np.nan, 2, 3), kernel_shape=[4]),
    node("D6", "1d_first", "MaxPool", row(np.nan, 1, 2, 3), kernel_shape=[4]),
    node("D6", "1d_indices", INDICES, row(1, np.nan, 2, np.nan), kernel_shape=[4]),
    node("D6", "2d", "GlobalMaxPool", np.array([[[[1, np.nan], [2, 3]]]], np.float32)),
    *pools("D7", "1d", ramp(6), kernel_shape=[3], strides=[2], auto_pad="VALID", ceil_mode=1),
    *(test for same in ("SAME_UPPER", "SAME_LOWER")
      for test in pools("D8", f"1d_{same.lower()}", ramp(6), kernel_shape=[1], strides=[3], auto_pad=same)),
    *pools("D9", "1d_pads_of_0", ramp(5), kernel_shape=[3], strides=[2], pads=[0, 0], auto_pad="VALID"),
    *pools("D10", "1d", ramp(5), **LARGER),
    node("D11", "1d", "MaxPool", ramp(5), kernel_shape=[2], pads=[2, 2]),
    *pools("D11", "1d_dilated", ramp(5), kernel_shape=[2], dilations=[3], pads=[2, 2]),  # no window is empty
    *pools("D12", "1d", ramp(3), kernel_shape=[2], auto_pad=""),
    *(node("D13", "", operator, np.array([[-1, 2]], np.float32), opset=opset)
      for operator, opset in (("GlobalAveragePool", 22), ("GlobalMaxPool", 22), ("GlobalLpPool", SHARED))),
    *(node("D14", name, operator, np.zeros(shape, np.float32), **attributes)
      for name, shape in (("no_images", (0, 3, 4, 4)), ("no_channels", (2, 0, 4, 4)))
      for operator, attributes in (("MaxPool", {"kernel_shape": [2, 2]}), ("GlobalMaxPool", {}),
                                   ("GlobalAveragePool", {}))),
    node("D15", "1d_fraction_opset_1", "LpPool", row(-1, 2, -3, 4), opset=1, kernel_shape=[4], p=1.5),
    node("D15", "1d_infinity_opset_1", "LpPool", row(-1, 2, -3, 4), opset=1, kernel_shape=[4], p=np.inf),
    node("D15", "1d_fraction_opset_1", "GlobalLpPool", row(-1, 2, -3, 4), opset=1, p=1.5),
    node("D15", "1d_infinity_opset_1", "GlobalLpPool", row(-1, 2, -3, 4), opset=1, p=np.inf),
    *(node("D16", mode, "RoiAlign", IMAGE, REGION, FIRST, opset=SHARED, mode=mode, **SAMPLE)
      for mode in ("avg", "max")),
    node("D17", "1d_output_shape", "MaxUnpool", row(2, 4), np.array([[[1, 3]]]), np.array([1, 1, 6]), kernel_shape=[2],
         strides=[2]),
    node("D17", "2d_output_shape", "MaxUnpool", ramp(2, 2), np.array([[[[0, 3], [9, 15]]]]), np.array([1, 1, 5, 6]),
         kernel_shape=[2, 2], strides=[2, 2]),
    *(node("D18", f"3d_storage_order_{order}", INDICES, CORNER, kernel_shape=[2, 2, 2], storage_order=order)
      for order in (0, 1)),
    node("D18", "3d_storage_order_1_strides", INDICES, ramp(2, 3, 4), kernel_shape=[2, 2, 2], strides=[1, 1, 2],
         storage_order=1),
    quantised("D19", "1d", "QLinearAveragePool", ramp(5, dtype="uint8"), **OVERHANG),
    quantised("D20", "2d", "QLinearGlobalAveragePool", np.full((1, 1, 2902, 2902), 255, np.uint8)),
    quantised("D21", "1d", "QLinearAveragePool", ramp(5, dtype="uint8"), 7, **EMPTY),
    node("D23", "1d_indices", INDICES, row(-0.0, 0.0), kernel_shape=[2]),
    node("D23", "1d_equal_indices", INDICES, row(1, 3, 3, 3), kernel_shape=[3]),
    node("D24", "avg", "RoiAlign", ramp(4, 4), np.array([[-1.5e38, -1.5e38, 1.5e38, 1.5e38]], np.float32), FIRST,
         opset=SHARED, sampling_ratio=1),
)


def answers() -> dict[str, str]:
    """What docs/decisions.md asks and answers, for each decision."""
    return {name: f"{question}: {answer}" for name, question, answer in ANSWERS.findall(PAGE.read_text("utf-8"))}


def stored(test: NodeTest) -> tuple[onnx.ModelProto, list[Any]]:
    """The model and its inputs. The shape of each output is open, because it may be what runtimes disagree about."""
    example = test.example
    model, inputs = model_of(example), [np.asarray(value) for value in example.inputs]
    model.opset_import[0].version = test.call.opset or SHARED
    model.ir_version = helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    for value in model.graph.output:
        for _ in range(example.x.ndim):
            value.type.tensor_type.shape.dim.add()
    if example.x.size > MOST_STORED:
        name, constant = model.graph.input[0].name, example.x.flat[:1]
        made = helper.make_node("ConstantOfShape", ["shape"], [name], value=numpy_helper.from_array(constant))
        model.graph.node.insert(0, made)
        model.graph.input[0].CopyFrom(helper.make_tensor_value_info("shape", TensorProto.INT64, [example.x.ndim]))
        inputs[0] = np.array(example.x.shape)
    model.graph.name, model.producer_name = test.folder, "onnxpool"
    model.doc_string = f"{test.decision} of docs/decisions.md: {answers()[test.decision]}"
    return model, inputs


def content(test: NodeTest) -> dict[str, bytes]:
    """The files of a test, by their paths within its folder."""
    model, inputs = stored(test)
    files = {"model.onnx": model.SerializeToString(deterministic=True)}
    outputs = [truth.result() for truth in truths(test.call)]
    for kind, arrays, values in (("input", inputs, model.graph.input), ("output", outputs, model.graph.output)):
        for place, (array, value) in enumerate(zip(arrays, values, strict=True)):
            tensor = numpy_helper.from_array(array, value.name)
            files[f"test_data_set_0/{kind}_{place}.pb"] = tensor.SerializeToString(deterministic=True)
    return files


def write(folder: Path) -> None:
    """Write all tests, and remove those that were there before."""
    for old in folder.glob("test_*"):
        shutil.rmtree(old)
    for test in TESTS:
        for name, data in content(test).items():
            file = folder / test.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def passes(test: NodeTest, runtime: str) -> bool | None:
    """Whether an installed runtime returns the library's results; None if shape inference has no answer."""
    with warnings.catch_warnings(action="ignore"):  # of the reference, about empty arrays
        try:
            run = PEERS[runtime](test.example)
        except Exception:  # each runtime has exceptions of its own for a node that it cannot run
            return False
        return agrees(test.example, run, test.call.inputs)


def unusual(test: NodeTest) -> set[str]:
    """The kinds of unusual values in a test: an infinite norm takes powers beyond the range of floats."""
    kinds = {"NaN"} if any(np.isnan(value).any() for value in test.call.inputs) else set()
    return kinds | ({"range"} if test.call.attributes.get("p") == np.inf else set())


def rows_of(test: NodeTest, runtime: str) -> list[str]:
    """The names of the rows that say that a runtime differs."""
    found = disagreements(test.example.case, Filter(values=True, runtimes={runtime: release(runtime)}))
    return [row.name for row in found if not row.values or row.values in unusual(test)]


def verdict(test: NodeTest, runtime: str) -> str:
    """A cell of the table."""
    passed = passes(test, runtime)
    if passed is not False:
        return "passes" if passed else ""
    return ", ".join(f"`{name}`" for name in rows_of(test, runtime)) or "fails"


def table() -> Iterator[str]:
    """The lines of the table on the page."""
    yield f"| test | {' | '.join(RUNTIMES)} |"
    yield "|---" * (1 + len(RUNTIMES)) + "|"
    verdicts = [[verdict(test, runtime) for runtime in RUNTIMES] for test in TESTS]
    passed = (f"{cells.count('passes')} of {len(cells) - cells.count('')}" for cells in zip(*verdicts, strict=True))
    yield f"| all | {' | '.join(passed)} |"
    for test, cells in zip(TESTS, verdicts, strict=True):
        yield f"| `{test.folder.removeprefix('test_')}` | {' | '.join(cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write the tests (default: %(default)s)")
    arguments = parser.parse_args()
    write(arguments.folder)
    lines = "".join(f"{line}\n" for line in table())
    PAGE.write_text(TABLE.sub(lambda _: lines, PAGE.read_text("utf-8")), "utf-8")
