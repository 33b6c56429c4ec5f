"""
Inference of the dtypes and shapes that reach the pooling nodes of a model.

onnxpool infers the results of pooling nodes, and onnx the results of other nodes. For pooling, onnx's own inference
counts windows that no runtime computes, and supports neither com.microsoft nor the first versions of LpPool and
GlobalLpPool.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import external_data_helper, helper, inliner

from onnxpool.base import Operator
from onnxpool.errors import PoolError, PoolTypeError
from onnxpool.execution import Plan
from onnxpool.planning.unpooling import UnpoolPlan
from onnxpool.schemas import SCHEMAS, resolve

from .folding import FOLDED, OPAQUE, Folder
from .nodes import from_node
from .protos import (
    Array,
    InputError,
    ModelError,
    Scope,
    Shape,
    bodies,
    is_large,
    one_line,
    opsets_of,
    shape_text,
    tensor_of,
)
from .surroundings import Surroundings, Wiring, constant_of

VARIABLE_DEFAULTS = 4  # since this IR version, an initializer that is also an input is only a default value
UNNAMED = "unk__"  # the prefix of onnx's names for sizes that it cannot infer
MOST_ROUNDS = 20  # rounds of folding; one suffices unless values depend on pooling nodes or onnx's inference
FAMILY = {(schema.operator, schema.domain) for schema in SCHEMAS.values()}
WITHOUT_WINDOWS = ("MaxUnpool", "MaxRoiPool", "RoiAlign")  # operators whose warnings do not depend on sizes


@dataclass
class Site:
    """
    Pooling node of a model, with everything that can be inferred about it.

    Attributes
    ----------
    node : NodeProto
        Node as it is in the model.
    opsets : dict of str to int
        Opset imports that apply to the node.
    wiring : Wiring
        Connections of the graph or function that contains the node.
    version : int, optional
        Version of the operator. None if the opset does not have it.
    operator : Operator, optional
        Operator of the node. None if onnxpool refuses the node, or if attributes come from the caller of a function.
    dtype : dtype, optional
        Dtype of X.
    shape, output_shape : tuple of int or str, optional
        Shapes of X and of the result. Unknown sizes are names or "?". None if the number of axes is unknown.
    plan : Plan, optional
        Plan of the node. None if a size on which the windows depend is unknown.
    error : str
        Reason why onnxpool refuses the node, or "".
    unknown : str
        Reason why the windows of the node are unknown, or "".
    """

    node: onnx.NodeProto
    opsets: Mapping[str, int]
    wiring: Wiring
    version: int | None = None
    operator: Operator | None = None
    dtype: np.dtype[Any] | None = None
    shape: Shape | None = None
    output_shape: Shape | None = None
    plan: Plan | None = None
    error: str = ""
    unknown: str = "onnx infers no shape for its input"

    def __post_init__(self) -> None:
        try:
            self.version = resolve(self.node.op_type, self.opsets.get(self.node.domain)).since
            if any(attribute.ref_attr_name for attribute in self.node.attribute):
                self.unknown = "its attributes come from the caller of a function of another opset"
            else:
                self.operator = from_node(self.node, dict(self.opsets))
        except (PoolError, PoolTypeError) as error:
            self.error = one_line(error)

    @property
    def around(self) -> Surroundings:
        """The neighbouring nodes."""
        return self.wiring.around(self.node)

    def reach(self, inputs: Sequence[tuple[np.dtype[Any] | None, Shape | None]], values: Mapping[int, Array]) -> None:
        """Set everything that follows from the dtypes and shapes of the inputs, and from the values of some."""
        self.dtype, self.shape = inputs[0]
        operator, shape = self.operator, self.shape
        if operator is None or shape is None:
            return
        self.error, self.plan, self.output_shape = "", None, None  # what followed from other shapes
        channel = len(shape) - 1 if operator.channels_last else 1
        open_sizes = [i for i, size in enumerate(shape) if not isinstance(size, int) and i not in (0, channel)]
        output: list[int | str] = ["?"] * len(shape)
        decisive = open_sizes if self.node.op_type not in WITHOUT_WINDOWS else []
        self.unknown = f"its size along axis {' and '.join(map(str, decisive))} is not known" if decisive else ""
        windowed = "kernel_shape" in operator._version.attributes
        whole = tuple(size if isinstance(size, int) else 1 for size in shape)  # the unknown sizes do not matter
        if not open_sizes or not windowed:
            try:
                plan = operator.plan(whole, self.dtype or operator._version.dtypes[0])
            except (PoolError, PoolTypeError) as error:
                self.error = one_line(error)
                return
            self.plan = None if open_sizes else plan
            if not isinstance(plan, UnpoolPlan) or not "".join(self.node.input[2:]):
                output = list(plan.output_shape)
            elif 2 in values and whole == shape:
                try:
                    output = list(plan.result_shape(None, values[2]))
                except (PoolError, PoolTypeError) as error:
                    self.error = one_line(error)
                    return
        if self.dtype is None and not self.unknown:
            self.unknown = "its dtype is not known"
        output[0], output[channel] = shape[0], shape[channel]
        if "rois" in SCHEMAS[self.node.op_type].inputs:
            rois = inputs[1][1] if len(inputs) > 1 else None
            output[0] = rois[0] if rois else "?"
        self.output_shape = tuple(output)


def survey(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]] | None = None) -> list[Site]:
    """
    Find the pooling nodes of a model, and infer the dtypes and shapes that reach them.

    Parameters
    ----------
    model : ModelProto
        Model in canonical form, which is not changed. Model-local functions are surveyed where they are called.
    shapes : mapping of str to tuple of int, optional
        Shapes of inputs with unknown sizes.

    Returns
    -------
    list of Site
        Pooling nodes in the order of the model. Nodes of a body follow the node that contains it.

    Raises
    ------
    ModelError
        If the model is inconsistent. `InputError` if there is no such input, or if it has another shape.
    """
    try:
        work = inliner.inline_local_functions(without_weights(model))
        give_shapes(work.graph, shapes or {}, {value.name for value in model.graph.input})
        sites, wirings = hide(work)
        claims = [taken(graph) for graph in graphs_of(work.graph)]
        folder = Folder(opsets_of(work).get("", 1))
        reached: dict[int, Any] = {}
        work = settled(work, sites, reached, folder)
        for graph, claimed in zip(graphs_of(work.graph), claims, strict=True):
            restore(graph, claimed)
        work = settled(work, sites, reached, folder)
        for graph, wiring in zip(graphs_of(work.graph), wirings, strict=False):  # functions are not folded
            wiring.folded = {node.output[0]: value for node in graph.node if node.doc_string == FOLDED
                             and (value := constant_of(node)) is not None}
        if shapes:  # optimisers do not know these shapes
            for site, plain in zip(sites, survey(model), strict=True):
                site.wiring = plain.wiring
        return sites
    except ModelError:
        raise
    except Exception as error:  # the exceptions of the onnx package have no common base
        raise ModelError(one_line(error)) from error


def settled(work: onnx.ModelProto, sites: Sequence[Site], reached: dict[int, Any], folder: Folder) -> onnx.ModelProto:
    """Infer shapes and fold constants until `reached`, the inputs of the pooling nodes, no longer changes."""
    for _ in range(2 * len(sites) + 2 + MOST_ROUNDS):  # enough, unless the model contradicts itself
        work = onnx.shape_inference.infer_shapes(work, data_prop=True)
        changed = False
        for number, scope, graph, node in hidden(work.graph, {}):
            inputs = [tensor_of(scope.get(name, onnx.TypeProto())) for name in node.input]
            values = folder.inputs.get(number, {})
            both = inputs, {i: value.tolist() for i, value in values.items()}
            if inputs and inputs[0][1] is not None and reached.get(number) != both:
                reached[number], changed = both, True
                sites[number].reach(inputs, values)
                declare(graph, scope, node, sites[number])
        if sites and folder.fold(work.graph, {}, {}):
            changed = True
        if not changed:
            break
    return work


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and its bodies."""
    yield graph
    for node in graph.node:
        for body in bodies(node):
            yield from graphs_of(body)


