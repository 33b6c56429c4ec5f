"""ONNX protos: reading, traversal, and conversion to the form that onnx's own ReferenceEvaluator supports."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import external_data_helper, helper

from onnxpool.attributes import is_integer, shown
from onnxpool.errors import PoolError, PoolTypeError

Array = NDArray[Any]
Shape = tuple[int | str, ...]  # unknown sizes are names or "?"
Scope = dict[str, onnx.TypeProto]  # types by name
Proto = TypeVar("Proto")

LONG_NAME = "ai.onnx"  # the default domain, normally written ""
LARGEST_KEPT = 1024  # elements of an initializer whose values inference may need, such as a shape
LONGEST_REASON = 300  # characters of an error message from another package


class ModelError(PoolError):
    """Error about a model, file or input that cannot be used."""


class InputError(ModelError):
    """Error about an input that is missing, unknown, or not what the model expects."""


class Input(NamedTuple):
    """An input of a model. `dtype` is None if it is not a tensor, and `shape` is None if any shape is accepted."""

    name: str
    dtype: np.dtype[Any] | None
    shape: Shape | None
    optional: bool

    def __str__(self) -> str:
        kind = "(not a tensor)" if self.dtype is None else "string" if self.dtype == object else self.dtype.name
        return f"{kind} of any shape" if self.shape is None else f"{kind} {shape_text(self.shape)}"

    def accept(self, value: Any) -> Any:
        """The value in the form that the model expects, or an error."""
        if self.dtype is None:
            return value
        array = np.asarray(value)
        nameless = array.dtype.type is np.void and array.dtype.names is None
        if nameless and self.dtype.kind == "V" and array.dtype.itemsize == self.dtype.itemsize:
            array = array.view(self.dtype)  # .npy files store only the item size of ml_dtypes dtypes
        elif self.dtype == object and array.dtype.kind == "U":
            array = array.astype(object)
        elif not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        fits = self.shape is None or (len(self.shape) == array.ndim and all(
            want == size for want, size in zip(self.shape, array.shape, strict=True) if isinstance(want, int)))
        if array.dtype != self.dtype or not fits:
            raise InputError(f"input {self.name!r} is {array.dtype.name} {shape_text(array.shape)}, "
                             f"but the model takes {self}")
        return array


def accept_inputs(inputs: Iterable[Input], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values in the form that the model expects. Inputs with a default may be omitted."""
    known = {value.name: value for value in inputs}
    for name in given:
        if name not in known:
            raise InputError(f"the model has no input {name!r}; it has {', '.join(map(repr, known)) or 'none'}")
    missing = [f"{value.name!r} {value}" for value in known.values() if value.name not in given and not value.optional]
    if missing:
        raise InputError(f"missing input {', '.join(missing)}")
    return {name: known[name].accept(value) for name, value in given.items()}


def title(node: onnx.NodeProto) -> str:
    """The name of a node for messages. A node without a name is called by its first output."""
    return node.name or next(filter(None, node.output), node.op_type)


def shape_text(shape: Sequence[int | str]) -> str:
    """A shape as (1,3,224,224)."""
    return f"({','.join(map(str, shape))})"


def one_line(error: BaseException) -> str:
    """The message of another package's error, shortened to one line of bounded length."""
    if type(error) is TypeError and error.__cause__ is not None:
        error = error.__cause__  # where OpRun and ReferenceEvaluator hide the reason
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : ", "", " ".join(str(error).split()))
    text = text or type(error).__name__
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "..."


def value_of(attribute: onnx.AttributeProto) -> Any:
    """The value of a node's attribute, with bytes decoded."""
    value = helper.get_attribute_value(attribute)
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def from_onnx_ir(node: Any) -> Any:
    """An onnx-ir node as a NodeProto without the names of values; anything else as it is.

    onnx_ir is not imported: its nodes cannot exist before other code has imported it.
    """
    ir: Any = sys.modules.get("onnx_ir")
    kind: Any = getattr(ir, "Node", ())  # another thread may still be importing it
    if not isinstance(node, kind):
        return node
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    for attribute in node.attributes.values():
        try:
            proto.attribute.append(ir.to_proto(attribute))
        except Exception as error:  # from onnx_ir, protobuf or Python, because onnx-ir values may have any type
            value = attribute.value
            raise PoolTypeError(f"{node.op_type}: {attribute.name}={shown(value)} is not a value of the type "
                                f"{attribute.type.name} that the node declares; change it", node.op_type,
                                attribute.name, value=value) from error
    # A value without a name is an output too; only one whose name is empty is left out.
    proto.output.extend("" if value.name == "" else str(place) for place, value in enumerate(node.outputs))
    return proto


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among a node's attributes, such as the branches of an If."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def every_node(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes, each followed by the nodes in its bodies."""
    for node in nodes:
        yield node
        for body in bodies(node):
            yield from every_node(body.node)


