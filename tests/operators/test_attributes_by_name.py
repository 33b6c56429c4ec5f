"""Attributes of operators and plans are read by name, defaults included."""

from typing import Any

import numpy as np
import pytest

import onnxpool

pytestmark = pytest.mark.smoke

GIVEN: dict[str, Any] = {
    "kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 0), "dilations": (1, 2), "auto_pad": "NOTSET",
    "ceil_mode": 1, "count_include_pad": 1, "storage_order": 1, "p": 3, "pooled_shape": (4, 5), "spatial_scale": 0.5,
    "mode": "max", "output_height": 2, "output_width": 3, "sampling_ratio": 1,
    "coordinate_transformation_mode": "output_half_pixel",
}
MEANT = {"strides": 1, "pads": 0, "dilations": 1}  # stated in the text of ONNX, but not in its schemas
ROWS = [row for row in onnxpool.supported() if set(row["attributes"]) - {"channels_last"}]


def label(row: dict[str, Any]) -> str:
    return f"{row['operator']}-{row['version']}"


def made(row: dict[str, Any], **given: Any) -> Any:
    """The operator at its version, with its required attributes and the attributes that are given."""
    required = {name: GIVEN[name] for name, kind in row["attributes"].items() if kind["required"]}
    return getattr(onnxpool, row["operator"])(**{"opset": row["version"], **required, **given})


@pytest.mark.parametrize("row", ROWS, ids=label)
def test_given_attribute_is_read_as_given(row: dict[str, Any]) -> None:
    for name in set(row["attributes"]) - {"channels_last"}:
        value = float(GIVEN[name]) if row["attributes"][name]["type"] == "float" else GIVEN[name]
        assert getattr(made(row, **{name: value}), name) == value


@pytest.mark.parametrize("row", ROWS, ids=label)
def test_attribute_that_is_not_given_has_its_default(row: dict[str, Any]) -> None:
    """The default is as in the schema, with a value for each axis if the schema's text says so."""
    op = made(row)
    for name, kind in row["attributes"].items():
        if not kind["required"] and name != "channels_last":
            assert getattr(op, name) == (kind["default"] if kind["default"] is not None else MEANT.get(name))


@pytest.mark.parametrize("row", ROWS, ids=label)
def test_attribute_of_a_later_version_says_what_this_one_does(row: dict[str, Any]) -> None:
    """An attribute of a later version reads as what this version does: AveragePool before 19 has no dilations, and
    RoiAlign moves no corners."""
    op = made(row)
    newest = [other["attributes"] for other in ROWS if other["operator"] == row["operator"]][-1]
    meant = {**MEANT, "coordinate_transformation_mode": "output_half_pixel"}
    for name in set(newest) - set(row["attributes"]):
        assert getattr(op, name) == meant.get(name, newest[name]["default"])


def test_completion_offers_attributes() -> None:
    """`dir` lists the attributes that the operator has, and no other attributes."""
    op: Any = onnxpool.AveragePool(kernel_shape=2)
    assert {"kernel_shape", "strides", "pads", "dilations", "auto_pad", "ceil_mode"} <= set(dir(op))
    assert not hasattr(op, "storage_order")
    with pytest.raises(AttributeError, match="immutable"):
        op.strides = 2


def test_plans_of_all_operators_have_axes() -> None:
    """A plan that reduces windows has one entry in `axes` for each spatial axis, and any other plan has none."""
    shape = (1, 8, 8, 6)
    for name in dict.fromkeys(row["operator"] for row in onnxpool.supported()):
        row = [row for row in onnxpool.supported() if row["operator"] == name][-1]
        plan = made(row).plan(shape, np.dtype(row["dtypes"][0]))
        assert len(plan.axes) == (0 if name in ("MaxUnpool", "MaxRoiPool", "RoiAlign") else 2), name