def taken(graph: onnx.GraphProto) -> dict[str, onnx.ValueInfoProto]:
    """
    Remove from a graph the shapes that it declares for node results, and return them. They may come from another batch
    size or runtime, so shapes that follow from the inputs take precedence.
    """
    claimed = {}
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    for value in (*graph.value_info, *graph.output):
        if value.name not in own:
            claimed[value.name] = onnx.ValueInfoProto()
            claimed[value.name].CopyFrom(value)
    del graph.value_info[:]
    for value in graph.output:
        if value.name not in own and value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return claimed


def restore(graph: onnx.GraphProto, claimed: Mapping[str, onnx.ValueInfoProto]) -> None:
    """Restore declared shapes that could not be inferred, except for results of pooling nodes."""
    pooled = {name for node in graph.node if node.domain == OPAQUE for name in node.output}
    known = {value.name: value for value in (*graph.value_info, *graph.output)}
    for name, claim in claimed.items():
        value = known.get(name)
        if name in pooled:
            continue
        if value is None:
            graph.value_info.add().CopyFrom(claim)
        elif tensor_of(value.type)[1] is None:
            value.CopyFrom(claim)
        else:
            mine, theirs = (one.type.tensor_type.shape.dim for one in (value, claim))
            for size, claimed_size in zip(mine, theirs, strict=True) if len(mine) == len(theirs) else ():
                named = size.dim_param and not size.dim_param.startswith(UNNAMED)
                if not named and not (size.HasField("dim_value") and size.dim_value >= 0):
                    size.CopyFrom(claimed_size)


