"""The table of operators against the schemas of onnx and onnxruntime, and every error that follows from it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper
from onnx.defs import get_all_schemas_with_history
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
from samples import ATTRIBUTES, CONTRIBUTED, OPERATORS, build, domain_of, inputs
from support import DTYPES

import onnxpool
from onnxpool import schemas
from onnxpool.attributes import Attribute, Choice, Flag, Float, Int, Ints
from onnxpool.errors import Place

STANDARD = tuple(name for name in OPERATORS if name not in CONTRIBUTED)
NEWEST = 28
OPSETS = range(1, NEWEST + 1)
SHAPE = (1, 4, 4, 4)

TYPES = {f"tensor({name})": name for name in ("bfloat16", "float16", "int8", "uint8")}
TYPES |= {"tensor(float)": "float32", "tensor(double)": "float64"}
KINDS = {"FLOAT": "float", "INT": "int", "INTS": "ints", "STRING": "string"}

# A legal value of each attribute for two spatial axes; the type of `p` differs between versions.
VALUES: dict[str, Any] = {
    "auto_pad": "VALID",
    "ceil_mode": 0,
    "channels_last": 0,
    "coordinate_transformation_mode": "output_half_pixel",
    "count_include_pad": 0,
    "dilations": (1, 1),
    "kernel_shape": (2, 2),
    "mode": "max",
    "output_height": 3,
    "output_width": 5,
    "pads": (0, 0, 0, 0),
    "pooled_shape": (2, 2),
    "sampling_ratio": 2,
    "spatial_scale": 0.5,
    "storage_order": 0,
    "strides": (2, 2),
}
P = {"int": 2, "float": 2.0}


def default_of(attribute: Any) -> Any:
    """The default in an onnx or onnxruntime schema as a Python value, or None."""
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


def published(schemas: list[Any], domain: str, names: tuple[str, ...]) -> dict[tuple[str, int], dict[str, Any]]:
    """The schemas of a domain in the form of `onnxpool.supported()`, by operator and version."""
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
            "dtypes": {TYPES[name] for name in types[first_type(schema)]},
            "outputs": schema.max_output,
        }
    return rows


ONNX = published(get_all_schemas_with_history(), "", STANDARD)
ONNXRUNTIME = published(get_all_operator_schema(), "com.microsoft", CONTRIBUTED)
SCHEMAS = {"": ONNX, "com.microsoft": ONNXRUNTIME}
ALL = ONNX | ONNXRUNTIME
VERSIONS = {name: sorted(version for operator, version in ALL if operator == name) for name in OPERATORS}


def opsets_of(operator: str) -> list[int]:
    """Each opset of its domain that contains an operator."""
    return [opset for opset in (OPSETS if operator in STANDARD else (1,)) if opset >= VERSIONS[operator][0]]


def since(operator: str, opset: int) -> int:
    """The version of an operator that applies to a model of an opset."""
    return max(version for version in VERSIONS[operator] if version <= opset)


def introduced(operator: str, known: Callable[[dict[str, Any]], bool]) -> int | None:
    """The first version of an operator whose schema satisfies a condition."""
    return next((version for version in VERSIONS[operator] if known(ALL[operator, version])), None)


def rows_of(domain: str) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row["operator"], row["version"]): row for row in onnxpool.supported() if row["domain"] == domain}


@pytest.mark.parametrize("operator", OPERATORS)
def test_inputs_are_those_of_the_published_schema(operator: str) -> None:
    """The table has the names of inputs in all versions, and which inputs a node may omit."""
    found = [schema for schema in (*get_all_schemas_with_history(), *get_all_operator_schema())
             if schema.name == operator and schema.domain == schemas.SCHEMAS[operator].domain]
    assert found
    for schema in found:
        assert tuple(one.name for one in schema.inputs) == schemas.SCHEMAS[operator].inputs
        optional = tuple(one.name for one in schema.inputs if str(one.option).rpartition(".")[2] == "Optional")
        assert optional == schemas.SCHEMAS[operator].optional


@pytest.mark.parametrize("domain", SCHEMAS, ids=["onnx", "microsoft"])
def test_every_version_is_published_and_every_published_version_is_there(domain: str) -> None:
    """The table has exactly the operators and versions of the published schemas."""
    assert set(rows_of(domain)) == set(SCHEMAS[domain])
    assert {operator for operator, _ in SCHEMAS[domain]} == set(CONTRIBUTED if domain else STANDARD)


@pytest.mark.parametrize(("operator", "version"), sorted(ALL))
def test_row_equals_the_published_schema(operator: str, version: int) -> None:
    """A version's attribute names, types, required flags, defaults, dtypes and outputs are as published."""
    row = rows_of(domain_of(operator))[operator, version]
    schema = ALL[operator, version]

    assert row["attributes"] == schema["attributes"]
    assert sorted(row["dtypes"]) == sorted(schema["dtypes"])
    assert row["outputs"] == schema["outputs"]


