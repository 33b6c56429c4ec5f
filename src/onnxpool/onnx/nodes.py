"""Operators of ONNX nodes. Only calls import the onnx package, because `onnxpool.from_node` must exist without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from onnxpool.attributes import shown
from onnxpool.base import Operator, by_name
from onnxpool.errors import PoolError, PoolTypeError
from onnxpool.schemas import SCHEMAS, check_outputs, foreign, resolve


def from_node(node: Any, opsets: dict[str, int]) -> Operator:
    """
    Make the operator of an ONNX node.

    Parameters
    ----------
    node : onnx.NodeProto or onnx_ir.Node
        Node. The domain ``"ai.onnx"`` is the same as ``""``.
    opsets : dict of str to int
        Opset imports of the model, for example ``{"": 19, "com.microsoft": 1}``. The domain ``"ai.onnx"`` is the same
        as ``""``, so both must have the same opset.

    Returns
    -------
    Operator
        Operator with the attributes of the node. Call it with the inputs of the node.

    Raises
    ------
    PoolError
        If the operator is unknown, its domain is not imported, a domain is imported with two opsets, the version does
        not allow an attribute, or an attribute refers to an attribute of a function.
    PoolTypeError
        If an attribute does not have the type that the version prescribes, or if `node` is not a node.

    See Also
    --------
    Operator : Class of the result.
    supported : Lists operators and versions.

    Examples
    --------
    >>> import onnx.helper, onnxpool
    >>> node = onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])
    >>> onnxpool.from_node(node, {"": 12})
    MaxPool(kernel_shape=(2, 2), opset=12)
    """
    import onnx

    from .protos import LONG_NAME, by_domain, from_onnx_ir, value_of

    node = from_onnx_ir(node)
    if not isinstance(node, onnx.NodeProto):
        raise PoolTypeError(f"from_node: node is a {type(node).__name__}; pass a NodeProto, such as an item "
                            f"of model.graph.node, or an onnx_ir.Node", attribute="node", value=type(node).__name__)
    if not isinstance(opsets, Mapping):
        raise PoolTypeError(f"from_node: opsets is a {type(opsets).__name__}; pass a dict such as {{'': 19}}, or for "
                            f"a model {{entry.domain: entry.version for entry in model.opset_import}}",
                            attribute="opsets", value=opsets)
    domain = "" if node.domain == LONG_NAME else node.domain
    schema = SCHEMAS.get(node.op_type)
    if schema is None or schema.domain != domain:
        known = ", ".join(f"{s.domain + ':' if s.domain else ''}{name}" for name, s in SCHEMAS.items())
        raise PoolError(f"{domain + ':' if domain else ''}{node.op_type} is not a pooling operator of onnxpool; "
                        f"it has {known}", node.op_type)
    imported = by_domain(opsets.items())
    if domain not in imported:
        raise PoolError(f"{node.op_type}: domain {domain!r} is not among the model's opset imports {opsets}; "
                        f"add it with a version", node.op_type, "domain", value=domain)
    version = resolve(node.op_type, imported[domain])
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            raise PoolError(f"{version.label}: {attribute.name} refers to {attribute.ref_attr_name}, an attribute of "
                            f"the function that contains the node; inline the function, or pass a copy of the node "
                            f"with the value", version.label, attribute.name, value=attribute.ref_attr_name)
    twice = [name for name, count in Counter(attribute.name for attribute in node.attribute).items() if count > 1]
    if twice:
        raise PoolError(f"{version.label}: {twice[0]} is given more than once; keep one of the attributes",
                        version.label, twice[0])
    check_outputs(version, max((place for place, name in enumerate(node.output, 1) if name), default=1))
    given = {attribute.name: value_of(attribute) for attribute in node.attribute}
    for attribute in node.attribute:
        kind, found = version.attributes.get(attribute.name), onnx.AttributeProto.AttributeType.Name(attribute.type)
        if kind is None:
            raise foreign(version, attribute.name, given[attribute.name])
        if kind.type != found.lower():
            raise PoolTypeError(f"{version.label}: {attribute.name}={shown(given[attribute.name])} has type "
                                f"{found} in the node, but must have type {kind.type.upper()}; change it",
                                version.label, attribute.name, value=given[attribute.name])
    return by_name(node.op_type, imported[domain], given, return_indices=any(node.output[1:]))
