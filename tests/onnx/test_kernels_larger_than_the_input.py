"""D10, kernels larger than the padded input: the table in docs/reference/decisions.md holds, and all entry points
agree."""

import itertools
import re
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
import sessions
from onnx import reference
from support import ROOT, to_last

import onnxpool
from onnxpool.onnx import backend
from onnxpool.onnx.derived import DERIVED
from onnxpool.onnx.reference import new_ops

SECTION = (ROOT / "docs" / "reference" / "decisions.md").read_text().partition("## D10\n")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in SECTION.splitlines() if line.startswith("|")]
HEAD, TABLE = ROWS[0], [dict(zip(ROWS[0], row, strict=True)) for row in ROWS[2:]]
MICROSOFT = ("QLinearAveragePool", "NhwcMaxPool")
VERSIONS = [(row["operator"], row["version"], row["attributes"]) for row in onnxpool.supported()
            if row["operator"] in ("AveragePool", "MaxPool", "LpPool", *MICROSOFT)]


class Pool(NamedTuple):
    """A pool of one axis whose kernel exceeds the padded input by `excess`."""

    operator: str
    version: int
    stride: int
    excess: int
    attributes: dict[str, Any]

    @property
    def row(self) -> dict[str, str]:
        """The row of the table to which the pool belongs."""
        place = min(self.excess // self.stride, 2) + 1
        return TABLE[place if place > 1 or not self.attributes.get("ceil_mode") else 0]

    @property
    def inputs(self) -> list[Any]:
        """The inputs: 1, 2, ..., and scales of 1."""
        x = np.arange(1, 6).reshape(1, 1, 5).astype(np.uint8 if self.operator in MICROSOFT else np.float32)
        one, zero = np.float32(1), np.uint8(0)
        if self.operator == "NhwcMaxPool":
            return [to_last(x, True)]
        return [x, one, zero, one, zero] if self.operator == "QLinearAveragePool" else [x]

    @property
    def model(self) -> onnx.ModelProto:
        """The model of this node."""
        domain = "com.microsoft" if self.operator in MICROSOFT else ""
        shape = None if self.operator == "QLinearAveragePool" else self.inputs[0].shape
        return sessions.node_model(self.operator, self.inputs, self.attributes, domain=domain, shape=shape,
                                   opset=22 if domain else self.version)

    @property
    def node(self) -> onnx.NodeProto:
        """The node."""
        return self.model.graph.node[0]

    @property
    def feeds(self) -> dict[str, Any]:
        """The inputs of the model."""
        return sessions.feeds(self.inputs)


def pools() -> list[Pool]:
    """All pools of the family: excess below, at and above strides; pads, dilations and VALID; every version."""
    made = []
    for (operator, version, known), stride, factor in itertools.product(VERSIONS, (1, 2, 3, 7), range(7)):
        excess = max(1, stride * factor // 2 + factor % 2)
        for pads, dilation, mode in (([], 1, ""), ([1, 1], 1, ""), ([0, 2], 1, ""), ([], 2, ""), ([], 1, "VALID")):
            steps = 4 + sum(pads) + excess  # from the first tap of a window to the last one
            if steps % dilation:
                continue
            given = {"kernel_shape": [steps // dilation + 1], "strides": [stride], "pads": pads,
                     "dilations": [dilation] if dilation > 1 else [], "auto_pad": mode}
            given = {name: value for name, value in given.items() if value}
            for ceil in ({}, {"ceil_mode": 1}):
                if given.keys() | ceil <= set(known):
                    made.append(Pool(operator, version, stride, excess, given | ceil))
    return made


POOLS = pools()


def outcome(call: Any) -> str:
    """The outcome of a call, in the words of the table."""
    try:
        result = call()
    except Exception:
        return "refuses"
    return "one window" if result[0].size == 1 else "empty" if result[0].size == 0 else f"{result[0].size} windows"


def allowed(cell: str) -> set[str]:
    """The outcomes that a cell allows."""
    return {"refuses" if word == "fails" else word for word in cell.split(" or ")}


def inferred(model: onnx.ModelProto) -> list[int]:
    """The number of windows that onnx infers; None if it infers no shape, as for LpPool-1."""
    (output,) = onnx.shape_inference.infer_shapes(model).graph.output
    return [size.dim_value for size in output.type.tensor_type.shape.dim][2:]


@pytest.mark.smoke
def test_the_table_has_these_rows_and_columns() -> None:
    assert HEAD == ["kernel exceeds by", "`ceil_mode`", "formula", "onnxruntime", "reference", "inference", "torch",
                    "OpenVINO", "onnxpool"]
    assert len(TABLE) == 4
    assert {(pool.operator, pool.version) for pool in POOLS} == {(name, version) for name, version, _ in VERSIONS}


@pytest.mark.smoke
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["kernel exceeds by"])
def test_formula_and_onnxpool(row: dict[str, str]) -> None:
    """The row states the result of the formula, and onnxpool follows it in every way of calling."""
    seen = set()
    for number, pool in enumerate(pool for pool in POOLS if pool.row is row):
        operator = onnxpool.from_node(pool.node, {"": pool.version, "com.microsoft": 1})
        x = pool.inputs[0]
        windows = (-(pool.excess // pool.stride) if "ceil_mode" in pool.attributes else -pool.excess // pool.stride) + 1
        seen.add(windows)
        ways = {
            "object": lambda operator=operator, pool=pool: [operator(*pool.inputs)],
            "shape": lambda operator=operator, x=x: [np.zeros(operator.output_shape(x.shape))],
            "plan": lambda operator=operator, x=x, pool=pool: [operator.plan(x.shape, x.dtype)(*pool.inputs)],
            "backend": lambda pool=pool: backend.run_node(
                pool.node, pool.inputs, opset_version=22 if pool.operator in MICROSOFT else pool.version),
            "evaluator": lambda pool=pool: reference.ReferenceEvaluator(pool.model, new_ops=new_ops()).run(
                None, pool.feeds),
        }
        for name, way in ways.items():
            if name in ("backend", "evaluator") and number % 3:
                continue  # they call the operator
            assert outcome(way) == row["onnxpool"], (name, pool)
        if windows < 1:
            with pytest.raises(onnxpool.PoolError) as caught:
                operator(*pool.inputs)
            assert (caught.value.attribute, caught.value.axis) == ("kernel_shape", 1 if operator.channels_last else 2)
            assert ("ceil_mode=1" in str(caught.value)) == ("ceil_mode" in pool.attributes)
    assert seen
    texts = {"1": {1}, "0": {0}, "0 or -1": {0, -1}}
    assert seen == texts[row["formula"]] if row["formula"] in texts else max(seen) < 0


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["kernel exceeds by"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # from onnx's own operators
def test_what_others_do(row: dict[str, str], needs_named_version: Any) -> None:
    """onnxruntime, onnx's reference and its inference behave as the row states."""
    needs_named_version("onnx")
    needs_named_version("onnxruntime")
    for pool in (pool for pool in POOLS if pool.row is row):
        if any(pool.version in opsets for opsets in DERIVED["onnxruntime"]["kernels"][pool.operator].values()):
            theirs = outcome(lambda pool=pool: sessions.session(pool.model).run(None, pool.feeds))
            assert theirs in allowed(row["onnxruntime"]), pool
        if pool.operator in MICROSOFT:
            continue
        mode = pool.attributes.get("auto_pad")
        if not (mode and {"ceil_mode", "dilations"} & pool.attributes.keys()):  # D7
            evaluator = reference.ReferenceEvaluator(pool.model)
            theirs = outcome(lambda pool=pool, evaluator=evaluator: evaluator.run(None, pool.feeds))
            assert theirs in allowed(row["reference"]), pool
        words = row["inference"]
        for size in inferred(pool.model):
            assert size <= 0 if words == "0 or less" else str(size) in words.split(" or "), pool


def test_sessions_with_onnxpool() -> None:
    """A session on which onnxpool is registered refuses what onnxpool refuses, or computes the window."""
    for pool in [pool for pool in POOLS if pool.operator not in MICROSOFT][::7]:
        def run(pool: Pool = pool) -> Any:
            return sessions.session(pool.model, "all", opset=pool.version).run(None, pool.feeds)

        assert outcome(run) == pool.row["onnxpool"], pool


def test_dask_and_axes() -> None:
    """Functions on dask arrays, and functions with `axes`, agree with the table."""
    da = pytest.importorskip("dask.array")
    import onnxpool.dask

    functions = {"AveragePool": "average_pool", "MaxPool": "max_pool", "LpPool": "lp_pool"}
    for pool in (pool for pool in POOLS if pool.operator in functions):
        name = functions[pool.operator]
        x = pool.inputs[0]
        lazy = da.from_array(x, chunks=(1, 1, 2))
        ways = (lambda pool=pool, name=name, lazy=lazy: [
                    np.asarray(getattr(onnxpool.dask, name)(lazy, **pool.attributes, opset=pool.version))],
                lambda pool=pool, name=name, x=x: [
                    getattr(onnxpool, name)(x[0, 0], **pool.attributes, opset=pool.version, axes=0)])
        for way in ways:
            assert outcome(way) == pool.row["onnxpool"], pool


@pytest.mark.parametrize(("given", "text"), [
    ({"ceil_mode": 1}, "AveragePool-22: kernel_shape[0]=3 with dilations[0]=1 spans 3, but axis 2 has 2 (+0+0 pads), "
                       "and with ceil_mode=1 less than strides[0]=1 may be missing; add pads or shrink kernel_shape"),
    ({"auto_pad": "VALID"}, "AveragePool-22: kernel_shape[0]=3 with dilations[0]=1 spans 3, but axis 2 has 2 "
                            "(+0+0 pads); pass pads with auto_pad='NOTSET' or shrink kernel_shape"),
])
def test_the_text(given: dict[str, Any], text: str) -> None:
    """The error says what is missing, and suggests a correction that works: pads need an auto_pad other than VALID."""
    with pytest.raises(onnxpool.PoolError, match=f"^{re.escape(text)}$"):
        onnxpool.average_pool(np.ones((1, 1, 2), np.float32), 3, **given)


def test_torch_and_openvino() -> None:
    """The columns of torch and OpenVINO hold, if these are installed."""
    torch = pytest.importorskip("torch")
    for pool in POOLS:
        if pool.operator == "MaxPool" and len(set(pool.attributes.get("pads", [0]))) == 1:
            given = [pool.attributes.get(name, [default])[0] for name, default in
                     (("kernel_shape", 1), ("strides", 1), ("pads", 0), ("dilations", 1))]
            tensor = torch.from_numpy(pool.inputs[0])
            theirs = outcome(lambda given=given, tensor=tensor, pool=pool: [torch.nn.functional.max_pool1d(
                tensor, *given, ceil_mode=bool(pool.attributes.get("ceil_mode"))).numpy()])
            assert theirs == pool.row["torch"], pool
    openvino = pytest.importorskip("openvino")
    core = openvino.Core()
    for pool in POOLS[::5]:
        theirs = outcome(lambda pool=pool: [core.compile_model(core.read_model(
            pool.model.SerializeToString()), "CPU")(pool.inputs[:1])[0]])
        assert theirs == pool.row["OpenVINO"], pool