def test_the_table_is_a_copy() -> None:
    """A caller who changes the result of `supported` changes nothing for the next caller."""
    first = onnxpool.supported()
    first[0]["attributes"].clear()
    first.clear()

    assert rows_of("")["AveragePool", 22]["attributes"] == ONNX["AveragePool", 22]["attributes"]


@pytest.mark.parametrize("operator", OPERATORS)
def test_attributes_are_taken_or_refused_as_their_version_says(operator: str) -> None:
    """An attribute works from the version that introduced it. Before that, the error names this version."""
    for opset in opsets_of(operator):
        version = since(operator, opset)
        arrays = inputs(operator, shape=SHAPE)
        for name in sorted({name for one in VERSIONS[operator] for name in ALL[operator, one]["attributes"]}):
            attribute = ALL[operator, version]["attributes"].get(name)
            if attribute is not None:
                value = P[attribute["type"]] if name == "p" else VALUES[name]
                assert build(operator, opset=opset, **{name: value})(*arrays).ndim == 4
                continue
            with pytest.raises(onnxpool.PoolError) as caught:
                build(operator, opset=opset, **{name: VALUES[name]})
            first = introduced(operator, lambda schema, name=name: name in schema["attributes"])
            text = str(caught.value)
            assert text.startswith(f"{operator}-{version}: ")
            assert name in text
            assert str(first) in text.replace(f"{operator}-{version}", "")


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("operator", ["GlobalLpPool", "LpPool"])
def test_p_has_the_type_of_its_version(operator: str, opset: int) -> None:
    """A float is refused where the version expects integers. An integer is accepted as a float."""
    version = since(operator, opset)
    if ALL[operator, version]["attributes"]["p"]["type"] == "float":
        assert type(build(operator, opset=opset, p=P["int"]).attributes["p"]) is float
    else:
        with pytest.raises(onnxpool.PoolTypeError, match=rf"^{operator}-{version}: .*\bp\b"):
            build(operator, opset=opset, p=P["float"])


@pytest.mark.parametrize("operator", OPERATORS)
def test_dtypes_are_taken_or_refused_as_their_version_says(operator: str) -> None:
    """A dtype works from the version that introduced it. Before that, the error names this version."""
    for opset in opsets_of(operator):
        version = since(operator, opset)
        for dtype in DTYPES:
            arrays = inputs(operator, dtype.name, SHAPE)
            if dtype.name in ALL[operator, version]["dtypes"]:
                assert build(operator, opset=opset)(*arrays).dtype == dtype
                continue
            with pytest.raises(onnxpool.PoolTypeError) as caught:
                build(operator, opset=opset)(*arrays)
            text = str(caught.value)
            first = introduced(operator, lambda schema, name=dtype.name: name in schema["dtypes"])
            assert text.startswith(f"{operator}-{version}: ")
            assert dtype.name in text
            if first is not None:
                assert str(first) in text.replace(f"{operator}-{version}", "")


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_opset_means_the_newest_version_that_is_not_newer(operator: str) -> None:
    """An opset between two versions means the older version. No opset means the newest version."""
    for opset in (None, *opsets_of(operator)):
        version = VERSIONS[operator][-1] if opset is None else since(operator, opset)
        with pytest.raises(onnxpool.PoolTypeError, match=rf"^{operator}-{version}: "):
            build(operator, opset=opset)(*inputs(operator, np.int32, SHAPE))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("opset", [0, -1, NEWEST + 1, 2**63, 2**70])
def test_opset_that_does_not_exist_is_refused(operator: str, opset: int) -> None:
    """An opset below the first or above the newest known one is refused, with the number and the range."""
    with pytest.raises(onnxpool.PoolError) as caught:
        build(operator, opset=opset)

    assert str(opset) in str(caught.value)
    assert operator in str(caught.value)


