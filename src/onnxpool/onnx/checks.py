"""Checking a model: its pooling nodes, with their windows and where runtimes are known to disagree on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnx.helper import get_attribute_value

from onnxpool.planning.plan import WindowPlan

from .disagreements import Case, disagreements
from .protos import ModelError, Shape, load, title
from .survey import Site, survey


@dataclass
class NodeCheck:
    """
    What is known of one pooling node without running its model.

    Attributes
    ----------
    name : str
        The node's name, or that of its first output if it has none.
    operator, domain, version : str, str, int
        The version is None if the opset has none.
    attributes : dict
        Those that the node gives.
    dtype : str, optional
    input_shape, output_shape : tuple of int or str, optional
        Sizes that the model leaves open are names or "?".
    axes : list of dict, optional
        The windows of each spatial axis; None if sizes are open, or if the operator has no windows.
    geometry : list of str
        The windows in words.
    error : str
        Why onnxpool refuses the node.
    warnings : list of dict
        With the ``name`` of the disagreement, ``who`` and the ``text``.
    """

    name: str
    operator: str
    domain: str
    version: int | None
    attributes: dict[str, Any]
    dtype: str | None
    input_shape: Shape | None
    output_shape: Shape | None
    axes: list[dict[str, Any]] | None
    geometry: list[str]
    error: str
    warnings: list[dict[str, str]]


def attributes_of(site: Site) -> dict[str, Any]:
    """The attributes that a node gives; those that refer to a function's are @NAME."""
    if site.operator is not None:
        return site.operator.attributes
    given = {}
    for attribute in site.node.attribute:
        value = "@" + attribute.ref_attr_name if attribute.ref_attr_name else get_attribute_value(attribute)
        given[attribute.name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return given


def check_site(site: Site, *, values: bool = False) -> NodeCheck:
    """What is known of a node, and the disagreements that hold for it."""
    operator, plan = site.operator, site.plan
    dtype = None if site.dtype is None else site.dtype.name
    windows = plan.axes if isinstance(plan, WindowPlan) else ()
    rows = []
    if operator is not None and not site.error:
        case = Case(operator, sum(map(bool, site.node.input)), dtype, site.shape, windows)
        rows = disagreements(case, values=values)
    text = None if plan is None else plan.explain()
    return NodeCheck(
        title(site.node), site.node.op_type, site.node.domain, site.version,
        attributes_of(site), dtype, site.shape, site.output_shape,
        None if text is None else text.to_dict().get("axes"), [] if text is None else list(text.geometry), site.error,
        [{"name": row.name, "who": row.who, "text": row.text} for row in rows])


def check_model(path: str | Path, shapes: Mapping[str, tuple[int, ...]] | None = None, *,
                values: bool = False) -> list[NodeCheck]:
    """
    Check the pooling nodes of a model without running it.

    Parameters
    ----------
    path : path_like
    shapes : mapping of str to tuple of int, optional
        Sizes for inputs that leave some open.
    values : bool
        Whether to warn too where only unusual values, such as NaN, tell runtimes apart.

    Returns
    -------
    list of NodeCheck

    Raises
    ------
    ModelError
        If the file cannot be read, or the model is not consistent; `InputError` if a shape does not fit.
    """
    model = load(path)
    try:
        return [check_site(site, values=values) for site in survey(model, shapes)]
    except ModelError as error:
        raise type(error)(f"{path}: {error}") from error