def nodes_of(proto: Any) -> Iterator[onnx.NodeProto]:
    """Every node of a model and its functions, of a graph, or of a function, or the given node itself."""
    if isinstance(proto, onnx.ModelProto):
        for part in (proto.graph, *proto.functions):
            yield from every_node(part.node)
    elif isinstance(proto, onnx.NodeProto):
        yield from every_node([proto])
    else:
        yield from every_node(proto.node)


def imports_of(proto: Any) -> Iterator[onnx.OperatorSetIdProto]:
    """Every opset import of a model and its functions, or of a function."""
    yield from getattr(proto, "opset_import", ())
    for function in getattr(proto, "functions", ()):
        yield from function.opset_import


def domains_of(proto: Any) -> Iterator[Any]:
    """All objects that have a domain: nodes and opset imports."""
    yield from nodes_of(proto)
    yield from imports_of(proto)


def rename_overloads(model: onnx.ModelProto) -> None:
    """Rename overloaded functions, and the nodes that call them, so that names tell functions apart."""
    names = {(f.domain, f.name, f.overload): f"{f.name}:{f.overload}" for f in model.functions if f.overload}
    for node in nodes_of(model) if names else ():
        name = names.get((node.domain, node.op_type, node.overload))
        if name is not None:
            node.op_type, node.overload = name, ""
    for function in model.functions:
        if function.overload:
            function.name, function.overload = f"{function.name}:{function.overload}", ""


def sort_functions(model: onnx.ModelProto) -> None:
    """Sort functions so that each follows the functions that it calls."""
    functions = {(f.domain, f.name): f for f in model.functions}
    calls = {key: {(node.domain, node.op_type) for node in nodes_of(f)} & functions.keys()
             for key, f in functions.items()}
    try:
        ordered = [functions[key] for key in TopologicalSorter(calls).static_order()]
    except CycleError as error:
        raise ModelError(f"functions call each other recursively: {' -> '.join(name for _, name in error.args[1])}"
                         ) from error
    copies = [onnx.FunctionProto.FromString(function.SerializeToString()) for function in ordered]
    del model.functions[:]
    model.functions.extend(copies)


def give_defaults(model: onnx.ModelProto) -> None:
    """Copy the default values of functions' attributes to the nodes that call them."""
    functions = {(f.domain, f.name): f for f in model.functions}
    for node in nodes_of(model):
        function = functions.get((node.domain, node.op_type))
        if function is not None:
            given = {attribute.name for attribute in node.attribute}
            node.attribute.extend(a for a in function.attribute_proto if a.name not in given)
    for function in model.functions:
        function.attribute.extend(a.name for a in function.attribute_proto)
        del function.attribute_proto[:]


def canonical(proto: Proto) -> Proto:
    """The model, graph, function or node in a form that ReferenceEvaluator supports, copied if it must change.

    ReferenceEvaluator knows neither the domain "ai.onnx" nor default values of functions' attributes nor overloads, and
    requires functions to precede their callers.
    """
    if not isinstance(proto, (onnx.ModelProto, onnx.GraphProto, onnx.FunctionProto, onnx.NodeProto)):
        return proto
    functions = isinstance(proto, onnx.ModelProto) and len(proto.functions) > 0
    for part in (proto, *getattr(proto, "functions", ())):
        if isinstance(part, (onnx.ModelProto, onnx.FunctionProto)):
            opsets_of(part)  # refuses contradictory imports
    if not functions and not any(part.domain == LONG_NAME for part in domains_of(proto)):
        return proto
    copy = type(proto)()
    copy.CopyFrom(proto)
    for part in domains_of(copy):
        part.domain = "" if part.domain == LONG_NAME else part.domain
    if isinstance(copy, onnx.ModelProto):
        rename_overloads(copy)
        give_defaults(copy)
        sort_functions(copy)
    return copy


def unlinked(node: onnx.NodeProto, values: Mapping[str, Any]) -> onnx.NodeProto:
    """A node of a function, with references to the function's attributes replaced by their values."""
    result = onnx.NodeProto()
    result.CopyFrom(node)
    for attribute in result.attribute:
        if attribute.ref_attr_name:
            value = values[attribute.name]
            attribute.CopyFrom(helper.make_attribute(attribute.name, value, attr_type=attribute.type))
    return result


def texts_of(proto: Any) -> Iterator[str | bytes]:
    """Every name and other text in a proto. protobuf returns text that is not UTF-8 as bytes."""
    for field, value in proto.ListFields():
        values = [value] if isinstance(value, (str, bytes)) or hasattr(value, "ListFields") else value
        if field.type == field.TYPE_STRING:
            yield from values
        elif field.type == field.TYPE_MESSAGE:
            for part in values:
                yield from texts_of(part)