@pytest.mark.parametrize(("operator", "newest"), [("AveragePool", 28), ("QLinearAveragePool", 1),
                                                  ("QLinearGlobalAveragePool", 1)])
def test_opsets_of_a_domain_end_with_the_newest_known_one(operator: str, newest: int) -> None:
    """Each domain has its own newest opset, above which opsets are refused."""
    build(operator, opset=newest)
    with pytest.raises(onnxpool.PoolError, match=f"opset={newest + 1} is not known, and the newest is {newest};"):
        build(operator, opset=newest + 1)


@pytest.mark.parametrize("operator", [name for name in STANDARD if VERSIONS[name][0] > 1])
def test_opset_before_the_operator_is_refused(operator: str) -> None:
    """An opset in which ONNX did not have the operator is refused, and the error names the first opset that has the
    operator."""
    for opset in range(1, VERSIONS[operator][0]):
        with pytest.raises(onnxpool.PoolError, match=rf"^{operator}: .*\b{opset}\b.*\b{VERSIONS[operator][0]}\b"):
            build(operator, opset=opset)


@pytest.mark.parametrize("opset", ["22", 22.0, 21.5, (22,), b"22"], ids=repr)
def test_opset_of_another_kind_is_refused(opset: Any) -> None:
    """An opset that is not an integer is refused for its type."""
    with pytest.raises(onnxpool.PoolTypeError, match="opset"):
        build("AveragePool", opset=opset)


def node(operator: str, domain: str = "", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, ["x"], ["y"], domain=domain, **attributes)


@pytest.mark.parametrize("operator", OPERATORS)
def test_attribute_of_no_version_is_refused(operator: str) -> None:
    """A node with an attribute that no version of the operator has is refused, with the name of the attribute."""
    domain = domain_of(operator)
    with pytest.raises(onnxpool.PoolError, match="foreign"):
        onnxpool.from_node(node(operator, domain, **ATTRIBUTES[operator], foreign=1), {domain: 1 if domain else 22})


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
    """A node of another operator, domain or unknown opset is refused, with its name."""
    with pytest.raises(onnxpool.PoolError, match=operator):
        onnxpool.from_node(node(operator, domain, kernel_shape=[2]), opsets)


def test_nodes_that_onnx_refuses_are_refused() -> None:
    """Attributes that are given twice, or have no type, are refused, and so are more outputs than the version has."""
    twice, nameless, typeless = (node("MaxPool", kernel_shape=[2]) for _ in range(3))
    twice.attribute.append(helper.make_attribute("kernel_shape", [3]))
    nameless.attribute.add().name = "kernel_size"
    typeless.attribute.add().name = "strides"
    outputs = helper.make_node("MaxPool", ["x"], ["y", "i", "k"], kernel_shape=[2])
    for bad, error, text in (
            (twice, onnxpool.PoolError, "kernel_shape is given more than once"),
            (nameless, onnxpool.PoolError, "unknown attribute kernel_size"),
            (typeless, onnxpool.PoolTypeError, "strides.* has type UNDEFINED"),
            (outputs, onnxpool.PoolError, "3 outputs requested, but there are 2"),
            (helper.make_node("LpPool", ["x"], ["y", "i"], kernel_shape=[2]), onnxpool.PoolError, "2 outputs")):
        with pytest.raises(error, match=text):
            onnxpool.from_node(bad, {"": 22})
    left_out = helper.make_node("MaxPool", ["x"], ["y", ""], kernel_shape=[2])
    assert onnxpool.from_node(left_out, {"": 22}) == onnxpool.MaxPool(kernel_shape=(2,), opset=22)


def test_ranges_of_any_length_are_refused() -> None:
    """Ranges of any length are refused, even if len() cannot express the length."""
    for values in (range(10**6), range(10**30)):
        with pytest.raises(onnxpool.PoolError, match=r"kernel_shape has .* values, but no array has more than"):
            onnxpool.MaxPool(kernel_shape=values)


