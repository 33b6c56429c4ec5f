"""Checking a model: its pooling nodes, with their windows, and where runtimes are known to disagree about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from onnx.helper import get_attribute_value

from onnxpool.planning.plan import WindowPlan

from .disagreements import COMMON, Case, Disagreement, Filter, disagreements
from .protos import Input, ModelError, Shape, inputs_of, load, title
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
        Those that are given in the node.
    dtype : str, optional
    input_shape, output_shape : tuple of int or str, optional
        Sizes that the model leaves open are names or "?".
    axes : list of dict, optional
        The windows of each spatial axis; None if sizes are open, or if the operator has no windows.
    geometry : list of str
        The windows in words.
    error : str
        The reason why onnxpool refuses the node, or "".
    unchecked : str
        The reason why the node is not fully checked, or ""; if it is not, there can be more warnings.
    warnings : list of dict
        With the ``name`` of the disagreement, its ``runtime``, ``who`` (the runtime and its releases) and the ``text``.
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
    unchecked: str
    warnings: list[dict[str, str]]


class ModelCheck(NamedTuple):
    """The result of `check_model`: the pooling nodes, and the inputs whose sizes are still open."""

    nodes: list[NodeCheck]
    open_inputs: list[str]


def attributes_of(site: Site) -> dict[str, Any]:
    """The attributes that a node has; those that refer to a function's are @NAME."""
    if site.operator is not None:
        return site.operator.attributes
    given = {}
    for attribute in site.node.attribute:
        value = "@" + attribute.ref_attr_name if attribute.ref_attr_name else get_attribute_value(attribute)
        given[attribute.name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return given


def warning(row: Disagreement) -> dict[str, str]:
    """A row of the table for JSON."""
    return {"name": row.name, "runtime": row.runtime, "who": row.who, "text": row.text}


def check_site(site: Site, wanted: Filter) -> NodeCheck:
    """What is known of a node, and the disagreements that apply to it."""
    operator, plan = site.operator, site.plan
    dtype = None if site.dtype is None else site.dtype.name
    windows = plan.axes if isinstance(plan, WindowPlan) else ()
    rows = []
    if operator is not None and not site.error:
        case = Case(operator, sum(map(bool, site.node.input)), dtype, site.shape, windows,
                    () if plan is None else plan.output_shape, site.around)
        rows = disagreements(case, wanted)
    text = None if plan is None else plan.explain()
    return NodeCheck(
        title(site.node), site.node.op_type, site.node.domain, site.version, attributes_of(site), dtype,
        site.shape, site.output_shape, None if text is None else text.to_dict().get("axes"),
        [] if text is None else list(text.geometry), site.error, "" if site.error else site.unknown,
        [warning(row) for row in rows])


def is_open(value: Input) -> bool:
    """Whether the model leaves sizes of an input open."""
    return value.shape is None or not all(isinstance(size, int) for size in value.shape)


def open_inputs(graph: onnx.GraphProto, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """The names of inputs whose sizes are not all known from the model or `shapes`."""
    return [value.name for value in inputs_of(graph)
            if value.dtype is not None and not value.optional and value.name not in shapes and is_open(value)]


def check_model(path: str | Path, shapes: Mapping[str, tuple[int, ...]] | None = None,
                wanted: Filter = COMMON) -> ModelCheck:
    """
    Check the pooling nodes of a model without running it. Weights stored in other files need not be present.

    Parameters
    ----------
    path : path_like
    shapes : mapping of str to tuple of int, optional
        Sizes for inputs that have open ones.
    wanted : Filter
        Which warnings are selected; by default those of all runtimes that ordinary values reveal.

    Returns
    -------
    ModelCheck

    Raises
    ------
    ModelError
        If the file cannot be read, or the model is inconsistent; `InputError` if a shape does not fit.
    """
    model = load(path, weights=False)
    try:
        nodes = [check_site(site, wanted) for site in survey(model, shapes)]
    except ModelError as error:
        raise type(error)(f"{path}: {error}") from error
    return ModelCheck(nodes, open_inputs(model.graph, shapes or {}))
