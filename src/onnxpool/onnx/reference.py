"""The pooling operators for onnx's ReferenceEvaluator, and an evaluator that always uses them."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar

import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from onnxpool.errors import PoolError, PoolTypeError
from onnxpool.schemas import SCHEMAS

from .nodes import from_node
from .protos import LONG_NAME, Array, ModelError, by_domain, canonical, title, unlinked


class NodeError(ModelError):
    """
    Error about a pooling node, raised on creation or when it runs. The message names the node.

    Errors about dtypes are NodeError too, not TypeError, because ReferenceEvaluator hides the message of a TypeError.
    The operator's own error is the ``__cause__``.
    """


class PoolingNode(OpRun):
    """Pooling node of a ReferenceEvaluator. The name and `op_domain` of a subclass determine the operator."""

    op_schema = None  # otherwise, onnx would add the default attributes of the newest version

    def __init__(self, onnx_node: onnx.NodeProto, run_params: dict[str, Any], schema: Any = None) -> None:
        super().__init__(onnx_node, run_params, schema)
        # Refuse wrong attributes before anything runs, except attributes that the caller of a function provides.
        self._operator = None if self.has_linked_attribute else self._made(onnx_node)

    def _made(self, node: onnx.NodeProto) -> Any:
        """The operator of a node, at the opset of the graph or function that contains it."""
        try:
            return from_node(node, self.run_params["opsets"])
        except (PoolError, PoolTypeError) as error:
            raise NodeError(f"node {title(node)!r}: {error}") from error

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Array, ...]:
        node, operator = self.onnx_node, self._operator
        if operator is None:
            node = unlinked(node, attributes)
            operator = self._made(node)
        try:
            return self._pooled(node, operator, inputs)
        except (PoolError, PoolTypeError) as error:
            raise NodeError(f"node {title(node)!r}: {error}") from error

    def _pooled(self, node: onnx.NodeProto, operator: Any, inputs: Sequence[Any]) -> tuple[Array, ...]:
        """The outputs of the node."""
        result = operator(*inputs)
        return result if isinstance(result, tuple) else (result,)


def subclasses(base: type[PoolingNode]) -> list[type[OpRun]]:
    """A subclass for each pooling operator and each name of its domain."""
    return [type(schema.operator, (base,), {"op_domain": domain, "__module__": base.__module__})
            for schema in SCHEMAS.values() for domain in ((schema.domain,) if schema.domain else ("", LONG_NAME))]


def new_ops() -> list[type[OpRun]]:
    """
    List the pooling operators in the form that ``onnx.reference.ReferenceEvaluator`` accepts.

    The list has the operators of the default domain at every opset up to 28, and of com.microsoft. Each node runs
    at the version that its graph or function imports. ReferenceEvaluator passes its `new_ops` to the bodies of If, Loop
    and Scan, but not to model-local functions. `Evaluator` covers these too.

    Returns
    -------
    list of type
        Subclasses of ``onnx.reference.op_run.OpRun``. They raise `NodeError`.

    Examples
    --------
    >>> import numpy as np
    >>> from onnx.helper import make_node
    >>> from onnx.reference import ReferenceEvaluator
    >>> from onnxpool.onnx.reference import new_ops
    >>> evaluator = ReferenceEvaluator(make_node("GlobalLpPool", ["x"], ["y"], p=1), new_ops=new_ops())
    >>> evaluator.run(None, {"x": np.ones((1, 1, 3, 3))})[0].item()
    9.0
    """
    return subclasses(PoolingNode)


class Evaluator(ReferenceEvaluator):
    """
    ReferenceEvaluator that runs all pooling nodes on onnxpool, including nodes in model-local functions.

    Unlike ReferenceEvaluator, it supports the name "ai.onnx" for the default domain, and default values of functions'
    attributes.

    Parameters
    ----------
    proto : ModelProto, GraphProto, FunctionProto, NodeProto, path_like, bytes or ModelContainer
    opsets : dict of str to int, optional
        The opset imports of a GraphProto.
    functions : list, optional
        Functions that a GraphProto calls.
    verbose : int
    new_ops : list of type, optional
        Further operators, which take precedence over onnxpool's.
    **options
        Further options of the installed ReferenceEvaluator.

    Raises
    ------
    NodeError
        If the version of a pooling node does not allow its attributes. From `run`, if a node refuses its inputs.

    Examples
    --------
    >>> import numpy as np, onnx.parser
    >>> from onnxpool.onnx.reference import Evaluator
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    ...     agraph (float[1, 1, 4] x) => (float[1, 1, 2] y) { y = local.Halved <size = [2]> (x) }
    ...     <opset_import: ["" : 21], domain: "local">
    ...     Halved <size> (a) => (b) { b = AveragePool <kernel_shape: ints = @size, strides: ints = @size> (a) }
    ... ''')
    >>> Evaluator(model).run(None, {"x": np.array([[[1, 3, 5, 9]]], np.float32)})[0].tolist()
    [[[2.0, 7.0]]]
    """

    pooling: ClassVar[list[type[OpRun]]] = new_ops()  # functions are evaluated by the same class

    def __init__(self, proto: Any, opsets: dict[str, int] | None = None, functions: Any = None, verbose: int = 0,
                 new_ops: Sequence[type[OpRun]] | None = None, **options: Any) -> None:
        if isinstance(proto, (str, os.PathLike)):
            proto = onnx.load(os.fspath(proto))
        elif isinstance(proto, bytes):
            proto = onnx.load_from_string(proto)
        opsets = None if opsets is None else by_domain(opsets.items())
        super().__init__(canonical(proto), opsets, functions, verbose, [*(new_ops or ()), *self.pooling], **options)