def test_reference_to_an_attribute_of_a_function_is_refused() -> None:
    """A node of a function is refused if the caller sets an attribute. The error names both attributes and a way
    out."""
    pool = node("MaxPool", strides=[2])
    pool.attribute.append(onnx.AttributeProto(name="kernel_shape", ref_attr_name="size", type=onnx.AttributeProto.INTS))
    with pytest.raises(onnxpool.PoolError) as caught:
        onnxpool.from_node(pool, {"": 22})
    assert str(caught.value) == (
        "MaxPool-22: kernel_shape refers to size, an attribute of the function that contains the node; inline the "
        "function, or pass a copy of the node with the value")
    error = caught.value
    assert (error.operator, error.attribute, error.value) == ("MaxPool", "kernel_shape", "size")


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_both_names_of_the_standard_domain_are_known(domain: str) -> None:
    """The standard domain may be written as an empty string or as ai.onnx, in the node and in the opsets."""
    for key in ("", "ai.onnx"):
        operator = onnxpool.from_node(node("AveragePool", domain, kernel_shape=[2]), {key: 13})

        assert operator == onnxpool.AveragePool(kernel_shape=[2], opset=13)


@pytest.mark.parametrize(
    ("operator", "attribute", "kind"),
    [
        ("AveragePool", "auto_pad", Choice("SAME_LOWER", "NOTSET")),
        ("AveragePool", "ceil_mode", Flag(1)),
        ("AveragePool", "count_include_pad", Flag(1)),
        ("AveragePool", "dilations", Ints(minimum=1, omitted=3)),
        ("AveragePool", "pads", Ints(minimum=0, omitted=1)),
        ("MaxPool", "storage_order", Flag(1)),
        ("MaxPool", "strides", Ints(minimum=1, omitted=2)),
        ("LpPool", "p", Int(1, minimum=1)),
        ("MaxUnpool", "strides", Ints(minimum=1, omitted=3)),
        ("MaxRoiPool", "spatial_scale", Float(0.5)),
        ("RoiAlign", "mode", Choice("max", "avg")),
        ("RoiAlign", "sampling_ratio", Int(3, minimum=0)),
    ],
)
def test_another_default_is_a_row(operator: str, attribute: str, kind: Attribute,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """A version with another default needs only its row. Earlier versions keep their defaults."""
    usual: Any = getattr(onnxpool, operator)
    schema = schemas.SCHEMAS[operator]
    newest = schema.versions[-1]
    rows = (schemas.since(1, newest.attributes, dtypes=newest.dtypes, outputs=newest.outputs),
            schemas.since(NEWEST, {attribute: kind}))
    changed = schema._replace(versions=schemas.history(operator, *rows).versions)
    monkeypatch.setitem(schemas.ALL_SCHEMAS, operator, changed)
    later: Any = type(operator, (usual,), {"__slots__": (), "_schema": changed})
    given = {name: value for name, value in ATTRIBUTES[operator].items() if name != attribute}
    if attribute == "count_include_pad":
        given["pads"] = 1
    elif attribute in ("ceil_mode", "storage_order"):
        given["strides"] = 3
    if attribute == "storage_order":
        given["return_indices"] = True
    further = inputs(operator, shape=(2, 3, 7, 6))
    if operator == "MaxUnpool":
        further[1] %= 6 * 5  # inside the smaller result

    def computed(made: Any, **attributes: Any) -> list[Any]:
        result = made(**given, **attributes)(*further)
        return [array.tolist() for array in (result if isinstance(result, tuple) else (result,))]

    usual_value = newest.implied[attribute]
    assert getattr(later(**given, opset=NEWEST), attribute) == kind.implied
    assert getattr(later(**given, opset=NEWEST - 1), attribute) == usual_value
    assert computed(later, opset=NEWEST) == computed(usual, **{attribute: kind.implied})
    assert computed(later, opset=NEWEST - 1) == computed(usual, **{attribute: usual_value})
    assert computed(later, opset=NEWEST) != computed(usual, **{attribute: usual_value})


def test_flag_of_three_values() -> None:
    """A flag has the values of its row, and messages name these values."""
    kind, where = Flag(values=(0, 1, 2)), Place("Pool", "flag")

    assert [kind.check(where, value) for value in (False, True, 2, np.int64(2))] == [0, 1, 2, 2]
    with pytest.raises(onnxpool.PoolError, match=r"^Pool: flag must be 0, 1 or 2, got 3; pass 0, 1 or 2$"):
        kind.check(where, 3)


def test_attribute_of_later_versions_has_its_first_default() -> None:
    """Versions before an attribute behave as with its first default, even if a later version changes the default."""
    rows = schemas.since(1), schemas.since(7, {"flag": Flag()}), schemas.since(25, {"flag": Flag(1)})

    assert [version.implied for version in schemas.history("Pool", *rows).versions] == [{"flag": 0}] * 2 + [{"flag": 1}]