def without_values(tensor: onnx.TensorProto) -> bool:
    """Whether inference can ignore the values of an initializer: they are too many, or in a file that was not read."""
    return is_large(tensor) or external_data_helper.uses_external_data(tensor)


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which inputs replace large initializers, since inference runs several times, and default values."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    large = [tensor for tensor in graph.initializer if without_values(tensor)]
    declared = {value.name for value in graph.input}
    graph.input.extend(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                       for tensor in large if tensor.name not in declared)
    defaults = declared if model.ir_version >= VARIABLE_DEFAULTS else set()
    kept = [tensor for tensor in graph.initializer if not without_values(tensor) and tensor.name not in defaults]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return copy


def give_shapes(graph: onnx.GraphProto, shapes: Mapping[str, tuple[int, ...]], names: Collection[str]) -> None:
    """Set unknown sizes of the inputs that have these names."""
    inputs = {value.name: value for value in graph.input if value.name in names}
    for name, sizes in shapes.items():
        if name not in inputs:
            raise InputError(f"the model has no input {name!r}; it has {', '.join(map(repr, inputs)) or 'none'}")
        tensor = inputs[name].type.tensor_type
        declared = tensor_of(inputs[name].type)[1]
        if declared is not None and (len(declared) != len(sizes) or any(
                isinstance(want, int) and want != size for want, size in zip(declared, sizes, strict=True))):
            raise InputError(f"input {name!r} cannot have shape {shape_text(sizes)}, as the model takes "
                             f"{shape_text(declared)}")
        tensor.CopyFrom(helper.make_tensor_type_proto(tensor.elem_type, sizes).tensor_type)


def hide(model: onnx.ModelProto) -> tuple[list[Site], list[Wiring]]:
    """Move the pooling nodes to a domain that onnx's inference ignores; return them, and the wiring of each graph."""
    sites: list[Site] = []
    wirings: list[Wiring] = []
    for part in (model.graph, *model.functions):
        hide_in(part, opsets_of(part if isinstance(part, onnx.FunctionProto) else model), sites, wirings)
    for holder in (model, *model.functions):
        holder.opset_import.append(helper.make_opsetid(OPAQUE, 1))
    return sites, wirings


def hide_in(graph: onnx.GraphProto | onnx.FunctionProto, opsets: Mapping[str, int], sites: list[Site],
            wirings: list[Wiring], outer: Wiring | None = None) -> None:
    """Hide the pooling nodes of a graph and of its bodies."""
    wiring = Wiring(graph, opsets.get("", 1), outer)
    wirings.append(wiring)
    for node in graph.node:
        if (node.op_type, node.domain) in FAMILY:
            own = onnx.NodeProto()
            own.CopyFrom(node)
            node.domain = OPAQUE
            node.doc_string = str(len(sites))
            sites.append(Site(own, opsets, wiring))
        for body in bodies(node):
            hide_in(body, opsets, sites, wirings, wiring)


def hidden(graph: onnx.GraphProto, outer: Scope) -> Iterator[tuple[int, Scope, onnx.GraphProto, onnx.NodeProto]]:
    """The hidden pooling nodes of a graph and of its bodies, with the types that are known at each."""
    scope = dict(outer)
    for tensor in graph.initializer:
        scope[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    for value in (*graph.input, *graph.value_info, *graph.output):
        scope[value.name] = value.type
    for node in graph.node:
        if node.domain == OPAQUE:
            yield int(node.doc_string), scope, graph, node
        for body in bodies(node):
            yield from hidden(body, scope)


def declare(graph: onnx.GraphProto, scope: Scope, node: onnx.NodeProto, site: Site) -> None:
    """Set the types of a pooling node's outputs in the graph, replacing declared types."""
    if site.output_shape is None or site.dtype is None:
        return
    sizes = [size if size != "?" else None for size in site.output_shape]
    for name, dtype in zip(node.output, (site.dtype, np.dtype(np.int64)), strict=False):
        if not name:  # an output that is left out
            continue
        made = helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), sizes)
        scope[name] = made.type
        declared = [value for values in (graph.output, graph.value_info) for value in values if value.name == name]
        for value in declared or [graph.value_info.add()]:
            value.CopyFrom(made)
