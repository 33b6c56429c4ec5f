"""Checks of models: their pooling nodes and windows, and known disagreements between runtimes about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import onnx

from onnxpool.planning.kinds import WindowPlan

from .cases import Case, Disagreement
from .disagreements import COMMON, Filter, disagreements
from .protos import Input, ModelError, Shape, inputs_of, load, title, value_of
from .survey import Site, survey


@dataclass
class NodeCheck:
    """
    Static check of one pooling node.

    Attributes
    ----------
    name : str
        Name of the node, or of its first output if it has none.
    operator, domain, version : str, str, int
        Operator. The version is None if the opset does not have the operator.
    attributes : dict
        Attributes given in the node.
    dtype : str, optional
        Dtype of X.
    input_shape, output_shape : tuple of int or str, optional
        Shapes of X and of the result. Unknown sizes are names or "?".
    axes : list of dict, optional
        Windows along each spatial axis. None if sizes are unknown, or if the operator has no windows.
    geometry : list of str
        Description of the windows, as lines of text.
    error : str
        Reason why onnxpool refuses the node, or "".
    unchecked : str
        Reason why the node could not be checked fully, so that there may be more warnings, or "".
    warnings : list of dict
        Known disagreements: ``name``, ``runtime``, ``who`` (the runtime and its releases) and ``text``.
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
    """The result of `check_model`: the pooling nodes, and the inputs with unknown sizes."""

    nodes: list[NodeCheck]
    open_inputs: list[str]


def attributes_of(site: Site) -> dict[str, Any]:
    """The attributes of a node. A reference to an attribute of the enclosing function is written @NAME."""
    if site.operator is not None:
        return site.operator.attributes
    given = {}
    for attribute in site.node.attribute:
        reference = attribute.ref_attr_name
        given[attribute.name] = f"@{reference}" if reference else value_of(attribute)
    return given


def warning(row: Disagreement) -> dict[str, str]:
    """A row of the table as JSON."""
    return {"name": row.name, "runtime": row.runtime, "who": row.who, "text": row.text}


def check_site(site: Site, wanted: Filter) -> NodeCheck:
    """The check of a node, with the disagreements that apply to it."""
    operator, plan = site.operator, site.plan
    dtype = None if site.dtype is None else site.dtype.name
    windows = plan.axes if isinstance(plan, WindowPlan) else ()
    rows = []
    if operator is not None and not site.error:
        case = Case(operator, tuple(map(bool, site.node.input)), dtype, site.shape, windows,
                    () if plan is None else plan.output_shape, site.around)
        rows = disagreements(case, wanted)
    text = None if plan is None else plan.explain()
    return NodeCheck(
        title(site.node), site.node.op_type, site.node.domain, site.version, attributes_of(site), dtype,
        site.shape, site.output_shape, None if text is None else text.to_dict().get("axes"),
        [] if text is None else list(text.geometry), site.error, "" if site.error else site.unknown,
        [warning(row) for row in rows])


def is_open(value: Input) -> bool:
    """Whether the model leaves any size of an input unknown."""
    return value.shape is None or not all(isinstance(size, int) for size in value.shape)


def open_inputs(graph: onnx.GraphProto, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """The names of inputs with sizes that neither the model nor `shapes` defines."""
    return [value.name for value in inputs_of(graph)
            if value.dtype is not None and not value.optional and value.name not in shapes and is_open(value)]


def check_model(path: str | Path, shapes: Mapping[str, tuple[int, ...]] | None = None,
                wanted: Filter = COMMON) -> ModelCheck:
    """
    Check the pooling nodes of a model without running it. External files with weights need not be present.

    Parameters
    ----------
    path : path_like
        Model file.
    shapes : mapping of str to tuple of int, optional
        Shapes of inputs with unknown sizes.
    wanted : Filter
        Selection of warnings. By default, warnings about onnxruntime, OpenVINO and onnx that ordinary values show.

    Returns
    -------
    ModelCheck

    Raises
    ------
    ModelError
        If the file cannot be read or the model is inconsistent. `InputError` if a shape does not fit.
    """
    model = load(path, weights=False)
    try:
        nodes = [check_site(site, wanted) for site in survey(model, shapes)]
    except ModelError as error:
        raise type(error)(f"{path}: {error}") from error
    return ModelCheck(nodes, open_inputs(model.graph, shapes or {}))
