"""The table of operators against the schemas of onnx and onnxruntime, and every refusal that follows from it."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper
from onnx.defs import get_all_schemas_with_history
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

import onnxpool

STANDARD = ("AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool")
CONTRIBUTED = ("QLinearGlobalAveragePool",)
# Compared as soon as they are in the table.
FURTHER = {"": ("MaxRoiPool", "MaxUnpool", "RoiAlign"), "com.microsoft": ("NhwcMaxPool", "QLinearAveragePool")}
SUPPORTED = {row["operator"] for row in onnxpool.supported()}
NEWEST = 28
OPSETS = range(1, NEWEST + 1)

DTYPES = {
    "tensor(bfloat16)": np.dtype(ml_dtypes.bfloat16),
    "tensor(float16)": np.dtype(np.float16),
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    "tensor(int8)": np.dtype(np.int8),
    "tensor(uint8)": np.dtype(np.uint8),
}
KINDS = {"FLOAT": "float", "INT": "int", "INTS": "ints", "STRING": "string"}

# A legal value of each attribute for one spatial axis; `p` changes its type between versions.
VALUES: dict[str, Any] = {
    "auto_pad": "VALID",
    "ceil_mode": 0,
    "count_include_pad": 0,
    "dilations": (1,),
    "kernel_shape": (2,),
    "pads": (0, 0),
    "storage_order": 0,
    "strides": (1,),
}
P = {"int": 2, "float": 2.0}


def default_of(attribute: Any) -> Any:
    """The default in an onnx or onnxruntime schema as a Python value, None where there is none."""
    stored = getattr(attribute, "default_value", None)
    if stored is None:
        stored = AttributeProto.FromString(attribute._default_value)
    if not stored.name:
        return None
    value = helper.get_attribute_value(stored)
    return value.decode() if isinstance(value, bytes) else value


def first_type(schema: Any) -> str:
    """The name of the type of the first input, in a schema of onnx or of onnxruntime."""
    first = schema.inputs[0]
    return str(first.type_str if hasattr(first, "type_str") else first.typeStr)


def published(schemas: list[Any], domain: str, needed: tuple[str, ...]) -> dict[tuple[str, int], dict[str, Any]]:
    """The schemas of a domain in the form of `onnxpool.supported()`, by operator and version."""
    names = {*needed, *(name for name in FURTHER[domain] if name in SUPPORTED)}
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for schema in schemas:
        if schema.domain != domain or schema.name not in names:
            continue
        types = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
        attributes = {
            name: {
                "type": KINDS[str(attribute.type).rpartition(".")[2]],
                "required": attribute.required,
                "default": default_of(attribute),
            }
            for name, attribute in schema.attributes.items()
        }
        rows[schema.name, schema.since_version] = {
            "attributes": attributes,
            "dtypes": {DTYPES[name].name for name in types[first_type(schema)]},
            "outputs": schema.max_output,
        }
    return rows


ONNX = published(get_all_schemas_with_history(), "", STANDARD)
ONNXRUNTIME = published(get_all_operator_schema(), "com.microsoft", CONTRIBUTED)
VERSIONS = {name: sorted(version for operator, version in ONNX if operator == name) for name in STANDARD}


def since(operator: str, opset: int) -> int:
    """The version of an operator that a model of an opset uses."""
    return max(version for version in VERSIONS[operator] if version <= opset)


def introduced(operator: str, known: Callable[[dict[str, Any]], bool]) -> int | None:
    """The first version of an operator whose schema has something."""
    return next((version for version in VERSIONS[operator] if known(ONNX[operator, version])), None)


def build(operator: str, opset: Any, **attributes: Any) -> Any:
    """An operator object, with a kernel of 2 and strides of 1 where the operator has windows."""
    if "kernel_shape" in ONNX[operator, VERSIONS[operator][-1]]["attributes"]:
        attributes = {"kernel_shape": VALUES["kernel_shape"], **attributes}
    return getattr(onnxpool, operator)(opset=opset, **attributes)


def rows_of(domain: str) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row["operator"], row["version"]): row for row in onnxpool.supported() if row["domain"] == domain}


ALL_ATTRIBUTES = [
    (operator, name)
    for operator in STANDARD
    for name in sorted({name for version in VERSIONS[operator] for name in ONNX[operator, version]["attributes"]})
]


@pytest.mark.parametrize(("domain", "schemas"), [("", ONNX), ("com.microsoft", ONNXRUNTIME)], ids=["onnx", "microsoft"])
def test_every_version_is_published_and_every_published_version_is_there(
    domain: str, schemas: dict[tuple[str, int], dict[str, Any]]
) -> None:
    """The table has exactly the operators and versions of the published schemas."""
    assert set(rows_of(domain)) == set(schemas)
    assert {operator for operator, _ in schemas} >= set(CONTRIBUTED if domain else STANDARD)


@pytest.mark.parametrize(
    ("domain", "operator", "version"),
    [("", *key) for key in sorted(ONNX)] + [("com.microsoft", *key) for key in sorted(ONNXRUNTIME)],
)
def test_row_equals_the_published_schema(domain: str, operator: str, version: int) -> None:
    """Attribute names, types, requiredness and defaults, dtypes and outputs of a version are the published ones."""
    row = rows_of(domain)[operator, version]
    schema = (ONNXRUNTIME if domain else ONNX)[operator, version]

    assert row["attributes"] == schema["attributes"]
    assert sorted(row["dtypes"]) == sorted(schema["dtypes"])
    assert row["outputs"] == schema["outputs"]


def test_the_table_is_a_copy() -> None:
    """A caller who changes what `supported` returned changes nothing for the next caller."""
    first = onnxpool.supported()
    first[0]["attributes"].clear()
    first.clear()

    assert rows_of("")["AveragePool", 22]["attributes"] == ONNX["AveragePool", 22]["attributes"]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(("operator", "name"), ALL_ATTRIBUTES)
def test_attribute_is_taken_or_refused_as_its_version_says(operator: str, name: str, opset: int) -> None:
    """An attribute works from the version that has it; before, the refusal names the version that introduced it."""
    version = since(operator, opset)
    attribute = ONNX[operator, version]["attributes"].get(name)
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4)

    if attribute is None:
        with pytest.raises(onnxpool.PoolError) as caught:
            build(operator, opset, **{name: VALUES[name]})
        first = introduced(operator, lambda schema: name in schema["attributes"])
        text = str(caught.value)
        assert text.startswith(f"{operator}-{version}: ")
        assert name in text
        assert str(first) in text.replace(f"{operator}-{version}", "")
    else:
        value = P[attribute["type"]] if name == "p" else VALUES[name]
        length = 1 if "Global" in operator else 3
        assert build(operator, opset, **{name: value})(x).shape == (1, 1, length)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("operator", ["GlobalLpPool", "LpPool"])
def test_p_has_the_type_of_its_version(operator: str, opset: int) -> None:
    """A float is refused where the version takes integers. An integer is a float too."""
    version = since(operator, opset)
    kind = ONNX[operator, version]["attributes"]["p"]["type"]

    if kind == "float":
        assert type(build(operator, opset, p=P["int"]).attributes["p"]) is float
        return
    with pytest.raises(onnxpool.PoolTypeError, match=rf"^{operator}-{version}: .*\bp\b"):
        build(operator, opset, p=P["float"])


@pytest.mark.parametrize("operator", STANDARD)
@pytest.mark.parametrize("opset", OPSETS)
def test_dtype_is_taken_or_refused_as_its_version_says(operator: str, opset: int) -> None:
    """A dtype works from the version that has it; before, the refusal names the version that introduced it."""
    version = since(operator, opset)
    for dtype in DTYPES.values():
        x = np.arange(4).reshape(1, 1, 4).astype(dtype)
        if dtype.name in ONNX[operator, version]["dtypes"]:
            assert build(operator, opset)(x).dtype == dtype
            continue
        with pytest.raises(onnxpool.PoolTypeError) as caught:
            build(operator, opset)(x)
        text = str(caught.value)
        first = introduced(operator, lambda schema, name=dtype.name: name in schema["dtypes"])
        assert text.startswith(f"{operator}-{version}: ")
        assert dtype.name in text
        if first is not None:
            assert str(first) in text.replace(f"{operator}-{version}", "")


@pytest.mark.parametrize("operator", STANDARD)
def test_opset_between_two_versions_means_the_older(operator: str) -> None:
    """An opset number stands for the newest version of the operator that is not newer."""
    x = np.zeros((1, 1, 4), np.int32)
    for opset in OPSETS:
        with pytest.raises(onnxpool.PoolTypeError, match=rf"^{operator}-{since(operator, opset)}: "):
            build(operator, opset)(x)


@pytest.mark.parametrize("operator", STANDARD)
def test_no_opset_means_the_newest(operator: str) -> None:
    """Without an opset the newest version answers."""
    with pytest.raises(onnxpool.PoolTypeError, match=rf"^{operator}-{VERSIONS[operator][-1]}: "):
        build(operator, None)(np.zeros((1, 1, 4), np.int32))


@pytest.mark.parametrize("operator", [*STANDARD, *CONTRIBUTED])
@pytest.mark.parametrize("opset", [0, -1, NEWEST + 1, 2**63, 2**70])
def test_opset_that_does_not_exist_is_refused(operator: str, opset: int) -> None:
    """An opset below the first or above the newest known one is refused with the number and the range."""
    attributes = {"kernel_shape": (2,)} if operator in ("AveragePool", "LpPool", "MaxPool") else {}

    with pytest.raises(onnxpool.PoolError) as caught:
        getattr(onnxpool, operator)(opset=opset, **attributes)

    assert str(opset) in str(caught.value)
    assert operator in str(caught.value)


@pytest.mark.parametrize("opset", ["22", 22.0, 21.5, (22,), b"22"], ids=repr)
def test_opset_of_another_kind_is_refused(opset: Any) -> None:
    """An opset that is not an integer is refused as a wrong kind of value."""
    with pytest.raises(onnxpool.PoolTypeError, match="opset"):
        build("AveragePool", opset)


def node(operator: str, domain: str = "", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, ["x"], ["y"], domain=domain, **attributes)


@pytest.mark.parametrize("operator", STANDARD)
def test_attribute_of_no_version_is_refused(operator: str) -> None:
    """A node with an attribute that no version of the operator has is refused with the name of the attribute."""
    kernel = {"kernel_shape": [2]} if ("kernel_shape" in ONNX[operator, 1]["attributes"]) else {}

    with pytest.raises(onnxpool.PoolError, match="foreign"):
        onnxpool.from_node(node(operator, **kernel, foreign=1), {"": 22})


@pytest.mark.parametrize(
    ("operator", "domain", "opsets"),
    [
        ("Conv", "", {"": 22}),
        ("averagepool", "", {"": 22}),
        ("AveragePool", "com.microsoft", {"": 22, "com.microsoft": 1}),
        ("AveragePool", "", {"com.microsoft": 1}),
        ("AveragePool", "", {}),
        ("AveragePool", "", {"": 29}),
        ("QLinearGlobalAveragePool", "", {"": 22}),
    ],
    ids=["another_operator", "another_case", "another_domain", "no_opset", "nothing", "too_new", "not_standard"],
)
def test_node_that_is_not_ours_is_refused(operator: str, domain: str, opsets: dict[str, int]) -> None:
    """A node of another operator, domain or unknown opset is refused with its name."""
    with pytest.raises(onnxpool.PoolError, match=operator):
        onnxpool.from_node(node(operator, domain, kernel_shape=[2]), opsets)


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_both_names_of_the_standard_domain_are_known(domain: str) -> None:
    """The standard domain may be written as nothing or as ai.onnx, in the node and in the opsets."""
    for key in ("", "ai.onnx"):
        operator = onnxpool.from_node(node("AveragePool", domain, kernel_shape=[2]), {key: 13})

        assert operator == onnxpool.AveragePool(kernel_shape=[2], opset=13)