def tensors_of(proto: Any) -> Iterator[onnx.TensorProto]:
    """Every tensor in a proto."""
    for field, value in proto.ListFields():
        for part in ([value] if hasattr(value, "ListFields") else value) if field.type == field.TYPE_MESSAGE else ():
            if isinstance(part, onnx.TensorProto):
                yield part
            yield from tensors_of(part)


def load(path: str | Path, *, weights: bool = True) -> onnx.ModelProto:
    """The model in a file. Without `weights`, only small tensors are read from external files."""
    return completed(parsed(path), path, weights=weights)


def parsed(path: str | Path) -> onnx.ModelProto:
    """The model in a file, unchanged."""
    try:
        model = onnx.load(str(path), load_external_data=False)
    except OSError as error:
        raise ModelError(f"cannot read the model {path}: {error.strerror or one_line(error)}") from error
    except Exception as error:  # parsers raise different errors for each file format and protobuf version
        raise ModelError(f"{path} is not an ONNX model: {one_line(error)}") from error
    if not model.HasField("graph") or not model.opset_import:
        raise ModelError(f"{path} is not an ONNX model: it has no graph or no opset")
    for text in texts_of(model):
        if isinstance(text, bytes):
            raise ModelError(f"{path} is not an ONNX model: it has the text {shown(text)}, which is not UTF-8")
    return model


def completed(model: onnx.ModelProto, path: str | Path, *, weights: bool) -> onnx.ModelProto:
    """A parsed model in canonical form, with tensors from external files. The argument is changed."""
    folder = os.path.dirname(path)
    if weights:
        try:
            external_data_helper.load_external_data_for_model(model, folder)
        except Exception as error:  # as above
            raise ModelError(f"cannot read the weights of {path}: {one_line(error)}") from error
    else:
        for tensor in model.graph.initializer:
            if external_data_helper.uses_external_data(tensor) and not is_large(tensor):
                with suppress(Exception):  # as above; shapes may depend on the tensor
                    external_data_helper.load_external_data_for_tensor(tensor, folder)
                    tensor.data_location = onnx.TensorProto.DEFAULT
    try:
        return canonical(model)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error


def is_large(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor has too many elements to be a shape."""
    return bool(np.prod(tensor.dims, dtype=float) > LARGEST_KEPT)


def by_domain(imports: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Opset imports by domain, each under the domain's short name. Contradictory imports are refused."""
    found: dict[str, int] = {}
    for name, version in imports:
        domain = "" if name == LONG_NAME else name
        first = found.setdefault(domain, version)
        if first is not version and not (is_integer(first) and is_integer(version) and first == version):
            also = "" if domain else f", which is also called {LONG_NAME!r},"
            raise ModelError(f"domain {domain!r}{also} is imported with opsets {shown(first)} and {shown(version)}; "
                             f"keep one of them", attribute="opsets", value=version)
    return found


def opsets_of(proto: Any) -> dict[str, int]:
    """The opset imports of a model or function by domain."""
    return by_domain((opset.domain, opset.version) for opset in proto.opset_import)


def constants_of(graph: onnx.GraphProto) -> set[str]:
    """The names of a graph's initializers."""
    return {tensor.name for tensor in graph.initializer} | {tensor.values.name for tensor in graph.sparse_initializer}


def check_wiring(graph: onnx.GraphProto) -> None:
    """Refuse a graph that reads a value that nothing writes, before a long run rather than at its end."""
    known = constants_of(graph) | {value.name for value in graph.input}
    for node in graph.node:
        for name in node.input:
            if name and name not in known:
                raise ModelError(f"node {title(node)!r} ({node.op_type}) reads {name!r}, but nothing before writes it")
        known.update(node.output)
    for value in graph.output:
        if value.name not in known:
            raise ModelError(f"output {value.name!r} is not written by any node")


def sizes_of(value: onnx.TypeProto) -> Shape | None:
    """The shape of a type. None if the type does not define it."""
    tensor = value.tensor_type
    if not tensor.HasField("shape"):
        return None
    # Some exporters write unknown sizes as -1.
    return tuple(d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or "?"
                 for d in tensor.shape.dim)


def tensor_of(value: onnx.TypeProto) -> tuple[np.dtype[Any] | None, Shape | None]:
    """The dtype and shape of a type, each None if the type does not define it."""
    element = value.tensor_type.elem_type
    try:
        return np.dtype(helper.tensor_dtype_to_np_dtype(element)) if element else None, sizes_of(value)
    except KeyError:
        raise ModelError(f"a value has the element type {element}, which onnx {onnx.__version__} does not know; "
                         f"update onnx") from None


def inputs_of(graph: onnx.GraphProto) -> list[Input]:
    """The inputs that a graph declares."""
    given = constants_of(graph)
    return [Input(value.name, *tensor_of(value.type), value.name in given) for value in graph.input]
